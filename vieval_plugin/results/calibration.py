"""Calibration of a judge by people's ratings of images that it scored, and its score added to results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from vieval_plugin.meta_evaluation.comparison import LEAST_FOR_A_TEST
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.records import Record, Run
from vieval_plugin.results.runs import Results
from vieval_plugin.run.calibration import Calibration, TypicalErrors
from vieval_plugin.stats.calibration import LEAST_LABELS, Improvement, Labels, fits, held_out, improvement, tied_share
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import enumeration, plural


def calibrate(run: Run, options: StatisticsOptions) -> tuple[Calibration, Improvement, tuple[float, float]]:
    """Fit a judge's scores to people's mean ratings, by task type where each has 30 labels, and validate the fit.

    O is calibrated where people rated it, else the first aspect that they rated and the judge scores.

    Args:
        run: one judge's, with people's ratings in its records.
        options: resamples and seed; verdicts without a score are left out.

    Returns:
        The calibration, its gain on held-out labels, and the shares of pairs on one prompt that are tied, by raw and by
        calibrated scores.

    Raises:
        VievalError: labels are too few to say anything.
    """
    images = [  # prompts are named with their part, as two parts may have one of a name
        replace(observe(records), group=f"{part}/{records[0].group}")
        for part, samples in run.records.items()
        for records in samples
        if records[0].votes is None
    ]
    aspect = min(run.aspects, key=lambda name: (not _labels(images, name).kinds, name != "O"), default="O")
    labels = _labels(images, aspect)
    _require_enough(labels, run.aspects, {name for image in images for name in image.ratings})
    on_prompts, on_generators = held_out(labels, options.seed), held_out(labels, options.seed, by_generator=True)
    knots = {kind: (tuple(x.tolist()), tuple(y.tolist())) for kind, (x, y) in fits(labels).items()}
    better = improvement(labels, on_prompts, options.draws, options.seed)
    source = next(chain(*chain(*run.records.values()))).provenance
    calibration = Calibration(
        *(source.judge, source.setting, source.backbone, source.pack_hash, aspect, knots, len(labels.kinds)),
        _errors(labels, on_prompts),
        None if np.isnan(on_generators).any() else _errors(labels, on_generators),
        better.accepted,
    )
    scored = [image for image in images if aspect in image.scores and image.kind in knots]
    added = [calibration.added(image.scores, image.kind) for image in scored]
    groups = [image.group for image in scored]
    raw, calibrated = (tied_share([scores[name] for scores in added], groups) for name in (aspect, calibration.name))
    return calibration, better, (raw, calibrated)


def _require_enough(labels: Labels, aspects: Sequence[str], rated: Collection[str]) -> None:
    """VievalError where labels, those of each stratum, are too few to fit and to hold some out."""
    if rated and not {*rated} & {*aspects}:
        missing = enumeration(aspects, "or")
        raise VievalError(f"people rated {enumeration(sorted(rated))}, and the judge scores {missing}; label {missing}")
    for stratum in dict.fromkeys(labels.strata) or [""]:
        prompts = [prompt for prompt, name in zip(labels.prompts, labels.strata, strict=True) if name == stratum]
        if len(prompts) < LEAST_LABELS or len({*prompts}) < LEAST_FOR_A_TEST:
            number = f"{plural(len(prompts), 'label')} on {plural(len({*prompts}), 'prompt')} of images with a score"
            raise VievalError(
                f"{number}{stratum and f' and task type {stratum}'}, and a calibration needs {LEAST_LABELS} on "
                f"{LEAST_FOR_A_TEST} prompts; label more"
            )


def _labels(images: Sequence[Observation], aspect: str) -> Labels:
    """The labels of images that people rated and the judge scored."""
    rated = [o for o in images if aspect in o.scores and not np.isnan(o.ratings.get(aspect, ())).all()]
    scores, ratings = [o.scores[aspect] for o in rated], [float(np.nanmean(o.ratings[aspect])) for o in rated]
    names = ([getattr(o, name) for o in rated] for name in ("kind", "group", "image_model"))
    return Labels(np.array(scores), np.array(ratings), *names)


def _errors(labels: Labels, predicted: Floats) -> TypicalErrors:
    values = np.array([predicted[0], labels.scores, predicted[2]])
    return TypicalErrors(*np.abs(values - labels.ratings).mean(axis=1).tolist())


def with_calibrated_scores(results: Results, calibration: Calibration) -> Results:
    """The same results, in which each verdict on an image has the calibrated score, and a line on one that it replaces.

    Raises:
        VievalError: a verdict is another judge's, or on a task type without labels.
    """
    notes: dict[str, None] = {}

    def add(record: Record) -> Record:
        calibration.require(record.provenance)
        calibration.require_kinds([record.kind])
        notes[calibration.replaced(record.provenance)] = None
        verdict = replace(record.verdict, scores=calibration.added(record.verdict.scores, record.kind))
        return replace(
            record, verdict=verdict, provenance=replace(record.provenance, calibration=calibration.described)
        )

    def added(run: Run) -> Run:
        by_part = {part: [tuple(map(add, records)) for records in samples] for part, samples in run.records.items()}
        return replace(run, records=by_part)

    runs = tuple(map(added, results.runs))
    return replace(results, runs=runs, notes=(*results.notes, *filter(None, notes)))
