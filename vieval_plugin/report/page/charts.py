"""Charts of scores as inline SVG: those of a judge against those of people, and distributions.

Colours are classes that the page's style sheet knows, so that charts follow light and dark and need
no style of their own.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.records import Record, Run
from vieval_plugin.stats.agreement import mean_of_known
from vieval_plugin.text.wording import decimals

#: Number of judges whose scores are drawn against people's.
MOST_JUDGES = 6

#: Place and radius of circles.
Circles: TypeAlias = Sequence[tuple[float, float, float]]

_PANEL = 168
_EDGE = 26


def _circles(
    points: Sequence[tuple[float, float]],
    low: float,
    high: float,
) -> Circles:
    """A circle for all samples with the same rating and score, larger for more of them.

    Args:
        points: people's mean rating and the judge's score, which is in [0, 1].
        low, high: ends of the ratings' scale.
    """
    counts = Counter[tuple[int, int]]()
    for rating, score in points:
        across = _bin(rating, low, high)
        up = _bin(score, 0.0, 1.0)
        counts[across, up] += 1
    largest = max(counts.values(), default=1)
    circles = []
    for (across, up), times in sorted(counts.items()):
        radius = 2.6
        if largest > 1:
            radius = 1.8 + 5 * math.sqrt(times / largest)
        x = _EDGE + across * _PANEL / 40
        y = 8 + _PANEL - up * _PANEL / 40
        circles.append((x, y, radius))
    return circles


def _bin(value: float, low: float, high: float) -> int:
    """Bin of a value, in fortieths of the scale: finer is not seen."""
    share = 0.5
    if high > low:
        share = (value - low) / (high - low)
    return round(40 * min(max(share, 0.0), 1.0))


_BARS = 20
#: Distances of ticks.
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Histogram:
    """Distribution of scores from 0 to 1, a bar for each twentieth of the scale."""

    title: str
    #: Number of scores.
    n: int
    #: Scores by the number of their bar.
    counts: Sequence[tuple[int, int]]
    #: Scores of the highest bar.
    highest: int


def histogram(values: Sequence[float], title: str) -> Histogram:
    """Count scores from 0 to 1 for a histogram."""
    counts = Counter[int]()
    for value in values:
        bar = int(value * _BARS)
        counts[min(bar, _BARS - 1)] += 1
    largest = max(counts.values(), default=1)
    bars = sorted(counts.items())
    return Histogram(title, len(values), bars, largest)


@dataclass(frozen=True)
class DifferenceAxis:
    """Vertical axis of differences, in percent of a chart's height."""

    #: Lowest difference that it shows, at most 0.
    low: float
    #: Highest difference that it shows, at least 0.
    high: float
    #: Words of its ticks by their differences; empty for numbers.
    words: Mapping[float, str] = field(default_factory=dict)

    def y(self, difference: float) -> float:
        """The place of a difference, from above."""
        span = self.high - self.low
        room = 0.06 * span or 1.0
        offset = self.high - difference + room
        return 100 * offset / (span + 2 * room)

    @property
    def ticks(self) -> dict[float, str]:
        """Words of the ticks on the axis, by their differences.

        >>> DifferenceAxis(0.0, 1.0, {1.0: "won", 0.0: "tie", -1.0: "lost"}).ticks
        {1.0: 'won', 0.0: 'tie'}
        """
        ticks = self.words or self._numbers()
        return {
            tick: words
            for tick, words in ticks.items()
            if self.low <= tick <= self.high
        }

    def _numbers(self) -> dict[float, str]:
        """Round numbers by their differences, at most six."""
        span = self.high - self.low
        step = next(step for step in _STEPS if span <= 5 * step)
        first = math.ceil(self.low / step)
        last = math.floor(self.high / step)
        numbers = {}
        for n in range(first, last + 1):
            tick = n * step
            numbers[tick] = f"{tick:+g}" if n else "0"
        return numbers


@dataclass(frozen=True)
class ScatterChart:
    """A chart of a judge's scores on one task type: how many samples, and the correlation where
    there is one.
    """

    kind: str
    n: int
    correlation: str
    #: What it shows, for those who do not see it.
    title: str
    #: Ends of the ratings' scale.
    ends: tuple[float, float]
    #: Number of a colour of the page.
    colour: int
    circles: Circles


def scatter_rows(
    board: Leaderboard, runs: Sequence[Run]
) -> dict[str, list[ScatterChart]]:
    """The charts of the judges of a board, the best first, at most `MOST_JUDGES`; none where people
    gave no ratings.

    Args:
        board: on an aspect that people rated.
        runs: one a judge.
    """
    by_label = {run.label: run for run in runs}
    labels = (number.system for number in board.numbers)
    judges = [label for label in labels if label in by_label]
    points = {}
    for label in judges[:MOST_JUDGES]:
        points[label] = _points(by_label[label], board.aspect)
    all_kinds = chain(*points.values())
    kinds = list(dict.fromkeys(all_kinds))
    lowest = 0.0
    highest = 1.0
    for judge_points in points.values():
        for rating, _ in chain(*judge_points.values()):
            lowest = min(lowest, rating)
            highest = max(highest, rating)
    correlations = board.breakdowns.get("kind", {})
    charts: dict[str, list[ScatterChart]] = {}
    for label, judge_points in points.items():
        for kind, kind_points in judge_points.items():
            estimate = correlations.get(kind, {}).get(label)
            correlation = decimals(estimate.value, ".2f") if estimate else ""
            title = f"{label} against ratings on {kind}"
            colour = kinds.index(kind) % 7
            circles = _circles(kind_points, lowest, highest)
            chart = ScatterChart(
                kind,
                len(kind_points),
                correlation,
                title,
                (lowest, highest),
                colour,
                circles,
            )
            charts.setdefault(label, []).append(chart)
    return charts


def _points(run: Run, aspect: str) -> dict[str, list[tuple[float, float]]]:
    points = defaultdict[str, list[tuple[float, float]]](list)
    for part, judged in run.records.items():
        for record, *_ in judged:
            point = _point(record, aspect, run.against_all)
            kind = record.kind or part
            if not any(map(math.isnan, point)):
                points[kind].append(point)
    return dict(points)


def _point(
    record: Record,
    aspect: str,
    against_all: bool,
) -> tuple[float, float]:
    """People's mean rating and the judge's score of the aspect, NaN without; of `overall`, by
    whichever name either has it.
    """
    ratings = record.ratings
    scores = record.verdict.scores
    names = [aspect]
    if aspect == "overall":
        names += ["O", "SC"]
    rated = (ratings[name] for name in names[:2] if name in ratings)
    rating = float(mean_of_known(next(rated, ())))
    if against_all:
        names += scores
    scored = (scores[name] for name in names if name in scores)
    return rating, next(scored, math.nan)
