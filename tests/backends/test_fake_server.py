"""The fake server does what its settings say; a client's tests rest on that."""

import asyncio
import json
import math
import subprocess
import sys
import time
import urllib.request
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install "vieval[http]"')

import aiohttp

from tests.fake_server import REFUSAL, TRANSIENT, FakeServer, Fault, instance

SCHEMA = {
    "type": "object",
    "properties": {
        "score": {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 10}, "minItems": 3},
        "reasoning": {"type": "string"},
    },
    "required": ["score", "reasoning"],
}
ENFORCE = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
FORM = 'Answer so: {"score": [fidelity, overreach], "reasoning": "..."}'


def body(text=FORM, images=("AAAA",), **more):
    pictures = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}} for image in images]
    return {
        "model": "m",
        "messages": [{"role": "user", "content": [*pictures, {"type": "text", "text": text}]}],
        **more,
    }


@asynccontextmanager
async def served(**settings):
    """A server and a function that posts a body and returns status, headers and JSON."""
    with FakeServer(**settings) as server:
        async with aiohttp.ClientSession() as session:

            async def ask(request=None, **options):
                async with session.post(
                    f"{server.base_url}/chat/completions", json=body() if request is None else request, **options
                ) as answer:
                    return answer.status, answer.headers, await answer.json()

            async def get(url):
                async with session.get(url) as answer:
                    return answer.status, await answer.json()

            ask.get = get
            yield server, ask


def once(fault):
    """Only the first request meets the fault."""
    return lambda number, request: fault if number == 1 else None


async def content(ask, request=None):
    return (await ask(request))[2]["choices"][0]["message"]["content"]


async def statuses(ask, requests):
    return sorted(status for status, _, _ in await asyncio.gather(*map(ask, requests)))


# Replies.


async def test_a_reply_follows_from_text_and_images_alone():
    async with served() as (server, ask):
        _, _, first = await ask()
        assert first["choices"][0]["finish_reason"] == "stop"
        assert first["usage"]["prompt_tokens"] > 256
        assert first["usage"]["completion_tokens"] > 0
        answer = json.loads(first["choices"][0]["message"]["content"])
        assert len(answer["score"]) == 2
        assert all(0 <= score <= 10 for score in answer["score"])
        assert await content(ask, body(temperature=0)) == json.dumps(answer)
        others = [body(images=("AAAB",)), body(images=()), body(FORM + " "), body(images=("AAAA", "AAAA"))]
        assert len({await content(ask, other) for other in others} | {json.dumps(answer)}) == 5
        assert server.stats()["distinct_prompts"] == 5


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("no form", 1),
        ('{"score": [1, 2, 3]} was the example. ' + FORM, 2),
        ('"score" : [...] ... output score = [score1, score2, score3], where', 3),
    ],
)
async def test_as_many_scores_as_the_prompt_shows(text, count):
    async with served() as (_, ask):
        assert len(json.loads(await content(ask, body(text)))["score"]) == count


async def test_a_callable_writes_replies_and_sees_the_images():
    async with served(reply=lambda request: request["messages"][0]["content"][0]["image_url"]["url"]) as (_, ask):
        assert await content(ask, body(images=("QUJD",))) == "data:image/png;base64,QUJD"


async def test_max_tokens_cuts_the_reply():
    async with served() as (_, ask):
        _, _, answer = await ask(body(max_tokens=3))
        choice = answer["choices"][0]
        assert (choice["finish_reason"], len(choice["message"]["content"])) == ("length", 12)
        assert answer["usage"]["completion_tokens"] == 3


async def test_schema_enforced_ignored_and_rejected():
    async with served() as (_, ask):
        assert len(json.loads(await content(ask, body(response_format=ENFORCE)))["score"]) == 3
        unknown = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "string", "pattern": "a"}}}
        status, _, answer = await ask(body(response_format=unknown))
        assert (status, "pattern" in answer["error"]["message"]) == (400, True)
    async with served(schema_support="ignored") as (_, ask):
        with pytest.raises(ValueError, match="Expecting value"):
            json.loads(await content(ask, body(response_format=ENFORCE)))
    async with served(schema_support="rejected") as (_, ask):
        status, _, answer = await ask(body(response_format=ENFORCE))
        assert (status, "response_format" in answer["error"]["message"]) == (400, True)
        assert (await ask())[0] == 200


