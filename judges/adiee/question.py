"""Question about an edit: one of several questions, and one of several sentences that the answer is
to be.

A judge that always heard the same words would learn the words. So both are drawn for each
instruction; all image models are asked about an instruction in the same words.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

from vieval_plugin.judges.protocol import (
    Asking,
    Image,
    Message,
    Sample,
    Step,
    UseTool,
)
from vieval_plugin.judges.tools import side_by_side, use_tools
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.text.errors import VievalError

#: Source and edit as two images, or as one in which they stand side by side.
Images: TypeAlias = Literal["two", "joined"]
#: How the answer is read: from a sentence with a number in it, from a number alone, or from a
#: trained token.
Reading: TypeAlias = Literal["sentence", "number", "token"]

QUESTIONS = "question_"
ANSWERS = "answer_"
DOTS = "..."


@dataclass(frozen=True)
class Form:
    """Words of one sample."""

    #: Key of its question in the prompt pack.
    question: str
    #: Key of its answer sentence.
    answer: str


def form_of(uid: str, wording: Pack) -> Form:
    """The question and the answer sentence of an instruction, drawn by the uid of its samples.

    Args:
        uid: that of the instruction's samples.
        wording: a prompt pack with questions `question_1`, ... and answers `answer_1`, ...

    Raises:
        VievalError: the pack has no questions, or no answers.
    """
    digest = hashlib.sha256(f"0/{uid}".encode()).digest()
    question_key = _drawn_key(QUESTIONS, digest[:8], wording)
    answer_key = _drawn_key(ANSWERS, digest[8:16], wording)
    return Form(question_key, answer_key)


def _drawn_key(kind: str, digest: bytes, wording: Pack) -> str:
    keys = [key for key in wording.questions if key.startswith(kind)]
    if not keys:
        raise VievalError(
            f"prompt pack {wording.name} has no question {kind}1; use another pack"
        )
    return keys[int.from_bytes(digest, "big") % len(keys)]


def question_text(
    instruction: str, form: Form, wording: Pack, images: Images, reading: Reading
) -> str:
    """The question about an edit in words."""
    answer = answer_text(form.answer, DOTS, wording)
    variables = {
        "instruction": instruction.strip(),
        "joined": images == "joined",
        "form": reading,
        "answer": answer,
    }
    return wording.render(wording.questions[form.question].template, variables)


def answer_text(key: str, score: str, wording: Pack) -> str:
    """An answer sentence with what stands in the score's place; it ends there."""
    return wording.render(wording.questions[key].template, {"score": score})


def question(
    sample: Sample,
    pictures: tuple[Image, ...],
    form: Form,
    wording: Pack,
    reading: Reading,
) -> Message:
    """The question about a sample: what is shown and the words, in the pack's order."""
    images: Images = "two" if len(pictures) > 1 else "joined"
    text = question_text(
        sample.texts["instruction"],
        form,
        wording,
        images,
        reading,
    )
    return Message("user", wording.questions[form.question].parts(pictures, text))


def pictures(
    sample: Sample, images: Images
) -> Asking[tuple[tuple[Image, ...], tuple[Step, ...]]]:
    """Source and edit as they are shown, and a step for whatever was done for it; nothing is
    shown where that failed.
    """
    source = sample.images["source"]
    edit = sample.images["output"]
    if images == "two":
        return (source, edit), ()
    name = side_by_side.NAME
    arguments = {"left": source, "right": edit}
    [joined], steps = yield from use_tools([UseTool(name, arguments, (name,))])
    return (joined.image,) if joined.image is not None else (), steps
