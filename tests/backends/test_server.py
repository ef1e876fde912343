"""Test faults of a server: how each ends, and when the run does."""

import asyncio
import contextlib
import gc
import itertools
import json
import random
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
    error,
    faked,
    first,
    handled,
    handling,
    listing,
    on,
    saying,
    served,
    serving,
    text_of,
)
from tests.work import waits_asked_for
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http import pacing
from vieval_plugin.backends.http import server as transport
from vieval_plugin.backends.http.faults import fault_of
from vieval_plugin.judges.protocol import Failure, Likelihood, Message, Status, Text
from vieval_plugin.text.errors import VievalError

pytestmark = pytest.mark.usefixtures("short_waits")


async def test_what_comes_in_unasked_is_no_answer_to_the_next_question():
    """A server that answers twice, the second time when nobody has asked anything more."""
    spoken = asyncio.Event()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"

    async def twice(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while asked := await reader.readuntil(b"\r\n\r\n"):
                length = int(re.search(rb"(?i)content-length: (\d+)", asked)[1])
                text = text_of(json.loads(await reader.readexactly(length)))
                for said in (text, "to nobody"):
                    body = json.dumps(saying({"content": said})).encode()
                    writer.write(head % len(body) + body)
                    await asyncio.sleep(0.05)
                spoken.set()
        writer.close()

    server = await asyncio.start_server(twice, HOST, 0)
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
    async with faked(faults=faults, patience=0.5, concurrent=4) as (server, backend):
        waits = waits_asked_for(monkeypatch)
        with pytest.raises(VievalError, match="has not answered for"):
            await asyncio.wait_for(all_of(backend, 40), 120)
    # some 5, for all questions together
    assert sum(waits) < 60
    # before: some thousands, where no rest was asked for
    assert server.stats()["requests"] < 300


@pytest.mark.parametrize(
    ("kind", "others", "name", "most"),
    [
        ("500", 60, "server error", 4),
        # as in a run that is resumed: a server that answers nothing else is not down
        ("500", 0, "server error", 4),
        ("429", 60, "rate limit", 9),
    ],
)
async def test_a_question_that_always_fails_is_one_failure(kind, others, name, most):
    sick = {"faults": on("poison", Fault(kind)), "latency": 0.01, "patience": 60}
    async with faked(**sick, retries=2, concurrent=4) as (server, backend):
        asked = backend.answer(chat("poison")), all_of(backend, others)
        poisoned, replies = await asyncio.gather(*asked)
    assert poisoned.status is Status.API_ERROR
    assert f"HTTP {kind}" in poisoned.reason
    assert all(isinstance(reply, Text) for reply in replies)
    assert backend.usage.failures == {name: 1}
    stats = server.stats()
    assert 3 <= stats["statuses"][kind] <= most
    assert stats["max_in_flight"] == (4 if others else 1)


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
# a refusal in words is for the judge to read
READ = [(SPLIT, "seven"), ([*THINKING, {"text": "seven"}], "seven"), ([], "")]
READ += [("half a character: \ud83d", "half a character: ?"), ("I can't.", "I can't.")]
READ = [(saying({"content": text}), Text(read, cut=False)) for text, read in READ]
CUT = {"stop": False, "length": True, "tool_calls": None, "": None, None: None}
READ += [
    (saying({"content": "7"}, end), Text("7", cut=cut)) for end, cut in CUT.items()
]
READ += [(saying({"content": "7"}, ["length"]), Text("7", cut=None))]


@pytest.mark.parametrize(("answer", "text"), READ)
async def test_an_answer_is_read_and_kept(answer, text, tmp_path):
    async with serving(lambda body: answer) as (url, bodies):
        for _ in range(2):
            store = Store(tmp_path / "s.sqlite")
            async with asking(url, store=store) as backend:
                assert await backend.answer(chat("x \ud83d")) == text
    # an empty answer is asked for once more in the next run
    assert len(bodies) == (1 if text.text else 2)


REFUSALS = [saying({"refusal": "No.", "content": one}) for one in (None, "", SCORES)]


@pytest.mark.parametrize(
    "answer", [*REFUSALS, saying({"content": None}, "content_filter")]
)
async def test_a_refusal_beside_the_text_is_a_refusal(answer):
    async with served(lambda body: answer) as (backend, bodies):
        assert (await backend.answer(chat("x"))).status is Status.REFUSAL
    assert len(bodies) == 1


THOUGHT = {"content": [{"type": "reasoning", "text": SCORES}]}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("message", [{"content": "a cat"}, {"content": ""}, THOUGHT])
async def test_what_a_server_sets_apart_as_thinking_is_no_answer(name, message):
    async with served(lambda body: saying({name: SCORES, **message})) as (backend, _):
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
    "url", ["127.0.0.1:8000/v1", "localhost:8000/v1", "no address"]
)
async def test_an_address_that_is_none_ends_the_run_at_once(url):
    async with asking(url, patience=60) as backend:
        with pytest.raises(VievalError, match="base_url must be an address"):
            await backend.answer(chat("x"))


