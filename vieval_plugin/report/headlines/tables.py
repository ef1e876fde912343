"""Boards as tables of text: for a terminal, for Markdown and as CSV."""

from __future__ import annotations

import math

from vieval_plugin.meta_evaluation.headline import HeadlineNumber
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.report.headlines.leaderboards import Board, BoardRow
from vieval_plugin.report.headlines.words import shown


def headline_table(board: Board, name: str) -> Table:
    """A board as a table; `name` is the stem of its CSV."""
    beside = board.common is not None and not board.same_samples
    common = (f"on the {board.common} common",) if beside else ()
    kinds = ("kinds",) if board.kinds_differ else ()
    header = (
        *("rank", board.headline.entrant, *kinds, f"{board.headline.aspect} [95%]", "n", *common),
        *("failures", "calls", "tokens", "seconds"),
    )
    rows = [_row(board, row, beside) for row in board.rows]
    rows += [_reference(one, len(kinds), len(common)) for one in board.headline.references]
    return Table(name, f"Headline: {board.headline.number}", header, tuple(rows))


def _row(board: Board, row: BoardRow, beside: bool) -> tuple[str, ...]:
    cost = row.cost
    rank = str(row.rank or "")
    kinds = (board.kinds_told(row.number.label),) if board.kinds_differ else ()
    common = ("" if math.isnan(row.common) else f"{row.common:.3f}",) if beside else ()
    failures = f"{cost.failed} of {cost.asked}: {cost.told}" if cost.failed else "0"
    failures += " (!)" if cost.warning else ""
    tokens = "not known" if cost.tokens is None else str(cost.tokens)
    seconds = "replay" if cost.recorded else row.seconds or "not known"
    number = (shown(row.number), str(row.number.n))
    return (rank, row.number.label, *kinds, *number, *common, failures, str(cost.calls), tokens, seconds)


def _reference(one: HeadlineNumber, kinds: int, common: int) -> tuple[str, ...]:
    return ("", one.label, *[""] * kinds, shown(one), str(one.n or ""), *[""] * common, "", "", "", "")
