"""Test the probabilities of beginnings of several tokens, with a table as the model."""

import asyncio
import itertools
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from vieval_plugin.backends.http.faults import Refused
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.vllm import VLLMBackend
from vieval_plugin.backends.token_probabilities import (
    TokenIds,
    bounds_from_first_tokens,
    prefix_probabilities,
    probabilities_from_bounds,
)
from vieval_plugin.judges.adiee import SPELLINGS
from vieval_plugin.judges.protocol import Failure, Likelihood, Message, Status

LETTERS = " 0123456789ab"
QUESTION = [{"role": "user", "content": "How well?"}]


class Server:
    """Says of each beginning up to two letters how likely each letter is next; a letter is a token.

    `listed` of them are shown. One that does not `go_on` with a turn answers as if nothing had been
    said.
    """

    def __init__(self, seed, listed=4, tokenizes=True, goes_on=True):
        rng, self.requests = np.random.default_rng(seed), 0
        begun = [text for n in range(3) for text in texts(n)]
        self.model = {text: rng.dirichlet(np.full(len(LETTERS), 0.5)) for text in begun}
        self.listed, self.tokenizes, self.goes_on = listed, tokenizes, goes_on

    def chance(self, text):
        """That an answer begins with a text."""
        rows = (self.model[text[:n]] for n in range(len(text)))
        return math.prod(row[id] for row, id in zip(rows, ids(text), strict=True))

    async def post(self, path, body):
        if path == "../tokenize":
            if not self.tokenizes:
                raise Refused(Status.API_ERROR, "HTTP 404", "no such path")
            return {"count": len(body["prompt"]), "tokens": ids(body["prompt"])}
        self.requests += 1
        *_, last = body["messages"]
        goes_on = last["role"] == "assistant" and body.get("continue_final_message")
        said = last["content"] if goes_on else ""
        row = map(math.log, self.model[said if self.goes_on else ""])
        pairs = zip(LETTERS, row, strict=True)
        logged = [{"token": letter, "logprob": value} for letter, value in pairs]
        likeliest = sorted(logged, key=lambda one: -one["logprob"])[: self.listed]
        [allowed] = body.get("allowed_token_ids", [None])
        chosen = likeliest[0] if allowed is None else logged[allowed]
        content = {**chosen, "top_logprobs": likeliest}
        choice = {"message": {"content": "?"}, "logprobs": {"content": [content]}}
        usage = {"prompt_tokens": 9 + len(said) * self.goes_on, "completion_tokens": 1}
        return {"choices": [choice], "usage": usage}

    def asked(self, continuations):
        async def ask():
            body = {"model": "m", "messages": QUESTION, "max_tokens": 1}
            body |= {"logprobs": True, "top_logprobs": self.listed}
            answer = await self.post("chat/completions", body)
            [content] = answer["choices"][0]["logprobs"]["content"]
            listed = {one["token"]: one["logprob"] for one in content["top_logprobs"]}
            tokens = TokenIds("m", self.post)
            about = (answer, listed, continuations, tokens, body, self.post)
            return await prefix_probabilities(*about)

        return asyncio.run(ask())

    def truth(self, continuations):
        """That an answer begins with each text and with no longer one, over all answers."""
        found = dict.fromkeys(continuations, 0.0)
        for answer in texts(3):
            fits = [text for text in continuations if answer.startswith(text)]
            if fits:
                found[max(fits, key=len)] += self.chance(answer)
        return list(found.values())


def texts(length):
    """All texts of a length."""
    return map("".join, itertools.product(LETTERS, repeat=length))


def ids(text):
    return [LETTERS.index(letter) for letter in text]


def require_held(found, truth, widest=2):
    """Require that intervals hold the true values, and are no wider than this."""
    for low, value, high in zip(found.low, truth, found.high, strict=True):
        assert low - 1e-9 <= value <= high + 1e-9
        assert high - low < widest


@pytest.mark.parametrize("seed", range(5))
def test_a_server_that_goes_on_with_a_turn_tells_them_exactly(seed):
    server = Server(seed)
    truth = server.truth(SPELLINGS)
    assert sum(truth) > 0.1
    # what is less likely than the fourth decimal is not asked for
    require_held(server.asked(SPELLINGS), truth, 2e-4)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lacking", ["tokenizes", "goes_on"])
def test_what_a_server_cannot_tell_lies_within_bounds(seed, lacking):
    server = Server(seed, **{lacking: False})
    found = server.asked(SPELLINGS)
    require_held(found, server.truth(SPELLINGS))
    place = SPELLINGS.index("10")
    assert found.low[place] < found.high[place]


@pytest.mark.parametrize(
    ("listed", "low", "high"),
    [
        ({"10": 0.5, "1": 0.25, "7": 0.25}, (0.25, 0.25, 0.5), (0.25, 0.25, 0.5)),
        ({"1": 0.6, "7": 0.4}, (0.0, 0.4, 0.0), (0.6, 0.4, 0.6)),
    ],
)
def test_a_ten_that_is_not_a_listed_token_may_be_all_of_the_one(listed, low, high):
    logs = {token: math.log(share) for token, share in listed.items()}
    found = bounds_from_first_tokens(logs, ("1", "7", "10"))
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)
    impossible = bounds_from_first_tokens({"1": 0.0, "2": 0.0}, ("1", "2"))
    assert isinstance(impossible, Failure)


def test_two_spellings_of_the_same_tokens_count_once_and_one_without_tokens_not():
    known = {(): {1: (0.5, 0.5), 7: (0.25, 0.25)}}
    found = probabilities_from_bounds([(7,), (7,), None, ()], known)
    assert found.low == found.high == (0.25, 0, 0, 0)


class Engine:
    """What vLLM's engine and its tokenizer are to the backend, over the same table."""

    llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=lambda: None))

    def __init__(self, server):
        self.server = server

    def get_tokenizer(self):
        return self

    def encode(self, text, add_special_tokens):
        return ids(text)

    def decode(self, tokens):
        return "".join(LETTERS[token] for token in tokens)

    def chat(self, conversations, parameters, continue_final_message, **_):
        pairs = zip(conversations, parameters, strict=True)
        return [self.answer(*one, continue_final_message) for one in pairs]

    def answer(self, conversation, parameters, goes_on):
        said = conversation[-1]["content"] if goes_on else ""
        row = dict(enumerate(self.server.model[said]))
        likeliest = sorted(row, key=row.get)[-self.server.listed :]
        shown = parameters.get("allowed_token_ids", likeliest)
        logged = {id: SimpleNamespace(logprob=math.log(row[id])) for id in shown}
        output = SimpleNamespace(logprobs=[logged])
        return SimpleNamespace(outputs=[output], prompt_token_ids=[99, *ids(said)])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("listed", [len(LETTERS), 4])
def test_an_engine_in_this_process_tells_them_too(seed, listed, monkeypatch):
    server = Server(seed, listed=listed)
    module = SimpleNamespace(LLM=lambda **_: Engine(server), SamplingParams=dict)
    structured = SimpleNamespace(StructuredOutputsParams=dict)
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", structured)
    backend = VLLMBackend("m", usage=Usage())
    ask = Likelihood((Message("user", ("How well?",)),), SPELLINGS, ("q",), "beginning")
    [found] = backend.answer([(0, ask)], [0])
    require_held(found, server.truth(SPELLINGS), 2e-4)
