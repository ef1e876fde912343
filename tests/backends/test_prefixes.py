"""Beginnings of several tokens through a server, which is played here by a function with a model
of its own: a table.
"""

import asyncio
import itertools
import math
import sys
import types

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
from vieval_plugin.judges.protocol import (
    Failure,
    Likelihood,
    Message,
    Probabilities,
    Status,
)

LETTERS = " 0123456789ab"
QUESTION = [{"role": "user", "content": "How well?"}]


class Server:
    """Says of each beginning up to two letters how likely each letter is next; a letter is a token.

    `listed` of them are shown. One that does not `go_on` with a turn answers as if nothing had been
    said.
    """

    def __init__(self, seed, listed=4, tokenizes=True, goes_on=True):
        rng = np.random.default_rng(seed)
        begun = [
            "".join(letters)
            for n in range(3)
            for letters in itertools.product(LETTERS, repeat=n)
        ]
        self.model = {text: rng.dirichlet(np.full(len(LETTERS), 0.5)) for text in begun}
        self.listed, self.tokenizes, self.goes_on, self.requests = (
            listed,
            tokenizes,
            goes_on,
            0,
        )

    def chance(self, text):
        """That an answer begins with a text."""
        return math.prod(
            self.model[text[:n]][LETTERS.index(letter)] for n, letter in enumerate(text)
        )

    async def post(self, path, body):
        if path == "../tokenize":
            if not self.tokenizes:
                raise Refused(Status.API_ERROR, "HTTP 404", "no such path")
            return {
                "count": len(body["prompt"]),
                "tokens": [LETTERS.index(letter) for letter in body["prompt"]],
            }
        self.requests += 1
        *_, last = body["messages"]
        said = (
            last["content"]
            if last["role"] == "assistant" and body.get("continue_final_message")
            else ""
        )
        row = self.model[said if self.goes_on else ""]
        logged = [
            {"token": letter, "logprob": math.log(p)}
            for letter, p in zip(LETTERS, row, strict=True)
        ]
        likeliest = sorted(logged, key=lambda one: -one["logprob"])[: self.listed]
        chosen = (
            logged[body["allowed_token_ids"][0]]
            if "allowed_token_ids" in body
            else likeliest[0]
        )
        content = {**chosen, "top_logprobs": likeliest}
        usage = {"prompt_tokens": 9 + len(said) * self.goes_on, "completion_tokens": 1}
        return {
            "choices": [
                {"message": {"content": "?"}, "logprobs": {"content": [content]}}
            ],
            "usage": usage,
        }

    def asked(self, continuations):
        async def ask():
            body = {
                "model": "m",
                "messages": QUESTION,
                "max_tokens": 1,
                "logprobs": True,
                "top_logprobs": self.listed,
            }
            answer = await self.post("chat/completions", body)
            listed = {
                one["token"]: one["logprob"]
                for one in answer["choices"][0]["logprobs"]["content"][0][
                    "top_logprobs"
                ]
            }
            return await prefix_probabilities(
                answer, listed, continuations, TokenIds("m", self.post), body, self.post
            )

        return asyncio.run(ask())

    def truth(self, continuations):
        """That an answer begins with each text and goes on to no longer one of them, counted
        over all answers.
        """
        answers = ["".join(letters) for letters in itertools.product(LETTERS, repeat=3)]
        found = dict.fromkeys(continuations, 0.0)
        for answer in answers:
            fits = [text for text in continuations if answer.startswith(text)]
            if fits:
                found[max(fits, key=len)] += self.chance(answer)
        return list(found.values())


@pytest.mark.parametrize("seed", range(5))
def test_a_server_that_goes_on_with_a_turn_tells_them_exactly(seed):
    server = Server(seed)
    found = server.asked(SPELLINGS)
    truth = server.truth(SPELLINGS)
    assert sum(truth) > 0.1
    # what is less likely than the fourth decimal is not asked for
    assert (
        max(high - low for low, high in zip(found.low, found.high, strict=True)) < 2e-4
    )
    for low, value, high in zip(found.low, truth, found.high, strict=True):
        assert low - 1e-9 <= value <= high + 1e-9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lacking", ["tokenizes", "goes_on"])
