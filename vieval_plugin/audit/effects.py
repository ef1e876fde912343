"""Effects of changes on a judge's scores, and whether they are as expected, computed
from existing scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.audit.changes import Expected
from vieval_plugin.meta_evaluation.rows import stored_estimate
from vieval_plugin.meta_evaluation.tables import Table, interval_text, p_text
from vieval_plugin.stats.bootstrap import Seed
from vieval_plugin.stats.comparison import MeanDifference, paired_comparison
from vieval_plugin.stats.decisions import LEAST_EFFECT, SIGNIFICANCE_LEVEL
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import holm
from vieval_plugin.text.wording import decimals, nan_to_none, none_to_nan

_HEADER = (
    "change",
    "aspect",
    "n",
    "failed",
    "before",
    "after",
    "difference [95%]",
    "p (Holm)",
    "expected",
    "finding",
)


@dataclass(frozen=True)
class Effect:
    """Effect of a change on the scores of an aspect."""

    change: str
    aspect: str
    #: Expected change of the scores.
    expected: Expected
    #: Number of samples with a score before and after.
    n: int
    #: Number of samples with a score before but not after.
    failed: int
    #: Mean of these n before, NaN without any.
    mean_before: float
    #: Mean of these n after, NaN without any.
    mean_after: float
    #: After minus before.
    difference: Estimate
    #: p of a paired permutation test.
    p: float
    #: p, Holm-adjusted over a judge's effects.
    adjusted: float = math.nan

    @property
    def finding(self) -> str:
        """`as expected`, `FLAGGED: ...`, or `undecided` if the samples do not show it.

        An expected `same` is flagged if scores moved significantly and by more than
        `LEAST_EFFECT`; an expected fall, if its interval rules out a fall of that size.
        """
        difference = self.difference
        is_significant = (
            self.adjusted <= SIGNIFICANCE_LEVEL and abs(difference.value) > LEAST_EFFECT
        )
        if not difference.defined:
            return "nothing to compare"
        if self.expected == "lower":
            if is_significant and difference.value < 0:
                return "as expected"
            if difference.low > -LEAST_EFFECT:
                return "FLAGGED: does not fall"
            return "undecided"
        if is_significant and difference.value > 0:
            return "FLAGGED: rises"
        if is_significant and self.expected == "same":
            return "FLAGGED: falls"
        settled = difference.high <= LEAST_EFFECT and (
            self.expected == "not higher" or difference.low >= -LEAST_EFFECT
        )
        if settled:
            return "as expected"
        return "undecided"

    @property
    def row(self) -> EffectRow:
        """Fields of the effect, as stored in files."""
        return EffectRow(
            change=self.change,
            aspect=self.aspect,
            expected=self.expected,
            n=self.n,
            failed=self.failed,
            before=nan_to_none(self.mean_before),
            after=nan_to_none(self.mean_after),
            difference=nan_to_none(self.difference.value),
            low=nan_to_none(self.difference.low),
            high=nan_to_none(self.difference.high),
            p=nan_to_none(self.p),
            p_adjusted=nan_to_none(self.adjusted),
            finding=self.finding,
        )


@dataclass(frozen=True, kw_only=True)
class EffectRow:
    """Effect of a change as stored in files, with None for undefined values."""

    change: str
    aspect: str
    expected: Expected
    n: int
    failed: int
    before: float | None
    after: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    finding: str

    @property
    def estimate(self) -> Estimate:
        """The difference with its interval."""
        return stored_estimate(self.difference, self.low, self.high, self.n)


def effects_table(rows: Sequence[EffectRow], title: str = "") -> Table:
    """Build a readable table of effects from stored rows."""
    return Table(
        name="audit",
        title=title,
        header=_HEADER,
        rows=tuple(map(_cells, rows)),
    )


def _cells(row: EffectRow) -> tuple[str, ...]:
    return (
        row.change,
        row.aspect,
        str(row.n),
        str(row.failed),
        decimals(none_to_nan(row.before), ".3f", "-"),
        decimals(none_to_nan(row.after), ".3f", "-"),
        interval_text(row.estimate, 3),
        p_text(none_to_nan(row.p_adjusted)),
        row.expected,
        row.finding,
    )


def effect(
    change: str,
    aspect: str,
    expected: Expected,
    unchanged: ArrayLike,
    after: ArrayLike,
    groups: Sequence[str],
    options: StatisticsOptions,
    seed: Seed,
) -> Effect:
    """Measure the effect of a change on the scores of one aspect, before adjustment for
    others.

    Args:
        change: its name.
        aspect: the aspect's name.
        expected: expected change of the scores.
        unchanged: scores in [0, 1], shape (samples,); NaN where there is none.
        after: scores of the changed samples, with the same shape.
        groups: the cluster of each sample, shape (samples,).
        options: number of resamples.
        seed: of the bootstrap and the test.

    >>> one = effect("border", "SC", "same", [1.0] * 20, [0.5] * 20, [str(n) for n in range(20)], StatisticsOptions(), 0)
    >>> one.difference.value, adjusted([one])[0].finding
    (-0.5, 'FLAGGED: falls')
    """
    first = np.asarray(after, dtype=float)
    second = np.asarray(unchanged, dtype=float)
    is_paired = ~(np.isnan(first) | np.isnan(second))
    is_failed = np.isnan(first) & ~np.isnan(second)
    failed = int(is_failed.sum())
    paired_groups = list(compress(groups, is_paired))
    if not paired_groups:
        return Effect(
            change=change,
            aspect=aspect,
            expected=expected,
            n=0,
            failed=failed,
            mean_before=math.nan,
            mean_after=math.nan,
            difference=Estimate(math.nan),
            p=math.nan,
        )
    statistic = MeanDifference(first[is_paired], second[is_paired], paired_groups)
    test = paired_comparison(statistic, options.draws, seed)
    return Effect(
        change=change,
        aspect=aspect,
        expected=expected,
        n=len(paired_groups),
        failed=failed,
        mean_before=test.second,
        mean_after=test.first,
        difference=test.difference,
        p=test.p,
    )


def adjusted(effects: Sequence[Effect]) -> list[Effect]:
    """Adjust p of all effects of a judge by Holm's procedure."""
    values = holm([row.p for row in effects]).tolist()
    return [
        replace(row, adjusted=value) for row, value in zip(effects, values, strict=True)
    ]
