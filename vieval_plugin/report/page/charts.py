"""Charts of a page as inline SVG: intervals side by side, and scores of a judge against those of people.

Colours are classes that the page's style sheet knows, so that charts follow light and dark and need no style of their
own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from markupsafe import Markup

from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.meta_evaluation.win_rates import EVEN, WIN_RATE
from vieval_plugin.records import Record, Run
from vieval_plugin.report.words import reason_words, short_number
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.escaping import html

MOST_JUDGES = 6
"""Number of judges whose scores are drawn against people's."""

_PANEL, _EDGE = 168, 26
_HEIGHT, _MARGIN = 40, 2.0


def chart(board: Leaderboard) -> Markup:
    """The systems of a leaderboard with their intervals, beside what they stand beside; of generators on the whole scale."""
    rows = {number.system: number.estimate for number in board.numbers}
    first, *lower = [number.system for number in board.ranked] or [""]
    worse = [label for label in lower if board.comparison.beats(first, label)]
    unranked = {number.system: reason_words(number.unranked) for number in board.numbers if number.unranked}
    references = {reference.system: reference.estimate for reference in board.references}
    references |= {"even": Estimate(EVEN)} if board.statistic == WIN_RATE else {}
    return forest(rows, references, board.ends, f"Intervals: {board.title}", worse, unranked, board.is_of_generators)


def forest(
    estimates: Mapping[str, Estimate],
    references: Mapping[str, Estimate],
    ends: tuple[float, float],
    title: str,
    worse: Collection[str] = (),
    unranked: Mapping[str, str] = MappingProxyType({}),
    full_scale: bool = False,
) -> Markup:
    """Estimates with their intervals, a row each with the number beside it; references are lines through all rows.

    Places are percentages, so that the chart is as wide as the page while its type keeps its size.

    Args:
        estimates: by label in the order of rows; undefined ones are left out.
        references: what they stand beside.
        ends: the lowest and highest value that there can be.
        title: what the chart shows, for those who do not see it.
        worse: labels of those that are significantly worse than the first, drawn in grey.
        unranked: reasons of those that are in no order with the others, which are drawn hollow.
        full_scale: whether all values that there can be are drawn, in place of those of the estimates.
    """
    defined = {label: estimate for label, estimate in estimates.items() if estimate.defined}
    marks = {label: estimate for label, estimate in references.items() if estimate.defined}
    if not defined:
        return Markup("")
    low, high = ends if full_scale else _range([*defined.values(), *marks.values()], ends)

    def x(value: float) -> str:
        return f"{_MARGIN + (100 - 2 * _MARGIN) * (min(max(value, low), high) - low) / (high - low):.2f}%"

    def kind_of(label: str) -> str:
        return "dot unranked" if label in unranked else "dot worse" if label in worse else "dot"

    ticks = _ticks(low, high)
    background = "".join(_upright("axis", x(tick)) for tick in ticks)
    background += "".join(_upright("mark-line", x(estimate.value)) for estimate in marks.values())
    rows = [
        _row(label, estimate, x, background, kind_of(label), unranked.get(label, ""))
        for label, estimate in defined.items()
    ]
    names = {label: label.split(": ")[0] for label in marks}
    rows += [_row(names[label], estimate, x, background, "reference") for label, estimate in marks.items()]
    scale = "".join(f'<text x="{x(tick)}" y="14" text-anchor="middle">{tick:g}</text>' for tick in ticks)
    labels = Markup("").join(
        Markup('<text x="{}" y="14" text-anchor="{}">{}</text>').format(
            x(e.value), _anchor(e.value, low, high), html(names[label])
        )
        for label, e in marks.items()
    )
    head = Markup('<div class="forest" role="img" aria-label="{}">').format(html(title))
    axis = Markup('<div class="row ticks"><span></span><svg height="20">{}</svg><span></span></div>')
    legend = Markup('<p class="how">Grey: significantly worse than the first.</p>') if worse else ""
    above = axis.format(labels) if marks else ""
    return head + above + Markup("").join(rows) + axis.format(Markup(scale)) + Markup("</div>") + legend


def _anchor(value: float, low: float, high: float) -> str:
    """The side of a mark on which its label has room."""
    share = (value - low) / (high - low)
    return "start" if share < 0.2 else "end" if share > 0.8 else "middle"


