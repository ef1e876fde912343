"""Whole batches of questions: the store first, each question once, replies kept after every call.

Before anything is looked up, every image of the batch is looked through to its end in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.concurrency import cores
from vieval_plugin.backends.http.image_encoding import asked_images, noted
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.reply_checks import (
    NumberedQuestion,
    Question,
    checked,
    final,
)
from vieval_plugin.images import examine
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Image,
    Likelihood,
    Reply,
    Status,
    Text,
)
from vieval_plugin.text.errors import VievalError, line_of

# so many asks are lost at most when a run is killed
ASKS_A_CALL = 512
_REASONS = 5

Item = TypeVar("Item")
Result = TypeVar("Result")


class EngineDied(VievalError):
    """An engine that has stopped answering."""


@dataclass(frozen=True)
class ExaminedImage:
    """An image that was examined before a model is shown it."""

    #: Name of its content.
    digest: str
    #: Notes for the verdict.
    notes: tuple[str, ...] = ()


def look(image: Image) -> ExaminedImage:
    """Decode an image that is shown to a model unchanged; VievalError if that fails."""
    return ExaminedImage(examine(image).digest)


def answer_in_batches(
    questions: Sequence[NumberedQuestion],
    *,
    look: Callable[[Image], ExaminedImage] = look,
    key: Callable[
        [
            int,
            Question,
            Callable[[Image], str],
        ],
        str,
    ],
    generate: Callable[[list[NumberedQuestion]], list[Reply]],
    store: Store | None,
    model: str,
    usage: Usage,
) -> list[Reply]:
    """Replies to the questions of a batch step, in order.

    `look` decodes an image; `key` names a question for the store, from its program's number, the
    ask, and who names images; `generate` answers a batch, in order. Questions with the same key are
    asked once, one with an image that cannot be decoded not at all. Failures are not stored.
    """
    replies: dict[int, Reply] = {}
    positions: dict[str, list[int]] = {}
    by_image = _look_at_all(
        {image for _, ask in questions for image in asked_images(ask)}, look
    )

    def digest(image: Image) -> str:
        examined = by_image[image]
        if isinstance(examined, VievalError):
            raise examined
        return examined.digest

    for position, (number, ask) in enumerate(questions):
        try:
            name = key(number, ask, digest)
            positions.setdefault(name, []).append(position)
        except VievalError as error:
            replies[position] = Failure(Status.TOOL_ERROR, str(error))
            usage.failures["unreadable image"] += 1
    waiting = []
    for name, group in positions.items():
        stored = store.get(name) if store else None
        if stored is None:
            waiting.append(name)
        else:
            replies |= dict.fromkeys(group, stored)
            usage.cached += len(group)
    for start in range(0, len(waiting), ASKS_A_CALL):
        names = waiting[start : start + ASKS_A_CALL]
        if reason := usage.stop_reason():
            raw_replies: list[Reply] = [Failure(Status.API_ERROR, reason)] * len(names)
        else:
            raw_replies = generate([questions[positions[name][0]] for name in names])
        for name, raw_reply in zip(names, raw_replies, strict=True):
            reply = checked(raw_reply)
            _count(reply, model, usage)
            usage.repeated += len(positions[name]) - 1
            if store and final(reply):
                reply = store.add(name, model, reply)
            replies |= dict.fromkeys(positions[name], reply)
    noted_replies = []
    for position, (_, ask) in enumerate(questions):
        notes = [getattr(by_image[image], "notes", ()) for image in asked_images(ask)]
        noted_replies.append(
            noted(
                replies[position],
                chain.from_iterable(notes),
            )
        )
    return noted_replies


def _look_at_all(
    images: Collection[Image], look: Callable[[Image], ExaminedImage]
) -> dict[Image, ExaminedImage | VievalError]:
    """The result of `look` for each image, or why it cannot be shown."""

    def look_or_error(image: Image) -> ExaminedImage | VievalError:
        try:
            return look(image)
        except VievalError as error:
            return error

    with ThreadPoolExecutor(cores(), thread_name_prefix="look") as pool:
        return dict(zip(images, pool.map(look_or_error, images), strict=True))


def chats_and_likelihoods(
    questions: Sequence[NumberedQuestion],
) -> tuple[list[tuple[int, int, Chat]], list[tuple[int, int, Likelihood]]]:
    """The chats and the likelihoods among questions, each with its position and its program's
    number.
    """
    chats = []
    likelihoods = []
    for position, (number, ask) in enumerate(questions):
        if isinstance(ask, Chat):
            chats.append((position, number, ask))
        else:
            likelihoods.append((position, number, ask))
    return chats, likelihoods


def run_or_halve(
    items: Sequence[Item], run: Callable[[Sequence[Item]], Sequence[Result]]
) -> list[Result | Failure]:
    """The results of `run` for the items; one that it cannot take fails alone: halves are tried
    until it is by itself.

    Raises:
        EngineDied: as `run`.
    """
    try:
        return list(run(items))
    except EngineDied:
        raise
    # what processors and models raise for a bad input, or for too large a batch
    except Exception as error:
        is_ours = isinstance(error, VievalError)
        status = Status.TOOL_ERROR if is_ours else Status.API_ERROR
        failure = Failure(status, line_of(error))
    if len(items) == 1:
        return [failure]
    half = len(items) // 2
    return run_or_halve(items[:half], run) + run_or_halve(items[half:], run)


def _count(reply: Reply, model: str, usage: Usage) -> None:
    usage.calls += 1
    if isinstance(reply, Failure):
        # a host's words may name the request, so that no two are alike
        kind = reply.reason[:100]
        if kind not in usage.failures and len(usage.failures) >= _REASONS:
            kind = "other reasons"
        usage.failures[kind] += 1
    elif isinstance(reply, Text):
        usage.count_tokens(
            model,
            reply.input_tokens or 0,
            reply.output_tokens or 0,
        )
