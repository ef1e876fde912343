"""Test what is learnt of a model's refusals, and that a user's settings win over it."""

import asyncio
import json
import math
import sqlite3

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from aiohttp import web

from tests.fake_server import HOST, FakeServer
from tests.one_server import (
    SCHEMA,
    all_of,
    asking,
    chat,
    error,
    faked,
    listing,
    saying,
    served,
    serving,
)
from tests.tables import table
from vieval_plugin.backends.cache import store_file
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.faults import fault_of
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.request_form import RequestForm
from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.protocol import Likelihood, Message, Text
from vieval_plugin.run.answerers import opened_store
from vieval_plugin.text.errors import VievalError

BODY = {"model": "m", "messages": [], "max_tokens": 1024, "temperature": 0.0}
BODY |= {"top_logprobs": 20, "seed": 1}
SAME = RequestForm()
YES = Likelihood((Message("user", ("Is it?",)),), ("Yes", "No", "yes"), ("q",))


def refusal_of(message, **fields):
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return fault_of(400, body, {}, "http://a/v1")


@pytest.mark.parametrize(*table("refusals_that_teach.jsonl"))
def test_a_refusal_teaches_what_it_names_as_unsupported(message, fields, learnt):
    form = RequestForm(**{**learnt, "refused": tuple(learnt.get("refused", ()))})
    assert SAME.taught_by(refusal_of(message, **fields), BODY) == form


@pytest.mark.parametrize(*table("refused_fields.jsonl"))
def test_a_refused_field_of_any_value_is_dropped(name, value):
    refused = refusal_of(f"'{name}' is not supported by model 4")
    form = SAME.taught_by(refused, {"model": "m", "messages": [], name: value})
    assert form == RequestForm(refused=(name,))
    assert name not in form.applied({name: value})


def test_a_refused_schema_is_about_its_question():
    refused = refusal_of("'response_format' is not supported")
    asked = {**BODY, "response_format": {"type": "x"}}
    assert SAME.taught_by(refused, asked) == SAME


def test_a_limit_keeps_its_value_and_a_bound_leaves_what_is_no_number_alone():
    newer = RequestForm(limit="max_completion_tokens").applied({"max_tokens": 50})
    assert newer == {"max_completion_tokens": 50}
    many = {"max_tokens": "many"}
    assert RequestForm(highest={"max_tokens": 9}).applied(many) == many


async def test_one_question_finds_it_out_and_the_next_run_knows_it(tmp_path):
    deprecated = error(400, "`temperature` is deprecated")
    answer = lambda body: deprecated if "temperature" in body else FINE
    async with serving(answer) as (url, bodies):
        for run in range(2):
            store = Store(tmp_path / "s.sqlite")
            async with asking(url, store=store) as backend:
                replies = await all_of(backend, 8, f"run {run}")
            store.close()
    assert {reply.notes for reply in replies} == {("not sent: temperature",)}
    assert ["temperature" in body for body in bodies] == [True] + [False] * 16


FINE = saying({"content": "y"})


async def test_what_an_older_version_remembered_is_ignored(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    with FakeServer() as server:
        store.remember(f"schemas fake {server.base_url}", "not enforced")
        async with asking(server.base_url, store=store) as backend:
            assert await backend.takes_schemas()
            await backend.answer(chat("x", schema=SCHEMA))
        assert store.forget("another") == 0
        assert store.forget("fake") >= 2
    assert len(list(store.export())) == 1


LIMIT, COLD = {"max_tokens": 1024}, {"temperature": 0.0}
NEWER = {"max_completion_tokens": 9}


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(None), LIMIT),
        (Sampling(extra={"temperature": None}), LIMIT),
        (Sampling(extra=NEWER), {**COLD, **NEWER}),
        (Sampling(extra={"max_tokens": None, "seed": 3}), {**COLD, "seed": 3}),
    ],
)
async def test_what_the_user_sets_wins(sampling, expected):
    async with served(lambda body: FINE, sampling=sampling) as (backend, bodies):
        await backend.answer(chat("x"))
    [body] = bodies
    assert {k: v for k, v in body.items() if k not in ("model", "messages")} == expected


async def test_extra_wins_over_the_number_of_log_probabilities():
    sampling = Sampling(extra={"top_logprobs": 5})
    async with faked(sampling=sampling) as (_, backend):
        assert (await backend.answer(YES)).high[0] > 0


@pytest.mark.parametrize("value", [None, "none"])
def test_a_temperature_may_be_none(value):
    backbone = Backbone(model="m", base_url="http://a/v1", temperature=value)
    assert backbone.temperature is None


TOKENIZERS = {
    "llama.cpp reads another field": lambda text: {"tokens": []},
    "one id for all texts": lambda text: {"tokens": [1], "count": 1},
    "pieces": lambda text: {"tokens": [{"id": 1, "piece": text}]},
    "another number": lambda text: {"tokens": [1, len(text)], "count": 1},
}
LIKELY = {"Yes": 0.4, "yes": 0.25, "No": 0.2}


@pytest.mark.parametrize("name", TOKENIZERS)
async def test_what_a_tokenizer_does_not_plainly_say_is_unknown(name):
    """llama.cpp, `tools/server/README.md`, POST /tokenize: the field is `content`."""
    answer = listing(*((token, math.log(p)) for token, p in LIKELY.items()))

    async def tokenize(path, body):
        return TOKENIZERS[name](body["prompt"])

    ask = Likelihood(YES.messages, ("Yes", "No", "yes", " YES"), ("q",))
    async with served(lambda body: answer) as (backend, _):
        backend._ids._post = tokenize
        known = await backend.answer(ask)
    assert known.low == pytest.approx((0.4, 0.2, 0.25, 0.0))
    assert known.high == pytest.approx((0.4, 0.2, 0.25, 0.15))


async def test_a_masked_token_has_probability_0():
    """sgl-project/sglang issue 5984: tokens outside top_p have minus infinity."""
    answer = listing(("Yes", math.log(0.4)), ("No", -math.inf))
    async with served(lambda body: answer) as (backend, _):
        assert (await backend.answer(YES)).high == pytest.approx((0.4, 0.0, 0.0))


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_server_of_another_protocol_ends_a_run_at_once(scheme):
    async def greet(reader, writer):
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, HOST, 0)
    url = f"{scheme}://{HOST}:{server.sockets[0].getsockname()[1]}/v1"
    ended = "does not speak HTTP|no TLS connection"
    async with asking(url, patience=60) as backend:
        with pytest.raises(VievalError, match=ended) as raised:
            await backend.answer(chat("x"))
    server.close()
    assert "Error" not in str(raised.value)


async def test_long_headers_are_read():
    def answer(body):
        return web.json_response(FINE, headers={"X-Trace": "a" * 60_000})

    async with served(answer) as (backend, _):
        assert isinstance(await backend.answer(chat("x")), Text)


def test_a_file_system_without_locks_has_no_store(tmp_path, monkeypatch, capsys):
    fcntl = pytest.importorskip("fcntl")

    def no_locks(*arguments):
        raise OSError(37, "No locks available")

    def busy(path):
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    monkeypatch.setattr(store_file.errno, "ENOLCK", 37, raising=False)
    monkeypatch.setattr(store_file, "_opened", busy)
    options = Config.model_validate({"store": {"path": str(tmp_path / "s.sqlite")}})
    with opened_store(options) as store:
        assert store is None
    assert "the file system does not support locks" in capsys.readouterr().err
