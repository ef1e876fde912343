"""ImgEdit's own rubric: an edit seen beside its source is given three scores, 1 to 5, by the wording for its type.

Source: Ye et al., ImgEdit (2025), whose score of an edit is the mean of the three; here `O = (mean - 1) / 4`. The rubric asks
that the second and third score be no higher than the first. A reply that breaks this keeps its scores, and is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vieval_plugin.judges.parsing import without_thinking
from vieval_plugin.judges.protocol import Chat, Judge, Message, Program, Sample, Status, Step, Verdict
from vieval_plugin.judges.refusals import refuses
from vieval_plugin.judges.spec import JudgeSpec, Needs, option, require_wording
from vieval_plugin.judges.structured_chat import Asked, Read, ask_all
from vieval_plugin.judges.wording import Wording

LOW, HIGH = 1, 5
ABOVE_FIRST = "a score above the first"
_NUMBER = r"\s*([0-9]+(?:\.[0-9]+)?)\s*(?:/\s*5)?\s*\.?\s*$"


@dataclass(frozen=True)
class ImgEditOptions:
    """What can be set."""

    pack: str = option(
        "installed/imgedit_rubric",
        "prompt pack: that of the installed lmms-eval, or a folder (`vieval prompts`)",
        folder=True,
    )
    reminders: int = option(1, "how often a reply that cannot be read is asked again, with the error", ge=0)


def build(options: ImgEditOptions, wording: Wording, setting: str = "") -> Judge:
    """A judge of edits by the rubric of a prompt pack, whose questions are called by the types of edits.

    The type is the sample's category; a sample of a type that the pack does not word is `not_applicable`. It scores O in
    [0, 1], and the step of its one question has the three scores of the reply.
    """
    require_wording(SPEC, wording, setting)

    def program(sample: Sample) -> Program:
        question = wording.questions.get(sample.category)
        if question is None:
            reason = f"the pack has no rubric for the type {sample.category!r} (it has {', '.join(wording.questions)})"
            return Verdict({}, Status.NOT_APPLICABLE, trace=(Step(("sample",), Status.NOT_APPLICABLE, reason=reason),))
        text = wording.render(question.template, dict(sample.texts))
        images = tuple(sample.images[role] for role in question.images)
        chat = Chat((Message("user", (text, *images)),), ("O",))
        [answer] = yield from ask_all([Asked(chat, _reader(question.scores))], wording, options.reminders)
        scores = {} if answer.value is None else {"O": (sum(answer.value) / len(answer.value) - LOW) / (HIGH - LOW)}
        return Verdict(scores, answer.final.status, answer.final.reason, answer.steps, findings=answer.findings)

    return program


def _reader(names: Sequence[str]) -> Callable[[str], Read[tuple[float, ...]]]:
    def read(text: str) -> Read[tuple[float, ...]]:
        said = without_thinking(text)
        lines = [re.sub(r"[*_`#|]", "", line).strip() for line in said.splitlines()]
        found = [
            [
                match[1]
                for line in lines
                if (match := re.match(rf"(?:[-\u2022]\s*)?{re.escape(name)}\s*:{_NUMBER}", line))
            ]
            for name in names
        ]
        for name, numbers in zip(names, found, strict=True):
            if len(numbers) != 1 or not LOW <= float(numbers[0]) <= HIGH:
                status = Status.REFUSAL if refuses(said) else Status.PARSE_FAILURE
                return Read(status, reason=f"not one line {name!r} with a number from {LOW} to {HIGH}")
        scores = tuple(float(number) for [number] in found)
        reason = next((line.partition(":")[2].strip() for line in lines if "reasoning" in line.lower()[:20]), "")
        return Read(Status.OK, scores, scores, reason, ABOVE_FIRST if max(scores) > scores[0] else "")

    return read


SPEC = JudgeSpec(
    name="imgedit_rubric",
    title="ImgEdit",
    aspects=("O",),
    needs={"tie": Needs(("source", "output"), ("instruction",))},
    options=ImgEditOptions,
    build=build,
    pack=lambda options, setting: options.pack,
    calls=lambda options, setting: "1",
)
