"""A headline as a table: its rows in order, with the ranks that the data supports and what each row cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from vieval_plugin.meta_evaluation.headline import Breakdown, Headline, HeadlineNumber
from vieval_plugin.meta_evaluation.judge_comparison import (
    LEVEL,
    ComparedPair,
    ComparedStatistic,
    JudgeComparison,
    compare_judges,
)
from vieval_plugin.records import Record, Run
from vieval_plugin.report.headlines.costs import SET_APART, Cost, cost_of
from vieval_plugin.stats.comparison import PairedComparison
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import holm

MOST_RANKED = 6
"""With more rows than these, only the first headline of a benchmark is tested: pairs grow with the square of rows."""


@dataclass(frozen=True)
class BoardRow:
    """A row: its number, what it is on the samples that all ranked rows scored, its rank if it has one, its cost."""

    number: HeadlineNumber
    common: float
    rank: int | None
    cost: Cost
    seconds: str = ""


@dataclass(frozen=True)
class Board:
    """A headline's rows, the best first, those without a rank last; `pairs` are the tests that ranks come from.

    `common` is how many samples all ranked rows scored, None where rows were compared two by two on what both scored.
    `how` says it in words, `notes` are to be read beside it.
    """

    headline: Headline
    rows: tuple[BoardRow, ...]
    pairs: tuple[ComparedPair, ...]
    common: int | None
    how: str
    notes: tuple[str, ...] = ()

    @property
    def same_samples(self) -> bool:
        """Whether all rows' numbers are of the same samples, so that one column says all."""
        return all(row.number.n == self.common for row in self.rows)

    def kinds_of(self, label: str) -> list[str]:
        """The kinds, or parts, of which an entrant has a number, where the headline is broken down by them."""
        words: Breakdown = next(iter(self.headline.breakdowns.values()), {})
        return [word for word, several in words.items() if any(one.label == label for one in several)]

    def kinds_told(self, label: str) -> str:
        """`kinds_of` in words."""
        of_all = len(next(iter(self.headline.breakdowns.values()), {}))
        kinds = self.kinds_of(label)
        return f"all {of_all}" if len(kinds) == of_all > 1 else " ".join(kinds)

    @property
    def kinds_differ(self) -> bool:
        """Whether some rows are of other kinds than others, so that their numbers are no order."""
        return len({tuple(self.kinds_of(row.number.label)) for row in self.rows}) > 1


@dataclass(frozen=True)
class _Ranking:
    ranks: Mapping[str, int]
    pairs: tuple[ComparedPair, ...]
    common: int | None
    how: str
    values: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def boards_of(
    headlines: Sequence[Headline],
    benchmark: str,
    runs: Sequence[Run],
    options: StatisticsOptions,
    seconds: Mapping[tuple[str, str], str],
    known: Sequence[JudgeComparison] = (),
) -> list[Board]:
    """The boards of a benchmark, the default first.

    Args:
        headlines: what its report made.
        benchmark: its name.
        runs: one a judge.
        options: how many draws, the seed.
        seconds: by benchmark and judge, how long its runs took, in words.
        known: comparisons of this benchmark's judges that were made already.
    """
    took = {run.label: seconds.get((benchmark, run.label), "") for run in runs}
    return [
        _board(headline, benchmark, runs, options, took, known, number == 0 or len(headline.numbers) <= MOST_RANKED)
        for number, headline in enumerate(headlines)
    ]


def _board(
    headline: Headline,
    benchmark: str,
    runs: Sequence[Run],
    options: StatisticsOptions,
    seconds: Mapping[str, str],
    known: Sequence[JudgeComparison],
    tested: bool,
) -> Board:
    costs = {one.label: cost_of(_records(headline, runs, one.label)) for one in headline.numbers}
    able = [o.label for o in headline.numbers if not math.isnan(o.value) and costs[o.label].share <= SET_APART]
    untested = (
        f"Ranks are tested on the first number alone where there are more than {MOST_RANKED} rows: see vieval compare."
    )
    ranking = _ranked(headline, able, benchmark, options, known) if tested else _Ranking({}, (), None, untested)
    rows = [
        BoardRow(
            one,
            ranking.values.get(one.label, math.nan),
            ranking.ranks.get(one.label),
            costs[one.label],
            seconds.get(headline.judge or one.label, ""),
        )
        for one in headline.numbers
    ]
    return Board(headline, tuple(sorted(rows, key=_place)), ranking.pairs, ranking.common, ranking.how, ranking.notes)


