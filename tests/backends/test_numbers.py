"""Test that an invalid number is a failure with a reason and is never stored."""

import asyncio
import json
import math
from types import SimpleNamespace

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests.one_server import listing, saying, served
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.batch import answer_in_batches
from vieval_plugin.backends.metrics import batcher
from vieval_plugin.backends.metrics.batcher import Batcher
from vieval_plugin.judges.protocol import (
    Image,
    Likelihood,
    Measure,
    Measurement,
    Message,
    Probabilities,
    Status,
    Step,
    Verdict,
)
from vieval_plugin.run.scheduler import run_concurrently, run_in_batches

ASK = Likelihood((Message("user", ("Is there a cat?",)),), ("Yes", "No"), ("q",))
NEVER = [math.nan, math.inf, 0.1, 1e-5, True, "-0.5", None, [], 10**400]


def listed(*values):
    return listing(*zip(("Yes", "No", "Maybe"), values, strict=False))


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("never", NEVER, ids=lambda value: str(value)[:9])
async def test_a_bad_log_probability_is_a_failure_and_not_kept(never, place, tmp_path):
    values, store = [-0.5, -1.5, -3.0], Store(tmp_path / "s.sqlite")
    values[place] = never
    async with served(lambda body: listed(*values), store=store) as (backend, _):
        reply = await backend.answer(ASK)
        assert reply.status is Status.API_ERROR
        assert "log-probabilit" in reply.reason
        assert list(store.export()) == []
        assert sum(backend.usage.failures.values()) == 1
        values[place] = -2.0
        assert isinstance(await backend.answer(ASK), Probabilities)


async def test_rounding_above_zero_is_zero_and_two_certain_tokens_are_a_failure():
    answers = iter([listed(5e-8, -20), listed(0.0, 0.0)])
    async with served(lambda body: next(answers)) as (backend, _):
        assert (await backend.answer(ASK)).high[0] == 1.0
        assert "must sum to at most 1, got 2" in (await backend.answer(ASK)).reason


@pytest.mark.parametrize("never", NEVER, ids=lambda value: str(value)[:9])
async def test_a_bound_is_not_closed_by_a_number_that_is_none(never):
    """The bounds of the first answer are right whatever a further request says."""
    told = saying({"content": "No"})
    told["choices"][0]["logprobs"] = {"content": [{"logprob": never}]}
    answer = lambda body: told if "allowed_token_ids" in body else listed(-0.5)
    async with served(answer) as (backend, bodies):
        backend._ids._post = lambda path, body: tokens(body["prompt"])
        reply = await backend.answer(ASK)
    assert len(bodies) > 1
    assert reply.low[1] == 0
    assert 0 < reply.high[1] < 0.5


async def tokens(text):
    return {"tokens": [ASK.continuations.index(text)], "count": 1}


# Batches: vLLM in this process, transformers, the host's own model.


def in_a_batch(reply, store):
    by = {"key": lambda *_: "k", "generate": lambda batch: [reply]}
    return answer_in_batches([(0, ASK)], **by, store=store, model="m", usage=Usage())[0]


