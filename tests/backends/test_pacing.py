"""Every request has an end, and one reply, however odd, holds up neither the others nor the run."""

import asyncio
import gc
import itertools
import random
import time

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from aiohttp import web

from tests.fake_server import FakeServer, Fault
from tests.one_server import (
    all_of,
    asking,
    chat,
    error,
    faked,
    handling,
    on,
    saying,
    serving,
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
    return web.json_response(
        {"error": {"message": "slow down"}}, status=429, headers=headers
    )


# A deadline a try.


async def trickle(request):
    """A byte every 20 ms, and never an end."""
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.02)


async def test_an_answer_that_trickles_is_given_up_at_the_deadline():
    async def handle(request):
        asked = text_of(await request.json())
        return (
            await trickle(request)
            if asked == "slow"
            else web.json_response(saying({"content": "y"}))
        )

    async def others(backend):
        for number in itertools.count():
            await backend.answer(chat(f"fine {number}"))
            await asyncio.sleep(0.05)

    async with (
        handling(handle) as url,
        asking(url, timeout=60, deadline=1, retries=1) as backend,
    ):
        beside = asyncio.ensure_future(others(backend))
        slow = await asyncio.wait_for(backend.answer(chat("slow")), 120)
        beside.cancel()
    assert slow.status is Status.API_ERROR
    assert slow.reason == "no complete answer within 1 s, 2 times"


async def test_a_request_that_is_read_without_end_is_given_up_too():
    async def handle(request):
        await asyncio.sleep(60)

    async with (
        handling(handle) as url,
        asking(url, timeout=60, deadline=0.2, retries=0, patience=0.5) as backend,
    ):
        with pytest.raises(VievalError, match=r"no complete answer within 0\.2 s"):
            await asyncio.wait_for(backend.answer(chat("x")), 120)


# Too many requests.


async def test_one_question_that_always_gets_429_is_one_failure():
    answer = lambda body: (
        limited() if text_of(body) == "bad" else saying({"content": "y"})
    )
    async with serving(answer) as (url, bodies), asking(url, retries=2) as backend:
        replies = asyncio.gather(
            backend.answer(chat("bad")),
            *(backend.answer(chat(f"q{i}")) for i in range(9)),
        )
        bad, *fine = await asyncio.wait_for(replies, 120)
    assert bad.status is Status.API_ERROR
    assert "429" in bad.reason
    assert all(isinstance(reply, Text) for reply in fine)
    assert len([body for body in bodies if text_of(body) == "bad"]) <= 9


async def test_a_retry_after_of_zero_does_not_hammer(short_backoff, monkeypatch):
    monkeypatch.setattr(pacing, "SHORTEST_REST", 0.2)
    async with (
        serving(lambda body: limited(0)) as (url, bodies),
        asking(url, patience=0.6) as backend,
    ):
        with pytest.raises(VievalError, match="429"):
            await all_of(backend, 3)
    assert len(bodies) < 40  # before: some thousands


@pytest.mark.parametrize("kind", ["429", "503"])
async def test_one_huge_retry_after_holds_up_neither_the_others_nor_the_run(
    kind, short_backoff, monkeypatch
):
    faults = lambda number, request: (
        Fault(kind, retry_after=HUGE) if number == 3 else None
    )
    async with faked(FakeServer(faults=faults, latency=0.02), concurrent=4) as (
        _,
        backend,
    ):
        waits = waits_asked_for(monkeypatch)
        replies = await asyncio.wait_for(all_of(backend, 60), 120)
    assert all(isinstance(reply, Text) for reply in replies)
    assert 0 < sum(waits) < 2


@pytest.mark.parametrize(("limited", "longest"), [(True, 30.0), (False, 8.0)])
def test_a_server_that_is_down_is_asked_again_sooner_than_one_that_counts_requests(
    limited, longest
):
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
        return (
            Fault("429", retry_after=HUGE) if time.monotonic() - times[0] < 4 else None
        )

    async with faked(FakeServer(faults=faults), concurrent=4) as (_, backend):
        replies = await asyncio.wait_for(all_of(backend, 10), 120)
    assert all(isinstance(reply, Text) for reply in replies)
    assert len(times) < 30


