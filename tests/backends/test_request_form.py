"""What a model takes of a request: learnt from its refusals, remembered, and what a user sets
wins over it.
"""

import asyncio
import json
import math
import sqlite3

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fake_server import HOST, FakeServer
from tests.one_server import SCHEMA, asking, chat, error, faked, saying, serving
from vieval_plugin.backends.cache import store_file
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.faults import fault_of
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.request_form import RequestForm
from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.protocol import Likelihood, Message, Text
from vieval_plugin.run.answerers import opened_store
from vieval_plugin.text.errors import VievalError

BODY = {
    "model": "m",
    "messages": [],
    "max_tokens": 1024,
    "temperature": 0.0,
    "top_logprobs": 20,
    "seed": 1,
}
SAME = RequestForm()
YES = Likelihood((Message("user", ("Is it?",)),), ("Yes", "No", "yes"), ("q",))


@pytest.mark.parametrize(
    ("message", "fields", "learnt"),
    [
        ("'seed' is not supported", {}, RequestForm(refused=("seed",))),
        (
            "temperature and seed are not supported",
            {},
            RequestForm(refused=("temperature", "seed")),
        ),
        (
            "max_tokens: 1024 > 512, which is the maximum allowed",
            {},
            RequestForm(highest={"max_tokens": 512}),
        ),
        (
            "Expected a value >= 2048, but got 1024",
            {"param": "max_tokens"},
            RequestForm(refused=("max_tokens",)),
        ),
        (
            "top_logprobs must be between 0 and 8",
            {},
            RequestForm(highest={"top_logprobs": 8}),
        ),
        ("top_logprobs is too high", {}, RequestForm(highest={"top_logprobs": 5})),
        ("The temperature of the room is 20", {}, SAME),
        ("'messages' must not be empty", {"param": "messages"}, SAME),
        ("max_tokens was reached before the end", {}, SAME),
        (
            "This model's maximum context length is 512 tokens; lower max_tokens",
            {"param": "max_tokens"},
            SAME,
        ),
        ("Rate of requests exceeded", {}, SAME),
    ],
)
def test_a_refusal_teaches_what_it_names_as_unsupported(message, fields, learnt):
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    assert SAME.taught_by(fault_of(400, body, {}, "http://a/v1"), BODY) == learnt


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("logit_bias", {"1": 2}),
        ("stop", ["a"]),
        ("user", "me"),
        ("frequency_penalty", -1),
        ("max_tokens", "many"),
        ("top_logprobs", "all"),
        ("logprobs", True),
    ],
)
def test_a_refused_field_of_any_value_is_dropped(name, value):
    body = json.dumps(
        {"error": {"message": f"'{name}' is not supported by model 4"}}
    ).encode()
    form = SAME.taught_by(
        fault_of(400, body, {}, "http://a/v1"),
        {"model": "m", "messages": [], name: value},
    )
    assert form == RequestForm(refused=(name,))
    assert name not in form.applied({name: value})


def test_a_refused_schema_is_about_its_question():
    body = json.dumps(
        {"error": {"message": "'response_format' is not supported"}}
    ).encode()
    assert (
        SAME.taught_by(
            fault_of(400, body, {}, "http://a/v1"),
            {**BODY, "response_format": {"type": "x"}},
        )
        == SAME
    )


def test_a_bound_leaves_what_is_no_number_alone():
    assert RequestForm(highest={"max_tokens": 9}).applied({"max_tokens": "many"}) == {
        "max_tokens": "many"
    }


async def test_one_question_finds_it_out_and_the_next_run_knows_it(tmp_path):
    def answer(body):
        return (
            error(400, "`temperature` is deprecated")
            if "temperature" in body
            else saying({"content": "y"})
        )

    async with serving(answer) as (url, bodies):
        for run in range(2):
            store = Store(tmp_path / "s.sqlite")
            async with asking(url, store=store) as backend:
                replies = await asyncio.gather(
                    *(backend.answer(chat(f"{run} {i}")) for i in range(8))
                )
            store.close()
    assert {reply.notes for reply in replies} == {("not sent: temperature",)}
    assert ["temperature" in body for body in bodies] == [True] + [False] * 16


