"""Charts of scores as inline SVG: those of a judge against those of people, and distributions.

Colours are classes that the page's style sheet knows, so that charts follow light and dark and need
no style of their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from markupsafe import Markup

from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.records import Record, Run
from vieval_plugin.stats.agreement import mean_of_known
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.escaping import html
from vieval_plugin.text.wording import decimals

#: Number of judges whose scores are drawn against people's.
MOST_JUDGES = 6

_PANEL = 168
_EDGE = 26


def scatter(
    points: Sequence[tuple[float, float]],
    ends: tuple[float, float],
    title: str,
    colour: int,
) -> Markup:
    """A judge's scores against ratings, a circle for all samples that have both alike, larger for
    more of them.

    Args:
        points: of one task type: people's mean rating and the judge's score, which is in [0, 1].
        ends: those of the ratings' scale.
        title: what the chart shows, for those who do not see it.
        colour: the number of a colour of the page.
    """
    side, low, high = _PANEL, *ends
    point_counts = Counter(
        (_bin(rating, low, high), _bin(score, 0.0, 1.0)) for rating, score in points
    )
    largest = max(point_counts.values(), default=1)
    parts = _scatter_axes(side, low, high)
    for (across, up), times in sorted(point_counts.items()):
        radius = 2.6
        if largest > 1:
            radius = 1.8 + 5 * math.sqrt(times / largest)
        center_x = _EDGE + across * side / 40
        center_y = 8 + side - up * side / 40
        place = f'cx="{center_x:.1f}" cy="{center_y:.1f}" r="{radius:.1f}"'
        parts.append(f'<circle class="c{colour % 7}" {place}/>')
    head = Markup(
        '<svg class="scatter" viewBox="0 0 {} {}" role="img" aria-label="{}">'
    ).format(_EDGE + side + 8, side + 30, html(title))
    return head + Markup("".join(parts)) + Markup("</svg>")


def _scatter_axes(side: int, low: float, high: float) -> list[str]:
    right = _EDGE + side
    bottom = 8 + side
    below = side + 24
    left = _EDGE - 4
    label_place = f"translate({_EDGE - 8} {8 + side / 2}) rotate(-90)"
    parts = [f'<rect class="panel" x="{_EDGE}" y="8" width="{side}" height="{side}"/>']
    parts += [
        f'<line class="axis" x1="{_EDGE}" y1="{bottom}" x2="{right}" y2="8"/>',
        f'<text x="{_EDGE}" y="{below}">{low:g}</text>',
    ]
    parts += [
        f'<text x="{_EDGE + side / 2}" y="{below}" text-anchor="middle">rating</text>',
        f'<text x="{right}" y="{below}" text-anchor="end">{high:g}</text>',
    ]
    parts += [
        f'<text x="{left}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{left}" y="18" text-anchor="end">1</text>',
        f'<text transform="{label_place}" text-anchor="middle">score</text>',
    ]
    return parts


def _bin(value: float, low: float, high: float) -> int:
    """Bin of a value, in fortieths of the scale: finer is not seen."""
    share = (value - low) / (high - low) if high > low else 0.5
    return round(40 * min(max(share, 0.0), 1.0))


_BARS = 20
#: Distances of ticks.
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


def histogram(values: Sequence[float], title: str) -> Markup:
    """Values from 0 to 1 as bars, a twentieth of the scale each."""
    counts = Counter(min(int(value * _BARS), _BARS - 1) for value in values)
    highest = max(counts.values(), default=1)
    width = _PANEL / _BARS
    bars = ""
    for n, times in sorted(counts.items()):
        height = 70 * times / highest
        place = f'x="{_EDGE + n * width:.1f}" y="{78 - 70 * times / highest:.1f}"'
        extent = f'width="{width - 1:.1f}" height="{height:.1f}"'
        bars += f'<rect class="c0" {place} {extent}/>'
    ends = f'<text x="{_EDGE}" y="94">0</text>'
    ends += f'<text x="{_EDGE + _PANEL / 2}" y="94" text-anchor="middle">score</text>'
    ends += f'<text x="{_EDGE + _PANEL}" y="94" text-anchor="end">1</text>'
    ends += f'<text x="{_EDGE - 4}" y="18" text-anchor="end">{highest}</text>'
    axis = f'<line class="axis" x1="{_EDGE}" x2="{_EDGE + _PANEL}" y1="78" y2="78"/>'
    picture = Markup('<svg viewBox="0 0 {} 100" role="img" aria-label="{}">{}</svg>')
    drawing = picture.format(
        2 * _EDGE + _PANEL, html(f"Distribution of {title}"), Markup(bars + axis + ends)
    )
    return Markup("<figure><figcaption><b>{}</b> n {}</figcaption>{}</figure>").format(
        html(title), len(values), drawing
    )


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
        room = 0.06 * (self.high - self.low) or 1.0
        return 100 * (self.high - difference + room) / (self.high - self.low + 2 * room)

    def bar(self, difference: float) -> Markup:
        """The bar of a difference, from the zero line."""
        top, bottom = sorted((self.y(difference), self.y(0)))
        kind = "behind" if difference < 0 else "ahead"
        zero = f"{self.y(0):.2f}%"
        line = f'<line class="axis" x1="0" x2="100%" y1="{zero}" y2="{zero}"/>'
        extent = f'y="{top:.2f}%" height="{bottom - top:.2f}%"'
        return Markup(f'{line}<rect class="{kind}" x="12%" width="76%" {extent}/>')

    def mean(self, mean: Estimate) -> Markup:
        """Ticks, and the mean of all differences with its interval.

        >>> contests = {1.0: "won", 0.0: "tie", -1.0: "lost"}
        >>> "lost" in DifferenceAxis(0.0, 1.0, contests).mean(Estimate(0.5))
        False
        """
        step = next(s for s in _STEPS if self.high - self.low <= 5 * s)
        first = math.ceil(self.low / step)
        numbers = range(first, math.floor(self.high / step) + 1)
        ticks = self.words or {
            n * step: f"{n * step:+g}" if n else "0" for n in numbers
        }
        parts = [
            f'<text x="0" y="{self.y(tick):.2f}%" dy="4">{words}</text>'
            for tick, words in ticks.items()
            if self.low <= tick <= self.high
        ]
        zero = f'y1="{self.y(0):.2f}%" y2="{self.y(0):.2f}%"'
        parts.append(f'<line class="axis" x1="50%" x2="100%" {zero}/>')
        if mean.has_interval:
            ends = f'y1="{self.y(mean.low):.2f}%" y2="{self.y(mean.high):.2f}%"'
            parts.append(f'<line class="dot bar" x1="75%" x2="75%" {ends}/>')
        parts.append(
            f'<circle class="dot" cx="75%" cy="{self.y(mean.value):.2f}%" r="6"/>'
        )
        return Markup("".join(parts))


@dataclass(frozen=True)
class ScatterChart:
    """A chart of a judge's scores on one task type: how many samples, and the correlation where
    there is one.
    """

    kind: str
    n: int
    correlation: str
    drawing: Markup


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
    judges = [n.system for n in board.numbers if n.system in by_label][:MOST_JUDGES]
    points = {label: _points(by_label[label], board.aspect) for label in judges}
    kinds = [*dict.fromkeys(chain(*points.values()))]
    ratings = [
        rating
        for judge_points in points.values()
        for rating, _ in chain(*judge_points.values())
    ]
    ends = min([0.0, *ratings]), max([1.0, *ratings])
    correlations = board.breakdowns.get("kind", {})
    charts: dict[str, list[ScatterChart]] = {}
    for label, judge_points in points.items():
        for kind, kind_points in judge_points.items():
            estimate = correlations.get(kind, {}).get(label)
            correlation = decimals(estimate.value, ".2f") if estimate else ""
            title = f"{label} against ratings on {kind}"
            drawing = scatter(kind_points, ends, title, kinds.index(kind))
            chart = ScatterChart(kind, len(kind_points), correlation, drawing)
            charts.setdefault(label, []).append(chart)
    return charts


def _points(run: Run, aspect: str) -> dict[str, list[tuple[float, float]]]:
    points = (
        (record.kind or part, _point(record, aspect, run.against_all))
        for part, judged in run.records.items()
        for record, *_ in judged
    )
    return grouped(
        (kind, point) for kind, point in points if not any(map(math.isnan, point))
    )


def _point(record: Record, aspect: str, against_all: bool) -> tuple[float, float]:
    """People's mean rating and the judge's score of the aspect, NaN without; of `overall`, by
    whichever name either has it.
    """
    ratings = record.ratings
    scores = record.verdict.scores
    names = (aspect, "O", "SC") if aspect == "overall" else (aspect,)
    rated = next((ratings[name] for name in names[:2] if name in ratings), ())
    scored = [
        scores[name]
        for name in (*names, *(scores if against_all else ()))
        if name in scores
    ]
    return float(mean_of_known(rated)), scored[0] if scored else math.nan
