"""A number that cannot be is a failure with its reason, wherever it comes from; it is never kept
and reaches no host.
"""

import asyncio
import json
import math
import sqlite3
from types import SimpleNamespace

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests.one_server import asking, serving
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.batch import answer_in_batches
from vieval_plugin.backends.metrics import batcher
from vieval_plugin.backends.metrics.batcher import Batcher
from vieval_plugin.cli import main
from vieval_plugin.judges.protocol import (
    Failure,
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


def listing(*values):
    listed = [
        {"token": token, "logprob": value}
        for token, value in zip(("Yes", "No", "Maybe"), values, strict=False)
    ]
    return {
        "choices": [
            {
                "message": {"content": "Yes"},
                "logprobs": {"content": [{"top_logprobs": listed}]},
            }
        ]
    }


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("never", NEVER, ids=lambda value: str(value)[:9])
async def test_a_log_probability_that_is_none_is_a_failure_and_not_kept(
    never, place, tmp_path
):
    values, store = [-0.5, -1.5, -3.0], Store(tmp_path / "s.sqlite")
    values[place] = never
    async with (
        serving(lambda body: listing(*values)) as (url, _),
        asking(url, store=store) as backend,
    ):
        reply = await backend.answer(ASK)
        assert isinstance(reply, Failure)
        assert reply.status is Status.API_ERROR
        assert "log-probabilit" in reply.reason
        assert list(store.export()) == []
        assert sum(backend.usage.failures.values()) == 1
        values[place] = -2.0
        assert isinstance(await backend.answer(ASK), Probabilities)


async def test_rounding_above_zero_is_zero():
    async with (
        serving(lambda body: listing(5e-8, -20)) as (url, _),
        asking(url) as backend,
    ):
        assert (await backend.answer(ASK)).high[0] == 1.0


async def test_two_tokens_that_are_both_certain_are_a_failure():
    async with (
        serving(lambda body: listing(0.0, 0.0)) as (url, _),
        asking(url) as backend,
    ):
        assert "must sum to at most 1, got 2" in (await backend.answer(ASK)).reason


@pytest.mark.parametrize("never", NEVER, ids=lambda value: str(value)[:9])
async def test_a_bound_is_not_closed_by_a_number_that_is_none(never):
    """The bounds of the first answer are right whatever a further request says."""

    def answer(body):
        if "allowed_token_ids" in body:
            told = {"content": [{"logprob": never}]}
            return {"choices": [{"message": {"content": "No"}, "logprobs": told}]}
        return listing(-0.5)

    async with serving(answer) as (url, _), asking(url) as backend:
        backend._ids.ids_of = lambda text: asyncio.sleep(
            0, [ASK.continuations.index(text)]
        )
        reply = await backend.answer(ASK)
    assert reply.low[1] == 0
    assert 0 < reply.high[1] < 0.5


# Batches: vLLM in this process, transformers, the host's own model.


def in_a_batch(reply, store):
    usage = Usage()
    [answered] = answer_in_batches(
        [(0, ASK)],
        key=lambda *_: "k",
        generate=lambda batch: [reply],
        store=store,
        model="m",
        usage=usage,
    )
    return answered


@pytest.mark.parametrize("never", [math.nan, math.inf, 1.1, -0.1, True, "0.5"], ids=str)
def test_no_probability_that_is_none_leaves_a_batch(never, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    for reply in (
        Probabilities((never, 0.2), (never, 0.2)),
        Probabilities((0.0, 0.2), (never, 0.2)),
    ):
        assert in_a_batch(reply, store).status is Status.API_ERROR
    assert store.get("k") is None
    assert in_a_batch(Probabilities((0.1, 0.2), (0.1, 0.2)), store) == store.get("k")


@pytest.mark.parametrize("never", [math.nan, math.inf, 0.5], ids=str)
def test_vllm_in_this_process_is_believed_no_more_than_a_server(never):
    from vieval_plugin.backends.local.vllm import _reply

    def told(*values):
        entries = {
            number: SimpleNamespace(decoded_token=token, logprob=value)
            for number, (token, value) in enumerate(
                zip(("Maybe", "Yes"), values, strict=True)
            )
        }
        return SimpleNamespace(outputs=[SimpleNamespace(logprobs=[entries])])

    assert _reply(ASK, told(never, -0.5)).status is Status.API_ERROR
    assert (
        _reply(ASK, SimpleNamespace(outputs=[SimpleNamespace(logprobs=None)])).status
        is Status.API_ERROR
    )
    assert _reply(ASK, told(-math.inf, -0.5)).low[0] == pytest.approx(
        math.exp(-0.5)
    )  # a token that is masked


@pytest.mark.parametrize("definition", ["first_token", "sequence_mean"])
@pytest.mark.parametrize("never", [math.nan, math.inf, -math.inf, 0.5], ids=str)
def test_a_network_that_goes_wrong_is_a_failure(never, definition):
    """As half precision does when it overflows."""
    from vieval_plugin.backends.local.huggingface import TransformersBackend

    backend = TransformersBackend.__new__(TransformersBackend)
    backend._tokens, backend._end = lambda text: (len(text),), 9
    ask = Likelihood(ASK.messages, ("Yes",), ("q",), definition)
    values = (
        [[{3: never}]] if definition == "first_token" else [[{3: -0.5}, {9: never}]]
    )
    reply = backend._read(ask, values)
    assert reply.status is Status.API_ERROR
    assert "invalid log-probability" in reply.reason


@pytest.mark.parametrize("never", [math.nan, math.inf, -0.5, True, "x", None], ids=str)
def test_a_loss_of_the_hosts_model_that_is_none_is_a_failure(never):
    likelihood = pytest.importorskip(
        "vieval_plugin.hosts.lmms_eval.host_model", reason="lmms-eval is not installed"
    )
    model = SimpleNamespace(
        loglikelihood=lambda rows: [
            (never, False),
            (1.0, False),
            (2.0, True),
            (0.0, True),
        ]
    )
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


# Verdicts.


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict({"O": math.nan}, Status.OK),
        Verdict({"O": math.inf}, Status.OK),
        Verdict({"O": True}, Status.OK),
        Verdict({"O": "0.5"}, Status.OK),
        Verdict({"O": 10**400}, Status.OK),
        Verdict({"O": 0.5}, Status.OK, bounds={"O": (0.1, math.nan)}),
        Verdict(
            {"O": 0.5},
            Status.OK,
            trace=(Step(("q",), Status.OK, scores=(1.0, math.nan)),),
        ),
        Verdict(
            {"O": 0.5},
            Status.OK,
            trace=(Step(("q",), Status.OK, bounds=(math.nan, 1.0)),),
        ),
        Verdict({"O": 0.5}, Status.OK, trace=("no step",)),
        {"scores": {}},
    ],
    ids=lambda verdict: str(verdict)[:80],
)
def test_a_verdict_that_cannot_be_written_is_a_tool_error_of_its_sample(verdict):
    def program(returned):
        yield []
        return returned

    fine = Verdict({"O": 0.5}, Status.OK)
    in_waves = run_in_batches(
        [program(fine), program(verdict), program(fine)], lambda asked: []
    )
    ended = {}

    async def never(number, ask):
        raise AssertionError

    given = (program(one) for one in (fine, verdict, fine))
    asyncio.run(run_concurrently(given, never, live=2, on_outcome=ended.__setitem__))
    for outcomes in (in_waves, [ended[number] for number in range(3)]):
        assert [outcome.verdict.status for outcome in outcomes] == [
            Status.OK,
            Status.TOOL_ERROR,
            Status.OK,
        ]
        json.dumps([outcome.verdict.scores for outcome in outcomes], allow_nan=False)
        assert "the judge's program failed" in outcomes[1].verdict.trace[0].reason