@pytest.mark.parametrize("never", [math.nan, math.inf, 1.1, -0.1, True, "0.5"], ids=str)
def test_no_probability_that_is_none_leaves_a_batch(never, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    for low in (never, 0.0):
        reply = Probabilities((low, 0.2), (never, 0.2))
        assert in_a_batch(reply, store).status is Status.API_ERROR
    assert store.get("k") is None
    assert in_a_batch(Probabilities((0.1, 0.2), (0.1, 0.2)), store) == store.get("k")


@pytest.mark.parametrize("never", [math.nan, math.inf, 0.5], ids=str)
def test_vllm_in_this_process_is_believed_no_more_than_a_server(never):
    from vieval_plugin.backends.local.vllm import _reply

    def entry(token, value):
        return SimpleNamespace(decoded_token=token, logprob=value)

    def told(logprobs):
        output = SimpleNamespace(logprobs=logprobs)
        return _reply(ASK, SimpleNamespace(outputs=[output]))

    yes = entry("Yes", -0.5)
    assert told([{0: entry("Maybe", never), 1: yes}]).status is Status.API_ERROR
    assert told(None).status is Status.API_ERROR
    masked = entry("Maybe", -math.inf)
    assert told([{0: masked, 1: yes}]).low[0] == pytest.approx(math.exp(-0.5))


@pytest.mark.parametrize("definition", ["first_token", "sequence_mean"])
@pytest.mark.parametrize("never", [math.nan, math.inf, -math.inf, 0.5], ids=str)
def test_a_network_that_goes_wrong_is_a_failure(never, definition):
    """As half precision does when it overflows."""
    from vieval_plugin.backends.local.huggingface import TransformersBackend

    backend = TransformersBackend.__new__(TransformersBackend)
    backend._tokens, backend._end = lambda text: (len(text),), 9
    ask = Likelihood(ASK.messages, ("Yes",), ("q",), definition)
    steps = {"first_token": [{3: never}], "sequence_mean": [{3: -0.5}, {9: never}]}
    reply = backend._read(ask, [steps[definition]])
    assert reply.status is Status.API_ERROR
    assert "invalid log-probability" in reply.reason


@pytest.mark.parametrize("never", [math.nan, math.inf, -0.5, True, "x", None], ids=str)
def test_a_loss_of_the_hosts_model_that_is_none_is_a_failure(never):
    module = "vieval_plugin.hosts.lmms_eval.host_model"
    likelihood = pytest.importorskip(module, reason="lmms-eval is not installed")
    losses = [(never, False), (1.0, False), (2.0, True), (0.0, True)]
    model = SimpleNamespace(loglikelihood=lambda rows: losses)
    bad, good = likelihood.probabilities(model, [ASK, ASK])
    assert bad.status is Status.API_ERROR
    assert good.low == pytest.approx((math.exp(-2.0), 1.0))


def test_a_measurement_that_is_none_is_a_failure_and_not_kept(tmp_path, monkeypatch):
    store, value = Store(tmp_path / "s.sqlite"), math.nan
    monkeypatch.setattr(batcher, "measure", lambda ask: Measurement(value))
    ask = Measure("sharpness", {"image": Image(b"any bytes")}, ("m",))
    for value in (math.nan, math.inf, "1"):  # noqa: B007
        [reply] = Batcher(Usage(), store).measure([ask])
        assert reply.status is Status.API_ERROR
    assert list(store.export()) == []
    value = 0.5
    assert Batcher(Usage(), store).measure([ask]) == [Measurement(0.5)]


def traced(**about):
    return Verdict({"O": 0.5}, Status.OK, trace=(Step(("q",), Status.OK, **about),))


UNWRITABLE = [math.nan, math.inf, True, "0.5", 10**400]


@pytest.mark.parametrize(
    "verdict",
    [
        *(Verdict({"O": value}, Status.OK) for value in UNWRITABLE),
        Verdict({"O": 0.5}, Status.OK, bounds={"O": (0.1, math.nan)}),
        traced(scores=(1.0, math.nan)),
        traced(bounds=(math.nan, 1.0)),
        Verdict({"O": 0.5}, Status.OK, trace=("no step",)),
        {"scores": {}},
    ],
    ids=lambda verdict: str(verdict)[:80],
)
def test_a_verdict_that_cannot_be_written_is_a_tool_error_of_its_sample(verdict):
    def program(returned):
        yield []
        return returned

    fine, ended = Verdict({"O": 0.5}, Status.OK), {}
    programs = lambda: [program(one) for one in (fine, verdict, fine)]
    in_steps = run_in_batches(programs(), lambda asked: [])
    about = {"live": 2, "on_outcome": ended.__setitem__}
    asyncio.run(run_concurrently(programs(), pytest.fail, **about))
    for outcomes in (in_steps, [ended[number] for number in range(3)]):
        statuses = [outcome.verdict.status for outcome in outcomes]
        assert statuses == [Status.OK, Status.TOOL_ERROR, Status.OK]
        json.dumps([outcome.verdict.scores for outcome in outcomes], allow_nan=False)
        assert "the judge's program failed" in outcomes[1].verdict.trace[0].reason
