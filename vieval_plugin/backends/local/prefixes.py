"""How likely an answer begins with a text of several tokens, and with no longer one of those asked for.

What is needed for it is the probability of single tokens after single beginnings: of a 10 that is two tokens, that of
"1", and that of "0" after "1". A backend tells them in its own way; what it cannot tell lies between 0 and 1.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from vieval_plugin.backends.http.exact_probabilities import CLOSE_ENOUGH, Post, TokenIds, closed
from vieval_plugin.backends.http.response_parsing import tokens_of
from vieval_plugin.backends.http.responses import Refused
from vieval_plugin.backends.reply_checks import log_probability, probabilities
from vieval_plugin.judges.protocol import Failure, Probabilities

Tokens: TypeAlias = tuple[int, ...]
Ends: TypeAlias = tuple[float, float]
"""The lowest and the highest that a probability can be."""
Known: TypeAlias = Mapping[Tokens, Mapping[int, Ends]]
"""By beginning, what is known of each token after it."""

UNKNOWN: Ends = (0.0, 1.0)


def asked_after(wanted: Iterable[Tokens]) -> dict[Tokens, tuple[int, ...]]:
    """After which beginnings which tokens are asked about, the shortest beginnings first.

    >>> asked_after([(1,), (1, 0), (7,)])
    {(): (1, 7), (1,): (0,)}
    """
    found: dict[Tokens, dict[int, None]] = {}
    for tokens in wanted:
        for length, token in enumerate(tokens):
            found.setdefault(tokens[:length], {})[token] = None
    return {beginning: tuple(found[beginning]) for beginning in sorted(found, key=len)}


def joined(wanted: Sequence[Tokens | None], known: Known) -> Probabilities:
    """Of each text asked for that the answer begins with its tokens and with those of no longer one.

    Args:
        wanted: the tokens of each, None where it has none of its own; of the same tokens the first counts.
        known: what is known of single tokens.

    >>> found = joined([(1,), (1, 0)], {(): {1: (0.5, 0.5)}, (1,): {0: (0.25, 0.25)}})
    >>> found.low
    (0.375, 0.125)
    """
    texts = {tokens for tokens in wanted if tokens}
    after = asked_after(texts)

    def through(tokens: Tokens) -> Ends:
        ends = [known.get(tokens[:n], {}).get(token, UNKNOWN) for n, token in enumerate(tokens)]
        return math.prod(low for low, _ in ends), math.prod(high for _, high in ends)

    def onwards(beginning: Tokens) -> Ends:
        """That the answer goes on to a longer text of those asked for."""
        low = high = 0.0
        for token in after.get(beginning, ()):
            least, most = known.get(beginning, {}).get(token, UNKNOWN)
            within = (1.0, 1.0) if (*beginning, token) in texts else onwards((*beginning, token))
            low, high = low + least * within[0], high + most * within[1]
        return min(low, 1.0), min(high, 1.0)

    found = []
    for place, tokens in enumerate(wanted):
        if not tokens or tokens in wanted[:place]:
            found.append((0.0, 0.0))
            continue
        (low, high), (least, most) = through(tokens), onwards(tokens)
        found.append((low * (1 - most), high * (1 - least)))
    return Probabilities(*zip(*found, strict=True))


def possible(listed: Mapping[str, Any], continuations: Sequence[str]) -> Probabilities | Failure:
    """What can be said of beginnings where only the likeliest first tokens are known, by their text.

    A text that is a listed token may still go on to a longer one asked for that is not; one that is not listed may
    begin with any listed token that its text begins with.
    """
    bounds = probabilities(listed, (*continuations, *listed))
    if isinstance(bounds, Failure):
        return bounds
    number = len(continuations)
    tokens = dict(zip(listed, bounds.low[number:], strict=True))
    ends = []
    for text, low, high in zip(continuations, bounds.low, bounds.high, strict=False):
        if text in tokens:
            goes_on = any(other != text and other.startswith(text) and other not in tokens for other in continuations)
            ends.append((0.0 if goes_on else low, high))
        else:
            begun = math.fsum(p for token, p in tokens.items() if token and text.startswith(token))
            ends.append((0.0, min(1.0, high + begun)))
    return Probabilities(*zip(*ends, strict=True))


async def beginnings(
    answer: Mapping[str, Any],
    listed: Mapping[str, Any],
    continuations: tuple[str, ...],
    ids: TokenIds,
    body: Mapping[str, Any],
    post: Post,
) -> Probabilities | Failure:
    """The probabilities of beginnings through a server; exact where it tells tokens and goes on with a turn (vLLM).

    Args:
        answer: that to the request `body`, which listed the likeliest first tokens, `listed`.
        continuations: the texts asked for.
        ids: the token ids of texts.
        body: a request for one token.
        post: sends a request.
    """
    bounds = possible(listed, continuations)
    spelt = await asyncio.gather(*(ids.of(text) for text in continuations))
    tokens = [tuple(of_one) for of_one in spelt if of_one]
    if isinstance(bounds, Failure) or len(tokens) < len(continuations):
        return bounds
    after = asked_after(tokens)
    texts = await _texts_of(after, dict(zip(tokens, continuations, strict=True)), ids)
    firsts = tuple(texts.get((token,), "") for token in after[()])
    first = probabilities(listed, firsts)
    if not all(firsts) or isinstance(first, Failure):
        return bounds
    first = await closed(first, firsts, ids, body, post)
    known: dict[Tokens, dict[int, Ends]] = {
        (): dict(zip(after[()], zip(first.low, first.high, strict=True), strict=True))
    }
    wanted = [
        (beginning, token)
        for beginning, following in after.items()
        for token in following
        if beginning and known[()][beginning[0]][1] > CLOSE_ENOUGH
    ]
    given, _ = tokens_of(answer)
    asked = (_after(texts[beginning], len(beginning), token, given, body, post) for beginning, token in wanted)
    for (beginning, token), ends in zip(wanted, await asyncio.gather(*asked), strict=True):
        known.setdefault(beginning, {})[token] = ends
    return joined(tokens, known)


async def _texts_of(
    after: Mapping[Tokens, tuple[int, ...]], continuations: Mapping[Tokens, str], ids: TokenIds
) -> dict[Tokens, str]:
    """The text of each beginning and first token: as much of a continuation as has just its tokens."""
    found = dict(continuations)
    short = {(token,) for token in after[()]} | {beginning for beginning in after if beginning}
    for tokens in sorted(short - set(found)):
        whole = next(text for longer, text in continuations.items() if longer[: len(tokens)] == tokens)
        for end in range(1, len(whole)):
            if tuple(await ids.of(whole[:end]) or ()) == tokens:
                found[tokens] = whole[:end]
                break
    return found


async def _after(begun: str, length: int, token: int, given: int | None, body: Mapping[str, Any], post: Post) -> Ends:
    """The probability of a token once the turn has begun so, as far as the server tells.

    `given` is how many tokens the question has: a server that reads the beginning in other tokens, or does not go on
    with the turn, has another number than that and `length`.
    """
    said = {"messages": [*body["messages"], {"role": "assistant", "content": begun}]}
    going_on = {"add_generation_prompt": False, "continue_final_message": True, "allowed_token_ids": [token]}
    try:
        answer = await post("chat/completions", {**body, **said, **going_on, "top_logprobs": 0})
        value = math.exp(log_probability(answer["choices"][0]["logprobs"]["content"][0]["logprob"]))
    except (Refused, KeyError, IndexError, TypeError, ValueError):
        return UNKNOWN
    read, _ = tokens_of(answer)
    return (value, value) if given is not None and read == given + length else UNKNOWN
