"""Columns of a headline's table: judge, model and setting apart, and nothing that is the same in all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vieval_plugin.records import JudgeName, Run
from vieval_plugin.report.headlines.costs import Cost
from vieval_plugin.report.headlines.leaderboards import Leaderboard, LeaderboardRow

_UNKNOWN = "not known"


@dataclass(frozen=True)
class HeadlineColumns:
    """Cells of a headline's table beside the number.

    `names` are the first cells of the rows, under `heading`. `left_columns` and `right_columns` are those that stand before
    and after the number, by their heading. `alike` says in words what all rows have in common.
    """

    heading: str
    names: tuple[str, ...]
    left_columns: Mapping[str, tuple[str, ...]]
    right_columns: Mapping[str, tuple[str, ...]]
    alike: str
    is_ranked: bool


def headline_columns(board: Leaderboard, runs: Sequence[Run]) -> HeadlineColumns:
    """Columns of a leaderboard.

    Args:
        board: with its rows.
        runs: one a judge, from which judge, model and setting are known.
    """
    by_label = {run.label: run.name for run in runs}
    judges = [by_label.get(row.label) for row in board.rows]
    parts = _parts([judge for judge in judges if judge]) if all(judges) and judges else {}
    kinds = {"task types": tuple(board.kinds_text(row.label) for row in board.rows)} if board.kinds_differ else {}
    costs = {
        "n": tuple(str(row.estimate.n) for row in board.rows),
        "failures": tuple(_failures(row.cost) for row in board.rows),
        "answers": tuple(str(row.cost.answers) for row in board.rows),
        "tokens": tuple(_UNKNOWN if row.cost.tokens is None else str(row.cost.tokens) for row in board.rows),
        "seconds": tuple(_seconds(row) for row in board.rows),
    }
    names = tuple(row.label for row in board.rows)
    alike = {name: cells[0] for name, cells in {**parts, **costs}.items() if cells and _is_alike(cells)}
    columns = {name: cells for name, cells in parts.items() if name not in alike}
    first, cells = next(iter(columns.items()), ("", ()))
    are_distinct = len({*zip(*columns.values(), strict=True)}) == len(names)
    if first and are_distinct and all(name.startswith(cell) for name, cell in zip(names, cells, strict=True)):
        names = tuple(cell or name for cell, name in zip(cells, names, strict=True))
        columns = {name: cells for name, cells in columns.items() if name != first}
        heading = first
    else:
        heading = "label" if "judge" in columns else board.headline.entrant
    after = {name: cells for name, cells in costs.items() if name not in alike}
    return HeadlineColumns(heading, names, {**columns, **kinds}, after, _in_common(alike), bool(board.ranked))


def _parts(judges: Sequence[JudgeName]) -> dict[str, tuple[str, ...]]:
    """Model, judge and setting of each row, without the parts that no row has."""
    parts = {
        "model": tuple("" if judge.model == judge.judge else judge.model for judge in judges),
        "judge": tuple(judge.judge for judge in judges),
        "setting": tuple(judge.setting for judge in judges),
        "options": tuple(judge.details for judge in judges),
    }
    return {name: cells for name, cells in parts.items() if any(cells)}


def _is_alike(cells: Sequence[str]) -> bool:
    return len({*cells}) == 1


def _in_common(alike: Mapping[str, str]) -> str:
    """Sentences on the cells that all rows have in common; those not known of any row stand together."""
    unknown = [name for name, value in alike.items() if value == _UNKNOWN]
    values = [f"{name} {value}" for name, value in alike.items() if value != _UNKNOWN]
    alike_words = [f"In all rows: {', '.join(values)}."] if values else []
    unknown_words = (
        [f"The results do not say the {' and '.join(unknown)}; a run of vieval score does."] if unknown else []
    )
    return " ".join([*alike_words, *unknown_words])


def _failures(cost: Cost) -> str:
    failed = f"{cost.failed} ({cost.share:.0%})" if cost.failed else ""
    return "; ".join(filter(None, (failed, cost.missing_text))) or "0"


def _seconds(row: LeaderboardRow) -> str:
    return "replay" if row.cost.recorded else row.seconds or _UNKNOWN
