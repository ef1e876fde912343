"""Likelihoods through transformers and vLLM, of the same weights.

These compare with a vLLM server that runs (VIEVAL_VLLM_URL); `test_vllm` compares it with vLLM in a
process of its own.
"""

import asyncio
import base64
import itertools
import json
import math
import urllib.request
from pathlib import Path

import pytest

from tests.extras import VLLM_URL as URL
from tests.extras import served_by_vllm
from tests.picture_questions import PICTURES, ask, likelihood
from vieval_plugin.backends import token_probabilities
from vieval_plugin.backends.http.openai import OpenAIBackend
from vieval_plugin.backends.http.server import ServerOptions, Usage
from vieval_plugin.judges.adiee import SPELLINGS
from vieval_plugin.judges.protocol import Failure, Image

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from vieval_plugin.backends.local.huggingface import TransformersBackend  # noqa: E402

ANSWERS = ("Yes", "No", "yes", " Yes")
DEFINITIONS = ("first_token", "sequence_mean")


def post(url, body):
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=300) as response:
        return json.load(response)


@pytest.fixture(scope="module")
def served():
    """The name of the served model and the folder of its weights."""
    model = served_by_vllm()
    if not Path(model["root"]).is_dir():
        pytest.skip(
            f"the weights of the server at {URL} ({model['root']}) are elsewhere"
        )
    return model["id"], model["root"]


def conversation(asked, answer=None):
    """A question as the OpenAI API takes it, with the answer as a finished turn if there is one."""
    [message] = asked.messages
    content = []
    for part in message.parts:
        if isinstance(part, Image):
            content.append({"type": "image_url", "image_url": {"url": url_of(part)}})
        else:
            content.append({"type": "text", "text": part})
    after = [] if answer is None else [{"role": "assistant", "content": answer}]
    return [{"role": "user", "content": content}, *after]


def url_of(image):
    return f"data:image/png;base64,{base64.b64encode(image.source).decode()}"


def raw_from_server(model, asked):
    """Exact values by requests of our own: an allowed token, or a prompt's probabilities."""
    values = []
    tokenize = f"{URL.removesuffix('/v1')}/tokenize"
    for answer in asked.continuations:
        text = {"model": model, "prompt": answer, "add_special_tokens": False}
        ids = post(tokenize, text)["tokens"]
        body = {"model": model, "max_tokens": 1, "temperature": 0}
        if asked.definition == "first_token":
            body |= {"messages": conversation(asked), "allowed_token_ids": ids}
            body |= {"logprobs": True, "top_logprobs": 0}
            [choice] = post(f"{URL}/chat/completions", body)["choices"]
            [entry] = choice["logprobs"]["content"]
            values.append(math.exp(entry["logprob"]))
        else:
            body |= {"messages": conversation(asked, answer), "prompt_logprobs": 0}
            body |= {"add_generation_prompt": False}
            listed = post(f"{URL}/chat/completions", body)["prompt_logprobs"]
            entries = [one for [one] in map(dict.values, listed[-len(ids) - 2 : -1])]
            values.append(math.exp(mean(entries)))
    return values


def mean(entries):
    return sum(entry["logprob"] for entry in entries) / len(entries)


async def from_server(model, asks):
    server = ServerOptions(urls=(URL,))
    async with OpenAIBackend(model, server, usage=Usage()) as backend:
        return [await backend.answer(asked) for asked in asks]


def agree(ours, theirs):
    """Require that exact values are the same, and that intervals hold them."""
    for values, bounds in zip(ours, theirs, strict=True):
        for p, (low, high) in zip(values, bounds or (), strict=bool(bounds)):
            assert low - 1e-3 <= p <= high + 1e-3
            assert low != high or p == pytest.approx(low, rel=1e-3, abs=0)


def same(values):
    return [[(p, p) for p in row] for row in values]


@pytest.fixture(scope="module")
def parity(served):
    """Questions of both definitions, and their values by transformers in float32."""
    shown = ("figure", "dog and the artifacts of the background")
    each = itertools.product(PICTURES, shown, [ANSWERS], DEFINITIONS)
    asks = [likelihood(*one) for one in each]
    backend = TransformersBackend(served[1], usage=Usage())
    return asks, [reply.low for reply in ask(backend, *asks)], backend._tokenizer


@pytest.fixture(scope="module")
def begun(served):
    """Questions about numbers of one and two tokens, and what transformers makes of them."""
    about = {"continuations": SPELLINGS, "definition": "beginning"}
    asks = [likelihood(image, **about) for image in PICTURES]
    backend = TransformersBackend(served[1], usage=Usage())
    assert len(backend._tokens("10")) == len(backend._tokens("1")) + 1
    return asks, [reply.low for reply in ask(backend, *asks)]


def holds(bounds, values, widest):
    """Require that intervals hold exact values, and are narrow."""
    for (low, high), value in zip(bounds, values, strict=True):
        assert low - 1e-6 <= value <= high + 1e-6
        assert high - low <= widest


@pytest.mark.vllm
def test_the_same_beginnings_as_from_a_vllm_server(served, begun, monkeypatch):
    """Random weights say numbers so rarely that hardly any would be asked for."""
    asks, ours = begun
    replies = asyncio.run(from_server(served[0], asks))
    for reply, values in zip(replies, ours, strict=True):
        holds(bounds_of(reply), values, 1e-4)
    monkeypatch.setattr(token_probabilities, "CLOSE_ENOUGH", 0.0)
    replies = asyncio.run(from_server(served[0], asks))
    for reply, values in zip(replies, ours, strict=True):
        assert reply.low == reply.high == pytest.approx(values, rel=1e-3)


@pytest.mark.vllm
def test_the_same_probabilities_as_from_a_vllm_server(served, parity):
    """A server tells sequence_mean only to requests of our own."""
    (model, _), (asks, ours, _) = served, parity
    agree(ours, [bounds_of(reply) for reply in asyncio.run(from_server(model, asks))])
    agree(ours, same(raw_from_server(model, one) for one in asks))


def bounds_of(reply):
    is_known = not isinstance(reply, Failure)
    return list(zip(reply.low, reply.high, strict=True)) if is_known else None
