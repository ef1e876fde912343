"""Common needs of every step of T2I-Eval: the options, a sample, and conversations about its
questions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from vieval_plugin.judges.parsing import Read
from vieval_plugin.judges.protocol import Ask, Chat, Message, Path, Reply
from vieval_plugin.judges.spec import option
from vieval_plugin.judges.stages import REPEATED, Notes, StageAsker
from vieval_plugin.judges.structured_chat import ChatRequest, ask_all
from vieval_plugin.judges.t2i_eval.reading import read_fields
from vieval_plugin.judges.t2i_eval.structure import Fields

UNANSWERED = "question without an answer"

Mode: TypeAlias = Literal["individual", "framework"]
Ablation: TypeAlias = Literal[
    "full",
    "no_extraction",
    "no_captioning",
    "no_answering",
    "merged",
    "no_decomposition",
]


Stage: TypeAlias = Literal[
    "extraction", "answer", "explanation", "score", "summary", "overall", "quality"
]


@dataclass(frozen=True)
class T2IEvalOptions:
    """Options of the judge."""

    pack: str = option("t2i_eval/v1", "prompt pack of both modes", folder=True)
    mode: Mode = option(
        "individual",
        "a call for every question and stage (small models), or three calls (strong ones)",
    )
    extraction: Literal["own", "given"] = option(
        "own", "given: the benchmark's own entities and questions"
    )
    reference: bool = option(
        False,
        "show a reference image, where there is one, with questions of appearance",
    )
    backbones: Mapping[Stage, str] = option(
        {},
        "a step's own backbone, by its name under backbones; one of the step quality grades "
        "explanations against the annotators' ({quality: gpt})",
    )

    @property
    def grades_explanations(self) -> bool:
        """Return whether explanations are graded: by the backbone that is named for it."""
        return "quality" in self.backbones


@dataclass(frozen=True)
class Asker(StageAsker):
    """Sample under one pack, set of options and ablation."""

    #: Options of the judge.
    options: T2IEvalOptions
    #: Variant of the paper.
    ablation: Ablation

    def shows(self, role: str) -> bool:
        """Return whether an image is shown; a reference only where the options ask for it."""
        return super().shows(role) and (role != "reference" or self.options.reference)


@dataclass(frozen=True)
class Turn:
    """Turn of a conversation about a question.

    A turn whose question shows images begins the conversation anew.
    """

    #: Name in paths.
    name: str
    #: The pack's question.
    key: str
    #: Stage, whose backbone answers.
    step: Stage
    #: Schema of its answer.
    schema: Mapping[str, Any]
    #: Show neither the prompt nor what was extracted from it.
    blind: bool = False


@dataclass(frozen=True)
class Thread:
    """Conversation to be held."""

    #: Beginning of its paths.
    path: Path
    turns: tuple[Turn, ...]
    #: Variables of its templates.
    variables: Mapping[str, Any] = field(default_factory=dict)
    #: Variables of the templates of blind turns.
    blind: Mapping[str, Any] = field(default_factory=dict)


def converse(
    asker: Asker, threads: Sequence[Thread], notes: Notes
) -> Generator[list[Ask], list[Reply], list[Fields]]:
    """Hold all conversations at once, a turn of each at a time; what was said in each, as far as it
    came.

    A conversation ends where an answer cannot be read.
    """
    fields_by_thread = [Fields() for _ in threads]
    chats: list[Chat | None] = [None for _ in threads]
    last_answers = ["" for _ in threads]
    going = list(range(len(threads)))
    for index in range(max((len(thread.turns) for thread in threads), default=0)):
        going = [i for i in going if index < len(threads[i].turns)]
        for i in going:
            chats[i] = _turn(
                asker,
                threads[i],
                threads[i].turns[index],
                chats[i],
                last_answers[i],
                fields_by_thread[i],
            )
        markdown = asker.wording.asks_for_markdown
        questions = [
            ChatRequest(chat, _reader(threads[i].turns[index], markdown))
            for i in going
            if (chat := chats[i])
        ]
        answers = yield from ask_all(questions, asker.wording)
        for i, answer in zip(going, answers, strict=True):
            notes.trace += answer.steps
            last_answers[i] = answer.steps[-1].answer
            if answer.value is None:
                notes.findings.append(
                    REPEATED if answer.final.reason == REPEATED else UNANSWERED
                )
                chats[i] = None
            else:
                fields_by_thread[i] = _and(fields_by_thread[i], answer.value)
        going = [i for i in going if chats[i]]
    return fields_by_thread


def _turn(
    asker: Asker,
    thread: Thread,
    turn: Turn,
    conversation: Chat | None,
    answer: str,
    fields: Fields,
) -> Chat:
    context = thread.blind if turn.blind else thread.variables
    variables = {**context, "answer": fields.answer, "explanation": fields.explanation}
    history: tuple[Message, ...] = ()
    if conversation is not None and not asker.wording.questions[turn.key].images:
        history = (*conversation.messages, Message("assistant", (answer,)))
    return asker.chat(
        turn.key,
        turn.step,
        (*thread.path, turn.name),
        turn.schema,
        variables,
        1024,
        history,
    )


def _reader(turn: Turn, markdown: bool) -> Callable[[str], Read[Fields]]:
    return lambda text: read_fields(text, turn.schema, markdown)


def _and(first: Fields, then: Fields) -> Fields:
    score = first.score if then.score is None else then.score
    return Fields(
        then.answer or first.answer, then.explanation or first.explanation, score
    )
