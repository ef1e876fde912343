"""Rows of numbers and of pairs, with a declared type for each column: what `numbers.csv`,
`pairs.csv`, `findings.json`, cards and the leaderboard hold.

They become text at the edge, by these types, and no text is read back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.findings import Leaderboard, Number, Role
from vieval_plugin.meta_evaluation.tables import Table
from vieval_plugin.stats.decisions import NUMBER_LEVEL
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.text.wording import none_to_nan

_DIGITS = 6

Cell: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class NumberRow:
    """Number of a judge, a generator, or what they stand beside."""

    benchmark: str
    part: str
    aspect: str
    statistic: str
    system: str
    role: Role
    #: Judge whose scores a generator's number is made of, or empty.
    judge: str
    #: Model that the judge asks, or empty where it asks none.
    backbone: str
    breakdown: str
    breakdown_value: str
    #: None where it is undefined, as are the ends.
    value: float | None
    low: float | None
    high: float | None
    #: Share of such intervals that hold the truth.
    level: float
    n: int | None
    #: Verdicts without a score, None where nobody counts them.
    failures: int | None
    failure_policy: str
    #: Share of samples that have a score.
    coverage: float | None
    rank_from: int | None
    rank_to: int | None
    #: Reason why there is no value, or no rank.
    reason: str

    @property
    def estimate(self) -> Estimate:
        """The number with its interval."""
        return stored_estimate(
            self.value, self.low, self.high, self.n or 0, self.reason
        )


@dataclass(frozen=True, kw_only=True)
class PairRow:
    """Difference of two systems, the better one less the worse one."""

    benchmark: str
    part: str
    aspect: str
    statistic: str
    judge: str
    backbone: str
    breakdown: str
    breakdown_value: str
    better: str
    worse: str
    #: Common samples.
    n: int
    value_better: float | None
    value_worse: float | None
    difference: float | None
    low: float | None
    high: float | None
    #: Share of such intervals that hold the truth.
    level: float
    p: float | None
    #: By Holm, None where the pair is not to be decided.
    p_adjusted: float | None
    significant: bool
    #: Reason why a small p shows no difference.
    reason: str
    #: Pairs that p is adjusted for.
    family: str


def number_row(
    benchmark: str,
    number: Number,
    failure_policy: str,
    backbones: Mapping[str, str] | None = None,
) -> NumberRow:
    """The row of a number.

    Args:
        benchmark: its name.
        number: of it.
        failure_policy: what failed verdicts are, `drop` or `worst`.
        backbones: models that judges ask, by the judge's label.
    """
    estimate = number.estimate
    total = number.total
    backbone = (backbones or {}).get(number.system, "")
    lowest, highest = number.ranks or (None, None)
    return NumberRow(
        benchmark=benchmark,
        part=number.part,
        aspect=number.aspect,
        statistic=number.statistic,
        system=number.system,
        role=number.role,
        judge=str(number.judge or ""),
        backbone=number.judge.backbone if number.judge else backbone,
        breakdown=number.breakdown,
        breakdown_value=number.value,
        value=_rounded(estimate.value),
        low=_rounded(estimate.low),
        high=_rounded(estimate.high),
        level=NUMBER_LEVEL,
        n=estimate.n or None,
        failures=number.failed if number.statuses else None,
        failure_policy=failure_policy,
        coverage=_rounded(estimate.n / total, 4) if total else None,
        rank_from=lowest,
        rank_to=highest,
        reason=number.reason,
    )


def pair_rows(leaderboards: Iterable[Leaderboard]) -> list[PairRow]:
    """A row for each tested pair of leaderboards, the better one first."""
    return [
        _pair_row(board, pair.better_first())
        for board in leaderboards
        for pair in board.comparison.all_pairs
    ]


def _pair_row(board: Leaderboard, pair: SystemPair) -> PairRow:
    result = pair.result
    return PairRow(
        benchmark=board.benchmark,
        part=board.part,
        aspect=board.aspect,
        statistic=board.statistic,
        judge=str(board.judge or ""),
        backbone=board.judge.backbone if board.judge else "",
        breakdown=board.breakdown,
        breakdown_value=board.value,
        better=pair.first,
        worse=pair.second,
        n=pair.n,
        value_better=_rounded(result.first),
        value_worse=_rounded(result.second),
        difference=_rounded(result.difference.value),
        low=_rounded(result.difference.low),
        high=_rounded(result.difference.high),
        level=_rounded(1 - board.comparison.compared.level) or 0.0,
        p=_rounded(result.p),
        p_adjusted=_rounded(pair.adjusted),
        significant=pair.significant,
        reason=pair.reason,
        family=board.comparison.family,
    )


def stored_estimate(
    value: float | None,
    low: float | None,
    high: float | None,
    n: int,
    reason: str = "",
) -> Estimate:
    """An estimate as rows have it, whose undefined numbers are None.

    >>> stored_estimate(None, None, None, 3, "no ratings").reason
    'no ratings'
    """
    ends = [none_to_nan(end) for end in (value, low, high)]
    return Estimate(ends[0], ends[1], ends[2], n=n, reasons=(reason,))


def row_table(
    name: str,
    row_type: type[NumberRow] | type[PairRow],
    rows: Sequence[NumberRow] | Sequence[PairRow],
) -> Table:
    """Rows as a table of texts.

    Args:
        name: the stem of its CSV.
        row_type: dataclass of the rows, whose fields are the columns.
        rows: all of this type.
    """
    names = tuple(field.name for field in fields(row_type))
    texts = (tuple(cell_text(getattr(row, name)) for name in names) for row in rows)
    return Table(
        name=name,
        title="",
        header=names,
        rows=tuple(texts),
    )


def cell_text(cell: Cell) -> str:
    """The text of a cell in CSV: six digits of a number, `yes` or `no`, nothing for None.

    >>> [cell_text(cell) for cell in (0.25, 3, True, None, "no")]
    ['0.25', '3', 'yes', '', 'no']
    """
    if cell is None:
        return ""
    if isinstance(cell, bool):
        if cell:
            return "yes"
        return "no"
    if isinstance(cell, float):
        return f"{cell:.{_DIGITS}g}"
    return str(cell)


def _rounded(value: float, digits: int = _DIGITS) -> float | None:
    """A number with as many digits as files have; None for the undefined."""
    if math.isfinite(value):
        return float(f"{value:.{digits}g}")
    return None
