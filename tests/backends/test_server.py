"""Test faults of a server: how each ends, and when the run does."""

import asyncio
import contextlib
import json
import re
import time

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from aiohttp import web

from tests.fake_server import HOST, FakeServer, Fault
from tests.one_server import (
    KEY,
    all_of,
    asking,
    chat,
    faked,
    first,
    on,
    saying,
    served,
    serving,
    text_of,
    wait_shortly,
)
from tests.work import waits_asked_for
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http import server as transport
from vieval_plugin.backends.http.faults import fault_of
from vieval_plugin.judges.protocol import Failure, Status, Text
from vieval_plugin.text.errors import VievalError


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    wait_shortly(monkeypatch)


async def test_what_comes_in_unasked_is_no_answer_to_the_next_question():
    """A server that answers twice, the second time when nobody has asked anything more."""

    spoken = asyncio.Event()

    async def twice(reader, writer):
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            asked = text_of(json.loads(await reader.readexactly(length)))
            for said in (asked, "to nobody"):
                body = json.dumps(saying({"content": said})).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await asyncio.sleep(0.05)
            spoken.set()

    async def quietly(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await twice(reader, writer)
        writer.close()

    server = await asyncio.start_server(quietly, HOST, 0)
    async with (
        server,
        asking(f"http://{HOST}:{server.sockets[0].getsockname()[1]}/v1") as backend,
    ):
        for text in ("one", "two", "three"):
            assert (await backend.answer(chat(text))).text == text
            await spoken.wait()
            spoken.clear()


# Faults that pass.


PASSING = {"429": "rate limit", "500": "server error", "503": "server error"}
PASSING |= {"cut_body": "cut answer", "reset": "connection"}
MALFORMED = ("invalid_json", "empty_choices", "null_content")
PASSING |= dict.fromkeys(MALFORMED, "malformed answer")


@pytest.mark.parametrize(("kind", "counted"), PASSING.items())
async def test_a_passing_fault_is_tried_again(kind, counted):
    async with faked(faults=first(Fault(kind), Fault(kind))) as (server, backend):
        reply = await backend.answer(chat("x"))
    assert json.loads(reply.text)["score"]
    assert backend.usage.retries == {counted: 2}
    assert backend.usage.calls == 1
    assert not backend.usage.failures
    assert server.stats()["requests"] == 3


async def test_a_server_that_does_not_answer_is_asked_again_after_the_timeout():
    async with faked(faults=first(Fault("hang")), timeout=0.5) as (_, backend):
        assert isinstance(await backend.answer(chat("x")), Text)
    assert backend.usage.retries["timeout"] >= 1
    assert not backend.usage.failures


async def test_too_many_requests_do_not_use_up_the_retries_while_all_get_them():
    limits = [Fault("429"), Fault("429", retry_after=0.03)] * 2
    faults = first(*limits, Fault("500"), *limits)
    async with faked(faults=faults, retries=1) as (_, backend):
        assert isinstance(await backend.answer(chat("x")), Text)
    assert backend.usage.retries == {"rate limit": 8, "server error": 1}
    assert not backend.usage.failures


async def test_nothing_is_sent_before_the_time_a_server_asked_for():
    times = []

    def faults(number, request):
        times.append(time.monotonic())
        return Fault("429", retry_after=0.7) if number == 1 else None

    async with faked(faults=faults) as (_, backend):
        limited = asyncio.ensure_future(backend.answer(chat("x")))
        while not backend.usage.retries:
            await asyncio.sleep(0.01)
        await all_of(backend, 5)
        await limited
    assert len(times) == 7
    assert min(times[1:]) - times[0] >= 0.7


@pytest.mark.parametrize("asked", [0, 30])
async def test_requests_at_rest_do_not_hold_up_the_end_of_a_run(asked, monkeypatch):
    """A server that answers at first and then tells everybody to wait, for ever."""
    limited = Fault("429", retry_after=asked)
    faults = lambda number, request: limited if number > 8 else None
    async with faked(faults=faults, patience=0.5, concurrent=4) as (_, backend):
        waits = waits_asked_for(monkeypatch)
        with pytest.raises(VievalError, match="has not answered for"):
            await asyncio.wait_for(all_of(backend, 40), 120)
    # some 5, for all questions together
    assert sum(waits) < 60


async def test_a_longer_rest_than_the_patience_is_waited_out():
    faults = first(Fault("429", retry_after=0.6))
    async with faked(faults=faults, patience=0.3) as (server, backend):
        assert isinstance(await backend.answer(chat("x")), Text)
    assert server.stats()["requests"] == 2


# Faults of one question.


async def test_a_question_that_always_fails_is_a_failure_and_the_others_are_answered():
    sick = {"faults": on("poison", Fault("500")), "latency": 0.01}
    async with faked(**sick, retries=2, concurrent=4) as (server, backend):
        asked = backend.answer(chat("poison")), all_of(backend, 60)
        poisoned, replies = await asyncio.gather(*asked)
    assert poisoned.status is Status.API_ERROR
    assert poisoned.reason.startswith("HTTP 500")
    assert all(isinstance(reply, Text) for reply in replies)
    assert backend.usage.failures == {"server error": 1}
    assert 3 <= server.stats()["statuses"]["500"] <= 4


async def test_even_when_it_is_the_only_question_left():
    """As in a run that is resumed: a server that answers nothing else is not down."""
    sick = on("poison", Fault("500"))
    async with faked(faults=sick, retries=2, patience=60) as (server, backend):
        reply = await backend.answer(chat("poison"))
    assert reply.status is Status.API_ERROR
    assert server.stats()["statuses"]["500"] <= 4


async def test_the_last_question_may_take_longer_than_the_patience():
    faults = first(None, Fault("hang"))
    async with faked(faults=faults, timeout=0.6, patience=0.2) as (_, backend):
        await backend.answer(chat("x"))
        assert isinstance(await backend.answer(chat("y")), Text)


async def test_time_in_which_nothing_was_asked_is_no_silence():
    faults = first(None, Fault("503"))
    async with faked(faults=faults, patience=0.3) as (server, backend):
        await backend.answer(chat("x"))
        await asyncio.sleep(0.5)
        assert isinstance(await backend.answer(chat("y")), Text)
    assert server.stats()["requests"] == 3


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("overlong", Status.API_ERROR, "too long"),
        ("overlong_vllm", Status.API_ERROR, "too long"),
        ("content_filter", Status.REFUSAL, "content filter"),
    ],
)
async def test_a_refused_question_is_not_asked_again(kind, status, reason):
    async with faked(faults=on("bad", Fault(kind))) as (server, backend):
        reply = await backend.answer(chat("bad"))
        assert isinstance(await backend.answer(chat("good")), Text)
    assert reply.status is status
    assert reason in reply.reason
    assert backend.usage.failures == {reason: 1}
    assert not backend.usage.retries
    assert server.stats()["requests"] == 2