def _upright(kind: str, x: str) -> str:
    return f'<line class="{kind}" x1="{x}" x2="{x}" y1="0" y2="100%"/>'


def _row(
    label: str, estimate: Estimate, x: Callable[[float], str], background: str, kind: str, reason: str = ""
) -> Markup:
    """Row of a chart: the label, the interval with its dot, the number, and why it is not ranked."""
    bar = (
        f'<line class="{kind} bar" x1="{x(estimate.low)}" x2="{x(estimate.high)}" y1="50%" y2="50%"/>'
        if estimate.has_interval
        else ""
    )
    value_text, _, ends = short_number(estimate).partition(" ")
    interval = f' <span class="interval">{ends}</span>' if ends else ""
    row_class = " beside" if kind == "reference" else ""
    dot = "" if row_class else f'<circle class="{kind}" cx="{x(estimate.value)}" cy="50%" r="8"/>'
    plot = Markup(f'<svg height="{_HEIGHT}">{background}{bar}{dot}</svg>')
    why = Markup('<span class="mark">{}</span>').format(html(f"not ranked: {reason}")) if reason else ""
    value = Markup(f'<span class="value"><b>{value_text}</b>{interval}') + why + Markup("</span>")
    name = Markup('<span class="name">{}</span>').format(_short(label, 60))
    return Markup('<div class="row{}">{}{}{}</div>\n').format(row_class, name, plot, value)


def _range(estimates: Sequence[Estimate], ends: tuple[float, float]) -> tuple[float, float]:
    """A range that holds all intervals, in tenths, within what is possible."""
    values = [value for e in estimates for value in (e.value, e.low, e.high) if not math.isnan(value)]
    low, high = math.floor(min(values) * 10) / 10, math.ceil(max(values) * 10) / 10
    low, high = max(low, ends[0]), min(max(high, low + 0.2), ends[1])
    return (low, high) if high > low else ends


