"""Every request has an end, and one reply, however odd, holds up neither the others nor the run."""

import asyncio
import gc
import itertools
import random
import time

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from aiohttp import web

from tests.fake_server import Fault
from tests.one_server import (
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
    text_of,
)
from tests.work import waits_asked_for
from vieval_plugin.backends.http import pacing
from vieval_plugin.judges.protocol import Likelihood, Message, Status, Text
from vieval_plugin.text.errors import VievalError

HUGE = 99999999


@pytest.fixture
def short_backoff(monkeypatch):
    monkeypatch.setattr(pacing, "BACKOFF", 0.02)
    monkeypatch.setattr(pacing, "SHORTEST_REST", 0.02)


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


async def test_a_retry_after_of_zero_does_not_hammer(short_backoff, monkeypatch):
    monkeypatch.setattr(pacing, "SHORTEST_REST", 0.2)
    async with served(lambda body: limited(0), patience=0.6) as (backend, bodies):
        with pytest.raises(VievalError, match="429"):
            await all_of(backend, 3)
    assert len(bodies) < 40  # before: some thousands


@pytest.mark.parametrize("kind", ["429", "503"])
async def test_a_huge_retry_after_holds_up_nothing(kind, short_backoff, monkeypatch):
    faults = first(None, None, Fault(kind, retry_after=HUGE))
    async with faked(faults=faults, latency=0.02, concurrent=4) as (_, backend):
        waits = waits_asked_for(monkeypatch)
        replies = await asyncio.wait_for(all_of(backend, 60), 120)
    assert all(isinstance(reply, Text) for reply in replies)
    assert 0 < sum(waits) < 2


@pytest.mark.parametrize(("limited", "longest"), [(True, 30.0), (False, 8.0)])
def test_a_server_that_is_down_rests_less_than_one_that_limits(limited, longest):
    address, rests, now = pacing.Address("http://127.0.0.1:9/v1"), [], 0.0
    for _ in range(8):
        address.start_rest_period(600.0, now, random.Random(0), limited)
        rests.append(address.rest_left(now))
        now = address.resting_until
    assert rests[:3] == [2.0, 4.0, 8.0]
    assert max(rests) == rests[-1] == longest


async def test_a_server_that_tells_everybody_to_wait_is_left_alone():
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


async def test_a_probe_that_flaps_does_not_make_a_request_endless(short_backoff):
    probes = itertools.count()

    def answer(body):
        is_up = text_of(body) == "Say hello." and next(probes) % 2
        return FINE if is_up else error(500, "no")

    async with served(answer, retries=2, patience=30) as (backend, bodies):
        reply = await asyncio.wait_for(backend.answer(chat("bad")), 120)
    assert reply.status is Status.API_ERROR
    assert len(bodies) < 30


async def test_a_server_that_answers_others_makes_none_endless(short_backoff):
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
async def test_content_that_is_no_text_ends_nothing(content, short_backoff):
    answer = but_bad(lambda: saying({"content": content}))
    async with served(answer, retries=0) as (backend, _):
        odd, _ = await bad_and_others(backend)
    is_text = isinstance(odd, Text)
    assert odd.text == "" if is_text else odd.status is Status.API_ERROR


LINES = [b"Content-Length: -5", b"Content-Length: 99999999999999999999999"]
LINES += [b"Content-Encoding: gzip", b"Content-Encoding: br", b": no name"]
LINES += [b"Transfer-Encoding: chunked", b"X: " + b"a" * 100_000]
LINES += [b"Set-Cookie: a=b; Domain=\xff\xfe; Expires=\x01", b"Location: http://[::1"]


async def test_headers_that_are_made_to_break_the_client_end_nothing(short_backoff):
    body = b'{"choices": [{"message": {"content": "y"}}]}'
    start = b"HTTP/1.1 200 OK\r\n"
    plain = start + b"Content-Length: %d\r\n\r\n" % len(body)
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


async def test_the_end_of_a_run_that_fails_is_told_nobody_else(short_backoff, capfd):
    """asyncio prints errors of tasks that nobody waits for when they are thrown away."""
    complaints = []
    noting = lambda loop, context: complaints.append(context["message"])
    asyncio.get_running_loop().set_exception_handler(noting)
    sick = {"faults": on("q", Fault("500")), "latency": 0.01}
    options = {"retries": 0, "patience": 0.2, "concurrent": 3}
    async with faked(**sick, **options) as (_, backend):
        asked = (backend.answer(chat(f"q {i}")) for i in range(20))
        waiting = [asyncio.ensure_future(one) for one in asked]
        done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
        for task in rest:
            task.cancel()
        await asyncio.sleep(0.5)
    await asyncio.gather(*waiting, return_exceptions=True)
    del waiting, done, rest, backend, asked
    gc.collect()
    assert complaints == []
    assert "never retrieved" not in capfd.readouterr().err