async def test_a_refusal_in_words_is_a_text_for_the_judge_to_read():
    refusal = "I can't assist with that."
    async with faked(reply=lambda body: refusal) as (server, backend):
        assert (await backend.answer(chat("bad"))).text == refusal
    assert server.stats()["requests"] == 1


@pytest.mark.parametrize(
    "answer",
    [
        saying({"content": None, "refusal": "No."}),
        saying({"content": "", "refusal": "No."}),
        saying({"content": '{"score": [4]}', "refusal": "No."}),
        saying({"content": None}, "content_filter"),
    ],
)
async def test_a_refusal_beside_the_text_is_a_refusal(answer):
    async with served(lambda body: answer) as (backend, bodies):
        assert (await backend.answer(chat("x"))).status is Status.REFUSAL
    assert len(bodies) == 1


ENDS = [("stop", False), ("length", True), ("tool_calls", None), ("", None)]


@pytest.mark.parametrize(("end", "cut"), [*ENDS, (None, None), (["length"], None)])
async def test_whether_the_token_limit_cut_an_answer_is_kept(end, cut, tmp_path):
    answer = saying({"content": "seven"}, end)
    async with serving(lambda body: answer) as (url, bodies):
        for _ in range(2):
            store = Store(tmp_path / "s.sqlite")
            async with asking(url, store=store) as backend:
                assert await backend.answer(chat("x")) == Text("seven", cut=cut)
    assert len(bodies) == 1