# Servers that come and go.


async def test_a_probe_that_flaps_does_not_make_a_request_endless(short_backoff):
    probes = itertools.count()

    def answer(body):
        if text_of(body) == "Say hello." and next(probes) % 2:
            return saying({"content": "hello"})
        return error(500, "no")

    async with (
        serving(answer) as (url, bodies),
        asking(url, retries=2, patience=30) as backend,
    ):
        reply = await asyncio.wait_for(backend.answer(chat("bad")), 120)
    assert reply.status is Status.API_ERROR
    assert len(bodies) < 30


async def test_a_server_that_answers_others_now_and_then_does_not_make_a_request_endless(
    short_backoff,
):
    """It is away whenever a request has had its tries, and answers something before it has them
    again.
    """
    asked = itertools.count()

    def answer(body):
        if text_of(body).startswith("other") and next(asked) % 2:
            return saying({"content": "y"})
        return error(500, "no")

    async with (
        serving(answer) as (url, _),
        asking(url, retries=1, patience=30) as backend,
    ):
        bad = asyncio.ensure_future(backend.answer(chat("bad")))
        for number in range(400):
            if bad.done():
                break
            await asyncio.wait(
                [asyncio.ensure_future(backend.answer(chat(f"other {number}")))]
            )
            await asyncio.sleep(0.02)
    assert bad.result().status is Status.API_ERROR


# What is denied: keys, models, addresses, credit.

DENIALS = {
    "401": (lambda: error(401, "no such key"), "refuses the key"),
    "402": (lambda: error(402, "x"), "no credit"),
    "403": (lambda: error(403, "not you"), "refuses the key"),
    "404": (lambda: error(404, "x"), "model or address not found"),
    "429": (lambda: error(429, "x", code="insufficient_quota"), "no credit"),
    "307": (
        lambda: web.Response(
            status=307, headers={"Location": "http://127.0.0.1:1/elsewhere"}
        ),
        "HTTP 307",
    ),
}


@pytest.mark.parametrize(("denial", "_"), DENIALS.values(), ids=DENIALS)
async def test_one_denial_among_answers_is_one_failure(denial, _):
    answer = lambda body: (
        denial() if text_of(body) == "bad" else saying({"content": "y"})
    )
    async with serving(answer) as (url, bodies), asking(url) as backend:
        await backend.answer(chat("first"))
        bad, *fine = await asyncio.gather(
            backend.answer(chat("bad")),
            *(backend.answer(chat(f"{i}")) for i in range(9)),
        )
    assert bad.status is Status.API_ERROR
    assert bad.reason.startswith("HTTP ")
    assert all(isinstance(reply, Text) for reply in fine)
    assert len(bodies) == 11


@pytest.mark.parametrize(("denial", "said"), DENIALS.values(), ids=DENIALS)
async def test_a_denial_before_any_answer_ends_the_run(denial, said):
    async with (
        serving(lambda body: denial()) as (url, bodies),
        asking(url, concurrent=4) as backend,
    ):
        with pytest.raises(VievalError, match=said):
            await all_of(backend, 50)
    assert len(bodies) <= 8


async def test_a_key_that_is_revoked_in_the_middle_ends_the_run_after_twenty():
    numbers = itertools.count(1)
    answer = lambda body: (
        saying({"content": "y"}) if next(numbers) <= 30 else error(401, "revoked")
    )
    async with serving(answer) as (url, bodies), asking(url, concurrent=4) as backend:
        with pytest.raises(VievalError, match="refuses the key"):
            await all_of(backend, 200)
    assert 50 <= len(bodies) <= 58
    assert sum(backend.usage.failures.values()) < 20