DOWN = "has not answered for .* check the server and run again"
IMPATIENT = {"retries": 1, "patience": 0.5, "concurrent": 8}


@pytest.mark.parametrize(
    ("kind", "at", "problem"),
    [("death", 1, DOWN), ("death", 40, DOWN), ("500", 0, "500")],
)
async def test_a_server_that_fails_every_question_is_one_error(kind, at, problem):
    fault = Fault(kind, seconds=60)
    faults = lambda number, request: fault if at in (number, 0) else None
    async with faked(faults=faults, latency=0.01, **IMPATIENT) as (_, backend):
        with pytest.raises(VievalError, match=problem):
            await all_of(backend, 300)
    assert not backend.usage.failures


async def test_a_server_that_fails_is_told_of_before_it_is_given_up(capsys):
    faults = first(*[Fault("500")] * 3)
    async with faked(faults=faults, patience=30, concurrent=1) as (_, backend):
        assert isinstance(await backend.answer(chat("x")), Text)
    said = capsys.readouterr().err
    assert len(re.findall(r"vieval: http://.*: HTTP 500.*; trying for 30 s", said)) == 1


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


async def test_several_servers_share_the_load():
    with FakeServer(latency=0.02) as one, FakeServer(latency=0.02) as two:
        async with asking(one.base_url, f"{two.base_url}/", concurrent=8) as backend:
            await all_of(backend, 80)
        stats = [server.stats() for server in (one, two)]
    assert sum(stat["requests"] for stat in stats) == 80
    assert min(stat["requests"] for stat in stats) >= 25
    assert max(stat["max_in_flight"] for stat in stats) <= 6


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


HUGE = 99999999


USUAL_RESTS = pacing.FIRST_REST, pacing.LONGEST_REST


@pytest.fixture
def usual_rests(short_waits, monkeypatch):
    monkeypatch.setattr(pacing, "FIRST_REST", USUAL_RESTS[0])
    monkeypatch.setattr(pacing, "LONGEST_REST", USUAL_RESTS[1])


def limited(seconds=None):
    headers = {} if seconds is None else {"Retry-After": str(seconds)}
    body = {"error": {"message": "slow down"}}
    return web.json_response(body, status=429, headers=headers)


FINE = saying({"content": "y"})


def but_bad(answer):
    """Answers everything but the question `bad`, which gets what a function makes."""
    return lambda body: answer() if text_of(body) == "bad" else FINE


async def bad_and_others(backend):
    """The reply to the question `bad`, asked among nine others, and theirs."""
    asked = backend.answer(chat("bad")), all_of(backend, 9, "fine")
    return await asyncio.wait_for(asyncio.gather(*asked), 120)


