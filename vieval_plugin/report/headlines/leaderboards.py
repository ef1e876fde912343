"""Leaderboard of a headline: its rows in order, with the ranks that pairwise tests leave and what each row cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vieval_plugin.meta_evaluation.comparison import (
    LEVEL,
    ComparedStatistic,
    Comparison,
    Standing,
    compare_systems,
    not_above_constant,
    own_standings,
)
from vieval_plugin.meta_evaluation.headline import Breakdown, Headline
from vieval_plugin.records import OWN, YOUR_IMAGES, Record, Run
from vieval_plugin.report.headlines.costs import Cost, cost_of
from vieval_plugin.report.headlines.one_answer import one_answer
from vieval_plugin.stats.comparison import PERMUTATIONS
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import Policy, StatisticsOptions

PLACE_DEPENDS, NOT_ABOVE_CONSTANT = "place depends on failures", "not above the constant"

_MARK_NOTES = {
    PLACE_DEPENDS: "by its own number it has another place where failed verdicts count as the lowest score (`worst`) than where "
    "they are left out (`drop`)",
    NOT_ABOVE_CONSTANT: "no test shows, with p at most .05, that it is above the best answer that never looks",
}

MOST_ROWS_WITH_INTERVALS = 6
"""With more rows than these, differences have no intervals and only a benchmark's first headline is tested."""


