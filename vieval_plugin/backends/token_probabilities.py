"""Exact probabilities of tokens and of prefixes of answers, where a server or an engine can tell
them (vLLM).

A request that allows one token only still reports that token's raw log-probability, and reads the
prefix cache. vLLM's `logprob_token_ids` would need one request for all tokens, but spoils the
listed log-probabilities of other requests in its batch (seen with vLLM 0.32), those of other users
of the server among them.

The probability that an answer begins with a text of several tokens, and with no longer one of those
asked for, follows from single tokens after single prefixes: of a 10 that is two tokens, from "1",
and from "0" after "1". A backend tells them in its own way; what it cannot tell lies between 0 and
1.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from vieval_plugin.backends.concurrency import SharedTasks, gather_all
from vieval_plugin.backends.http.faults import Refused
from vieval_plugin.backends.http.responses import tokens_of
from vieval_plugin.backends.reply_checks import log_probability, probabilities
from vieval_plugin.judges.protocol import Failure, Probabilities
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import JsonObject

Post = Callable[[str, JsonObject], Awaitable[JsonObject]]
Tokens: TypeAlias = tuple[int, ...]

# the fourth decimal: an interval narrower than this is left as it is, closing it costs a request
# for every variant
CLOSE_ENOUGH = 1e-4


class TokenIds:
    """The token ids of answers, asked of the server once each.

    Only an answer in the form of vLLM and SGLang counts: llama.cpp's `/tokenize` reads another
    field, and answers an empty list.
    """

    def __init__(self, model: str, post: Post) -> None:
        self._model = model
        self._post = post
        self.tasks = SharedTasks(keeps=True)

    async def ids_of(self, text: str) -> list[int] | None:
        """The ids of a text's tokens, or None where the server does not tell."""
        return await self.tasks.result(
            text,
            self._ask,
            text,
        )

    async def tokens_of_all(self, texts: Iterable[str]) -> list[Tokens]:
        """The tokens of each text, none where the server does not tell."""
        ids_by_text = await asyncio.gather(*map(self.ids_of, texts))
        return [tuple(token_ids or ()) for token_ids in ids_by_text]

    async def _ask(self, text: str) -> list[int] | None:
        body = {
            "model": self._model,
            "prompt": text,
            "add_special_tokens": False,
        }
        try:
            answer = await self._post("../tokenize", body)
        except (Refused, VievalError):
            return None
        tokens = answer.get("tokens")
        if not isinstance(tokens, list) or answer.get("count") != len(tokens):
            return None
        is_known = tokens and all(type(token) is int for token in tokens)
        return tokens if is_known else None


def _pairs(probabilities: Probabilities) -> list[Bounds]:
    return list(zip(probabilities.low, probabilities.high, strict=True))


def _are_first_tokens(listed: Collection[Tokens]) -> bool:
    """True for single tokens that all differ, as those of a list of first tokens do."""
    return len(set(listed)) == len(listed) and all(
        len(tokens) == 1 for tokens in listed
    )


async def narrowed_bounds(
    bounds: Probabilities,
    continuations: tuple[str, ...],
    ids: TokenIds,
    body: JsonObject,
    post: Post,
) -> Probabilities:
    """The same bounds with those closed that the server can close; `body` is the request that
    listed the likeliest.

    A listed continuation keeps its probability. Of the others, one of several tokens is not a first
    token: its probability is 0. A value above the bound it should lie within shows a server that
    renormalises, and is not used; nor is one that is not a log-probability. A tokenizer
    that contradicts the list is not used.
    """
    if sum(bounds.high) - sum(bounds.low) <= CLOSE_ENOUGH:
        return bounds
    tokens = await ids.tokens_of_all(continuations)
    pairs = _pairs(bounds)
    listed_tokens = {
        index: tokens[index]
        for index, (low, high) in enumerate(pairs)
        if 0 < low == high
    }
    # to some tokenizers "Yes" and " Yes" are one token, which a sum over both must count once
    counted_tokens = set(listed_tokens.values())
    if not all(tokens) or not _are_first_tokens(listed_tokens.values()):
        return bounds
    open_tokens = dict[int, Tokens]()
    for index, token in enumerate(tokens):
        if index in listed_tokens:
            continue
        if len(token) > 1 or token in counted_tokens:
            pairs[index] = 0.0, 0.0
        elif pairs[index][1] > 0:
            open_tokens[index] = token
        counted_tokens.add(token)
    requests = [
        _allowed_token_probability({**body, "allowed_token_ids": list(token)}, post)
        for token in open_tokens.values()
    ]
    for index, (value, _) in zip(open_tokens, await gather_all(requests), strict=True):
        if value is not None and value <= pairs[index][1] * (1 + 1e-6):
            pairs[index] = value, value
    return Probabilities(*zip(*pairs, strict=True))


