"""VIEScore: semantic consistency and perceptual quality by rubric, 0 to 10, the worst sub-score counts.

Source: Ku et al., VIEScore (ACL 2024). `SC = min(sub-scores)/10`, `PQ = min(sub-scores)/10`, `O = sqrt(SC * PQ)`.
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Chat, Image, Judge, Message, Program, Sample, Verdict, worst
from vieval_plugin.judges.spec import JudgeSpec, Needs, option, require_wording
from vieval_plugin.judges.structured_chat import ScoreAsk, ask_scores, reply_schema
from vieval_plugin.judges.wording import Wording

SCALE = 10.0
PLAIN, ONE_SHOT = "0shot", "1shot"


@dataclass(frozen=True)
class OneShotExample:
    """A worked example of the one-shot setting.

    `images` are image files in the order of the question's own images, `scores` the sub-scores they deserve, 0 to 10.
    """

    images: tuple[pathlib.Path, ...]
    scores: tuple[float, ...]
    reasoning: str = ""


@dataclass(frozen=True)
class VIEScoreOptions:
    """Options of the judge."""

    pack: str = option("viescore/v1", "prompt pack: a built-in name or a folder (`vieval prompts list`)", folder=True)
    pack_1shot: str = option("viescore/v1", "prompt pack of the one-shot tasks", folder=True)
    examples: Mapping[str, OneShotExample] = option(
        {}, "one-shot examples by question: PQ, SC_tig, SC_tie, ... (images, scores, reasoning)"
    )


def build(options: VIEScoreOptions, wording: Wording, setting: str = PLAIN) -> Judge:
    """VIEScore with a prompt pack, in the setting `0shot` or `1shot`.

    The program asks SC and PQ at once, and a question whose reply cannot be read up to `wording.reminders` times more.
    It scores SC, PQ and O in [0, 1]; an aspect whose replies could not be read is absent.

    Raises:
        VievalError: `1shot`, and a question of the pack has no example in the options.
    """
    require_wording(SPEC, wording, setting)
    examples = dict(options.examples) if setting == ONE_SHOT else {}
    if setting == ONE_SHOT and (missing := [key for key in wording.questions if key not in examples]):
        raise VievalError(
            f"the setting {ONE_SHOT} needs an example image and its scores from you for each question ({', '.join(missing)} "
            f"missing); set judges.{SPEC.name}.examples in the file that VIEVAL_CONFIG names (`vieval config` writes one)"
        )

    def program(sample: Sample) -> Program:
        keys = {"SC": f"SC_{sample.kind}", "PQ": "PQ"}
        asks = [_ask(wording, key, aspect, sample, examples.get(key)) for aspect, key in keys.items()]
        answers = yield from ask_scores(asks, wording)
        final = dict(zip(keys, (answer.final for answer in answers), strict=True))
        scores = combine_aspects({aspect: step.scores for aspect, step in final.items() if step.status.usable})
        read = [(aspect, step.reason) for aspect, step in final.items() if step.status.usable and step.reason]
        rationale = "\n".join(f"{aspect}: {reason}" for aspect, reason in read)
        trace = tuple(step for answer in answers for step in answer.steps)
        findings = tuple(finding for answer in answers for finding in answer.findings)
        return Verdict(scores, worst([s.status for s in final.values()]), rationale, trace, findings=findings)

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


def _ask(wording: Wording, key: str, aspect: str, sample: Sample, example: OneShotExample | None) -> ScoreAsk:
    question = wording.questions[key]
    count = len(question.scores)
    text = wording.render(question.template, {**sample.texts, "names": question.scores, "example": example})
    example_images = tuple(Image(path) for path in example.images) if example else ()
    images = (*example_images, *(sample.images[role] for role in question.images))
    chat = Chat((Message("user", (*images, text)),), (aspect,), reply_schema(count, SCALE))
    return ScoreAsk(chat, count, SCALE, question.scores)


SPEC = JudgeSpec(
    name="viescore",
    title="VIEScore",
    aspects=("SC", "PQ", "O"),
    method="sub-scores from 0 to 10 by a rubric",
    needs={
        "tig": Needs(("output",), ("prompt",)),
        "mie": Needs(("source", "output"), ("instruction",)),
        "tie": Needs(("source", "output"), ("instruction",)),
        "sdig": Needs(("subject", "output"), ("prompt",)),
        "sdie": Needs(("source", "subject", "output"), ("subject",)),
        "mcic": Needs(("concepts", "output"), ("prompt",)),
        "cig": Needs(("control", "output"), ("prompt",)),
    },
    options=VIEScoreOptions,
    build=build,
    settings=(PLAIN, ONE_SHOT),
    pack=lambda options, setting: options.pack_1shot if setting == ONE_SHOT else options.pack,
    calls=lambda options, setting: "2",
)