def test_a_smallest_instance_of_a_schema():
    schema = {
        "$defs": {
            "Box": {"type": "object", "properties": {"x": {"type": "number", "minimum": 2.5}}, "required": ["x"]}
        },
        "type": "object",
        "properties": {
            "box": {"$ref": "#/$defs/Box"},
            "boxes": {"type": "array", "items": {"$ref": "#/$defs/Box"}, "minItems": 2},
            "tool": {"enum": ["look", "stop"]},
            "version": {"const": 3},
            "maybe": {"anyOf": [{"type": "integer", "maximum": -4}, {"type": "null"}]},
            "free": {"type": "boolean"},
            "text": {"type": "string", "minLength": 20, "maxLength": 20},
            "optional": {"type": "string"},
        },
        "required": ["box", "boxes", "tool", "version", "maybe", "free", "text"],
    }
    made = instance(schema, bytes(16))
    assert len(made.pop("text")) == 20
    box = {"x": 2.5}
    assert made == {"box": box, "boxes": [box, box], "tool": "look", "version": 3, "maybe": -4, "free": False}
    scores = {
        instance({"properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}}}, bytes([i] * 16))["score"]
        for i in range(20)
    }
    assert scores == {1, 2, 3, 4, 5}


async def test_first_token_logprobs():
    asked = body("Is it a cat?", logprobs=True, top_logprobs=8, max_tokens=1)
    async with served() as (_, ask):
        _, _, answer = await ask(asked)
        [token] = answer["choices"][0]["logprobs"]["content"]
        chances = {entry["token"]: math.exp(entry["logprob"]) for entry in token["top_logprobs"]}
        assert len(chances) == 8
        assert list(chances.values()) == sorted(chances.values(), reverse=True)
        assert {"Yes", "yes", " Yes", "No"} <= set(chances)
        assert 0 < sum(chances.values()) < 1
        assert answer["choices"][0]["message"]["content"] == token["token"] == next(iter(chances))
        assert (await ask(body(logprobs=True, top_logprobs=21)))[0] == 400
    async with served(hide_yes=True) as (_, ask):
        _, _, answer = await ask(asked)
        listed = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        assert not [entry for entry in listed if entry["token"].strip().lower() == "yes"]


# Endpoints.


async def test_models_health_stats_and_key():
    async with served(api_key="secret", model="fake-vl") as (server, ask):
        status, _, answer = await ask()
        assert (status, answer["error"]["code"]) == (401, "invalid_api_key")
        assert (await ask(headers={"Authorization": "Bearer secret"}))[0] == 200
        assert (await ask.get(f"{server.base_url}/models"))[0] == 401
        assert (await ask.get(f"{server.url}/health"))[0] == 200
        _, stats = await ask.get(f"{server.url}/stats")
        assert stats == server.stats()
        assert (stats["requests"], stats["statuses"], stats["in_flight"]) == (2, {"401": 1, "200": 1}, 0)
        async with aiohttp.ClientSession() as session, session.post(f"{server.url}/stats/reset") as answer:
            assert (await answer.json())["requests"] == 0
    async with served() as (server, ask):
        _, models = await ask.get(f"{server.base_url}/models")
        assert [model["id"] for model in models["data"]] == ["fake"]


@pytest.mark.parametrize(
    "request_", [{}, {"messages": 1}, {"messages": [{"content": [{"image_url": "x"}]}]}, body(stream=True)]
)
async def test_a_request_that_makes_no_sense(request_):
    async with served() as (_, ask):
        assert (await ask(request_))[0] == 400


# Load.


async def test_latency_and_capacity():
    async with served(latency=0.2, jitter=0.05, capacity=4, seed=3) as (server, ask):
        began = time.monotonic()
        assert await statuses(ask, [body(str(i)) for i in range(12)]) == [200] * 12
        assert time.monotonic() - began >= 3 * 0.15
        stats = server.stats()
        assert (stats["max_in_flight"], stats["max_working"], stats["working"]) == (12, 4, 0)


async def test_a_full_queue_refuses():
    async with served(latency=0.2, capacity=1, max_queue=2) as (server, ask):
        assert await statuses(ask, [body(str(i)) for i in range(5)]) == [200, 200, 200, 503, 503]
        assert server.stats()["faults"] == {"queue_full": 2}


@pytest.mark.parametrize("says_when", [True, False])
async def test_rate_limit(says_when):
    async with served(rate_limit=3, retry_after=says_when) as (_, ask):
        answers = await asyncio.gather(*[ask() for _ in range(5)])
        assert sorted(status for status, _, _ in answers) == [200, 200, 200, 429, 429]
        assert [headers.get("Retry-After") for status, headers, _ in answers if status == 429] == (
            ["1", "1"] if says_when else [None, None]
        )


async def test_slow_start():
    async with served(slow_start=2) as (server, ask):
        assert (await ask())[0] == 503
        assert (await ask.get(f"{server.url}/health"))[0] == 503
        while (status := (await ask())[0]) == 503:
            await asyncio.sleep(0.05)
        assert status == 200


# Faults.


@pytest.mark.parametrize(
    ("fault", "status", "code", "retry_after"),
    [
        (Fault("429"), 429, "rate_limit_exceeded", None),
        (Fault("429", retry_after=0.5), 429, "rate_limit_exceeded", "0.5"),
        (Fault("500"), 500, None, None),
        (Fault("503", retry_after=2), 503, None, "2"),
        (Fault("overlong"), 400, "context_length_exceeded", None),
        (Fault("overlong_vllm"), 400, 400, None),
        (Fault("content_filter"), 400, "content_filter", None),
    ],
)
async def test_faults_with_a_status(fault, status, code, retry_after):
    async with served(faults=once(fault)) as (server, ask):
        got, headers, answer = await ask()
        assert (got, answer["error"]["code"], headers.get("Retry-After")) == (status, code, retry_after)
        assert "overlong" not in fault.kind or "maximum context length" in answer["error"]["message"]
        assert (await ask())[0] == 200
        assert server.stats()["faults"] == {fault.kind: 1}
        assert server.stats()["statuses"] == {str(status): 1, "200": 1}


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("cut_body", aiohttp.ClientPayloadError),
        ("invalid_json", json.JSONDecodeError),
        ("reset", aiohttp.ClientOSError),
        ("hang", asyncio.TimeoutError),
    ],
)
async def test_faults_that_break_the_exchange(kind, error):
    async with served(faults=once(Fault(kind))) as (server, ask):
        with pytest.raises(error):
            await ask(timeout=aiohttp.ClientTimeout(0.5 if kind == "hang" else 120))
        assert (await ask())[0] == 200
        assert server.stats()["faults"] == {kind: 1}
        assert server.stats()["in_flight"] == 0


