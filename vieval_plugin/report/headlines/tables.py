"""Leaderboards as tables of text: for a terminal, for Markdown and as CSV."""

from __future__ import annotations

from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.report.headlines.leaderboards import Leaderboard, LeaderboardRow
from vieval_plugin.report.headlines.sentences import format_estimate
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.tables import UNKNOWN, text_table


def headline_table(board: Leaderboard, name: str) -> Table:
    """A leaderboard as a table; `name` is the stem of its CSV."""
    kinds = ("task types",) if board.kinds_differ else ()
    marks = ("marks",) if _has_marks(board) else ()
    header = (
        *("rank", board.headline.entrant, *kinds, f"{board.headline.aspect} [95%]", "n", *marks),
        *("failures", "answers", "tokens", "seconds"),
    )
    rows = [_row(board, row) for row in board.rows]
    rows += [_reference(*reference, len(kinds), len(marks)) for reference in board.headline.references.items()]
    return Table(name, f"Headline: {board.headline.title}", header, tuple(rows))


def headline_lines(board: Leaderboard, table: Table, elsewhere: str) -> list[str]:
    """Lines of `headline_table` for a terminal, references by their names alone; see `text_table`."""
    system_rows = table.rows[: len(board.rows)]
    references = [(rank, label.split(": ")[0], *cells) for rank, label, *cells in table.rows[len(board.rows) :]]
    return text_table([table.header, *system_rows, *references], elsewhere, len(references))


def _row(board: Leaderboard, row: LeaderboardRow) -> tuple[str, ...]:
    cost = row.cost
    kinds = (board.kinds_text(row.label),) if board.kinds_differ else ()
    failed = f"{cost.failed} of {cost.verdicts}: {cost.failures_text}" if cost.failed else ""
    failures = "; ".join(filter(None, (failed, cost.missing_text))) or "0"
    tokens = UNKNOWN if cost.tokens is None else str(cost.tokens)
    all_recorded = all(board_row.cost.recorded for board_row in board.rows)  # then the seconds of none are known
    seconds = "replay" if cost.recorded and not all_recorded else row.seconds or UNKNOWN
    marks = ("; ".join(_marks(row)),) if _has_marks(board) else ()
    number = (format_estimate(row.estimate), str(row.estimate.n), *marks)
    return (row.rank, row.label, *kinds, *number, failures, str(cost.answers), tokens, seconds)


def _has_marks(board: Leaderboard) -> bool:
    return any(map(_marks, board.rows))


def _marks(row: LeaderboardRow) -> tuple[str, ...]:
    """Marks of a row, and that one answer decides its number."""
    return (*row.marks, *filter(None, (row.one_answer,)))


def _reference(label: str, reference: Estimate, kinds: int, marks: int) -> tuple[str, ...]:
    number = (format_estimate(reference), str(reference.n or ""))
    return ("", label, *[""] * kinds, *number, *[""] * marks, "", "", "", "")
