"""Numbers of judges that others published, beside those that are computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vieval_plugin.meta_evaluation.tables import Table


@dataclass(frozen=True)
class Printed:
    """A table that somebody printed: by judge a value for each of the `statistics`, None where there is none.

    `part` is the benchmark's, `source` says where it is printed, and what is to be known of how it came about.
    """

    part: str
    statistics: tuple[str, ...]
    values: Mapping[str, tuple[float | None, ...]]
    source: str


def printed_tables(printed: Sequence[Printed]) -> list[Table]:
    """Each as a table whose rows are marked as printed.

    >>> [table] = printed_tables([Printed("edit", ("accuracy",), {"GPT-4o": (53.54,)}, "a paper")])
    >>> table.rows
    (('edit', 'GPT-4o (printed)', '53.54'),)
    """
    return [
        Table(
            "printed" if len(printed) == 1 else f"printed_{number}",
            f"Published numbers of other judges, not computed here: {table.source}",
            ("task", "judge", *table.statistics),
            tuple(
                (table.part, f"{judge} (printed)", *("" if value is None else f"{value:g}" for value in values))
                for judge, values in table.values.items()
            ),
        )
        for number, table in enumerate(printed, start=1)
    ]