async def test_a_redirect_is_not_followed_and_what_it_asks_for_is_not_repeated():
    heard = []

    async def elsewhere(request):
        heard.append(await request.text())
        return web.json_response(saying({"content": "mine now"}))

    async with handling(elsewhere) as other:
        away = f"{other}/chat/completions?token=secret-in-a-query"
        for status in (301, 302, 303, 307, 308):
            moved = lambda body, status=status: web.Response(
                status=status, headers={"Location": away}
            )
            async with serving(moved) as (url, _), asking(url) as backend:
                with pytest.raises(
                    VievalError,
                    match=rf"HTTP {status} .*set base_url to the final address",
                ) as raised:
                    await backend.answer(chat("x"))
            assert "secret-in-a-query" not in str(raised.value)
            assert other.removesuffix("/v1") in str(raised.value)
    assert heard == []


async def test_a_path_that_a_server_does_not_have_is_no_denial_of_all():
    """Servers without /tokenize say 404 to each of twenty variants; that says nothing of the
    model.
    """
    likely = [{"token": token, "logprob": -2.0} for token in "ab"]
    answer = {
        "choices": [
            {
                "message": {"content": "a"},
                "logprobs": {"content": [{"top_logprobs": likely}]},
            }
        ]
    }
    words = tuple(f"w{i}" for i in range(30))
    async with serving(lambda body: answer) as (url, _), asking(url) as backend:
        reply = await backend.answer(
            Likelihood((Message("user", ("x",)),), words, ("q",))
        )
    assert reply.high[0] > 0


# Replies that are made to break whoever reads them.


@pytest.mark.parametrize(
    "content",
    [
        5,
        True,
        {"text": "x"},
        [["x"]],
        [{"text": {"a": 1}}],
        [{"type": "text", "text": None}],
    ],
    ids=str,
)
async def test_content_that_is_no_text_ends_nothing(content, short_backoff):
    answer = lambda body: saying(
        {"content": content if text_of(body) == "odd" else "y"}
    )
    async with serving(answer) as (url, _), asking(url, retries=0) as backend:
        odd, fine = await asyncio.gather(
            backend.answer(chat("odd")), backend.answer(chat("fine"))
        )
    assert fine.text == "y"
    assert (
        odd.status is Status.API_ERROR if not isinstance(odd, Text) else odd.text == ""
    )


async def test_headers_that_are_made_to_break_the_client_end_nothing(short_backoff):
    async def odd(reader, writer):
        body = b'{"choices": [{"message": {"content": "y"}}]}'
        request = await reader.readuntil(b"}")
        plain = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        head = next(heads) if b"odd" in request else plain
        writer.write(head + body)
        await writer.drain()
        writer.close()

    lines = [
        b"Content-Length: -5", b"Content-Length: 99999999999999999999999", b"Content-Encoding: gzip",
        b"Content-Encoding: br", b"Transfer-Encoding: chunked", (b"Set-Cookie: a=b; "
                                                                b"Domain=\xff\xfe; Expires=\x01"),
        b"X: " + b"a" * 100_000, b"Location: http://[::1", b": no name",
    ]  # fmt: skip
    heads = itertools.cycle(
        b"HTTP/1.1 200 OK\r\n" + line + b"\r\n\r\n" for line in lines
    )
    server = await asyncio.start_server(odd, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with asking(url, timeout=0.5, retries=8) as backend:
        replies = await asyncio.wait_for(all_of(backend, 10, "odd"), 120)
        assert isinstance(await backend.answer(chat("fine")), Text)
    server.close()
    assert len(replies) == 10


async def test_the_end_of_a_run_that_fails_is_told_nobody_else(short_backoff, capfd):
    """Errors of tasks that nobody waits for any more are printed by asyncio when they are thrown
    away.
    """
    complaints = []
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: complaints.append(context["message"])
    )
    server = FakeServer(faults=on("q", Fault("500")), latency=0.01)
    async with faked(server, retries=0, patience=0.2, concurrent=3) as (_, backend):
        waiting = [
            asyncio.ensure_future(backend.answer(chat(f"q {i}"))) for i in range(20)
        ]
        done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
        for task in rest:
            task.cancel()
        await asyncio.sleep(0.5)
    await asyncio.gather(*waiting, return_exceptions=True)
    del waiting, done, rest, backend
    gc.collect()
    assert complaints == []
    assert "never retrieved" not in capfd.readouterr().err
