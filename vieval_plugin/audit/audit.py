"""Audit a judge: ask it about samples before and after changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from statistics import fmean

import numpy as np

from vieval_plugin.audit.changes import Change, changes
from vieval_plugin.audit.effects import Effect, adjusted, effect
from vieval_plugin.audit.material import partners_of
from vieval_plugin.backends.http.batches import BatchOptions
from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.contests import (
    FIRST,
    FORWARD,
    REVERSE,
    SECOND,
    Contest,
    Judged,
)
from vieval_plugin.judges.protocol import Sample, Verdict
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.run.session import Session
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import VievalError

ORDER = "order swapped"
#: Aspect of judges of contests: the preference for the first candidate, in [0, 1].
PREFERENCE = "preference"


async def audit(
    judged: Sequence[Judged],
    prepared: PreparedJudge,
    options: Config,
    backbone: Backbone | None,
    seed: int,
    progress: Progress,
    batch: BatchOptions | None = None,
) -> tuple[Effect, ...]:
    """Measure the effects of all changes on the scores of a judge, in the order of the
    changes.

    A change has no effect if it applies to no sample with a score.

    Args:
        judged: samples from `material.random_judgeable_samples`.
        prepared: the judge; a judge of contests requires contests of two candidates.
        options: the options in force.
        backbone: the model, if it is not in the options.
        seed: of everything random.
        progress: counts calls, tokens and failures.
        batch: folder in which batches have answered all questions; None for calls.

    Raises:
        VievalError: the run cannot continue, or no sample has a score.
    """
    partners = partners_of(judged, seed)
    async with Session(
        options,
        backbone,
        progress,
        prepared.asks_a_model,
        batch,
    ) as session:

        async def verdicts_of(batch: Sequence[Judged]) -> list[Verdict]:
            outcomes: dict[int, Outcome] = {}
            await session.judge(batch, prepared, outcomes, True)
            return [outcomes[number].verdict for number in range(len(batch))]

        unchanged = await verdicts_of(judged)
        by_change = []
        # one change at a time: the images of all changes may exceed memory
        for change in _changes_for(prepared):
            versions = list(_versions(change, judged, partners))
            applied = [sample for sample in versions if sample is not None]
            verdicts = iter(await verdicts_of(applied))
            change_verdicts = [
                None if sample is None else next(verdicts) for sample in versions
            ]
            by_change.append(
                (
                    change,
                    change_verdicts,
                )
            )
    return _effects(
        judged,
        prepared,
        options,
        seed,
        unchanged,
        by_change,
    )


def changed_samples(
    judged: Sequence[Judged], prepared: PreparedJudge, seed: int
) -> Iterator[Judged]:
    """Yield all samples that an audit judges: unchanged and changed."""
    partners = partners_of(judged, seed)
    yield from judged
    for change in _changes_for(prepared):
        yield from (
            sample
            for sample in _versions(change, judged, partners)
            if sample is not None
        )


def _changes_for(prepared: PreparedJudge) -> list[Change]:
    return [
        change
        for change in changes()
        if change.modifies == "output" or prepared.spec.rates == "sample"
    ]


def _versions(
    change: Change, judged: Sequence[Judged], partners: Sequence[Sample | None]
) -> Iterator[Judged | None]:
    """Yield each sample changed, and of each contest the first candidate; None if the
    change does not apply.

    It does not apply to unreadable files, which have no score when unchanged.
    """
    for original, partner in zip(judged, partners, strict=True):
        sample = original.candidates[0] if isinstance(original, Contest) else original
        try:
            modified = change.make(sample, partner)
        except VievalError:
            yield None
            continue
        if modified and isinstance(original, Contest):
            yield replace(original, candidates=(modified, *original.candidates[1:]))
        else:
            yield modified


def _effects(
    judged: Sequence[Judged],
    prepared: PreparedJudge,
    options: Config,
    seed: int,
    unchanged: Sequence[Verdict],
    verdicts_by_change: Sequence[tuple[Change, Sequence[Verdict | None]]],
) -> tuple[Effect, ...]:
    """Measure the effects of all changes from the verdicts on the samples; None for
    samples to which a change does not apply.
    """
    groups = [f"{sample.kind}/{sample.group}" for sample in judged]
    aspects = prepared.spec.aspects
    if prepared.spec.rates != "sample":
        aspects = (PREFERENCE,)
    statistics = options.statistics.options()
    scores = {aspect: np.array(aspect_scores(unchanged, aspect)) for aspect in aspects}
    if all(np.isnan(values).all() for values in scores.values()):
        raise _unscored_error(prepared, unchanged)
    effects = []
    if prepared.spec.rates == "contest":
        effects.append(_order_effect(unchanged, groups, statistics, seed))
    for change, verdicts in verdicts_by_change:
        applied = [verdict is not None for verdict in verdicts]
        after = [verdict for verdict in verdicts if verdict is not None]
        changed_groups = list(compress(groups, applied))
        for aspect in aspects:
            row = effect(
                change.name,
                aspect,
                change.expects(aspect),
                scores[aspect][applied],
                aspect_scores(after, aspect),
                changed_groups,
                statistics,
                seed,
            )
            effects.append(row)
    comparable = [row for row in effects if row.n or row.failed or row.change == ORDER]
    return tuple(adjusted(comparable))


def _order_effect(
    verdicts: Sequence[Verdict],
    groups: Sequence[str],
    options: StatisticsOptions,
    seed: int,
) -> Effect:
    """Effect of the order in which candidates are shown."""
    forward = preferences_in_order(verdicts, FORWARD)
    reverse = preferences_in_order(verdicts, REVERSE)
    return effect(ORDER, PREFERENCE, "same", reverse, forward, groups, options, seed)


def _unscored_error(
    prepared: PreparedJudge, unchanged: Sequence[Verdict]
) -> VievalError:
    reason = next((verdict.reason for verdict in unchanged if verdict.reason), "")
    return VievalError(
        f"{prepared.spec.name} could not score any of the {len(unchanged)} samples: "
        f"{reason[:300]}"
    )


def aspect_scores(verdicts: Sequence[Verdict], aspect: str) -> list[float]:
    """Score of each verdict on an aspect, NaN if there is none; `PREFERENCE` is the
    mean over both orders.
    """
    if aspect == PREFERENCE:
        by_order = [list(preferences(verdict).values()) for verdict in verdicts]
        return [fmean(values) if values else math.nan for values in by_order]
    return [verdict.scores.get(aspect, math.nan) for verdict in verdicts]


def preferences_in_order(verdicts: Sequence[Verdict], order: str) -> list[float]:
    """Preference for the first candidate in an order; NaN if one of the orders has no
    answer.
    """
    by_order = [preferences(verdict) for verdict in verdicts]
    return [
        preference[order] if {FORWARD, REVERSE} <= preference.keys() else math.nan
        for preference in by_order
    ]


def preferences(verdict: Verdict) -> Mapping[str, float]:
    """Preference for the first candidate over the second, by order: 1 for a vote for
    it, 1/2 for a tie, otherwise 0.
    """
    if verdict.choice is None or not verdict.status.usable:
        return {}
    points = {FIRST: 1.0, SECOND: 0.0}
    voted = {
        order: points.get(vote, 0.5) for order, vote in verdict.choice.votes.items()
    }
    return voted or {
        order: (value + 1) / 2 for order, value in verdict.choice.preferences.items()
    }
