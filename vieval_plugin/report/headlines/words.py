"""What a board says, in sentences: which is best, whether that is significant, where it fails, what it cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vieval_plugin.meta_evaluation.headline import HeadlineNumber
from vieval_plugin.report.headlines.leaderboards import Board, BoardRow

_NAMED = 3
"""So many rows are named in a sentence, and of more their number is said."""


def sentences(board: Board) -> list[str]:
    """A board in words, some sentences.

    Args:
        board: with one row or more.
    """
    rows = [row for row in board.rows if not math.isnan(row.number.value)]
    if not rows:
        return [f"No {board.headline.entrant} has a number here."]
    told = [_best(board, rows)]
    told += _beside(board, rows[0])
    told += _weakest(board, rows[0])
    told += [f"{row.number.label}: {row.cost.warning}." for row in rows if row.cost.warning]
    return told


def _best(board: Board, rows: Sequence[BoardRow]) -> str:
    first = rows[0]
    if board.common is None and board.pairs:
        return _two_by_two(board)
    if first.rank is None:
        return f"{first.number.label} has {shown(first.number)}. {board.how}"
    told_apart = {frozenset((pair.first, pair.second)) for pair in board.pairs if pair.different}
    others = [row.number.label for row in rows[1:] if row.rank is not None]
    worse = [one for one in others if frozenset((one, first.number.label)) in told_apart]
    equal = [one for one in others if one not in worse]
    number = f"{first.number.label} is best ({shown(first.number)}), significantly better than"
    if not equal:
        return f"{number} {_some(worse)} {_by(board, first, rows[1], len(worse) > 1)}."
    number = (
        f"{first.number.label} has the highest number ({shown(first.number)}), but it is not significantly better than"
    )
    return f"{number} {_some(equal)}{f'; it is better than {_some(worse)}' if worse else ''}."


def _by(board: Board, first: BoardRow, second: BoardRow, several: bool) -> str:
    """How far the best is from the next, on what both scored; `several` that the next must be named."""
    labels = first.number.label, second.number.label
    for pair in board.pairs:
        if {pair.first, pair.second} == {*labels}:
            sign = 1 if pair.first == labels[0] else -1
            low, high = sorted((sign * pair.found.low, sign * pair.found.high))
            interval = "" if math.isnan(low) else f" [{low:.3f}, {high:.3f}]"
            told = f"by {sign * pair.found.difference:.3f}{interval}, p {pair.adjusted:.3g}"
            return f"({labels[1]} {told})" if several else told
    return ""


def _two_by_two(board: Board) -> str:
    """Of judges of different samples none is best: which is better than which, on what both scored."""
    beaten: dict[str, list[str]] = {}
    for pair in (pair for pair in board.pairs if pair.different):
        better, worse = (pair.first, pair.second) if pair.found.difference > 0 else (pair.second, pair.first)
        beaten.setdefault(better, []).append(worse)
    told = [f"{better} is significantly better than {_and(others)}" for better, others in beaten.items()]
    found = "; ".join(told) if told else f"no {board.headline.entrant} is significantly better than another"
    why = "These judge different kinds" if board.headline.entrant == "judge" else "Few prompts are common to all"
    return f"On what both scored, {found}. {why}, so no one number puts all in order."


def _beside(board: Board, first: BoardRow) -> list[str]:
    """The best beside what it has to reach, and what it has to be above."""
    told = []
    who = "It is" if board.common is not None or not board.pairs else f"{first.number.label} is"
    for one in board.headline.references:
        if math.isnan(one.value) or math.isnan(first.number.value):
            continue
        how = "above" if _above(first.number, one) else "not shown to be above"
        told.append(f"{who} {how} the {one.label.split(':')[0]} ({one.value:.3f}).")
    return told


def _above(number: HeadlineNumber, reference: HeadlineNumber) -> bool:
    return number.low > (reference.value if math.isnan(reference.high) else reference.high)


def _weakest(board: Board, first: BoardRow) -> list[str]:
    told = []
    for heading, words in board.headline.breakdowns.items():
        found = [(one, word) for word, several in words.items() for one in several if one.label == first.number.label]
        known = [(one.value, word, one.n) for one, word in found if not math.isnan(one.value)]
        if len(known) > 1:
            (low, worst, n), (high, best, m) = min(known), max(known)
            told.append(
                f"By {heading}, {first.number.label} is lowest on {worst} ({low:.3f}, n {n}) and highest on {best} ({high:.3f}, n {m})."
            )
    return told


def shown(number: HeadlineNumber) -> str:
    """A number with its interval in text."""
    if math.isnan(number.value):
        return f"undefined ({number.reason})" if number.reason else "undefined"
    if math.isnan(number.low):
        return f"{number.value:.3f}"
    return f"{number.value:.3f} [{number.low:.3f}, {number.high:.3f}]"


def _some(labels: Sequence[str]) -> str:
    return _and(labels) if len(labels) <= _NAMED else f"{len(labels)} others"


def _and(labels: Sequence[str]) -> str:
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"