async def _allowed_token_probability(
    body: JsonObject, post: Post
) -> tuple[float | None, int | None]:
    """The probability of the only token that a request allows, None where the server does not
    tell; and tokens in.
    """
    try:
        answer = await post("chat/completions", {**body, "top_logprobs": 0})
        value = log_probability(
            answer["choices"][0]["logprobs"]["content"][0]["logprob"], masked=True
        )
        return math.exp(value), tokens_of(answer)[0]
    except (Refused, KeyError, IndexError, TypeError, ValueError):
        return None, None


#: The lowest and the highest that a probability can be.
Bounds: TypeAlias = tuple[float, float]
#: Bounds on the probability of each token after a prefix, by prefix.
BoundsByPrefix: TypeAlias = dict[Tokens, dict[int, Bounds]]

UNKNOWN: Bounds = (0.0, 1.0)


def tokens_by_prefix(texts: Iterable[Tokens]) -> dict[Tokens, tuple[int, ...]]:
    """The tokens that are asked about after each prefix, the shortest prefixes first.

    >>> tokens_by_prefix([(1,), (1, 0), (7,)])
    {(): (1, 7), (1,): (0,)}
    """
    following: dict[Tokens, dict[int, None]] = {}
    for tokens in texts:
        for length, token in enumerate(tokens):
            following.setdefault(tokens[:length], {})[token] = None
    return {prefix: tuple(following[prefix]) for prefix in sorted(following, key=len)}


def probabilities_from_bounds(
    answers: Sequence[Tokens | None], bounds: BoundsByPrefix
) -> Probabilities:
    """The probability of each text that the answer begins with its tokens and with those of no
    longer one.

    Args:
        answers: the tokens of each, None where it has none of its own; of the same tokens the first
            counts.
        bounds: those of single tokens.

    >>> probabilities_from_bounds([(1,), (1, 0)], {(): {1: (0.5, 0.5)}, (1,): {0: (0.25, 0.25)}}).low
    (0.375, 0.125)
    """
    texts = {tokens for tokens in answers if tokens}
    after = tokens_by_prefix(texts)

    def onwards(prefix: Tokens) -> Bounds:
        """The probability that the answer goes on to a longer text of those asked for."""
        low = high = 0.0
        for token in after.get(prefix, ()):
            token_low, token_high = bounds.get(prefix, {}).get(token, UNKNOWN)
            rest_low, rest_high = (
                (1.0, 1.0) if (*prefix, token) in texts else onwards((*prefix, token))
            )
            low += token_low * rest_low
            high += token_high * rest_high
        return min(low, 1.0), min(high, 1.0)

    pairs = []
    for index, tokens in enumerate(answers):
        if not tokens or tokens in answers[:index]:
            pairs.append((0.0, 0.0))
            continue
        low, high = _prefix_bounds(tokens, bounds)
        longer_low, longer_high = onwards(tokens)
        pairs.append((low * (1 - longer_high), high * (1 - longer_low)))
    return Probabilities(*zip(*pairs, strict=True))


def _prefix_bounds(tokens: Tokens, bounds: BoundsByPrefix) -> Bounds:
    """Bounds on the probability that an answer begins with tokens."""
    ends = [
        bounds.get(tokens[:n], {}).get(token, UNKNOWN) for n, token in enumerate(tokens)
    ]
    low = math.prod(low for low, _ in ends)
    return low, math.prod(high for _, high in ends)


def bounds_from_first_tokens(
    likeliest: Mapping[str, Any], continuations: Sequence[str]
) -> Probabilities | Failure:
    """Bounds on prefixes where only the likeliest first tokens are known, by their text.

    A text that is a listed token may still go on to a longer one asked for that is not; one that is
    not listed may begin with any listed token that its text begins with.
    """
    bounds = probabilities(likeliest, (*continuations, *likeliest))
    if isinstance(bounds, Failure):
        return bounds
    number = len(continuations)
    tokens = dict(zip(likeliest, bounds.low[number:], strict=True))
    ends = []
    for text, low, high in zip(continuations, bounds.low, bounds.high, strict=False):
        if text in tokens:
            goes_on = any(
                c != text and c.startswith(text) and c not in tokens
                for c in continuations
            )
            ends.append((0.0 if goes_on else low, high))
        else:
            prefix_mass = math.fsum(
                p for token, p in tokens.items() if token and text.startswith(token)
            )
            ends.append((0.0, min(1.0, high + prefix_mass)))
    return Probabilities(*zip(*ends, strict=True))