async def trickle(request):
    """A byte every 20 ms, and never an end."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.02)


async def test_a_response_without_end_is_given_up_at_the_deadline():
    async def handle(request):
        text = text_of(await request.json())
        if text == "silent":
            await asyncio.sleep(60)
        return await trickle(request) if text == "slow" else web.json_response(FINE)

    async def others(backend):
        for number in itertools.count():
            await backend.answer(chat(f"fine {number}"))
            await asyncio.sleep(0.05)

    async with handled(handle, timeout=60, deadline=1, retries=1) as backend:
        beside = asyncio.ensure_future(others(backend))
        endless = (backend.answer(chat(text)) for text in ("slow", "silent"))
        replies = await asyncio.wait_for(asyncio.gather(*endless), 120)
        beside.cancel()
    reason = "no complete response within 1 s, 2 times"
    assert [(one.status, one.reason) for one in replies] == [
        (Status.API_ERROR, reason)
    ] * 2


@pytest.mark.parametrize("kind", ["429", "503"])
async def test_a_huge_retry_after_holds_up_nothing(kind, usual_rests, monkeypatch):
    faults = first(None, None, Fault(kind, retry_after=HUGE))
    async with faked(faults=faults, latency=0.02, concurrent=4) as (_, backend):
        waits = waits_asked_for(monkeypatch)
        replies = await asyncio.wait_for(all_of(backend, 60), 120)
    assert all(isinstance(reply, Text) for reply in replies)
    assert 0 < sum(waits) < 2


@pytest.mark.parametrize(("limited", "longest"), [(True, 30.0), (False, 8.0)])
def test_a_server_that_is_down_rests_less_than_one_that_limits(
    usual_rests, limited, longest
):
    address, rests, now = pacing.Address("http://127.0.0.1:9/v1"), [], 0.0
    for _ in range(8):
        address.start_rest_period(600.0, now, random.Random(0), limited)
        rests.append(address.rest_left(now))
        now = address.resting_until
    assert rests[:3] == [2.0, 4.0, 8.0]
    assert max(rests) == rests[-1] == longest


async def test_a_server_that_tells_everybody_to_wait_is_left_alone(usual_rests):
    """The rest it asks for is believed more each time, and asked for by few requests only."""
    times = []

    def faults(number, request):
        times.append(time.monotonic())
        is_early = times[-1] - times[0] < 4
        return Fault("429", retry_after=HUGE) if is_early else None

    async with faked(faults=faults, concurrent=4) as (_, backend):
        replies = await asyncio.wait_for(all_of(backend, 10), 120)
    assert all(isinstance(reply, Text) for reply in replies)
    assert len(times) < 30


async def test_a_probe_that_flaps_does_not_make_a_request_endless():
    probes = itertools.count()

    def answer(body):
        is_up = text_of(body) == "Say hello." and next(probes) % 2
        return FINE if is_up else error(500, "no")

    async with served(answer, retries=2, patience=30) as (backend, bodies):
        reply = await asyncio.wait_for(backend.answer(chat("bad")), 120)
    assert reply.status is Status.API_ERROR
    assert len(bodies) < 30


async def test_a_server_that_answers_others_makes_none_endless():
    """It fails a request's tries, then answers something before it is tried again."""
    asked = itertools.count()

    def answer(body):
        is_up = text_of(body).startswith("other") and next(asked) % 2
        return FINE if is_up else error(500, "no")

    async with served(answer, retries=1, patience=30) as (backend, _):
        bad = asyncio.ensure_future(backend.answer(chat("bad")))
        for number in range(400):
            if bad.done():
                break
            other = asyncio.ensure_future(backend.answer(chat(f"other {number}")))
            await asyncio.wait([other])
            await asyncio.sleep(0.02)
    assert bad.result().status is Status.API_ERROR


def moved(status=307, location="http://127.0.0.1:1/elsewhere"):
    return web.Response(status=status, headers={"Location": location})


DENIALS = {
    "401": (lambda: error(401, "no such key"), "refuses the key"),
    "402": (lambda: error(402, "x"), "no credit"),
    "403": (lambda: error(403, "not you"), "refuses the key"),
    "404": (lambda: error(404, "x"), "model or address not found"),
    "429": (lambda: error(429, "x", code="insufficient_quota"), "no credit"),
    "307": (moved, "HTTP 307"),
}


@pytest.mark.parametrize(("denial", "said"), DENIALS.values(), ids=DENIALS)
async def test_a_denial_is_one_failure_among_answers_and_else_ends_the_run(
    denial, said
):
    async with served(but_bad(denial)) as (backend, bodies):
        await backend.answer(chat("first"))
        bad, fine = await bad_and_others(backend)
    assert bad.status is Status.API_ERROR
    assert bad.reason.startswith("HTTP ")
    assert all(isinstance(reply, Text) for reply in fine)
    assert len(bodies) == 11
    async with served(lambda body: denial(), concurrent=4) as (backend, bodies):
        with pytest.raises(VievalError, match=said):
            await all_of(backend, 50)
    assert len(bodies) <= 8


