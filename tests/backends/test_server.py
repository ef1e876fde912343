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
)
from tests.work import waits_asked_for
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http import server as transport
from vieval_plugin.backends.http.faults import fault_of
from vieval_plugin.judges.protocol import Failure, Status, Text
from vieval_plugin.text.errors import VievalError

pytestmark = pytest.mark.usefixtures("short_waits")


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
    url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}/v1"
    async with server, asking(url) as backend:
        for text in ("one", "two", "three"):
            assert (await backend.answer(chat(text))).text == text
            await spoken.wait()
            spoken.clear()


# Faults that pass: the faults of the first requests, options, and what is counted.

MALFORMED = ("invalid_json", "empty_choices", "null_content")
COUNTED = {"429": "rate limit", "500": "server error", "503": "server error"}
COUNTED |= {"cut_body": "cut answer", "reset": "connection"}
COUNTED |= dict.fromkeys(MALFORMED, "malformed answer")
PASSING = {kind: ([Fault(kind)] * 2, {}, {name: 2}) for kind, name in COUNTED.items()}
LIMITS = [Fault("429"), Fault("429", retry_after=0.03)] * 2
# too many requests do not use up the retries while all get them
BETWEEN = [*LIMITS, Fault("500"), *LIMITS]
PASSING["429 and 500"] = (BETWEEN, {"retries": 1}, {"rate limit": 8, "server error": 1})
# a longer rest than the patience is waited out
RESTING = [Fault("429", retry_after=0.6)]
PASSING["a long rest"] = (RESTING, {"patience": 0.3}, {"rate limit": 1})


# a single try may take this long on a busy machine too
PASSING["hang"] = ([Fault("hang")], {"timeout": 2}, {"timeout": 1})


@pytest.mark.parametrize(
    ("faults", "options", "counted"), PASSING.values(), ids=PASSING
)
async def test_a_passing_fault_is_tried_again(faults, options, counted):
    async with faked(faults=first(*faults), **options) as (server, backend):
        reply = await backend.answer(chat("x"))
    assert json.loads(reply.text)["score"]
    usage = backend.usage
    assert (usage.retries, usage.calls, usage.failures) == (counted, 1, {})
    assert server.stats()["requests"] == len(faults) + 1


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


@pytest.mark.parametrize(
    ("kind", "name", "most"), [("500", "server error", 4), ("429", "rate limit", 9)]
)
async def test_a_question_that_always_fails_is_one_failure(kind, name, most):
    sick = {"faults": on("poison", Fault(kind)), "latency": 0.01}
    async with faked(**sick, retries=2, concurrent=4) as (server, backend):
        asked = backend.answer(chat("poison")), all_of(backend, 60)
        poisoned, replies = await asyncio.gather(*asked)
    assert poisoned.status is Status.API_ERROR
    assert f"HTTP {kind}" in poisoned.reason
    assert all(isinstance(reply, Text) for reply in replies)
    assert backend.usage.failures == {name: 1}
    assert 3 <= server.stats()["statuses"][kind] <= most


async def test_even_when_it_is_the_only_question_left():
    """As in a run that is resumed: a server that answers nothing else is not down."""
    sick = on("poison", Fault("500"))
    async with faked(faults=sick, retries=2, patience=60) as (server, backend):
        reply = await backend.answer(chat("poison"))
    assert reply.status is Status.API_ERROR
    assert server.stats()["statuses"]["500"] <= 4


@pytest.mark.parametrize(
    ("kind", "pause", "options"),
    [("hang", 0, {"timeout": 0.6, "patience": 0.2}), ("503", 0.5, {"patience": 0.3})],
)
async def test_neither_the_last_question_nor_a_pause_is_silence(kind, pause, options):
    """Either may take longer than the patience."""
    async with faked(faults=first(None, Fault(kind)), **options) as (server, backend):
        await backend.answer(chat("x"))
        await asyncio.sleep(pause)
        assert isinstance(await backend.answer(chat("y")), Text)
    assert server.stats()["requests"] >= 3


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
    assert (backend.usage.failures, backend.usage.retries) == ({reason: 1}, {})
    assert server.stats()["requests"] == 2


SCORES = '{"score": [10]}'
SPLIT = [{"type": "text", "text": text} for text in ("se", "ven")]
THINKING = [{"type": "thinking", "thinking": "six"}, {"type": "thinking", "text": "6"}]
ENDS = [("stop", False), ("length", True), ("tool_calls", None), ("", None)]
ENDS += [(None, None), (["length"], None)]
UNUSUAL = [(SPLIT, "seven"), ([*THINKING, {"text": "seven"}], "seven"), ([], "")]
UNUSUAL += [("half a character: \ud83d", "half a character: ?")]
DECLINED = "I can't assist with that."
READ = [
    (saying({"content": "seven"}, end), Text("seven", cut=cut)) for end, cut in ENDS
]
READ += [(saying({"content": text}), Text(read, cut=False)) for text, read in UNUSUAL]
# a refusal in words is for the judge to read
READ += [(saying({"content": DECLINED}), Text(DECLINED, cut=False))]