def test_what_a_server_cannot_tell_lies_within_bounds(seed, lacking):
    server = Server(seed, **{lacking: False})
    found, truth = server.asked(SPELLINGS), server.truth(SPELLINGS)
    for low, value, high in zip(found.low, truth, found.high, strict=True):
        assert low - 1e-9 <= value <= high + 1e-9
    place = SPELLINGS.index("10")
    assert found.low[place] < found.high[place]


def test_a_ten_that_is_one_listed_token_is_known_without_further_requests():
    listed = {"10": math.log(0.5), "1": math.log(0.25), "7": math.log(0.25)}
    found = bounds_from_first_tokens(listed, ("1", "7", "10"))
    assert found.low == found.high == pytest.approx((0.25, 0.25, 0.5))


def test_a_ten_that_is_not_listed_may_be_all_of_the_one():
    found = bounds_from_first_tokens(
        {"1": math.log(0.6), "7": math.log(0.4)}, ("1", "7", "10")
    )
    assert (found.low, found.high) == (
        pytest.approx((0.0, 0.4, 0.0)),
        pytest.approx((0.6, 0.4, 0.6)),
    )


def test_an_impossible_list_is_a_failure():
    assert isinstance(
        bounds_from_first_tokens({"1": 0.0, "2": 0.0}, ("1", "2")), Failure
    )


def test_two_spellings_of_the_same_tokens_count_once_and_one_without_tokens_not_at_all():
    known = {(): {1: (0.5, 0.5), 7: (0.25, 0.25)}}
    assert probabilities_from_bounds([(7,), (7,), None, ()], known) == Probabilities(
        (0.25, 0, 0, 0), (0.25, 0, 0, 0)
    )


class Engine:
    """What vLLM's engine and its tokenizer are to the backend, over the same table."""

    llm_engine = types.SimpleNamespace(
        engine_core=types.SimpleNamespace(shutdown=lambda: None)
    )

    def __init__(self, server):
        self.server = server

    def get_tokenizer(self):
        return self

    def encode(self, text, add_special_tokens):
        return [LETTERS.index(letter) for letter in text]

    def decode(self, tokens):
        return "".join(LETTERS[token] for token in tokens)

    def chat(
        self, conversations, parameters, add_generation_prompt, continue_final_message
    ):
        return [
            self.answer(*one, continue_final_message)
            for one in zip(conversations, parameters, strict=True)
        ]

    def answer(self, conversation, parameters, goes_on):
        said = conversation[-1]["content"] if goes_on else ""
        row = dict(enumerate(self.server.model[said]))
        shown = sorted(row, key=row.get)[-self.server.listed :]
        shown = parameters.get("allowed_token_ids", shown)
        logged = {
            token: types.SimpleNamespace(logprob=math.log(row[token]))
            for token in shown
        }
        output = types.SimpleNamespace(logprobs=[logged])
        return types.SimpleNamespace(
            outputs=[output], prompt_token_ids=[99, *self.encode(said, False)]
        )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("listed", [len(LETTERS), 4])
def test_an_engine_in_this_process_tells_them_too(seed, listed, monkeypatch):
    server = Server(seed, listed=listed)
    module = types.SimpleNamespace(LLM=lambda **_: Engine(server), SamplingParams=dict)
    structured = types.SimpleNamespace(StructuredOutputsParams=dict)
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", structured)
    backend = VLLMBackend("m", usage=Usage())
    ask = Likelihood((Message("user", ("How well?",)),), SPELLINGS, ("q",), "beginning")
    [found] = backend.answer([(0, ask)], [0])
    for low, value, high in zip(
        found.low, server.truth(SPELLINGS), found.high, strict=True
    ):
        assert low - 1e-9 <= value <= high + 1e-9
        assert high - low < 2e-4
