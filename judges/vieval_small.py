"""vieval_small: a small judge that comes inside the package, a scorer of 5 million weights that was trained on
its own drawings only.

It is there so that the main job runs without a server: `make demo`, tests, a first look. Of any other image, drawn or
not, it gives numbers that mean nothing, and says so wherever it is named. It is used where it is named, and never as a
fallback.
"""

from __future__ import annotations

import math

from vieval_plugin.judges.auto_metrics import measured_step
from vieval_plugin.judges.protocol import Judge, Measure, Program, Sample, Verdict, worst
from vieval_plugin.judges.spec import JudgeSpec, Needs, NoOptions

NAME = "vieval_small"
TRAINED_ON = "trained on its own drawings only"
_NEEDS = {
    "tig": Needs(("output",), ("prompt",)),
    "mie": Needs(("output", "source", "mask"), ("instruction",)),
    "tie": Needs(("output", "source"), ("instruction",)),
    "sdig": Needs(("output", "subject"), ("prompt",)),
    "sdie": Needs(("output", "source", "subject")),
    "mcic": Needs(("output", "concept_1", "concept_2"), ("prompt",)),
    "cig": Needs(("output", "control")),
}


def judge() -> Judge:
    """The judge: one measurement of SC, which sees the conditions, and one of PQ, which sees the output alone."""

    def program(sample: Sample) -> Program:
        roles = [role for role in _NEEDS[sample.kind].images if isinstance(role, str)]
        images = {role: sample.images[role] for role in roles}
        asks = {
            "SC": Measure(f"{NAME}_sc", images, ("SC",), {**sample.texts, "kind": sample.kind}, NAME),
            "PQ": Measure(f"{NAME}_pq", {"output": sample.images["output"]}, ("PQ",), {}, NAME),
        }
        replies = yield list(asks.values())
        steps = {aspect: measured_step(aspect, reply) for aspect, reply in zip(asks, replies, strict=True)}
        scores = {aspect: min(max(step.scores[0], 0.0), 1.0) for aspect, step in steps.items() if step.scores}
        if len(scores) == len(steps):
            scores["O"] = math.sqrt(scores["SC"] * scores["PQ"])
        status = worst([step.status for step in steps.values()])
        return Verdict(scores, status, TRAINED_ON, tuple(steps.values()))

    return program


SPEC = JudgeSpec(
    name=NAME,
    title="vieval_small (trained on its own drawings only)",
    aspects=("SC", "PQ", "O"),
    method="a small network, trained on its own drawings only",
    needs=_NEEDS,
    options=NoOptions,
    build=lambda options, pack, setting: judge(),
    setting_labels=lambda options, setting: (TRAINED_ON,),
    scored=True,
    training_benchmarks="vieval_demo",
)