SCORES = '{"score": [10]}'
THOUGHT = {"content": [{"type": "reasoning", "text": SCORES}]}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("message", [{"content": "a cat"}, {"content": ""}, THOUGHT])
async def test_what_a_server_sets_apart_as_thinking_is_no_answer(name, message):
    answer = saying({name: SCORES, **message})
    async with served(lambda body: answer) as (backend, _):
        reply = await backend.answer(chat("x"))
    assert isinstance(reply, Failure) or "score" not in reply.text


SPLIT = [{"type": "text", "text": text} for text in ("se", "ven")]
THINKING = [{"type": "thinking", "thinking": "six"}, {"type": "thinking", "text": "6"}]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (SPLIT, "seven"),
        ([*THINKING, {"text": "seven"}], "seven"),
        ([], ""),
        ("half a character: \ud83d", "half a character: ?"),
    ],
)
async def test_texts_in_unusual_forms(content, text, tmp_path):
    store, answer = Store(tmp_path / "s.sqlite"), saying({"content": content})
    async with served(lambda body: answer, store=store) as (backend, _):
        for _ in range(2):
            assert (await backend.answer(chat("x \ud83d"))).text == text
    assert backend.usage.cached + backend.usage.repeated == bool(text)


async def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(transport, "_MOST_BYTES", 100_000)
    contents = {"bad": "x" * 200_000, "good": "y"}
    answer = lambda body: saying({"content": contents[text_of(body)]})
    async with served(answer) as (backend, bodies):
        assert (await backend.answer(chat("bad"))).status is Status.API_ERROR
        assert (await backend.answer(chat("good"))).text == "y"
    assert len(bodies) == 2


async def test_json_nested_without_end_is_a_malformed_answer():
    def answer(body):
        deep = web.Response(text="[" * 200_000, content_type="application/json")
        return deep if text_of(body) == "x" else saying({"content": "y"})

    async with served(answer, retries=1) as (backend, _):
        reply = await backend.answer(chat("x"))
    assert reply.status is Status.API_ERROR
    assert "not a JSON object" in reply.reason


# Faults of the whole server.


async def test_the_right_key_is_sent_without_the_line_end_of_its_file():
    async with faked(api_key=KEY, key=f"{KEY}\n") as (server, backend):
        assert isinstance(await backend.answer(chat("x")), Text)
    with pytest.raises(VievalError, match="line break"):
        async with asking(server.base_url, key=f"{KEY}\n{KEY}"):
            pass


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000/v1", "localhost:8000/v1", "not an address"]
)
async def test_an_address_that_is_none_ends_the_run_at_once(url):
    async with asking(url, patience=60) as backend:
        with pytest.raises(VievalError, match="base_url must be an address"):
            await backend.answer(chat("x"))


async def test_a_server_that_is_down_for_good_is_one_error_and_no_failures():
    with FakeServer() as server:
        pass
    options = {"retries": 1, "patience": 0.5, "concurrent": 8}
    advice = "not answered for .* check the server and run again"
    async with asking(server.base_url, **options) as backend:
        with pytest.raises(VievalError, match=advice):
            await all_of(backend, 300)
    assert not backend.usage.failures


@pytest.mark.parametrize(
    ("fault", "at", "problem"),
    [
        (Fault("death", seconds=60), 40, "has not answered for"),
        (Fault("500"), None, "HTTP 500"),
    ],
)
async def test_a_server_that_fails_every_question_is_one_error(fault, at, problem):
    faults = lambda number, request: fault if at in (number, None) else None
    options = {"retries": 1, "patience": 0.5, "concurrent": 8}
    async with faked(faults=faults, latency=0.01, **options) as (_, backend):
        with pytest.raises(VievalError, match=problem):
            await all_of(backend, 300)
    assert not backend.usage.failures


