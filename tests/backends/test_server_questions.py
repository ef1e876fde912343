"""Test questions to a server: sent once, in the form that its model takes, and read."""

import asyncio
import json
import math
import sqlite3

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from aiohttp import web

from tests.fake_server import HOST, FakeServer, Fault, first_token, read_request
from tests.one_server import (
    KEY,
    SCHEMA,
    all_of,
    asking,
    chat,
    error,
    faked,
    first,
    listing,
    saying,
    served,
    serving,
)
from tests.pictures import plain
from tests.tables import table
from vieval_plugin import Image
from vieval_plugin.backends.cache import store_file
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.faults import fault_of
from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.request_form import (
    HALF_CHARACTER,
    NO_PROBABILITIES,
    RequestForm,
)
from vieval_plugin.backends.http.responses import cached_tokens_of, tokens_of
from vieval_plugin.backends.reply_checks import probabilities
from vieval_plugin.config import Config
from vieval_plugin.judges.protocol import Chat, Likelihood, Message, Text
from vieval_plugin.run.answerers import opened_store
from vieval_plugin.text.errors import VievalError

pytestmark = pytest.mark.usefixtures("short_waits")


def likelihood(*words, text="z"):
    return Likelihood((Message("user", (text,)),), words, ("q",))


ASKED = Message("user", ("x",))


WAYS = [Sampling(), Sampling(0.5), Sampling(extra={"seed": 1})]


