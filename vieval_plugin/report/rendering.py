"""Tables as Markdown and as CSV."""

from __future__ import annotations

from collections.abc import Sequence

from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.text import escaping


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