@dataclass(frozen=True)
class LeaderboardRow:
    """A system with its own estimate, its standing where systems were compared, and its cost.

    `one_answer` says in words that it nearly always answers alike; empty where it does not. `positions` are those by its
    own number under the policies `drop` and `worst`, empty where it is not ranked; None where no verdict failed.
    `not_above_constant` says that no test shows it to be above an answer that never looks.
    """

    label: str
    estimate: Estimate
    standing: Standing | None
    cost: Cost
    seconds: str = ""
    one_answer: str = ""
    positions: tuple[str, str] | None = None
    not_above_constant: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        """Marks that every table shows in the row; `Leaderboard.mark_notes` says what they mean."""
        marks = []
        if self.positions and self.positions[0] != self.positions[1]:
            dropped, worst = (position or "not ranked" for position in self.positions)
            marks.append(f"{PLACE_DEPENDS}: {dropped} under drop, {worst} under worst")
        return (*marks, *((NOT_ABOVE_CONSTANT,) if self.not_above_constant else ()))

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

    `comparison` has the tests, None where none were made; `method` says how ranks came about. `against` says in words
    what the statistic compares with: whose ratings of which benchmark, or whose scores of which images these are.
    """

    headline: Headline
    rows: tuple[LeaderboardRow, ...]
    comparison: Comparison | None
    method: str = ""
    against: str = ""

    @property
    def ranked(self) -> list[LeaderboardRow]:
        """Rows with a rank, in order."""
        return [row for row in self.rows if row.rank]

    @property
    def separated(self) -> tuple[int, ...]:
        """Positions in `rows` before which a line is drawn: every row above is significantly better than every one below."""
        return self.comparison.separated if self.comparison else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines to be read beside the ranks; those of single pairs stand in `vieval compare`."""
        return (*self.comparison.warnings(), *self.comparison.compared.notes) if self.comparison else ()

    @property
    def mark_notes(self) -> tuple[str, ...]:
        """A line for each mark of any row that says what it means."""
        marks = [mark for row in self.rows for mark in row.marks]
        return tuple(f"{name}: {text}" for name, text in _MARK_NOTES.items() if any(m.startswith(name) for m in marks))

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
    synthetic: bool = False,
) -> list[Leaderboard]:
    """Return the leaderboards of a benchmark, the default first.

    Args:
        headlines: from the benchmark's report.
        benchmark: its name.
        runs: one a judge.
        options: number of resamples, the seed.
        seconds: by benchmark and judge, how long its runs took, in words.
        synthetic: whether its ratings follow from known defects, and are nobody's.
    """
    seconds_of = {run.label: seconds.get((benchmark, run.label), "") for run in runs}
    return [
        _leaderboard(
            headline,
            benchmark,
            runs,
            options,
            seconds_of,
            number == 0 or len(headline.estimates) <= MOST_ROWS_WITH_INTERVALS,
            _against(headline, benchmark, runs, synthetic),
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
    against: str,
) -> Leaderboard:
    compared, comparison = headline.compared(options), None
    comparable = len(headline.estimates) > 1
    if tested and comparable:
        comparison = compare_systems(
            compared, benchmark, options, intervals=len(headline.estimates) <= MOST_ROWS_WITH_INTERVALS
        )
    ordered = comparison.standings if comparison else own_standings(compared)
    standings = {standing.system.label: standing for standing in ordered}
    position = {label: number for number, label in enumerate(standings)}
    records = {label: _records(headline, runs, label) for label in headline.estimates}
    costs = {label: cost_of(judged) for label, judged in records.items()}
    has_numbers = any(estimate.defined for estimate in headline.estimates.values())
    failed = comparable and has_numbers and any(cost.failed for cost in costs.values())
    positions = _ranks(headline, compared, options) if failed else {}
    not_above = comparison.not_above_constant if comparison else not_above_constant(compared, benchmark, options)
    rows = [
        LeaderboardRow(
            label,
            estimate,
            standings.get(label),
            costs[label],
            seconds.get(headline.judge or label, ""),
            "" if headline.judge else one_answer(records[label], headline.aspect),
            positions.get(label),
            label in not_above if compared.above_constant else _not_above_by_interval(headline, estimate),
        )
        for label, estimate in headline.estimates.items()
    ]
    rows.sort(key=lambda row: (math.isnan(row.estimate.value), position.get(row.label, 0), -row.estimate.value))
    method = _comparison_method_text(comparison) if comparison else ""
    return Leaderboard(headline, tuple(rows), comparison, method, against)


def _against(headline: Headline, benchmark: str, runs: Sequence[Run], synthetic: bool) -> str:
    if not headline.judge:
        return f"the known defects of {benchmark}" if synthetic else f"annotators on {benchmark}"
    name = next((str(run.name) for run in runs if run.label == headline.judge), headline.judge)
    return f"{YOUR_IMAGES if benchmark == OWN else f'the images of {benchmark}'}, as judged by {name}"


def _ranks(headline: Headline, compared: ComparedStatistic, options: StatisticsOptions) -> dict[str, tuple[str, str]]:
    """Places by own number under `drop` and `worst`, by label; empty for a system that is not ranked."""

    def positions(policy: Policy) -> dict[str, str]:
        statistic = compared if policy == options.policy else headline.compared(replace(options, policy=policy))
        labels = [s.system.label for s in own_standings(statistic) if not (math.isnan(s.value) or s.system.unranked)]
        return {label: str(position) for position, label in enumerate(labels, start=1)}

    dropped, worst = positions("drop"), positions("worst")
    return {label: (dropped.get(label, ""), worst.get(label, "")) for label in headline.estimates}


def _not_above_by_interval(headline: Headline, estimate: Estimate) -> bool:
    """True where a statistic without a test against its constant has an interval that is not above that."""
    constants = [reference for label, reference in headline.references.items() if "ceiling" not in label]
    return estimate.defined and any(not estimate.low > constant.value for constant in constants)


def _records(headline: Headline, runs: Sequence[Run], label: str) -> list[Record]:
    of_judge = [run for run in runs if run.label == (headline.judge or label)]
    records = [record for run in of_judge for rows in run.records.values() for judged in rows for record in judged]
    return [record for record in records if not headline.judge or (record.id.image_model or YOUR_IMAGES) == label]


def _comparison_method_text(comparison: Comparison) -> str:
    if comparison.reason:
        return f"Without ranks: {comparison.reason}."
    compared = comparison.compared
    return (
        f"Each two {compared.entrants} are compared on the {compared.unit} that both scored, by paired permutation tests of at "
        f"most {PERMUTATIONS:,} permutations; p is adjusted ({comparison.family}). A rank such as 2-4 is the range that "
        f"significant differences (p at most {LEVEL}) leave. Ranked are {compared.entrants} with a value for every part and a "
        f"score for half of the {compared.unit} or more."
    )
