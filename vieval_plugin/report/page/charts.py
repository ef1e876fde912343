"""Charts of a page as inline SVG: intervals side by side, and a judge's scores against people's.

Colours are classes that the page's style sheet knows, so that charts follow light and dark and need no style of their own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from vieval_plugin.meta_evaluation.headline import HeadlineNumber
from vieval_plugin.text.escaping import html

_LINE, _NAMES, _WIDTH = 26, 230, 640
_PANEL, _EDGE = 168, 26


def forest(
    numbers: Sequence[HeadlineNumber], references: Sequence[HeadlineNumber], ends: tuple[float, float], title: str
) -> Markup:
    """Numbers with their intervals, a line each; references below them, the first as a line through all.

    Args:
        numbers: in the order of lines; undefined ones are left out.
        references: what they stand beside.
        ends: the lowest and highest value that there can be.
        title: what the chart shows, for those who do not see it.
    """
    lines = [(one, "dot") for one in numbers if not math.isnan(one.value)]
    lines += [(one, "reference") for one in references if not math.isnan(one.value)]
    if not lines:
        return Markup("")
    low, high = _range([one for one, _ in lines], ends)

    def x(value: float) -> float:
        return _NAMES + (_WIDTH - _NAMES - 20) * (min(max(value, low), high) - low) / (high - low)

    height = _LINE * len(lines) + 30
    parts = [
        f'<line class="axis" x1="{x(t):.1f}" x2="{x(t):.1f}" y1="4" y2="{height - 24}"/>' for t in _ticks(low, high)
    ]
    parts += [
        f'<text class="tick" x="{x(t):.1f}" y="{height - 8}" text-anchor="middle">{t:g}</text>'
        for t in _ticks(low, high)
    ]
    for number, (one, kind) in enumerate(lines):
        y = _LINE * number + _LINE / 2 + 4
        parts.append(
            f'<text class="name" x="{_NAMES - 10}" y="{y + 4:.1f}" text-anchor="end">{_short(one.label.split(": ")[0])}</text>'
        )
        if not math.isnan(one.low):
            parts.append(
                f'<line class="{kind} bar" x1="{x(one.low):.1f}" x2="{x(one.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
        parts.append(f'<circle class="{kind}" cx="{x(one.value):.1f}" cy="{y:.1f}" r="5"/>')
    return _svg(_WIDTH, height, "forest", title, parts)


def _range(numbers: Sequence[HeadlineNumber], ends: tuple[float, float]) -> tuple[float, float]:
    """A range that holds all intervals, in tenths, within what is possible."""
    held = [value for one in numbers for value in (one.value, one.low, one.high) if not math.isnan(value)]
    low, high = math.floor(min(*held, 0) * 10) / 10, math.ceil(max(held) * 10) / 10
    low, high = max(low, ends[0]), min(max(high, low + 0.1), ends[1])
    return (low, high) if high > low else ends


def _ticks(low: float, high: float) -> list[float]:
    step = 0.1 if high - low <= 0.6 else 0.2 if high - low <= 1.2 else 0.5
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 2) + 0.0 for number in range(first, math.floor(high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Point:
    """A sample in a scatter: what people said, what the judge said."""

    people: float
    judge: float


def scatter(points: Sequence[Point], people: tuple[float, float], heading: str, title: str, colour: int) -> Markup:
    """A judge's scores against people's, a circle for all samples that have both alike, larger for more of them.

    Args:
        points: of one kind; the judge's in [0, 1].
        people: the ends of people's scale.
        heading: stands above it.
        title: what the chart shows, for those who do not see it.
        colour: the number of a colour of the page.
    """
    side, low, high = _PANEL, *people
    counted = Counter((_bin(one.people, low, high), _bin(one.judge, 0.0, 1.0)) for one in points)
    most = max(counted.values(), default=1)
    parts = [
        f'<text class="name" x="{_EDGE}" y="12">{_short(heading, 30)}</text>',
        f'<rect class="panel" x="{_EDGE}" y="20" width="{side}" height="{side}"/>',
        f'<line class="axis" x1="{_EDGE}" y1="{20 + side}" x2="{_EDGE + side}" y2="20"/>',
        f'<text class="tick" x="{_EDGE}" y="{side + 34}">{low:g}</text>',
        f'<text class="tick" x="{_EDGE + side / 2}" y="{side + 34}" text-anchor="middle">people</text>',
        f'<text class="tick" x="{_EDGE + side}" y="{side + 34}" text-anchor="end">{high:g}</text>',
        f'<text class="tick" x="{_EDGE - 4}" y="{20 + side}" text-anchor="end">0</text>',
        f'<text class="tick" x="{_EDGE - 4}" y="28" text-anchor="end">1</text>',
    ]
    for (across, up), times in sorted(counted.items()):
        radius = 1.8 + 5 * math.sqrt(times / most) if most > 1 else 2.6
        parts.append(
            f'<circle class="c{colour % 7}" cx="{_EDGE + across * side / 40:.1f}" cy="{20 + side - up * side / 40:.1f}" r="{radius:.1f}"/>'
        )
    return _svg(_EDGE + side + 8, side + 40, "scatter", title, parts)


def _bin(value: float, low: float, high: float) -> int:
    """In fortieths of the scale: finer is not seen."""
    share = (value - low) / (high - low) if high > low else 0.5
    return round(40 * min(max(share, 0.0), 1.0))


def _short(text: str, most: int = 34) -> Markup:
    return html(text if len(text) <= most else f"{text[: most - 1]}…")


def _svg(width: float, height: float, kind: str, title: str, parts: Iterable[str]) -> Markup:
    head = Markup('<svg class="{}" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">').format(
        kind, width, height, width, height, html(title)
    )
    return head + Markup("".join(parts)) + Markup("</svg>")