async def test_what_an_older_version_remembered_is_ignored_and_a_memory_can_be_forgotten(
    tmp_path,
):
    store = Store(tmp_path / "s.sqlite")
    with FakeServer() as server:
        store.remember(f"schemas fake {server.base_url}", "not enforced")
        async with asking(server.base_url, store=store) as backend:
            assert await backend.takes_schemas()
            await backend.answer(chat("x", schema=SCHEMA))
        assert store.forget("another") == 0
        assert store.forget("fake") >= 2
    assert len(list(store.export())) == 1


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(None), {"max_tokens": 1024}),
        (Sampling(extra={"temperature": None}), {"max_tokens": 1024}),
        (
            Sampling(extra={"max_completion_tokens": 9}),
            {"temperature": 0.0, "max_completion_tokens": 9},
        ),
        (
            Sampling(extra={"max_tokens": None, "seed": 3}),
            {"temperature": 0.0, "seed": 3},
        ),
    ],
)
async def test_what_the_user_sets_wins(sampling, expected):
    async with (
        serving(lambda body: saying({"content": "y"})) as (url, bodies),
        asking(url, sampling=sampling) as b,
    ):
        await b.answer(chat("x"))
    assert {
        name: value
        for name, value in bodies[0].items()
        if name not in ("model", "messages")
    } == expected


async def test_extra_wins_over_the_number_of_log_probabilities():
    async with faked(FakeServer(), sampling=Sampling(extra={"top_logprobs": 5})) as (
        _,
        backend,
    ):
        known = await backend.answer(YES)
    assert known.high[0] > 0


def test_a_temperature_may_be_none():
    for value in (None, "none"):
        assert (
            Backbone(model="m", base_url="http://a/v1", temperature=value).temperature
            is None
        )


def listing(*pairs):
    entries = [{"token": token, "logprob": value} for token, value in pairs]
    first = {**entries[0], "top_logprobs": entries}
    return {
        "choices": [
            {
                "message": {"content": "Yes"},
                "finish_reason": "length",
                "logprobs": {"content": [first]},
            }
        ]
    }


TOKENIZERS = {
    "llama.cpp reads another field": lambda text: {"tokens": []},
    "one id for all texts": lambda text: {"tokens": [1], "count": 1},
    "pieces": lambda text: {"tokens": [{"id": 1, "piece": text}]},
    "another number than it counts": lambda text: {
        "tokens": [1, len(text)],
        "count": 1,
    },
}


@pytest.mark.parametrize("name", TOKENIZERS)
async def test_what_a_tokenizer_does_not_plainly_say_is_unknown(name):
    """llama.cpp, `tools/server/README.md`, POST /tokenize: the field is `content`."""

    async def complete(request):
        return web.json_response(
            listing(
                ("Yes", math.log(0.4)), ("yes", math.log(0.25)), ("No", math.log(0.2))
            )
        )

    async def tokenize(request):
        return web.json_response(TOKENIZERS[name]((await request.json())["prompt"]))

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    app.router.add_post("/tokenize", tokenize)
    ask = Likelihood(YES.messages, ("Yes", "No", "yes", " YES"), ("q",))
    async with (
        TestServer(app, host=HOST) as served,
        asking(f"http://{HOST}:{served.port}/v1") as backend,
    ):
        known = await backend.answer(ask)
    assert known.low == pytest.approx((0.4, 0.2, 0.25, 0.0))
    assert known.high == pytest.approx((0.4, 0.2, 0.25, 0.15))


async def test_a_masked_token_has_probability_0():
    """sgl-project/sglang issue 5984: tokens outside top_p have a log-probability of minus
    infinity.
    """
    answer = listing(("Yes", math.log(0.4)), ("No", -math.inf))
    async with serving(lambda body: answer) as (url, _), asking(url) as backend:
        assert (await backend.answer(YES)).high == pytest.approx((0.4, 0.0, 0.0))


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_server_of_another_protocol_ends_a_run_at_once(scheme):
    async def greet(reader, writer):
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, HOST, 0)
    url = f"{scheme}://{HOST}:{server.sockets[0].getsockname()[1]}/v1"
    async with asking(url, patience=60) as backend:
        with pytest.raises(
            VievalError, match="does not speak HTTP|no TLS connection"
        ) as ended:
            await backend.answer(chat("x"))
    server.close()
    assert "Error" not in str(ended.value)


async def test_long_headers_are_read():
    def answer(body):
        return web.json_response(
            saying({"content": "y"}), headers={"X-Trace": "a" * 60_000}
        )

    async with serving(answer) as (url, _), asking(url) as backend:
        assert isinstance(await backend.answer(chat("x")), Text)


def test_a_file_system_without_locks_has_no_store_and_ends_no_run(
    tmp_path, monkeypatch, capsys
):
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
