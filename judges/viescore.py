"""VIEScore: semantic consistency and perceptual quality by rubric, 0 to 10, the worst sub-score counts.

Source: Ku et al., VIEScore (ACL 2024). `SC = min(sub-scores)/10`, `PQ = min(sub-scores)/10`, `O = sqrt(SC * PQ)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vieval_plugin.judges.asking import ScoreAsk, ask_scores
from vieval_plugin.judges.protocol import (
    Chat,
    Image,
    Judge,
    Message,
    Program,
    Sample,
    Status,
    Step,
    Verdict,
    Wording,
    worst,
)

ASPECTS = ("SC", "PQ", "O")
SCALE = 10.0
_LONGEST = 1500


@dataclass(frozen=True)
class Example:
    """A worked example of the one-shot setting: its images in the question's order, and the scores it deserves."""

    images: tuple[Image, ...]
    scores: tuple[float, ...]
    reasoning: str = ""


def judge(wording: Wording, examples: Mapping[str, Example] | None = None, reminders: int = 1) -> Judge:
    """VIEScore with a prompt pack; `examples` maps a question (`SC_tie`, `PQ`) to its one-shot example.

    The program asks SC and PQ at once, and a question whose reply cannot be read up to `reminders` times more. It
    scores SC, PQ and O in [0, 1]; an aspect whose replies could not be read is absent.
    """
    shown = examples or {}

    def program(sample: Sample) -> Program:
        asked = {"SC": f"SC_{sample.id.task}", "PQ": "PQ"}
        wanted = [role for key in asked.values() for role in wording.questions[key].images]
        if absent := [role for role in wanted if role not in sample.images]:
            step = Step("sample", Status.TOOL_ERROR, reason=f"the sample has no image {absent[0]}")
            return Verdict({}, Status.TOOL_ERROR, trace=(step,))
        asks = [_ask(wording, key, aspect, sample, shown.get(key)) for aspect, key in asked.items()]
        answers = yield from ask_scores(asks, wording, reminders)
        final = [answer.final for answer in answers]
        scores = combine_aspects({step.label: step.scores for step in final if step.status.usable})
        rationale = "\n".join(f"{step.label}: {step.reason}" for step in final if step.status.usable and step.reason)
        trace = tuple(step for answer in answers for step in answer.steps)
        return Verdict(scores, worst([step.status for step in final]), rationale, trace)

    return program


def combine_aspects(sub_scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """SC, PQ and O in [0, 1] from sub-scores on 0-10; an aspect without sub-scores is absent, O needs both.

    >>> combine_aspects({"SC": [9, 4], "PQ": [9]})
    {'SC': 0.4, 'PQ': 0.9, 'O': 0.6}
    """
    scores = {aspect: min(max(min(values) / SCALE, 0.0), 1.0) for aspect, values in sub_scores.items()}
    if "SC" in scores and "PQ" in scores:
        scores["O"] = math.sqrt(scores["SC"] * scores["PQ"])
    return scores


def reply_schema(count: int) -> dict[str, Any]:
    """JSON schema of an answer with `count` sub-scores and a short reasoning."""
    score = {"type": "number", "minimum": 0, "maximum": SCALE}
    return {
        "type": "object",
        "properties": {
            "score": {"type": "array", "items": score, "minItems": count, "maxItems": count},
            "reasoning": {"type": "string", "maxLength": _LONGEST},
        },
        "required": ["score", "reasoning"],
        "additionalProperties": False,
    }


def _ask(wording: Wording, key: str, label: str, sample: Sample, example: Example | None) -> ScoreAsk:
    question = wording.questions[key]
    count = len(question.scores)
    text = wording.render(question.template, {**sample.texts, "names": question.scores, "example": example})
    images = (*(example.images if example else ()), *(sample.images[role] for role in question.images))
    return ScoreAsk(Chat((Message("user", (*images, text)),), label, reply_schema(count)), count, SCALE)
