"""What tests and benchmarks rest on: the fake server's replies follow from a request alone, and so do its faults."""

import asyncio
import json
import math
import subprocess
import sys
import urllib.request
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

import aiohttp

from tests import fake_server
from tests.fake_server import TRANSIENT, FakeServer

FORM = 'Answer so: {"score": [fidelity, overreach], "reasoning": "..."}'
SCORES = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 10}, "minItems": 3}
SCHEMA = {"type": "object", "properties": {"score": SCORES}, "required": ["score"]}
ENFORCE = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}


def body(text=FORM, images=("AAAA",), **more):
    pictures = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}} for image in images]
    return {"messages": [{"role": "user", "content": [*pictures, {"type": "text", "text": text}]}], **more}


@asynccontextmanager
async def served(**settings):
    """A server and a function that posts a body and returns the status and the answer's JSON."""
    with FakeServer(**settings) as server:
        async with aiohttp.ClientSession() as session:

            async def ask(request):
                async with session.post(f"{server.base_url}/chat/completions", json=request) as answer:
                    return answer.status, await answer.json()

            yield server, ask


def text_of(answer):
    return answer[1]["choices"][0]["message"]["content"]


async def test_a_reply_follows_from_text_and_images_alone():
    async with served() as (_, ask):
        first = text_of(await ask(body()))
        assert len(json.loads(first)["score"]) == 2
        assert text_of(await ask(body(temperature=0))) == first
        others = [body(images=("AAAB",)), body(images=()), body(FORM + " "), body(images=("AAAA", "AAAA"))]
        assert len({text_of(await ask(other)) for other in others} | {first}) == 5


async def test_schemas_are_enforced_ignored_and_rejected():
    async with served() as (_, ask):
        assert len(json.loads(text_of(await ask(body(response_format=ENFORCE))))["score"]) == 3
    async with served(schema_support="ignored") as (_, ask):
        assert "out of 10" in text_of(await ask(body(response_format=ENFORCE)))
    async with served(schema_support="rejected") as (_, ask):
        assert (await ask(body(response_format=ENFORCE)))[0] == 400
        assert (await ask(body()))[0] == 200


async def test_first_token_probabilities_are_those_that_tests_compute():
    async with served() as (_, ask):
        _, answer = await ask(body("Is it a cat?", logprobs=True, top_logprobs=8))
    listed = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    expected = fake_server.first_token(bytes.fromhex(answer["id"].removeprefix("chatcmpl-")))
    assert {entry["token"]: math.exp(entry["logprob"]) for entry in listed} == pytest.approx(
        dict(list(expected.items())[:8])
    )
    assert sum(expected.values()) == pytest.approx(0.95)


async def test_no_more_than_the_capacity_is_worked_on_at_once():
    async with served(latency=0.05, capacity=4) as (server, ask):
        assert {status for status, _ in await asyncio.gather(*(ask(body(str(i))) for i in range(12)))} == {200}
        assert (server.stats()["max_in_flight"], server.stats()["max_working"]) == (12, 4)


async def test_drawn_faults_are_the_same_in_any_order_and_passing_ones_pass():
    answered = [fault for fault in TRANSIENT if fault.kind not in ("hang", "reset", "cut_body", "invalid_json")]

    async def statuses(seed, order=1, **shares):
        async with served(seed=seed, fault_mix=answered, **shares) as (_, ask):
            return {i: [(await ask(body(str(i))))[0] for _ in range(3)] for i in range(40)[::order]}

    passing = await statuses(1, fault_share=0.5)
    assert all(attempts[-1] == 200 for attempts in passing.values())
    assert await statuses(1, order=-1, fault_share=0.5) == passing != await statuses(2, fault_share=0.5)
    lasting = await statuses(1, permanent_share=0.5)
    assert {len(set(attempts)) for attempts in lasting.values()} == {1}
    assert {400} < {attempts[0] for attempts in lasting.values()}


def test_benchmarks_start_it_as_a_process_and_read_what_it_counted():
    command = [sys.executable, Path(fake_server.__file__), "--port", "0", "--latency", "0.2", "--hide-yes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().removeprefix("listening on ").strip().removesuffix("/v1")
            with urllib.request.urlopen(f"{url}/stats/reset", data=b"", timeout=60) as answer:
                assert json.load(answer)["requests"] == 0
        finally:
            process.kill()
