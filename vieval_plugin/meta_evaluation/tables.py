"""Tables as rows of text, also in Markdown and as CSV, and the numbers behind them as cells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text import escaping
from vieval_plugin.text.wording import rounded


@dataclass(frozen=True)
class Table:
    """A table under a title; `name` is the stem of its CSV, and the last rows are `references`
    that others stand beside.
    """

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    references: int = 0


@dataclass(frozen=True, order=True)
class Key:
    """The key of a cell: the table, and what its row and column say; `all` tasks and no image
    model where averaged.
    """

    table: str
    task: str
    image_model: str
    judge: str
    statistic: str
    aspect: str


def markdown(table: Table) -> str:
    """A table under its title, ending in an empty line.

    >>> print(markdown(Table("t", "Title", ("judge", "SC"), (("a|b", "0.5"),))))
    ### Title
    <BLANKLINE>
    | judge | SC |
    | --- | --- |
    | a\\|b | 0.5 |
    <BLANKLINE>
    """
    lines = [
        _line(cells)
        for cells in (table.header, ["---"] * len(table.header), *table.rows)
    ]
    return "\n".join([f"### {escaping.markdown(table.title)}", "", *lines, ""])


def csv_text(table: Table) -> str:
    """The header and the rows of a table.

    >>> csv_text(Table("t", "Title", ("judge", "SC"), (("a, b", "0.5"),)))
    'judge,SC\\n"a, b",0.5\\n'
    """
    return escaping.csv_text((table.header, *table.rows))


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(escaping.markdown, cells)) + " |"


def number(value: Estimate | float | None, digits: int = 4, reason: str = "") -> str:
    """A number as a table shows it, or why it is undefined.

    Args:
        value: None where a table has nothing to say, NaN for the undefined; of an estimate the
            value is shown.
        digits: how many decimals.
        reason: why it is undefined, where no estimate says it.

    >>> number(0.51234), number(None), number(float("nan"), reason="no sample")
    ('0.5123', '', 'undefined (no sample)')
    """
    if isinstance(value, Estimate):
        return number(value.value, digits, value.reason)
    if value is None:
        return ""
    if math.isnan(value):
        return _undefined(reason)
    return rounded(value, digits)


def interval_text(estimate: Estimate, digits: int = 4, scale: float = 1.0) -> str:
    """An estimate with its 95% interval as a table shows it, or why it is undefined.

    Args:
        estimate: on the statistic's own scale.
        digits: how many decimals.
        scale: what it is multiplied by.

    >>> interval_text(Estimate(0.5, 0.25, 0.75), 2), interval_text(Estimate(math.nan, reasons=("no sample",)))
    ('0.50 [0.25, 0.75]', 'undefined (no sample)')
    >>> interval_text(Estimate(0.5, 0.5, 0.5), 2)
    '0.50'
    """
    if not estimate.defined:
        return _undefined(estimate.reason)
    value, low, high = (
        scale * end for end in (estimate.value, estimate.low, estimate.high)
    )
    interval = ""
    if estimate.has_interval:
        interval = f" [{rounded(low, digits)}, {rounded(high, digits)}]"
    return f"{rounded(value, digits)}{interval}"


def percent_text(share: Estimate) -> str:
    """A share with its interval, in percent.

    >>> percent_text(Estimate(0.4266, 0.4, 0.45))
    '42.66 [40.00, 45.00]'
    """
    return interval_text(share, digits=2, scale=100)


def p_text(p: float) -> str:
    """A p-value with three decimals.

    >>> p_text(0.01234), p_text(0.00012), p_text(float("nan"))
    ('.012', '< .001', 'undefined')
    """
    if math.isnan(p):
        return "undefined"
    if p < 0.001:
        return "< .001"
    return f"{p:.3f}".removeprefix("0")


def p_sentence(p: float) -> str:
    """A p-value within a sentence.

    >>> p_sentence(0.01234), p_sentence(0.00012)
    ('p = .012', 'p < .001')
    """
    text = p_text(p)
    if text.startswith("<"):
        return f"p {text}"
    return f"p = {text}"


def _undefined(reason: str) -> str:
    if reason:
        return f"undefined ({reason})"
    return "undefined"


@dataclass(frozen=True)
class Printed:
    """A table that somebody printed."""

    #: The benchmark's.
    part: str
    statistics: tuple[str, ...]
    #: A value for each statistic by judge, None if missing.
    values: Mapping[str, tuple[float | None, ...]]
    #: Place where it is printed, and how it came about.
    source: str


def printed_tables(printed: Sequence[Printed]) -> list[Table]:
    """Each as a table whose rows are marked as printed.

    >>> [table] = printed_tables([Printed("edit", ("accuracy",), {"GPT-4o": (53.54,)}, "a paper")])
    >>> table.rows
    (('edit', 'GPT-4o (printed)', '53.54'),)
    """
    tables = []
    for index, table in enumerate(printed, start=1):
        name = f"printed_{index}"
        if len(printed) == 1:
            name = "printed"
        title = f"Published numbers of other judges, not computed here: {table.source}"
        rows = []
        for judge, values in table.values.items():
            cells = ("" if value is None else f"{value:g}" for value in values)
            rows.append((table.part, f"{judge} (printed)", *cells))
        header = ("task", "judge", *table.statistics)
        tables.append(
            Table(
                name=name,
                title=title,
                header=header,
                rows=tuple(rows),
            )
        )
    return tables