async def test_a_server_that_fails_is_told_of_before_it_is_given_up(capsys):
    faults = first(*[Fault("500")] * 3)
    async with faked(faults=faults, patience=30, concurrent=1) as (_, backend):
        assert isinstance(await backend.answer(chat("x")), Text)
    printed = capsys.readouterr().err.splitlines()
    [line] = [line for line in printed if "trying for" in line]
    assert re.search(r"vieval: http://.*: HTTP 500.*; trying for 30 s", line)


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (
            500,
            json.dumps({"error": {"message": f"CUDA out of memory {'x' * 999}"}}),
            f"HTTP 500: CUDA out of memory {'x' * 101}",
        ),
        (502, "<html>Bad Gateway</html>", "HTTP 502"),
    ],
)
def test_the_message_of_an_error_is_short_and_a_page_is_none(status, body, reason):
    assert fault_of(status, body.encode(), {}, "http://a/v1").reason == reason


@pytest.mark.parametrize("retries", [1, 3])
async def test_death_and_return_within_the_patience_lose_nothing(retries):
    # down for far longer than the retries of a single question last
    death = Fault("death", seconds=1.0)
    faults = lambda number, request: death if number == 40 else None
    options = {"retries": retries, "patience": 30, "concurrent": 8}
    async with faked(faults=faults, latency=0.02, **options) as (_, backend):
        replies = await all_of(backend, 100)
    assert [reply for reply in replies if not isinstance(reply, Text)] == []


# Load.


async def test_no_more_requests_are_in_flight_than_allowed():
    faults = lambda number, request: Fault("500") if number % 9 == 0 else None
    async with faked(latency=0.02, faults=faults, concurrent=5) as (server, backend):
        await all_of(backend, 60)
    assert server.stats()["max_in_flight"] == 5


async def test_several_servers_share_the_load():
    with FakeServer(latency=0.02) as one, FakeServer(latency=0.02) as two:
        async with asking(one.base_url, f"{two.base_url}/", concurrent=8) as backend:
            await all_of(backend, 80)
        requests = [server.stats()["requests"] for server in (one, two)]
        assert sum(requests) == 80
        assert min(requests) >= 25
        assert max(server.stats()["max_in_flight"] for server in (one, two)) <= 6


async def test_a_server_that_was_never_there_costs_little():
    with FakeServer() as lost:
        pass
    options = {"retries": 1, "concurrent": 8}
    with FakeServer(latency=0.01) as server:
        async with asking(lost.base_url, server.base_url, **options) as backend:
            replies = await all_of(backend, 100)
    assert all(isinstance(reply, Text) for reply in replies)
    # it is idle all the time, and yet not asked first
    assert sum(backend.usage.retries.values()) <= 24


async def test_the_loss_of_one_of_several_servers_is_survived():
    options = {"retries": 1, "concurrent": 8}
    with FakeServer(latency=0.02) as one, FakeServer(latency=0.02) as two:
        async with asking(one.base_url, two.base_url, **options) as backend:
            run = asyncio.ensure_future(all_of(backend, 150))
            while backend.usage.calls < 30:
                await asyncio.sleep(0.005)
            one.die(60)
            replies = await run
    assert all(isinstance(reply, Text) for reply in replies)


async def test_while_one_server_rests_the_other_goes_on():
    limited = lambda number, request: Fault("429", retry_after=30)
    with FakeServer(faults=limited) as one, FakeServer() as two:
        async with asking(one.base_url, two.base_url, concurrent=4) as backend:
            replies = await asyncio.wait_for(all_of(backend, 40), 120)
        assert all(isinstance(reply, Text) for reply in replies)
        assert one.stats()["requests"] <= 4
