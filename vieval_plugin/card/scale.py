"""A scale from guessing to people: judges as dots with their intervals, a row each, people as a line through all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup

from vieval_plugin.report.words import short_number
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.html_page import template

CEILING, CONSTANT = "human ceiling", "best constant"
"""What labels of these references begin with."""
_TEMPLATE = Path(__file__).with_name("scale.html.jinja")


@dataclass(frozen=True)
class ScaleRow:
    """A row of a scale."""

    #: Name of the row.
    label: str
    #: Its number, undefined where there is none.
    estimate: Estimate
    #: Classes of its dot: `own`, `worse`, `unranked`, `printed`.
    kind: str = ""
    #: What is to be read at its end.
    note: str = ""
    #: Values of others on the same row, by name.
    others: Mapping[str, float] = field(default_factory=dict)


def scale(title: str, rows: Sequence[ScaleRow], references: Mapping[str, Estimate]) -> Markup:
    """The scale as HTML; empty where no row has a number.

    Args:
        title: what it shows, for those who do not see it.
        rows: in their order.
        references: the human ceiling and the best constant, by label; others are left out.
    """
    people, constant = (
        next((e.value for label, e in references.items() if label.startswith(name) and e.defined), None)
        for name in (CEILING, CONSTANT)
    )
    estimates = [row.estimate for row in rows if row.estimate.defined]
    if not estimates:
        return Markup("")
    values = [end for e in estimates for end in (e.value, e.low, e.high) if not math.isnan(end)]
    values += [value for row in rows for value in row.others.values()]
    values += [value for value in (people, constant) if value is not None]
    margin = 0.05 * (max(values) - min(values) or 1)
    low, high = min(values) - margin, max(values) + margin
    step = 1 if high - low <= 0.6 else 2
    text = template(_TEMPLATE).render(
        title=title,
        rows=rows,
        people=people,
        constant=constant,
        ticks=[n / 10 for n in range(math.ceil(low * 10), math.floor(high * 10) + 1) if n % step == 0],
        x=lambda value: f"{100 * (value - low) / (high - low):.2f}%",
        short=short_number,
    )
    return Markup(text)