def _ticks(low: float, high: float) -> list[float]:
    step = 0.05 if high - low <= 0.2 else 0.1 if high - low <= 0.6 else 0.2 if high - low <= 1.2 else 0.5
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 2) + 0.0 for number in range(first, math.floor(high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Point:
    """Sample in a scatter: people's mean rating and the judge's score."""

    rating: float
    judge: float


def scatter(points: Sequence[Point], scale: tuple[float, float], title: str, colour: int) -> Markup:
    """A judge's scores against ratings, a circle for all samples that have both alike, larger for more of them.

    Args:
        points: of one task type; the judge's in [0, 1].
        scale: the ends of the ratings' scale.
        title: what the chart shows, for those who do not see it.
        colour: the number of a colour of the page.
    """
    side, low, high = _PANEL, *scale
    point_counts = Counter((_bin(point.rating, low, high), _bin(point.judge, 0.0, 1.0)) for point in points)
    largest = max(point_counts.values(), default=1)
    parts = [
        f'<rect class="panel" x="{_EDGE}" y="8" width="{side}" height="{side}"/>',
        f'<line class="axis" x1="{_EDGE}" y1="{8 + side}" x2="{_EDGE + side}" y2="8"/>',
        f'<text x="{_EDGE}" y="{side + 24}">{low:g}</text>',
        f'<text x="{_EDGE + side / 2}" y="{side + 24}" text-anchor="middle">rating</text>',
        f'<text x="{_EDGE + side}" y="{side + 24}" text-anchor="end">{high:g}</text>',
        f'<text x="{_EDGE - 4}" y="{8 + side}" text-anchor="end">0</text>',
        f'<text x="{_EDGE - 4}" y="18" text-anchor="end">1</text>',
    ]
    for (across, up), times in sorted(point_counts.items()):
        radius = 1.8 + 5 * math.sqrt(times / largest) if largest > 1 else 2.6
        parts.append(
            f'<circle class="c{colour % 7}" cx="{_EDGE + across * side / 40:.1f}" cy="{8 + side - up * side / 40:.1f}" r="{radius:.1f}"/>'
        )
    head = Markup('<svg class="scatter" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
        _EDGE + side + 8, side + 30, html(title)
    )
    return head + Markup("".join(parts)) + Markup("</svg>")


def _bin(value: float, low: float, high: float) -> int:
    """Bin of a value, in fortieths of the scale: finer is not seen."""
    share = (value - low) / (high - low) if high > low else 0.5
    return round(40 * min(max(share, 0.0), 1.0))


_BARS = 20


def histogram(values: Sequence[float], title: str) -> Markup:
    """Values from 0 to 1 as bars, a twentieth of the scale each."""
    counts = Counter(min(int(value * _BARS), _BARS - 1) for value in values)
    most, width = max(counts.values(), default=1), _PANEL / _BARS
    bars = "".join(
        f'<rect class="c0" x="{_EDGE + n * width:.1f}" y="{78 - 70 * times / most:.1f}" width="{width - 1:.1f}" height="{70 * times / most:.1f}"/>'
        for n, times in sorted(counts.items())
    )
    ends = f'<text x="{_EDGE}" y="94">0</text><text x="{_EDGE + _PANEL}" y="94" text-anchor="end">1</text>'
    axis = f'<line class="axis" x1="{_EDGE}" x2="{_EDGE + _PANEL}" y1="78" y2="78"/>'
    picture = Markup('<svg viewBox="0 0 {} 100" role="img" aria-label="{}">{}</svg>')
    drawing = picture.format(2 * _EDGE + _PANEL, html(f"Distribution of {title}"), Markup(bars + axis + ends))
    return Markup("<figure><figcaption><b>{}</b> n {}</figcaption>{}</figure>").format(
        html(title), len(values), drawing
    )


def _short(text: str, length: int = 34) -> Markup:
    return html(text if len(text) <= length else f"{text[: length - 1]}…")


@dataclass(frozen=True)
class ScatterChart:
    """A chart of a judge's scores on one task type: how many samples, and the correlation where there is one."""

    kind: str
    n: int
    correlation: str
    drawing: Markup


def scatter_rows(board: Leaderboard, runs: Sequence[Run]) -> dict[str, list[ScatterChart]]:
    """The charts of the judges of a board, the best first, at most `MOST_JUDGES`; none where people gave no ratings.

    Args:
        board: on an aspect that people rated.
        runs: one a judge.
    """
    by_label = {run.label: run for run in runs}
    judges = [number.system for number in board.numbers if number.system in by_label][:MOST_JUDGES]
    points_by_judge = {label: _points(by_label[label], board.aspect) for label in judges}
    rated = [point.rating for points in points_by_judge.values() for of_kind in points.values() for point in of_kind]
    if not rated:
        return {}
    ends = (min(0.0, *rated), max(1.0, *rated))
    kinds = list(dict.fromkeys(kind for points in points_by_judge.values() for kind in points))
    return {
        label: [
            ScatterChart(
                kind,
                len(of_kind),
                _number(board, label, kind),
                scatter(of_kind, ends, f"{label} against ratings on {kind}", kinds.index(kind)),
            )
            for kind, of_kind in points.items()
        ]
        for label, points in points_by_judge.items()
        if points
    }


def _points(run: Run, aspect: str) -> dict[str, list[Point]]:
    by_kind: dict[str, list[Point]] = {}
    for part, judged in run.records.items():
        for record in (records[0] for records in judged):
            point = _point(record, aspect, run.against_all)
            if point:
                by_kind.setdefault(record.kind or part, []).append(point)
    return by_kind


def _point(record: Record, aspect: str, against_all: bool) -> Point | None:
    """People's mean rating and the judge's score of the aspect; of `overall`, by whichever name either has it."""
    rated = record.ratings.get(aspect, record.ratings.get("O", ()) if aspect == "overall" else ())
    ratings = [value for value in rated if not math.isnan(value)]
    scores = record.verdict.scores
    scores_by_name_priority = [
        scores[name] for name in (aspect, *(("O", "SC") if aspect == "overall" else ())) if name in scores
    ]
    scores_by_name_priority += list(scores.values()) if against_all else []
    return (
        Point(math.fsum(ratings) / len(ratings), scores_by_name_priority[0])
        if ratings and scores_by_name_priority
        else None
    )


def _number(board: Leaderboard, label: str, kind: str) -> str:
    estimate = board.breakdowns.get("kind", {}).get(kind, {}).get(label)
    return f"{estimate.value:.2f}" if estimate and estimate.defined else ""
