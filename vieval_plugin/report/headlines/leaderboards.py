"""Leaderboard of a headline: its rows in order, with the ranks that pairwise tests leave and what each row cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vieval_plugin.meta_evaluation.comparison import LEVEL, Comparison, Standing, compare_systems
from vieval_plugin.meta_evaluation.headline import Breakdown, Headline
from vieval_plugin.records import Record, Run
from vieval_plugin.report.headlines.costs import Cost, cost_of
from vieval_plugin.report.headlines.one_answer import one_answer
from vieval_plugin.stats.comparison import PERMUTATIONS
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

MOST_INTERVALS = 6
"""With more rows than these, differences have no intervals and only a benchmark's first headline is tested."""


@dataclass(frozen=True)
class LeaderboardRow:
    """A system with its own estimate, its standing where systems were compared, and its cost.

    `one_answer` says in words that it nearly always answers alike; empty where it does not.
    """

    label: str
    estimate: Estimate
    standing: Standing | None
    cost: Cost
    seconds: str = ""
    one_answer: str = ""

    @property
    def warning(self) -> str:
        """Warnings to be shown beside the number: an answer that decides it, verdicts without a score."""
        return "; ".join(filter(None, (self.one_answer, self.cost.warning)))

    @property
    def rank(self) -> str:
        """The range of ranks that the tests leave; empty for a system without."""
        return self.standing.rank_text if self.standing else ""

    @property
    def unranked(self) -> str:
        """Reason why a system with a number has no rank; empty for the others."""
        return self.standing.system.undefined or self.standing.system.unranked if self.standing else ""


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """A headline's rows: ranked systems by their own number, then the others.

    `comparison` has the tests, None where none were made; `method` says how ranks came about.
    """

    headline: Headline
    rows: tuple[LeaderboardRow, ...]
    comparison: Comparison | None
    method: str = ""

    @property
    def ranked(self) -> list[LeaderboardRow]:
        """Rows with a rank, in order."""
        return [row for row in self.rows if row.rank]

    @property
    def separated(self) -> tuple[int, ...]:
        """Places in `rows` before which a line is drawn: every row above is significantly better than every one below."""
        return self.comparison.separated if self.comparison else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines to be read beside the ranks; those of single pairs stand in `vieval compare`."""
        return (*self.comparison.warnings(), *self.comparison.compared.notes) if self.comparison else ()

    def kinds_of(self, label: str) -> list[str]:
        """Task types, or parts, of which a system has a number, where the headline is broken down by them."""
        by_kind: Breakdown = next(iter(self.headline.breakdowns.values()), {})
        return [kind for kind, estimates in by_kind.items() if label in estimates and estimates[label].defined]

    def kinds_text(self, label: str) -> str:
        """`kinds_of` in words."""
        total = len(next(iter(self.headline.breakdowns.values()), {}))
        kinds = self.kinds_of(label)
        return f"all {total}" if len(kinds) == total > 1 else " ".join(kinds)

    @property
    def kinds_differ(self) -> bool:
        """True where some rows are of other task types than others."""
        return len({tuple(self.kinds_of(row.label)) for row in self.rows}) > 1


def leaderboards(
    headlines: Sequence[Headline],
    benchmark: str,
    runs: Sequence[Run],
    options: StatisticsOptions,
    seconds: Mapping[tuple[str, str], str],
) -> list[Leaderboard]:
    """Return the leaderboards of a benchmark, the default first.

    Args:
        headlines: from the benchmark's report.
        benchmark: its name.
        runs: one a judge.
        options: number of resamples, the seed.
        seconds: by benchmark and judge, how long its runs took, in words.
    """
    seconds_of = {run.label: seconds.get((benchmark, run.label), "") for run in runs}
    return [
        _leaderboard(
            headline, benchmark, runs, options, seconds_of, number == 0 or len(headline.estimates) <= MOST_INTERVALS
        )
        for number, headline in enumerate(headlines)
    ]


def _leaderboard(
    headline: Headline,
    benchmark: str,
    runs: Sequence[Run],
    options: StatisticsOptions,
    seconds: Mapping[str, str],
    tested: bool,
) -> Leaderboard:
    comparison, with_intervals = None, len(headline.estimates) <= MOST_INTERVALS
    if tested and len(headline.estimates) > 1:
        comparison = compare_systems(headline.compared(), benchmark, options, intervals=with_intervals)
    standings = {standing.system.label: standing for standing in comparison.standings} if comparison else {}
    place = {label: number for number, label in enumerate(standings)}
    records = {label: _records(headline, runs, label) for label in headline.estimates}
    rows = [
        LeaderboardRow(
            label,
            estimate,
            standings.get(label),
            cost_of(records[label]),
            seconds.get(headline.judge or label, ""),
            "" if headline.judge else one_answer(records[label], headline.aspect),
        )
        for label, estimate in headline.estimates.items()
    ]
    rows.sort(key=lambda row: (math.isnan(row.estimate.value), place.get(row.label, 0), -row.estimate.value))
    return Leaderboard(headline, tuple(rows), comparison, _method(comparison) if comparison else "")


def _records(headline: Headline, runs: Sequence[Run], label: str) -> list[Record]:
    of_judge = [run for run in runs if run.label == (headline.judge or label)]
    records = [record for run in of_judge for rows in run.records.values() for judged in rows for record in judged]
    return [record for record in records if not headline.judge or record.id.image_model == label]


def _method(comparison: Comparison) -> str:
    if comparison.reason:
        return f"Without ranks: {comparison.reason}."
    compared = comparison.compared
    return (
        f"Each two {compared.entrants} are compared on the {compared.unit} that both scored, by paired permutation tests of at "
        f"most {PERMUTATIONS:,} permutations; p is adjusted ({comparison.family}). A rank such as 2-4 is the range that "
        f"significant differences (p at most {LEVEL}) leave. Ranked are {compared.entrants} with a value for every part and a "
        f"score for half of the {compared.unit} or more."
    )
