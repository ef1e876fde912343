"""Positive control of a gate: a judge that passes a build must give lower scores to
spoilt versions of its images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean

import numpy as np
import PIL.Image
from scipy.optimize import linear_sum_assignment

from vieval_plugin.audit.audit import preferences
from vieval_plugin.audit.changes import Picture, jpeg_image
from vieval_plugin.config import Backbone, Config
from vieval_plugin.images import decode, is_there
from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import (
    OUTPUTS,
    Image,
    Sample,
    SampleId,
    Verdict,
    outputs,
)
from vieval_plugin.meta_evaluation.gate import ControlResult, Spoiling
from vieval_plugin.records import YOUR_IMAGES, Record
from vieval_plugin.results.prompt_differences import prompt_forms
from vieval_plugin.run.evaluate import outcomes_of
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.stats.decisions import CONTROL_ITEMS
from vieval_plugin.stats.non_inferiority import control_change, exact_share

_SHRUNK = 16
_JPEG_QUALITY = 10
_FORBIDDEN = 1e6


@dataclass(frozen=True)
class ControlPrompt:
    """A prompt of a positive control."""

    #: Image of the build with its conditions.
    sample: Sample
    #: Score of the build on the prompt; 0 of contests.
    score: float
    #: Texts that the prompt shares with prompts that differ in one word.
    forms: frozenset[str]


def control_prompts(
    records: Sequence[Record],
    aspect: str,
    challenger: str,
    reference: str,
    margin: float,
) -> list[ControlPrompt]:
    """Choose prompts of a control by scores, those with the highest scores of the
    reference first.

    The reference determines the order, because choosing by the challenger would select
    its noise. A prompt is left out if its reference score does not exceed the margin,
    because its score cannot fall by more.

    Args:
        records: verdicts on the images of both.
        aspect: score that the gate decides by.
        challenger, reference: labels of the two.
        margin: of the gate.
    """
    sides: dict[str, dict[tuple[str, str], list[Record]]] = {
        challenger: {},
        reference: {},
    }
    for record in records:
        side = sides.get(record.id.image_model or YOUR_IMAGES)
        if side is not None and aspect in record.verdict.scores:
            key = (record.id.part, record.id.uid)
            side.setdefault(key, []).append(record)
    challenger_scores, scores = (
        {
            prompt: fmean(record.verdict.scores[aspect] for record in judged)
            for prompt, judged in sides[name].items()
        }
        for name in (challenger, reference)
    )
    challenger_records = sides[challenger]
    images = {
        prompt: _image_of(judged) for prompt, judged in challenger_records.items()
    }
    suitable = (prompt for prompt in scores if scores[prompt] > margin)
    ordered = sorted(suitable, key=lambda prompt: -scores[prompt])
    return [
        ControlPrompt(sample, challenger_scores[prompt], prompt_forms(sample))
        for prompt in ordered
        if (sample := images.get(prompt))
    ]


def contest_prompts(judged: Sequence[Judged], challenger: str) -> list[ControlPrompt]:
    """Choose prompts of a control by contests, in the order of the contests."""
    samples = {
        (sample.kind, sample.id.uid): sample
        for sample in chain.from_iterable(map(candidates_of, judged))
        if (sample.id.image_model or YOUR_IMAGES) == challenger and _has_image(sample)
    }
    return [
        ControlPrompt(sample, 0.0, prompt_forms(sample)) for sample in samples.values()
    ]


def spoilings(aspect: str, prepared: PreparedJudge) -> tuple[Spoiling, ...]:
    """Ways to spoil images for an aspect, in the order of trial; detecting one is
    enough.
    """
    measures_pixels = not (
        prepared.asks_a_model or prepared.spec.scored or prepared.spec.reads_text
    )
    if aspect == "PQ" or measures_pixels:
        return ("degraded",)
    has_both_ways = aspect == "O" and prepared.spec.rates == "sample"
    return ("exchanged", "degraded") if has_both_ways else ("exchanged",)


def planned_control(prepared: PreparedJudge) -> str:
    """Line on the cost of the control of a gate that would pass."""
    aspects = prepared.spec.aspects
    contests = prepared.spec.rates == "contest"
    aspect = ""
    if not contests:
        aspect = "O" if "O" in aspects else aspects[0]
    ways = len(spoilings(aspect, prepared))
    calls = ""
    if prepared.asks_a_model:
        calls = f", {prepared.calls} calls each"
    has_maximum = ways > 1 and not contests
    maximum = ""
    if has_maximum:
        maximum = f" to {CONTROL_ITEMS * ways}"
    return (
        "positive control (only if the gate would pass): "
        f"{CONTROL_ITEMS}{maximum} more images{calls}"
    )


def spoilt_images(
    prompts: Sequence[ControlPrompt], spoiling: Spoiling
) -> list[tuple[ControlPrompt, Sample]]:
    """Spoil the images of twenty prompts; fewer if not enough can be spoilt.

    Args:
        prompts: in the order of use.
        spoiling: `exchanged` gives each prompt the image of another one, never from its own group
            or from a prompt that differs in only one word; `degraded` shrinks each image to a
            sixteenth of its sides, enlarges it again and saves it as JPEG 10.
    """
    if spoiling == "degraded":
        return [
            (prompt, _replace_outputs(prompt.sample, _degraded(prompt.sample)))
            for prompt in prompts[:CONTROL_ITEMS]
        ]
    selection = list(prompts[:CONTROL_ITEMS])
    further = list(prompts[CONTROL_ITEMS:])
    partners = _partners(selection)
    while None in partners and further:
        from_end = partners[::-1].index(None)
        alone = len(partners) - 1 - from_end
        following = selection[alone + 1 :]
        selection = [*selection[:alone], *following, further.pop(0)]
        partners = _partners(selection)
    return [
        (prompt, _replace_outputs(prompt.sample, dict(outputs(partner.sample))))
        for prompt, partner in zip(selection, partners, strict=True)
        if partner is not None
    ]


def _contest_result(
    spoiling: Spoiling, verdicts: Sequence[Verdict], margin: float
) -> ControlResult:
    """Result of contests between images and their spoilt versions."""
    wins = sum(
        bool(points := preferences(verdict))
        and all(point > 0.5 for point in points.values())
        for verdict in verdicts
    )
    share = exact_share(wins, len(verdicts))
    is_detected = share.low > 0.5 + margin
    return ControlResult(
        spoiling=spoiling,
        n=len(verdicts),
        estimate=share,
        seen=is_detected,
        contests=True,
    )


async def control_results(
    prompts: Sequence[ControlPrompt],
    ways: Sequence[Spoiling],
    aspect: str,
    margin: float,
    judging: tuple[PreparedJudge, Config, Backbone | None, Progress],
    bar: bool = False,
) -> list[ControlResult]:
    """Run a positive control: try each way to spoil images until the judge detects one.

    Args:
        prompts: of `control_prompts` or `contest_prompts`.
        ways: of `spoilings`.
        aspect: score that the gate decides by.
        margin: of the gate; a fall must exceed it to be seen.
        judging: the judge, options, backbone that flags name, and progress, as for `outcomes_of`.
        bar: whether to show a progress bar.
    """
    results = []
    for spoiling in ways:
        degraded = spoilt_images(prompts, spoiling)
        if len(degraded) < CONTROL_ITEMS:
            results.append(ControlResult(spoiling, len(degraded)))
            continue
        contests = judging[0].spec.rates == "contest"
        judged = [_against_own(*pair) if contests else pair[1] for pair in degraded]
        verdicts = [
            outcome.verdict for outcome in await outcomes_of(judged, *judging, bar=bar)
        ]
        if contests:
            results.append(_contest_result(spoiling, verdicts, margin))
        else:
            read = [
                (prompt.score, verdict.scores[aspect])
                for (prompt, _), verdict in zip(degraded, verdicts, strict=True)
                if aspect in verdict.scores
            ]
            change = None
            if len(read) > 1:
                change = control_change(*zip(*read, strict=True))
            is_detected = bool(change and change.high < -margin)
            results.append(
                ControlResult(
                    spoiling=spoiling,
                    n=len(read),
                    estimate=change,
                    seen=is_detected,
                )
            )
        if results[-1].seen:
            break
    return results


def _image_of(records: Sequence[Record]) -> Sample | None:
    """First sample of a prompt whose image exists."""
    samples = (record.sample for record in records)
    return next(
        (
            sample
            for sample in samples
            if isinstance(sample, Sample) and _has_image(sample)
        ),
        None,
    )


def _has_image(sample: Sample) -> bool:
    return bool(set(OUTPUTS) & set(sample.images)) and all(
        is_there(image) for _, image in outputs(sample)
    )


def _partners(prompts: Sequence[ControlPrompt]) -> list[ControlPrompt | None]:
    """Assign each prompt the image of another prompt, each once; None if all remaining
    ones are too similar.
    """
    number = len(prompts)
    costs = np.zeros((number, number))
    for row, prompt in enumerate(prompts):
        for column, partner in enumerate(prompts):
            is_same_group = prompt.sample.group == partner.sample.group
            alike = is_same_group or prompt.forms & partner.forms
            costs[row, column] = (column - row - 1) % number
            if alike:
                costs[row, column] = _FORBIDDEN
    _, columns = linear_sum_assignment(costs)
    return [
        prompts[column] if costs[row, column] < _FORBIDDEN else None
        for row, column in enumerate(columns.tolist())
    ]


def _replace_outputs(sample: Sample, images: Mapping[str, Image]) -> Sample:
    """Replace the outputs of a sample, keeping its conditions."""
    own_roles = {role for role, _ in outputs(sample)}
    conditions = {
        role: image for role, image in sample.images.items() if role not in own_roles
    }
    return replace(
        sample,
        id=replace(sample.id, image_model="spoilt"),
        images={**conditions, **images},
    )


def _degraded(sample: Sample) -> dict[str, Image]:
    return {
        role: jpeg_image(_blurred(decode(image)), _JPEG_QUALITY)
        for role, image in outputs(sample)
    }


def _blurred(picture: Picture) -> Picture:
    width, height = picture.size
    small_width = max(1, width // _SHRUNK)
    small_height = max(1, height // _SHRUNK)
    small = picture.resize((small_width, small_height), PIL.Image.Resampling.BOX)
    return small.resize((width, height), PIL.Image.Resampling.BILINEAR)


def _against_own(prompt: ControlPrompt, degraded: Sample) -> Contest:
    original = prompt.sample
    uid = f"{original.id.uid} {original.id.image_model} spoilt"
    identity = SampleId(
        original.id.benchmark,
        original.id.part,
        "",
        uid,
    )
    return Contest(identity, (original, degraded), group=original.group)
