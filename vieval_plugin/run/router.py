"""Routing of a judge's asks to a model, a scorer, a pixel metric or a tool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.image_encoding import asked_images
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.image_tools import object_detector
from vieval_plugin.backends.image_tools.text_reader import TextReader
from vieval_plugin.backends.image_tools.tools import Threads, run
from vieval_plugin.backends.metrics.batcher import Batcher, Instrument
from vieval_plugin.backends.metrics.network_metrics import Scorers
from vieval_plugin.backends.reply_checks import NumberedQuestion
from vieval_plugin.backends.reply_checks import Question as Question
from vieval_plugin.judges import objects, probabilities, tools
from vieval_plugin.judges.protocol import (
    Ask,
    Chat,
    Failure,
    Image,
    Likelihood,
    Measure,
    Measurement,
    Probabilities,
    Reply,
    Status,
    Step,
    Text,
    UseTool,
)
from vieval_plugin.judges.tools import ocr
from vieval_plugin.text.errors import VievalError

ASKS_A_MODEL = (
    "this judge asks a model, but this run only measures images; use another --model"
)
#: Answers questions of models in one go, in order; each comes with its program's number.
AnswerBatch: TypeAlias = Callable[[list[NumberedQuestion]], list[Reply]]
#: Answers one question of a model, which comes with its program's number.
AnswerOne: TypeAlias = Callable[[int, Question], Awaitable[Reply]]


class Router:
    """Router of asks by kind; use as `with`.

    Measurements, and tools whose results are stored, go in batches; other tools go to threads.
    `answer_batch` and `answer_one` share both.
    """

    def __init__(
        self,
        usage: Usage,
        store: Store | None = None,
        bar: bool = False,
        scorers: Scorers | None = None,
    ) -> None:
        self._stored_tools = {ocr.NAME: TextReader(run)}
        self._scorers = scorers
        self._batcher = Batcher(
            usage,
            store,
            bar,
            self._find if scorers else None,
            self._stored_tools,
        )
        self._threads = Threads()

    def _find(self, ask: Measure | UseTool, usage: Usage) -> Instrument:
        """The scorer of an ask."""
        scorers = self._scorers or Scorers({})
        if isinstance(ask, Measure):
            return scorers.find(ask, usage)
        return object_detector.open_instrument(ask, scorers.options)

    def _goes_in_batches(self, ask: UseTool) -> bool:
        """True for tools whose results are stored."""
        return ask.tool == objects.NAME or ask.tool in self._stored_tools

    def __enter__(self) -> Router:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.close()
        self._batcher.close()

    def answer_batch(
        self, asks: Sequence[tuple[int, Ask]], answer: AnswerBatch
    ) -> list[Reply]:
        """Replies to the asks of a batch step, in order; `answer` is asked once, with all
        questions of models.
        """
        replies: dict[int, Reply] = {}
        questions = []
        measures = []
        running = {}
        for index, (number, ask) in enumerate(asks):
            if isinstance(ask, Measure) or (
                isinstance(ask, UseTool) and self._goes_in_batches(ask)
            ):
                measures.append((index, ask))
            elif isinstance(ask, UseTool):
                running[index] = self._threads.start(ask)
            else:
                questions.append((index, (number, ask)))
        measured = self._batcher.measure([ask for _, ask in measures])
        replies |= zip([index for index, _ in measures], measured, strict=True)
        if questions:
            answers = answer([question for _, question in questions])
            replies |= zip([index for index, _ in questions], answers, strict=True)
        replies |= {index: tool.result() for index, tool in running.items()}
        return [replies[index] for index in range(len(asks))]

    async def look(self, question: Question) -> None:
        """Decode the images of a question whose judge's tools may want them too: once for them
        and for the model.
        """
        await asyncio.to_thread(self._threads.look, asked_images(question))

    async def answer_one(
        self,
        number: int,
        ask: Ask,
        answer: AnswerOne,
    ) -> Reply:
        """The reply to one ask; `answer` is asked where it is a question of a model."""
        if isinstance(ask, Measure) or (
            isinstance(ask, UseTool) and self._goes_in_batches(ask)
        ):
            return await self._batcher.measure_soon(ask)
        if isinstance(ask, UseTool):
            return await asyncio.wrap_future(self._threads.start(ask))
        return await answer(number, ask)


def question_of(ask: Ask) -> Question | None:
    """The ask where it is a question of a model, and None where it is not."""
    return ask if isinstance(ask, (Chat, Likelihood)) else None


def refuse_questions(_questions: list[NumberedQuestion]) -> list[Reply]:
    """The answer of a run that has no model: it is told which judge needs one."""
    raise VievalError(ASKS_A_MODEL)


def question_display(ask: Ask) -> tuple[str, tuple[Image, ...]]:
    """The words and images of an ask as a person would look at them: of a conversation, those of
    its last turn.
    """
    if isinstance(ask, (Chat, Likelihood)):
        parts = ask.messages[-1].parts
        text = "\n".join(part for part in parts if isinstance(part, str))
        return text, tuple(part for part in parts if isinstance(part, Image))
    values = ask.arguments if isinstance(ask, UseTool) else ask.images
    return "", tuple(value for value in values.values() if isinstance(value, Image))


def recorded_reply(ask: Ask, step: Step) -> Reply:
    """The reply that a step of a trace records; a step without an answer is a call that failed.

    A tool that only draws is run again: no trace holds images. Of a probability a trace has the sum
    over the answer's spellings, not which of them had it; of a `beginning` it has all.
    """
    if (
        not step.status.usable
        and not step.answer
        and step.status is not Status.PARSE_FAILURE
    ):
        return Failure(step.status, step.reason)
    if isinstance(ask, Chat):
        return Text(step.answer, cut=step.cut)
    if isinstance(ask, UseTool):
        tool = tools.registry().get(ask.tool)
        if tool is not None and tool.use is None:
            return run(ask)
        return tools.from_json(step.answer)
    if isinstance(ask, Measure):
        return Measurement(step.scores[0], step.reason)
    if ask.definition == "beginning":
        return probabilities.from_json(step.answer, ask.continuations)
    low, high = step.bounds or (0.0, 0.0)
    zeros = (0.0,) * (len(ask.continuations) - 1)
    return Probabilities((low, *zeros), (high, *zeros))