@pytest.mark.parametrize(("answer", "text"), READ)
async def test_an_answer_is_read_and_kept(answer, text, tmp_path):
    async with serving(lambda body: answer) as (url, bodies):
        for _ in range(2):
            store = Store(tmp_path / "s.sqlite")
            async with asking(url, store=store) as backend:
                assert await backend.answer(chat("x \ud83d")) == text
    # an empty answer is asked for once more in the next run
    assert len(bodies) == (1 if text.text else 2)


NOTHING, WITHOUT = {"content": None}, {"content": ""}
REFUSALS = [saying({"refusal": "No.", **one}) for one in (NOTHING, WITHOUT)]
REFUSALS += [saying({"content": SCORES, "refusal": "No."})]


@pytest.mark.parametrize("answer", [*REFUSALS, saying(NOTHING, "content_filter")])
async def test_a_refusal_beside_the_text_is_a_refusal(answer):
    async with served(lambda body: answer) as (backend, bodies):
        assert (await backend.answer(chat("x"))).status is Status.REFUSAL
    assert len(bodies) == 1


THOUGHT = {"content": [{"type": "reasoning", "text": SCORES}]}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("message", [{"content": "a cat"}, {"content": ""}, THOUGHT])
async def test_what_a_server_sets_apart_as_thinking_is_no_answer(name, message):
    answer = saying({name: SCORES, **message})
    async with served(lambda body: answer) as (backend, _):
        reply = await backend.answer(chat("x"))
    assert isinstance(reply, Failure) or "score" not in reply.text


async def test_an_answer_without_end_and_json_without_end_are_failures(monkeypatch):
    monkeypatch.setattr(transport, "_MOST_BYTES", 300_000)
    deep = lambda: web.Response(text="[" * 200_000, content_type="application/json")
    long = saying({"content": "x" * 400_000})
    answers = {"deep": deep, "long": lambda: long}
    fine = lambda: saying({"content": "y"})
    answer = lambda body: answers.get(text_of(body), fine)()

    async with served(answer, retries=1) as (backend, bodies):
        asked = [await backend.answer(chat(name)) for name in ("long", "deep", "good")]
    large, nested, good = asked
    assert [large.status, nested.status] == [Status.API_ERROR] * 2
    assert "not a JSON object" in nested.reason
    assert good.text == "y"
    # too long an answer is not asked for again
    assert [text_of(body) for body in bodies].count("long") == 1


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


DOWN = "has not answered for .* check the server and run again"
IMPATIENT = {"retries": 1, "patience": 0.5, "concurrent": 8}


@pytest.mark.parametrize(
    ("fault", "at", "problem"),
    [
        (Fault("death", seconds=60), 1, DOWN),
        (Fault("death", seconds=60), 40, DOWN),
        (Fault("500"), None, "HTTP 500"),
    ],
)
async def test_a_server_that_fails_every_question_is_one_error(fault, at, problem):
    faults = lambda number, request: fault if at in (number, None) else None
    async with faked(faults=faults, latency=0.01, **IMPATIENT) as (_, backend):
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


def test_the_message_of_an_error_is_short_and_a_page_is_none():
    long = {"error": {"message": f"CUDA out of memory {'x' * 999}"}}
    reason = f"HTTP 500: CUDA out of memory {'x' * 101}"
    address = "http://a/v1"
    assert fault_of(500, json.dumps(long).encode(), {}, address).reason == reason
    page = b"<html>Bad Gateway</html>"
    assert fault_of(502, page, {}, address).reason == "HTTP 502"


async def test_death_and_return_within_the_patience_lose_nothing():
    # down for far longer than the retries of a single question last
    death = Fault("death", seconds=1.0)
    faults = lambda number, request: death if number == 40 else None
    options = {"retries": 1, "patience": 30, "concurrent": 8}
    async with faked(faults=faults, latency=0.02, **options) as (_, backend):
        replies = await all_of(backend, 100)
    assert [reply for reply in replies if not isinstance(reply, Text)] == []


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


async def test_while_one_server_rests_the_other_goes_on():
    limited = lambda number, request: Fault("429", retry_after=30)
    with FakeServer(faults=limited) as one, FakeServer() as two:
        async with asking(one.base_url, two.base_url, concurrent=4) as backend:
            replies = await asyncio.wait_for(all_of(backend, 40), 120)
        assert all(isinstance(reply, Text) for reply in replies)
        assert one.stats()["requests"] <= 4