async def test_a_key_that_is_revoked_in_the_middle_ends_the_run_after_twenty():
    numbers = itertools.count(1)
    answer = lambda body: FINE if next(numbers) <= 30 else error(401, "revoked")
    async with served(answer, concurrent=4) as (backend, bodies):
        with pytest.raises(VievalError, match="refuses the key"):
            await all_of(backend, 200)
    assert 50 <= len(bodies) <= 58
    assert sum(backend.usage.failures.values()) < 20


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_its_address_not_repeated(status):
    heard = []

    async def elsewhere(request):
        heard.append(await request.text())
        return web.json_response(FINE)

    final = rf"HTTP {status} .*set base_url to the final address"
    async with handling(elsewhere) as other:
        away = f"{other}/chat/completions?token=secret-in-a-query"
        async with served(lambda body: moved(status, away)) as (backend, _):
            with pytest.raises(VievalError, match=final) as raised:
                await backend.answer(chat("x"))
        assert "secret-in-a-query" not in str(raised.value)
        assert other.removesuffix("/v1") in str(raised.value)
    assert heard == []


async def test_a_path_that_a_server_does_not_have_is_no_denial_of_all():
    """Servers without /tokenize say 404 to each variant, which says nothing of the model."""
    answer = listing(("a", -2.0), ("b", -2.0), text="a")
    words = tuple(f"w{i}" for i in range(30))
    asked = Likelihood((Message("user", ("x",)),), words, ("q",))
    async with served(lambda body: answer) as (backend, _):
        reply = await backend.answer(asked)
    assert reply.high[0] > 0


ODD = [5, True, {"text": "x"}, [["x"]], [{"text": {"a": 1}}]]


@pytest.mark.parametrize("content", [*ODD, [{"type": "text", "text": None}]], ids=str)
async def test_content_that_is_no_text_ends_nothing(content):
    answer = but_bad(lambda: saying({"content": content}))
    async with served(answer, retries=0) as (backend, _):
        odd, _ = await bad_and_others(backend)
    is_text = isinstance(odd, Text)
    assert odd.text == "" if is_text else odd.status is Status.API_ERROR


LINES = [b"Content-Length: -5", b"Content-Length: 99999999999999999999999"]
LINES += [b"Content-Encoding: gzip", b"Content-Encoding: br", b": no name"]
LINES += [b"Transfer-Encoding: chunked", b"X: " + b"a" * 100_000]
LINES += [b"Set-Cookie: a=b; Domain=\xff\xfe; Expires=\x01", b"Location: http://[::1"]


async def test_headers_that_are_made_to_break_the_client_end_nothing():
    body = b'{"choices": [{"message": {"content": "y"}}]}'
    start = b"HTTP/1.1 200 OK\r\n"
    # long headers are read
    plain = start + b"X-Trace: " + b"a" * 60_000
    plain += b"\r\nContent-Length: %d\r\n\r\n" % len(body)
    heads = itertools.cycle(start + line + b"\r\n\r\n" for line in LINES)

    async def odd(reader, writer):
        request = await reader.readuntil(b"}")
        writer.write((next(heads) if b"odd" in request else plain) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(odd, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with asking(url, timeout=0.5, retries=8) as backend:
        replies = await asyncio.wait_for(all_of(backend, 10, "odd"), 120)
        assert isinstance(await backend.answer(chat("fine")), Text)
    server.close()
    assert len(replies) == 10


async def test_the_end_of_a_run_that_fails_is_told_nobody_else(capfd):
    """asyncio prints errors of tasks that nobody waits for when they are thrown away."""
    complaints = []
    noting = lambda loop, context: complaints.append(context["message"])
    asyncio.get_running_loop().set_exception_handler(noting)
    sick = {"faults": on("q", Fault("500")), "latency": 0.01}
    async with faked(**sick, retries=0, patience=0.2, concurrent=3) as (_, backend):
        asked = (backend.answer(chat(f"q {i}")) for i in range(20))
        waiting = [asyncio.ensure_future(one) for one in asked]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
        for task in waiting:
            task.cancel()
        await asyncio.sleep(0.5)
    await asyncio.gather(*waiting, return_exceptions=True)
    del waiting, backend, asked, task
    gc.collect()
    assert complaints == []
    assert "never retrieved" not in capfd.readouterr().err
