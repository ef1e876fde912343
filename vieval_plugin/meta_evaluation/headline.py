"""Headlines of a benchmark: a number for each judge or generator, and why it is that one.

A benchmark's report object makes its headlines beside its tables; whoever shows them asks nothing about the benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.human_ceiling import CeilingComparison


@dataclass(frozen=True)
class HeadlineNumber:
    """A number of a headline, with its 95% interval and how many samples it is of.

    NaN where it is undefined, and `reason` says why; the ends are NaN too where a number has no interval. `rests_on`
    says what an average is over, where it is not over everything.
    """

    label: str
    value: float
    low: float
    high: float
    n: int
    reason: str = ""
    rests_on: str = ""


Breakdown: TypeAlias = Mapping[str, Sequence[HeadlineNumber]]
"""By a word, such as a kind or a category, the same number on the samples under that word alone."""


@dataclass(frozen=True, eq=False)
class Headline:
    """A number on which judges, or generators, are put in order.

    - `aspect` is what is rated; `number` says in words what the number is, `why` why it is this one of all;
    - `counted` is what `n` counts; `ends` are the lowest and highest value that the number can have;
    - `numbers` has one of each entrant, on all that it scored; higher is better;
    - `compared` gives the statistic that their paired tests are of, each two on what both scored;
    - `references` are what the numbers stand beside: what people reach among themselves, answers that never look;
    - `breakdowns` has the same number by kind, category or tag, whichever there are, under the name of that heading;
    - `ceiling` compares a row, by its label, with the annotators, None where there is nothing to compare;
    - `entrant` says what stands in the rows; `judge` whose scores they are, where the rows are no judges.
    """

    aspect: str
    number: str
    why: str
    counted: str
    ends: tuple[float, float]
    numbers: tuple[HeadlineNumber, ...]
    compared: Callable[[], ComparedStatistic]
    references: tuple[HeadlineNumber, ...] = ()
    breakdowns: Mapping[str, Breakdown] = field(default_factory=dict)
    entrant: str = "judge"
    judge: str = ""
    ceiling: Callable[[str], CeilingComparison | None] | None = None


def preferred(aspects: Sequence[str], raters: Mapping[str, int]) -> list[str]:
    """Aspects in the order in which headlines come: the one that most judges rate first, O before SC before PQ.

    Args:
        aspects: those that any judge rates.
        raters: how many rate each.

    >>> preferred(["SC", "PQ", "O"], {"SC": 5, "PQ": 2, "O": 2})
    ['SC', 'O', 'PQ']
    """
    usual = ("O", "SC", "PQ")
    return sorted(
        aspects, key=lambda aspect: (-raters[aspect], usual.index(aspect) if aspect in usual else len(usual), aspect)
    )


WHY_PREFERRED = (
    "Of the aspects it is the one that most of these judges rate, O before SC before PQ: the question is whose order of "
    "images is that of people, whatever scale the judge uses."
)
