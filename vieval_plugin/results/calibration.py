"""Calibrate a judge with human ratings of images that it scored, and add the calibrated
score to results.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vieval_plugin.meta_evaluation.observations import Observation, mean_rating, observe
from vieval_plugin.meta_evaluation.tables import interval_text
from vieval_plugin.records import Record, Run
from vieval_plugin.results.runs import Results
from vieval_plugin.run.calibration import Calibration, TypicalErrors
from vieval_plugin.stats.calibration import (
    MOST_LABELS,
    Improvement,
    Labels,
    fits,
    held_out,
    improvement,
    refused_kinds,
    tied_share,
)
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.decisions import (
    LEAST_LABELS,
    LEAST_PROMPTS,
    SIGNIFICANCE_LEVEL,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.prediction_powered import (
    prediction_powered_difference,
    prediction_powered_mean,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import enumeration, plural


@dataclass(frozen=True)
class CalibrationResult:
    """A calibration and the evidence for it."""

    calibration: Calibration
    #: Gain on held-out labels of all task types together.
    better: Improvement
    #: Shares of pairs on one prompt that are tied, by raw and by calibrated scores.
    ties: tuple[float, float]
    #: Number of labels of all task types.
    labels: int
    #: Labels of each task type that uses the common function.
    common: Mapping[str, int]
    #: The judge's mean on labelled images minus its mean on the others if they differ
    #: significantly; otherwise None.
    selection: Estimate | None


def calibrate(
    run: Run,
    options: StatisticsOptions,
    anyway: bool = False,
    random: bool = False,
) -> CalibrationResult:
    """Fit a judge's scores to people's mean ratings, by task type where it has 30 labels, and
    validate the fit.

    Calibration is decided for all task types together and, if accepted, for each task
    type with its own function. O is calibrated if people rated it, otherwise the first
    aspect that both people and the judge scored.

    Args:
        run: of one judge, with human ratings in its records.
        options: resamples and seed; verdicts without a score are left out.
        anyway: keep the function of each task type even if labels do not show that it helps.
        random: the labelled images are known to be a random sample.

    Raises:
        VievalError: there are too few labels.
    """
    images = list(_images(run))
    aspect = min(
        run.aspects,
        key=lambda name: (not _labels(images, name).kinds, name != "O"),
        default="O",
    )
    labels = _labels(images, aspect)
    rated_aspects = {name for image in images for name in image.ratings}
    _require_enough(labels, run.aspects, rated_aspects)
    on_prompts = held_out(labels, options.seed)
    on_generators = held_out(labels, options.seed, by_generator=True)
    better = improvement(labels, on_prompts, options.draws, options.seed)
    selection = None if random else _selection(images, aspect)
    accepted = better.accepted and selection is None
    refused: Collection[str] = ()
    if accepted and not anyway:
        refused = refused_kinds(
            labels,
            on_prompts,
            options.draws,
            options.seed,
        )
        if len(refused) >= len({*labels.kinds}):
            accepted = False
            refused = ()
    knots = {
        kind: (tuple(scores.tolist()), tuple(ratings.tolist()))
        for kind, (scores, ratings) in fits(labels).items()
        if kind not in refused
    }
    is_kept = np.isin(labels.kinds, list(knots))
    kept_labels = labels.where(is_kept)
    on_prompts = on_prompts[:, is_kept]
    on_generators = on_generators[:, is_kept]
    generator_errors = None
    if not np.isnan(on_generators).any():
        generator_errors = _errors(kept_labels, on_generators)
    source = run.all_records[0].provenance
    calibration = Calibration(
        source.judge,
        source.setting,
        source.backbone,
        source.pack_hash,
        aspect,
        knots,
        len(kept_labels.kinds),
        _errors(kept_labels, on_prompts),
        generator_errors,
        accepted,
        tuple(refused),
    )
    return CalibrationResult(
        calibration,
        better,
        _tied_shares(images, calibration),
        len(labels.kinds),
        Counter(kind for kind in labels.kinds if kind not in labels.large_kinds),
        selection,
    )


def _tied_shares(
    images: Sequence[Observation], calibration: Calibration
) -> tuple[float, float]:
    """Return the shares of pairs that raw and calibrated scores tie."""
    aspect = calibration.aspect
    scored = [
        image
        for image in images
        if aspect in image.scores and image.kind in calibration.knots
    ]
    added = [calibration.added(image.scores, image.kind) for image in scored]
    groups = [image.group for image in scored]
    raw = [scores[aspect] for scores in added]
    calibrated = [scores[calibration.name] for scores in added]
    return tied_share(raw, groups), tied_share(calibrated, groups)


def _images(run: Run) -> Iterator[Observation]:
    """Images of a run, with prompts named by part, because two parts may share a name."""
    for part, samples in run.records.items():
        for records in samples:
            if records[0].votes is None:
                image = observe(records)
                yield replace(
                    image,
                    group=f"{part}/{image.group}",
                    cluster=f"{part}/{image.cluster}",
                )


def _selection(images: Sequence[Observation], aspect: str) -> Estimate | None:
    """Return the judge's mean on labelled images minus its mean on the others if these
    differ significantly, so that the labels are not a random sample.
    """
    scored = [image for image in images if aspect in image.scores]
    scores = np.array([image.scores[aspect] for image in scored])
    ratings = np.array([mean_rating(image, aspect) for image in scored])
    prompts = [image.group for image in scored]
    kinds = [image.kind for image in scored]
    labelled, judged = (
        prediction_powered_mean(ratings, scores, prompts, strata=kinds, weight=weight)
        for weight in (0.0, 1.0)
    )
    difference, p = prediction_powered_difference(labelled, judged)
    return difference if p <= SIGNIFICANCE_LEVEL else None


def _require_enough(
    labels: Labels,
    aspects: Sequence[str],
    rated: Collection[str],
) -> None:
    """Raise VievalError if there are too few labels to fit a calibration and hold some
    out.
    """
    if rated and not {*rated} & {*aspects}:
        missing = enumeration(aspects, "or")
        rated_kinds = enumeration(sorted(rated))
        raise VievalError(
            f"people rated {rated_kinds}, but the judge scores {missing}; label {missing}"
        )
    if not labels.are_enough:
        label_count = plural(len(labels.prompts), "label")
        prompt_count = plural(len({*labels.prompts}), "prompt")
        raise VievalError(
            f"calibration requires at least {LEAST_LABELS} labels on {LEAST_PROMPTS} "
            f"prompts, got {label_count} on {prompt_count} for images with a score; "
            "label more images"
        )


def _labels(images: Sequence[Observation], aspect: str) -> Labels:
    rated = [
        o for o in images if aspect in o.scores and not np.isnan(mean_rating(o, aspect))
    ]
    scores = np.array([o.scores[aspect] for o in rated])
    ratings = np.array([mean_rating(o, aspect) for o in rated])
    kinds = [o.kind for o in rated]
    clusters = [o.cluster for o in rated]
    image_models = [o.image_model for o in rated]
    return Labels(
        scores,
        ratings,
        kinds,
        clusters,
        image_models,
    )


def _errors(labels: Labels, predicted: Floats) -> TypicalErrors:
    calibrated, _mean, median = predicted
    values = np.array([calibrated, labels.scores, median])
    errors = np.abs(values - labels.ratings)
    return TypicalErrors(*errors.mean(axis=1).tolist())


def calibrate_scores(results: Results, calibration: Calibration) -> Results:
    """Add the calibrated score to each verdict on an image, with a note on the score
    that it replaces.

    Raises:
        VievalError: a verdict is from another judge, or on a task type without labels.
    """
    notes: dict[str, None] = {}

    def add(record: Record) -> Record:
        verdict = record.verdict
        source = record.provenance
        calibration.require(source)
        calibration.require_kinds([record.kind])
        notes[calibration.replaced(source)] = None
        scores = calibration.added(verdict.scores, record.kind)
        return replace(
            record,
            verdict=replace(verdict, scores=scores),
            provenance=replace(source, calibration=calibration.described),
        )

    def added(run: Run) -> Run:
        by_part = {
            part: [tuple(map(add, records)) for records in samples]
            for part, samples in run.records.items()
        }
        return replace(run, records=by_part)

    runs = tuple(map(added, results.runs))
    return replace(
        results,
        runs=runs,
        notes=(*results.notes, *filter(None, notes)),
    )


def calibration_lines(result: CalibrationResult) -> Iterator[str]:
    """Lines on a calibration: the title, its evidence, and its limits."""
    gains = {
        "the raw score": result.better.over_raw,
        "the mean label": result.better.over_constant,
    }
    yield from _title_lines(result, gains)
    for name, gain in gains.items():
        yield (
            f"Squared error on {result.labels} held-out labels, calibrated minus "
            f"{name}: {gain.value:+.4f} [{gain.low:+.4f}, {gain.high:+.4f}]. "
            "The interval must be below 0."
        )
    calibration = result.calibration
    if not result.better.accepted:
        needed = result.better.labels_needed(calibration.labels)
        if needed:
            yield f"With about {needed:,} labels, the difference would be found four times in five."
        else:
            yield f"Even with {MOST_LABELS:,} labels, a difference would not be found four times in five."
    yield from _task_type_lines(result)
    yield f"Typical error on unlabelled prompts: {_errors_text(calibration.on_prompts)}."
    generator_errors = "unknown, because a task type has labels from one generator only"
    if calibration.on_generators:
        generator_errors = _errors_text(calibration.on_generators)
    yield f"Typical error on unlabelled generators: {generator_errors}."
    on_prompts = calibration.on_prompts
    if calibration.accepted and on_prompts.calibrated >= on_prompts.median:
        yield (
            "Predicting the median label for every image is, on average, at least as "
            "accurate: the calibrated score shows which images are better, but not "
            "by how much."
        )
    yield _ties_line(result)


def _title_lines(
    result: CalibrationResult, gains: Mapping[str, Estimate]
) -> Iterator[str]:
    """The title of a calibration: accepted, or why it is not."""
    calibration = result.calibration
    judge = f"{calibration.judge} {calibration.setting}".strip()
    score = f"{calibration.aspect} of {judge} ({calibration.backbone})"
    if calibration.accepted:
        yield f"{score} is {calibration.sentence}."
    elif result.selection:
        yield (
            f"Not calibrated: the {calibration.labels} rated images are not a random "
            "sample."
        )
        yield (
            "The judge's mean on the rated images minus its mean on the others is "
            f"{interval_text(result.selection, 3)}."
        )
    elif result.better.accepted:
        yield (
            f"Not calibrated: {calibration.labels} ratings do not show that "
            "calibration helps for any task type."
        )
    else:
        names = [name for name, gain in gains.items() if gain.high >= 0]
        unbeaten = enumeration(names, "or")
        yield (
            f"Not calibrated: with {calibration.labels} ratings, calibrated {score} "
            f"is not measurably closer to people's ratings than {unbeaten}."
        )


def _task_type_lines(result: CalibrationResult) -> Iterator[str]:
    """Lines on task types without a calibration, and on those without one of their own."""
    calibration = result.calibration
    if calibration.refused:
        kinds = enumeration(calibration.refused)
        yield (
            f"No {calibration.name} for {kinds}: ratings of these task types do not "
            "show that calibration helps."
        )
    if result.common:
        counts = [f"{kind} ({labels})" for kind, labels in result.common.items()]
        yield (
            f"Task types with fewer than {LEAST_LABELS} ratings or {LEAST_PROMPTS} "
            f"prompts use the function fitted to all ratings: {enumeration(counts)}."
        )


def _errors_text(errors: TypicalErrors) -> str:
    return (
        f"{errors.calibrated:.3f} calibrated, {errors.raw:.3f} raw, "
        f"{errors.median:.3f} with the median label"
    )


def _ties_line(result: CalibrationResult) -> str:
    raw_ties, ties = result.ties
    shares = ""
    if not math.isnan(ties):
        shares = (
            f" ({ties:.0%} of pairs on the same prompt, "
            f"{raw_ties:.0%} with the raw score)"
        )
    return (
        f"Calibration creates ties{shares}, so rankings, tests and rewards use the raw "
        "score. The error is typical, not an upper bound."
    )
