"""Questions to a server of the test's own, and what it answers."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import fields

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.fake_server import HOST, FakeServer, Settings
from vieval_plugin.backends.http import pacing
from vieval_plugin.backends.http.openai import OpenAIBackend, Sampling
from vieval_plugin.backends.http.server import ServerOptions, Usage
from vieval_plugin.judges.protocol import Chat, Message

SETTINGS = {field.name for field in fields(Settings)}
KEY = "sk-never-to-be-shown-Zq81"
SCORES = {"type": "array", "items": {"type": "number", "maximum": 10}, "minItems": 2}
SCHEMA = {"type": "object", "properties": {"score": SCORES}, "required": ["score"]}


def wait_shortly(monkeypatch):
    """Pauses and rests of hundredths of a second."""
    monkeypatch.setattr(pacing, "BACKOFF", 0.02)
    monkeypatch.setattr(pacing, "SHORTEST_REST", 0.02)
    monkeypatch.setattr(pacing, "FIRST_REST", 1.0)
    monkeypatch.setattr(pacing, "LONGEST_REST", 1.0)


@asynccontextmanager
async def asking(*urls, store=None, sampling=Sampling(), sight_check=False, **options):
    """A backend of the servers at these addresses; its `usage` tells what happened."""
    server = ServerOptions(urls, **options)
    more = {"sampling": sampling, "store": store, "sight_check": sight_check}
    async with OpenAIBackend("fake", server, usage=Usage(), **more) as backend:
        yield backend


@asynccontextmanager
async def faked(server=None, **options):
    """A fake server that is running, and a backend of it; `options` are of either."""
    settings = {name: options.pop(name) for name in SETTINGS & options.keys()}
    with server or FakeServer(**settings) as running:
        async with asking(running.base_url, **options) as backend:
            yield running, backend


@asynccontextmanager
async def handling(handle):
    """A server of one handler of aiohttp's; yields its address."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handle)
    async with TestServer(app, host=HOST) as served:
        yield f"http://{HOST}:{served.port}/v1"


@asynccontextmanager
async def serving(answer):
    """A server whose responses `answer(request)` makes; yields its address and its requests."""
    bodies = []

    async def handle(request):
        bodies.append(await request.json())
        response = answer(bodies[-1])
        return web.json_response(response) if isinstance(response, dict) else response

    async with handling(handle) as url:
        yield url, bodies


@asynccontextmanager
async def handled(handle, **options):
    """A backend of a server of one handler of aiohttp's."""
    async with handling(handle) as url, asking(url, **options) as backend:
        yield backend


@asynccontextmanager
async def served(answer, **options):
    """A backend of a server whose responses `answer(request)` makes, and its requests."""
    async with serving(answer) as (url, bodies), asking(url, **options) as backend:
        yield backend, bodies


def saying(message, end="stop", **more):
    return {"choices": [{"message": message, "finish_reason": end}], **more}


def error(status, message, **more):
    return web.json_response({"error": {"message": message, **more}}, status=status)


def chat(text, **more):
    return Chat((Message("user", (text,)),), ("q",), **more)


def text_of(request):
    return request["messages"][-1]["content"]


def first(*faults):
    """The first requests meet these faults, one each."""
    return lambda number, request: faults[number - 1] if number <= len(faults) else None


def on(word, fault):
    """Requests whose text has the word always meet the fault."""
    return lambda number, request: fault if word in text_of(request) else None


async def all_of(backend, count, text="question"):
    chats = [chat(f"{text} {number}") for number in range(count)]
    return await asyncio.gather(*map(backend.answer, chats))


def listing(*pairs, text="Yes", end="length"):
    """An answer whose first token is the first of these, with their log-probabilities."""
    listed = [{"token": token, "logprob": value} for token, value in pairs]
    answer = saying({"content": text}, end)
    content = [{**listed[0], "top_logprobs": listed}]
    answer["choices"][0]["logprobs"] = {"content": content}
    return answer
