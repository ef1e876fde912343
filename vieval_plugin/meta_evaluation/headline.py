"""Headlines of a benchmark: an estimate for each judge or generator, and why it is that one.

A benchmark's report object makes its headlines beside its tables; whoever shows them asks nothing about the benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

Breakdown: TypeAlias = Mapping[str, Mapping[str, Estimate]]
"""By a word, such as a kind or a category, the estimates of the entrants on the samples under that word alone."""

CONSTANT_BASELINE_LABEL = "best constant: the same score for all"
"""The constant baseline of a correlation, which is 0."""


@dataclass(frozen=True)
class CeilingComparison:
    """Correlations of a judge and of annotators with the other annotators, and the judge's less that of annotators."""

    judge: float
    annotators: float
    difference: Estimate

    @property
    def position(self) -> str:
        """`above`, `below`, or neither where the interval holds 0."""
        low, high = self.difference.low, self.difference.high
        return "above" if low > 0 else "below" if high < 0 else "not shown to be above or below"


@dataclass(frozen=True, eq=False)
class Headline:
    """A statistic by which judges, or generators, are put in order.

    - `aspect` is what is rated; `title` says in words what the statistic is, `why` why it is this one of all;
    - `unit` is what `n` counts; `ends` are the lowest and highest value that the statistic can have;
    - `estimates` has one of each entrant by its label, on all that it scored; higher is better;
    - `compared` gives the statistic that their paired tests are of, each two on what both scored, under a failure policy;
    - `references` are what they stand beside: what people reach among themselves, answers that never look;
    - `breakdowns` has the same statistic by kind, category or tag, whichever there are, under the name of that breakdown;
    - `ceiling` compares a row, by its label, with the annotators, None where there is nothing to compare;
    - `entrant` says what stands in the rows; `judge` whose scores they are, where the rows are no judges;
    - `statistic` names it in a word, as a sentence does before its number.
    """

    aspect: str
    title: str
    why: str
    unit: str
    ends: tuple[float, float]
    estimates: Mapping[str, Estimate]
    compared: Callable[[StatisticsOptions], ComparedStatistic]
    references: Mapping[str, Estimate] = field(default_factory=dict)
    breakdowns: Mapping[str, Breakdown] = field(default_factory=dict)
    entrant: str = "judge"
    judge: str = ""
    ceiling: Callable[[str], CeilingComparison | None] | None = None
    statistic: str = ""


def preferred(aspects: Sequence[str]) -> list[str]:
    """Aspects in the order in which headlines come: O before SC before PQ before others.

    >>> preferred(["SC", "PQ", "O"])
    ['O', 'SC', 'PQ']
    """
    return sorted(aspects, key=lambda aspect: (place_of_aspect(aspect), aspect))


def place_of_aspect(aspect: str) -> int:
    """The place of an aspect among headlines, the same for all that are neither O nor SC nor PQ.

    >>> place_of_aspect("O"), place_of_aspect("style"), place_of_aspect("beauty")
    (0, 3, 3)
    """
    usual = ("O", "SC", "PQ")
    return usual.index(aspect) if aspect in usual else len(usual)


WHY_PREFERRED = (
    "Of the aspects that at least half of these judges rate it is the first, O before SC before PQ: the question is "
    "whose order of images is that of people, whatever scale the judge uses."
)