async def test_one_nan_of_a_server_is_one_sample_without_a_score(
    store, samples_file, tmp_path, capsys
):
    """All the way: `vieval score` writes JSON, the store has no trace of it, and the next run
    asks only that again.
    """
    sick = True

    def answer(body):
        asked.append(body)
        bad = sick and len([b for b in asked if b.get("logprobs")]) == 1
        return listing(math.nan if bad else -0.1, -3.0)

    asked, out = [], tmp_path / "v.jsonl"
    rows = [json.loads(line) for line in samples_file.read_text().splitlines()]
    rows = [
        {**row, "kind": "tig", "texts": {"prompt": f"a cat {n}"}}
        for n, row in enumerate(rows)
    ]
    samples_file.write_text("\n".join(map(json.dumps, rows)))
    async with serving(answer) as (url, _):
        command = [
            "score",
            str(samples_file),
            "--judge",
            "vqascore",
            "--model",
            "fake",
            "--base-url",
            url,
        ]
        assert await asyncio.to_thread(main, [*command, "--out", str(out)]) == 1
        first = [
            json.loads(line, parse_constant=pytest.fail)
            for line in out.read_text().splitlines()
        ]
        assert [row["status"] for row in first].count("api_error") == 1
        kept = sqlite3.connect(store).execute("SELECT COUNT(*) FROM replies").fetchone()
        sick = False
        assert await asyncio.to_thread(main, [*command, "--out", str(out)]) == 0
    assert [json.loads(line)["status"] for line in out.read_text().splitlines()] == [
        "ok"
    ] * 6
    assert kept == (5,)