def _records(headline: Headline, runs: Sequence[Run], label: str) -> list[Record]:
    of_judge = [run for run in runs if run.label == (headline.judge or label)]
    held = [record for run in of_judge for judged in run.records.values() for one in judged for record in one]
    return [record for record in held if not headline.judge or record.id.image_model == label]


def _place(row: BoardRow) -> tuple[bool, bool, int, float, str]:
    """Unranked rows last; ranked ones by rank, then by the number that the rank is about."""
    value = row.number.value if math.isnan(row.common) else row.common
    alone = row.rank is None and row.cost.share > SET_APART
    order = -value if not math.isnan(value) else math.inf
    return alone, row.rank is None, row.rank or 0, order, row.number.label


def _ranked(
    headline: Headline,
    able: Sequence[str],
    benchmark: str,
    options: StatisticsOptions,
    known: Sequence[JudgeComparison],
) -> _Ranking:
    if len(able) < 2:
        return _Ranking({}, (), None, f"There is no second {headline.entrant} to compare with.")
    whole = headline.compared(able)
    if whole.why:
        return _Ranking({}, (), None, f"Without ranks: {whole.why}.")
    own = [judge.own for judge in whole.judges if not judge.reason]
    if own and 2 * whole.used >= min(own):
        found = _known(known, whole) if len(able) > MOST_RANKED else None
        found = found or compare_judges(whole, benchmark, options, intervals=len(able) <= MOST_RANKED)
        ranks = {one.judge.label: one.rank for one in found.standings if one.rank is not None}
        values = {one.judge.label: one.estimate for one in found.standings if one.rank is not None}
        how = (
            f"Ranks are from paired permutation tests on the {whole.used} {whole.counted} that all ranked rows scored; p is "
            f"adjusted by Holm over all pairs, and rows that are not significantly different at {LEVEL} share a rank."
        )
        return _Ranking(ranks, found.pairs, whole.used, found.why or how, values, (*found.warnings, *whole.notes))
    return _two_by_two(headline, able, benchmark, options)


def _known(known: Sequence[JudgeComparison], compared: ComparedStatistic) -> JudgeComparison | None:
    """A comparison of this statistic, these judges and so these samples that was made already, without intervals."""
    for one in known:
        same = (one.compared.part, one.compared.aspect, one.compared.statistic, one.compared.used)
        labels = [{judge.label for judge in held.judges} for held in (one.compared, compared)]
        if (
            one.pairs
            and same == (compared.part, compared.aspect, compared.statistic, compared.used)
            and labels[0] == labels[1]
        ):
            return one
    return None


def _two_by_two(headline: Headline, able: Sequence[str], benchmark: str, options: StatisticsOptions) -> _Ranking:
    """Each two on what both scored, for judges that hardly judge the same samples."""
    tested: list[tuple[str, str, PairedComparison]] = []
    for both in combinations(able, 2):
        compared = headline.compared(both)
        for pair in compare_judges(compared, benchmark, options).pairs if compared.used else ():
            tested.append((pair.first, pair.second, pair.found))
    if not tested:
        return _Ranking({}, (), None, "Without ranks: no two of them scored the same samples.")
    adjusted = holm([found.p for *_, found in tested]).tolist()
    pairs = tuple(ComparedPair(*one, p) for one, p in zip(tested, adjusted, strict=True))
    beaten = [pair.second if pair.found.difference > 0 else pair.first for pair in pairs if pair.different]
    how = (
        "These did not judge the same samples, so each two are compared on what both scored, by paired permutation tests; p is "
        f"adjusted by Holm over all pairs. A rank is 1 and how many are significantly better at {LEVEL}: rows that share no "
        "samples are not told apart, and numbers of different samples are no order."
    )
    ranked = {label for pair in pairs for label in (pair.first, pair.second)}
    return _Ranking({label: 1 + beaten.count(label) for label in able if label in ranked}, pairs, None, how)
