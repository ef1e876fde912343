"""VIEScore: semantic consistency and perceptual quality by rubric, 0 to 10, the worst sub-score counts.

Source: Ku et al., VIEScore (ACL 2024). `SC = min(sub-scores)/10`, `PQ = min(sub-scores)/10`, `O = sqrt(SC * PQ)`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vieval_plugin.judges.parsing import parse_scores
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Image,
    Judge,
    Message,
    Program,
    Question,
    Reply,
    Sample,
    Status,
    Step,
    Text,
    Verdict,
    Wording,
    worst,
)

ASPECTS = ("SC", "PQ", "O")
SCALE = 10.0


@dataclass(frozen=True)
class Example:
    """A worked example of the one-shot setting: its images in the question's order, and the scores it deserves."""

    images: tuple[Image, ...]
    scores: tuple[float, ...]
    reasoning: str = ""


def judge(wording: Wording, examples: Mapping[str, Example] | None = None) -> Judge:
    """VIEScore with a prompt pack; `examples` maps a question (`SC_tie`, `PQ`) to its one-shot example.

    The program asks SC and PQ at once and scores SC, PQ and O in [0, 1]; an aspect whose reply cannot be read is absent.
    """
    shown = examples or {}

    def program(sample: Sample) -> Program:
        asked = {"SC": f"SC_{sample.id.task}", "PQ": "PQ"}
        replies = yield [_ask(wording, asked[a], a, sample, shown.get(asked[a])) for a in asked]
        steps = tuple(
            _read(reply, aspect, len(wording.questions[asked[aspect]].scores))
            for aspect, reply in zip(asked, replies, strict=True)
        )
        scores = combine_aspects({step.label: step.scores for step in steps if step.status.usable})
        rationale = "\n".join(f"{step.label}: {step.reason}" for step in steps if step.status.usable and step.reason)
        return Verdict(scores, worst([step.status for step in steps]), rationale, steps)

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
            "reasoning": {"type": "string"},
        },
        "required": ["score", "reasoning"],
        "additionalProperties": False,
    }


def _ask(wording: Wording, key: str, label: str, sample: Sample, example: Example | None) -> Chat:
    question: Question = wording.questions[key]
    text = wording.render(question.template, {**sample.texts, "names": question.scores, "example": example})
    images = (*(example.images if example else ()), *(sample.images[role] for role in question.images))
    return Chat((Message("user", (*images, text)),), label, reply_schema(len(question.scores)))


def _read(reply: Reply, label: str, count: int) -> Step:
    if isinstance(reply, Failure):
        return Step(label, reply.status, reason=reply.reason)
    if not isinstance(reply, Text):
        return Step(label, Status.API_ERROR, reason=f"a text was asked for, {type(reply).__name__} came")
    parsed = parse_scores(reply.text, count=count, high=SCALE)
    return Step(
        label, parsed.status, parsed.scores, reply.text, parsed.reasoning if parsed.status.usable else parsed.reason
    )