async def prefix_probabilities(
    answer: JsonObject,
    likeliest: Mapping[str, Any],
    continuations: tuple[str, ...],
    ids: TokenIds,
    body: JsonObject,
    post: Post,
) -> Probabilities | Failure:
    """The probabilities of prefixes through a server; exact where it tells tokens and goes on with
    a turn (vLLM).

    Args:
        answer: that to the request `body`.
        likeliest: the log-probabilities of first tokens that the answer lists.
        continuations: the texts asked for.
        ids: the token ids of texts.
        body: a request for one token.
        post: sends a request.
    """
    bounds = bounds_from_first_tokens(likeliest, continuations)
    tokens = await ids.tokens_of_all(continuations)
    if isinstance(bounds, Failure) or not all(tokens):
        return bounds
    after = tokens_by_prefix(tokens)
    texts = await _texts_of(
        after,
        dict(zip(tokens, continuations, strict=True)),
        ids,
    )
    firsts = tuple(texts.get((token,), "") for token in after[()])
    first = probabilities(likeliest, firsts)
    if not all(firsts) or isinstance(first, Failure):
        return bounds
    first = await narrowed_bounds(
        first,
        firsts,
        ids,
        body,
        post,
    )
    first_bounds = dict(zip(after[()], _pairs(first), strict=True))
    by_prefix: BoundsByPrefix = {(): first_bounds}
    open_tokens = open_prefix_tokens(after, first_bounds)
    prompt_length, _ = tokens_of(answer)
    requests = [
        _continuation_probability(
            texts[prefix],
            len(prefix),
            token,
            prompt_length,
            body,
            post,
        )
        for prefix, token in open_tokens
    ]
    for (prefix, token), ends in zip(
        open_tokens,
        await gather_all(requests),
        strict=True,
    ):
        by_prefix.setdefault(prefix, {})[token] = ends
    return probabilities_from_bounds(tokens, by_prefix)


def open_prefix_tokens(
    after: Mapping[Tokens, tuple[int, ...]], first: Mapping[int, Bounds]
) -> list[tuple[Tokens, int]]:
    """Tokens to ask about, each with the prefix before it: those of prefixes whose first token
    may count.
    """
    prefixes = [
        prefix for prefix in after if prefix and first[prefix[0]][1] > CLOSE_ENOUGH
    ]
    return [(prefix, token) for prefix in prefixes for token in after[prefix]]


async def _texts_of(
    after: Mapping[Tokens, tuple[int, ...]],
    continuations: Mapping[Tokens, str],
    ids: TokenIds,
) -> dict[Tokens, str]:
    """The text of each prefix and first token: as much of a continuation as has just its tokens."""
    texts = dict(continuations)
    short = {(token,) for token in after[()]} | {prefix for prefix in after if prefix}
    for tokens in sorted(short - set(texts)):
        text = next(
            continuation
            for longer, continuation in continuations.items()
            if longer[: len(tokens)] == tokens
        )
        for end in range(1, len(text)):
            if tuple(await ids.ids_of(text[:end]) or ()) == tokens:
                texts[tokens] = text[:end]
                break
    return texts


async def _continuation_probability(
    prefix_text: str,
    length: int,
    token: int,
    prompt_length: int | None,
    body: JsonObject,
    post: Post,
) -> Bounds:
    """The probability of a token once the turn has begun so, as far as the server tells.

    `prompt_length` is how many tokens the question has: a server that reads the prefix in other
    tokens, or does not go on with the turn, has another number than that and `length`.
    """
    turn = {"role": "assistant", "content": prefix_text}
    going_on = {
        **body,
        "messages": [*body["messages"], turn],
        "add_generation_prompt": False,
        "continue_final_message": True,
        "allowed_token_ids": [token],
    }
    value, token_count = await _allowed_token_probability(going_on, post)
    if value is None or prompt_length is None or token_count != prompt_length + length:
        return UNKNOWN
    return value, value
