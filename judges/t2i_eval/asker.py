"""Common needs of every step of T2I-Eval: the options, a sample, and conversations about its
questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from vieval_plugin.judges.protocol import Asking, Chat, Message, Path, Schema
from vieval_plugin.judges.spec import option
from vieval_plugin.judges.stages import REPEATED, Notes, StageAsker
from vieval_plugin.judges.structured_chat import ChatRequest, ask_all
from vieval_plugin.judges.t2i_eval.reading import read_fields
from vieval_plugin.judges.t2i_eval.structure import NOTHING, Fields

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

    pack: str = option(
        "t2i_eval/v1",
        "prompt pack: a name from `vieval prompts list`, or a folder",
        folder=True,
    )
    mode: Mode = option(
        "individual",
        "ask one call per question and stage, for small models (individual), or three calls in "
        "total, for strong models (framework)",
    )
    extraction: Literal["own", "given"] = option(
        "own",
        "use the judge's entities and questions (own), or the benchmark's (given)",
    )
    reference: bool = option(
        False,
        "show the reference image, if there is one, with questions about appearance",
    )
    backbones: Mapping[Stage, str] = option(
        {},
        "backbone for each step, as a name from `backbones`; set `quality` to grade "
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
    schema: Schema
    #: Show neither the prompt nor what was extracted from it.
    blind: bool = False


@dataclass(frozen=True)
class Thread:
    """Conversation to hold."""

    #: Beginning of its paths.
    path: Path
    turns: tuple[Turn, ...]
    #: Variables of its templates.
    variables: Mapping[str, Any] = field(default_factory=dict)
    #: Variables of the templates of blind turns.
    blind: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class _Conversation:
    thread: Thread
    #: Last question that was answered.
    chat: Chat | None = None
    #: Answer to it.
    answer: str = ""
    #: Fields of all answers so far.
    fields: Fields = NOTHING
    is_over: bool = False


def converse(
    asker: Asker, threads: Sequence[Thread], notes: Notes
) -> Asking[list[Fields]]:
    """Hold all conversations at once, a turn of each at a time; what was said in each, as far as it
    came.

    A conversation ends where an answer cannot be read.
    """
    conversations = [_Conversation(thread) for thread in threads]
    going = conversations
    for index in range(max((len(thread.turns) for thread in threads), default=0)):
        going = [talk for talk in going if index < len(talk.thread.turns)]
        questions = [_question(asker, talk, talk.thread.turns[index]) for talk in going]
        answers = yield from ask_all(questions, asker.wording)
        for talk, question, answer in zip(
            going,
            questions,
            answers,
            strict=True,
        ):
            notes.trace += answer.steps
            if answer.value is None:
                notes.findings.append(
                    REPEATED if answer.final.reason == REPEATED else UNANSWERED
                )
                talk.is_over = True
            else:
                talk.chat = question.chat
                talk.answer = answer.steps[-1].answer
                talk.fields = _and(talk.fields, answer.value)
        going = [talk for talk in going if not talk.is_over]
    return [talk.fields for talk in conversations]


def _question(
    asker: Asker, conversation: _Conversation, turn: Turn
) -> ChatRequest[Fields]:
    thread = conversation.thread
    fields = conversation.fields
    variables = {
        **(thread.blind if turn.blind else thread.variables),
        "answer": fields.answer,
        "explanation": fields.explanation,
    }
    history: tuple[Message, ...] = ()
    chat = conversation.chat
    if chat is not None and not asker.wording.questions[turn.key].images:
        history = (*chat.messages, Message("assistant", (conversation.answer,)))
    question = asker.chat(
        turn.key,
        stage=turn.step,
        path=(*thread.path, turn.name),
        schema=turn.schema,
        variables=variables,
        max_tokens=1024,
        history=history,
    )
    markdown = asker.wording.asks_for_markdown
    read = partial(read_fields, schema=turn.schema, markdown=markdown)
    return ChatRequest(question, read)


def _and(first: Fields, then: Fields) -> Fields:
    score = first.score if then.score is None else then.score
    return Fields(
        then.answer or first.answer,
        then.explanation or first.explanation,
        score,
    )