async def test_faults_in_the_answer():
    kinds = ["empty_choices", "null_content", "refusal"]
    async with served(faults=lambda number, request: Fault(kinds[number - 1])) as (_, ask):
        assert (await ask())[2]["choices"] == []
        assert await content(ask) is None
        assert await content(ask) == REFUSAL


@pytest.mark.parametrize("by_script", [True, False])
async def test_death_and_return_on_the_same_port(by_script):
    async with served(latency=1, faults=once(Fault("death", seconds=2) if by_script else None)) as (server, ask):
        if not by_script:
            asyncio.get_running_loop().call_later(0.1, server.die, 2)
        with pytest.raises(aiohttp.ClientConnectionError):
            await ask()
        with pytest.raises(aiohttp.ClientConnectorError):
            await ask()
        while server.dead:
            await asyncio.sleep(0.05)
        assert (await ask())[0] == 200


async def test_hanging_requests_hold_no_shutdown_up():
    async with served(faults=lambda number, request: Fault("hang")) as (server, ask):
        hanging = [asyncio.create_task(ask()) for _ in range(8)]
        while server.stats()["in_flight"] < 8:
            await asyncio.sleep(0.01)
        server.__exit__()
        assert not server._thread.is_alive()
        errors = await asyncio.gather(*hanging, return_exceptions=True)
        assert all(isinstance(error, aiohttp.ClientConnectionError) for error in errors)
        server.__enter__()  # something for the `with` block to leave


# The random mix.

ANSWERED = tuple(fault for fault in TRANSIENT if fault.kind not in ("hang", "reset", "cut_body", "invalid_json"))


async def outcomes(seed, attempts, order=1, **shares):
    """Status by prompt, a list of attempts each."""
    async with served(seed=seed, fault_mix=ANSWERED, **shares) as (server, ask):
        found = {str(i): [(await ask(body(str(i))))[0] for _ in range(attempts)] for i in range(40)[::order]}
        return found, server.stats()["faults"]


async def test_passing_faults_go_away_and_are_the_same_in_any_order():
    found, faults = await outcomes(1, 3, fault_share=0.5)
    assert all(attempts[-1] == 200 for attempts in found.values())
    assert 25 <= sum(faults.values()) <= 55
    assert len(faults) == 5
    assert (await outcomes(1, 3, order=-1, fault_share=0.5))[0] == found
    assert (await outcomes(2, 3, fault_share=0.5))[0] != found


async def test_permanent_faults_stay():
    found, faults = await outcomes(1, 3, permanent_share=0.5)
    assert all(len(set(attempts)) == 1 for attempts in found.values())
    assert set(faults) == {"refusal", "overlong", "overlong_vllm", "content_filter"}
    assert 10 <= sum(faults.values()) / 3 <= 30


# As a process of its own.


def test_command_line():
    command = [
        sys.executable,
        Path(__file__).parents[1] / "fake_server.py",
        "--port",
        "0",
        "--latency",
        "0.2",
        "--hide-yes",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().removeprefix("listening on ").strip()
            assert url.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{url}/models", timeout=5) as answer:
                assert json.load(answer)["object"] == "list"
        finally:
            process.kill()