async def test_other_sampling_is_another_question(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    with FakeServer() as server:
        for sampling in WAYS * 2:
            options = {"store": store, "sampling": sampling}
            async with asking(server.base_url, **options) as backend:
                await backend.answer(chat("x"))
        assert server.stats()["requests"] == 3


async def test_images_and_texts_stay_in_order_and_a_text_alone_is_plain():
    one, two = (Image(plain((red, 2, 3))) for red in (1, 2))
    shown = Message("user", (one, "one", two, "two"))
    brief = Message("system", ("be", "brief"))
    async with served(lambda body: saying({"content": "y"})) as (backend, bodies):
        await backend.answer(Chat((shown,), ("q",)))
        await backend.answer(Chat((brief, ASKED), ("q",)))
    parts = bodies[0]["messages"][0]["content"]
    kinds = [part.get("text") or part["image_url"]["url"][:22] for part in parts]
    image = "data:image/png;base64,"
    assert kinds == [image, "one", image, "two"]
    system, user = bodies[1]["messages"]
    assert system == {"role": "system", "content": "be\n\nbrief"}
    assert user == {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("support", "sent"), [("enforced", True), ("rejected", False), ("ignored", False)]
)
async def test_whether_schemas_are_enforced_is_found_out_once(support, sent, tmp_path):
    formats = []
    noting = lambda number, request: formats.append("response_format" in request)
    with FakeServer(schema_support=support, faults=noting) as server:
        for run in range(2):
            store = Store(tmp_path / "s.sqlite")
            async with asking(server.base_url, store=store) as backend:
                asks = [chat(f"{run} {i}", schema=SCHEMA) for i in range(3)]
                await asyncio.gather(*map(backend.answer, asks))
            store.close()
    # the probe, and three questions a run
    assert formats == [True] + [sent] * 6


@pytest.mark.parametrize("kind", ["500", "empty_choices", "invalid_json", "429"])
async def test_a_fault_during_the_probe_does_not_pass_for_an_answer(kind, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    async with faked(faults=first(Fault(kind)), store=store) as (_, backend):
        assert await backend.takes_schemas()


@pytest.mark.parametrize(
    "failing",
    [lambda: error(500, "no"), lambda: saying({"content": '{"pro'}, "length")],
)
async def test_a_probe_that_fails_or_is_cut_is_made_again_next_time(failing, tmp_path):
    store, is_sick = Store(tmp_path / "s.sqlite"), True
    fine = saying({"content": '{"probe": "vieval"}'})
    is_failing = lambda body: is_sick and "response_format" in body
    async with serving(lambda b: failing() if is_failing(b) else fine) as (url, _):
        async with asking(url, store=store, retries=1) as backend:
            assert not await backend.takes_schemas()
        is_sick = False
        async with asking(url, store=store) as backend:
            assert await backend.takes_schemas()


async def test_a_schema_the_server_does_not_know_is_asked_for_in_words():
    unknown = {"score": {"type": "string", "pattern": "[0-9]"}}
    schema = {"type": "object", "properties": unknown}
    async with faked() as (server, backend):
        replies = [await backend.answer(chat(f"x{i}", schema=schema)) for i in range(3)]
        known = await backend.answer(chat("x", schema=SCHEMA))
    assert json.loads(known.text)["score"]
    assert all(isinstance(reply, Text) for reply in replies)
    assert not backend.usage.failures
    assert server.stats()["statuses"] == {"200": 5, "400": 1}  # with the probe


QUOTING = f"bad header 'Bearer {KEY}'"
PAGE = lambda: web.Response(status=400, text=QUOTING)


@pytest.mark.parametrize("answer", [lambda: error(400, QUOTING), PAGE])
async def test_an_error_that_quotes_the_key_is_not_repeated_word_for_word(answer):
    async with served(lambda body: answer(), key=KEY) as (backend, _):
        reply = await backend.answer(chat("x"))
    assert reply.reason == "HTTP 400: bad header 'Bearer [key]'"


def test_probabilities_of_listed_tokens_are_known_and_of_others_bounded():
    def logs(**listed):
        return {token: math.log(p) for token, p in listed.items()}

    known = probabilities(logs(Yes=0.6, No=0.25, Maybe=0.1), ("Yes", "No", "Never"))
    assert known.low == pytest.approx((0.6, 0.25, 0.0))
    assert known.high == pytest.approx((0.6, 0.25, 0.05))  # what the listed leave over
    least = probabilities(logs(a=0.5, b=0.1), ("c",))
    assert least.high == pytest.approx((0.1,))  # the least listed
    assert probabilities({"a": 0.0}, ("a", "b")).high == (1.0, 0.0)


async def test_likelihoods_are_those_of_the_servers_first_token():
    ask = likelihood("Yes", "No", "yes", "Perhaps", text="Is there a cat?")
    bodies = []
    noting = lambda number, request: bodies.append(request)
    async with faked(faults=noting) as (_, backend):
        known = await backend.answer(ask)
    assert backend.usage.input_tokens > 0
    expected = first_token(read_request(json.dumps(bodies[0]).encode())[1].digest)
    listed = sorted(expected.values(), reverse=True)[:20]
    rest = min(1 - math.fsum(listed), listed[-1])
    for word, low, high in zip(ask.continuations, known.low, known.high, strict=True):
        assert low == pytest.approx(expected.get(word, 0.0))
        assert high == pytest.approx(expected.get(word, rest), abs=1e-12)


async def test_tokens_that_read_alike_add_up_however_unlikely():
    pairs = [("a", math.log(0.5)), ("a", math.log(0.25)), *[("\ufffd", -9999.0)] * 2]
    answer = listing(*pairs, text="a", end="stop")
    async with served(lambda body: answer) as (backend, _):
        known = await backend.answer(likelihood("a", "\ufffd"))
    assert known.low == known.high == pytest.approx((0.75, 0.0))


@pytest.mark.parametrize(
    ("text", "reason"), [("Yes", NO_PROBABILITIES), ("\ufffd", HALF_CHARACTER)]
)
async def test_an_answer_without_probabilities_says_why(text, reason):
    async with served(lambda body: saying({"content": text})) as (backend, _):
        assert (await backend.answer(likelihood("Yes"))).reason == reason


@pytest.mark.parametrize(*table("usage_fields.jsonl"))
def test_tokens_are_read_in_each_providers_field(usage, tokens_out, cached):
    whole = {"usage": {"prompt_tokens": 10, **usage}}
    assert tokens_of(whole) == (10, tokens_out)
    assert cached_tokens_of(whole) == cached
    for never in (True, -5, 1e9, math.nan, 10**40, "5", None):
        counts = {"prompt_tokens": never, "completion_tokens": never}
        assert tokens_of({"usage": {**usage, **counts}}) == (None, None)
    assert tokens_of({"usage": None}) == tokens_of({}) == (None, None)


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
    # a refused schema is about its question
    about_schema = refusal_of("'response_format' is not supported")
    asked = {**BODY, "response_format": {"type": "x"}}
    assert SAME.taught_by(about_schema, asked) == SAME


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
