"""VQAScore: the probability that a model answers "Yes" when asked whether an image shows a text.

Source: Lin et al., Evaluating Text-to-Visual Generation with Image-to-Text Generation (ECCV 2024).
The definition is the probability of one answer token; the authors' first release computed
sequence_mean (see protocol.Likelihood).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from vieval_plugin.judges.probabilities import interval_text, with_middles
from vieval_plugin.judges.protocol import (
    OUTPUTS,
    Ask,
    Interval,
    Judge,
    Likelihood,
    Message,
    Path,
    Probabilities,
    Program,
    Reply,
    Sample,
    Status,
    Step,
    Verdict,
    failed_step,
    outputs,
    worst,
)
from vieval_plugin.judges.spec import EVERY_KIND, JudgeSpec, Needs, option
from vieval_plugin.prompts.pack import Pack

Definition: TypeAlias = Literal["first_token", "sequence_mean"]

QUESTION = "SC"


@dataclass(frozen=True)
class VQAScoreOptions:
    """Options of the judge."""

    pack: str = option(
        "vqascore/v1",
        "prompt pack: a name from `vieval prompts list`, or a folder; it defines the "
        "answer (vqascore/lower_v1: yes)",
        folder=True,
    )
    definition: Definition = option(
        "first_token",
        "use the first token of the answer (first_token), or all of its tokens, as in the "
        "authors' first release (sequence_mean; transformers only)",
    )


def build(options: VQAScoreOptions, wording: Pack, setting: str = "") -> Judge:
    """VQAScore with a prompt pack, whose question `SC` names the answer under `scores`.

    The program asks once an image (a video's frames and a 3D object's views count as several and
    are averaged). Under `first_token` the answer's case and space variants are summed. SC is in [0,
    1]; where a server lists only its likeliest tokens it is the middle of what is possible, and
    `bounds` has the interval.
    """
    question = wording.questions[QUESTION]
    (answer,) = question.scores
    continuations = (
        variants(answer) if options.definition == "first_token" else (answer,)
    )

    def program(sample: Sample) -> Program:
        variables = {**sample.texts, "prompt": sample.texts["prompt"].strip()}
        question_text = wording.render(question.template, variables)
        asks: list[Ask] = []
        for role, image in outputs(sample):
            message = Message("user", question.parts([image], question_text))
            asks.append(
                Likelihood(
                    (message,),
                    continuations,
                    (role,),
                    options.definition,
                )
            )
        replies = yield asks
        pairs = zip(asks, replies, strict=True)
        steps = tuple(step_of(reply, ask.path) for ask, reply in pairs)
        verdict = Verdict(
            {},
            worst([step.status for step in steps]),
            trace=steps,
        )
        return with_middles(verdict, average_bounds(steps))

    return program


def variants(answer: str) -> tuple[str, ...]:
    """An answer in its cases, without and with a space before it.

    >>> variants("Yes")
    ('Yes', 'yes', 'YES', ' Yes', ' yes', ' YES')
    """
    cases = dict.fromkeys([answer, answer.lower(), answer.upper()])
    return (*cases, *(f" {case}" for case in cases))


def step_of(reply: Reply, path: Path) -> Step:
    """A step whose bounds are the lowest and highest P(answer) can be."""
    if not isinstance(reply, Probabilities):
        return failed_step(reply, path, "probabilities")
    low = _summed(reply.low)
    high = _summed(reply.high)
    return Step(
        path,
        Status.OK,
        answer=interval_text(low, high),
        bounds=(low, high),
    )


def average_bounds(steps: Sequence[Step]) -> dict[str, Interval]:
    """The average lower and upper bound of steps as those of SC; none where a step has no
    bounds.
    """
    intervals = [step.bounds for step in steps if step.bounds]
    if len(intervals) < len(steps):
        return {}
    lows, highs = zip(*intervals, strict=True)
    return {"SC": (sum(lows) / len(lows), sum(highs) / len(highs))}


def _summed(probabilities: Sequence[float]) -> float:
    return min(sum(probabilities), 1.0)


SPEC = JudgeSpec(
    name="vqascore",
    title="VQAScore",
    aspects=("SC",),
    method='the probability of "Yes" when asked whether the image shows the prompt',
    needs={EVERY_KIND: Needs((OUTPUTS,), ("prompt",))},
    options=VQAScoreOptions,
    build=build,
    pack=lambda options, setting: options.pack,
    calls=lambda options, setting: "1",
    rounds=lambda options, setting: 2,
    setting_labels=lambda options, setting: (options.definition,),
    intervals=True,
    reads_probabilities=True,
)
