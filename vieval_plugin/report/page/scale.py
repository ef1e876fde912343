"""The chart of all pages: systems as dots with their intervals, one row each, beside
people and the same answer for all.

Places are percentages, so that the chart is as wide as the page while its type keeps its size, and
colours are classes that the page's style sheet knows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from vieval_plugin.meta_evaluation.findings import Leaderboard, Role
from vieval_plugin.report.words import reason_words, short_number
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.html_page import template
from vieval_plugin.text.wording import steps_in_order

if TYPE_CHECKING:
    from vieval_plugin.report.gate import Gate

_TEMPLATE = Path(__file__).with_name("scale.html.jinja")


@dataclass(frozen=True)
class ScaleRow:
    """A row of a scale."""

    #: Name of the row.
    label: str
    #: Its number, undefined if missing.
    estimate: Estimate
    #: Class of its dot: `own`, `worse`, `unranked`, `printed`.
    kind: str = ""
    #: Text at its end.
    note: str = ""
    #: Values of others on the same row, by name.
    others: Mapping[str, float] = field(default_factory=dict)


def scale(
    title: str,
    rows: Sequence[ScaleRow],
    board: Leaderboard,
) -> Markup:
    """The scale as HTML, of generators with all values that there can be; empty where no row has a
    number.

    Args:
        title: what it shows, for those who do not see it.
        rows: in their order.
        board: the leaderboard that they are of, whose references they stand beside: people are a
            line through all rows, the same answer for everything a band, and win rates have a line
            at one half.
    """
    references = {
        number.role: number.estimate.value
        for number in board.references
        if number.estimate.defined
    }
    constant = references.get("baseline")
    lines = _guide_lines(board, references)
    estimates = [row.estimate for row in rows if row.estimate.defined]
    if not estimates:
        return Markup("")
    low, high = _scale_ends(rows, estimates, references, board)
    step = 1 if high - low <= 0.6 else 2

    def x(value: float) -> str:
        clipped = min(max(value, low), high)
        percentage = 100 * (clipped - low) / (high - low)
        return f"{percentage:.2f}%"

    first_tenth = math.ceil(low * 10)
    last_tenth = math.floor(high * 10)
    tenths = range(first_tenth, last_tenth + 1)
    ticks = [n / 10 for n in tenths if n % step == 0]
    text = template(_TEMPLATE).render(
        title=title,
        rows=rows,
        lines=lines,
        constant=constant,
        ticks=ticks,
        x=x,
        short=short_number,
    )
    return Markup(text)


def _scale_ends(
    rows: Sequence[ScaleRow],
    estimates: Sequence[Estimate],
    references: Mapping[Role, float],
    board: Leaderboard,
) -> tuple[float, float]:
    """Return the ends of a scale: of generators the board's, else those of all values."""
    if board.ranks_generators:
        return board.ends
    values = list[float]()
    for estimate in estimates:
        ends = (estimate.value, estimate.low, estimate.high)
        values += [end for end in ends if not math.isnan(end)]
    for row in rows:
        values += row.others.values()
    values += references.values()
    margin = max(0.05 * (max(values) - min(values)), 0.05)
    return min(values) - margin, max(values) + margin


def _guide_lines(
    board: Leaderboard,
    references: Mapping[Role, float],
) -> dict[str, float]:
    if board.measure.even is not None:
        return {"even": board.measure.even}
    people = references.get("ceiling", math.nan)
    if math.isnan(people):
        return {}
    return {"people": people}


def gate_axis(gate: Gate, unit: str) -> Markup:
    """The differences that a gate decides by on one axis, with 0 and the margin; empty where no
    difference is known.

    Args:
        gate: with its evidence.
        unit: what is compared, such as `prompts`.
    """
    rows = [
        (evidence, difference)
        for evidence, difference in zip(gate.evidence, gate.differences, strict=True)
        if difference.has_interval and not math.isnan(evidence.scored.low)
    ]
    if not rows:
        return Markup("")
    ends = [
        end
        for evidence, difference in rows
        for end in (evidence.scored.low, difference.low, difference.high)
    ]
    low = min(*ends, -2 * gate.margin)
    high = max(*ends, gate.margin)
    room = 0.05 * (high - low)

    span = high - low + 2 * room

    def x(value: float) -> float:
        return 100 * (value - low + room) / span

    path = _TEMPLATE.with_name("gate_axis.html.jinja")
    return Markup(template(path).render(rows=rows, gate=gate, unit=unit, x=x))


def chart(board: Leaderboard) -> Markup:
    """The systems of a leaderboard, grey where they are significantly worse than the first,
    hollow where they have no rank.
    """
    first, *lower = [number.system for number in board.ranked] or [""]
    worse = {label for label in lower if board.comparison.beats(first, label)}
    rows = []
    numbers = {number.system: number for number in board.numbers}
    for label in steps_in_order([*numbers]) or numbers:
        number = numbers[label]
        kind = ""
        note = ""
        if number.unranked:
            kind = "unranked"
            note = f"not ranked: {reason_words(number.unranked)}"
        elif number.system in worse:
            kind = "worse"
        if number.estimate.defined:
            rows.append(ScaleRow(number.system, number.estimate, kind, note))
    if worse:
        legend = Markup('<p class="how">Grey: significantly worse than the first.</p>')
    else:
        legend = Markup("")
    return scale(f"Intervals: {board.title}", rows, board) + legend
