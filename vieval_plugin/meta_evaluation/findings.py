"""Numbers of systems and leaderboards of them: the two long tables that everything which is shown
asks.

A benchmark's family makes `Number`s and says by which statistics systems are ranked; judges and
generators are systems alike. `rows.py` has the rows that files hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.comparison import (
    ComparedStatistic,
    Comparison,
)
from vieval_plugin.meta_evaluation.costs import Cost
from vieval_plugin.meta_evaluation.measures import AGREEMENT, Measure
from vieval_plugin.meta_evaluation.tables import (
    Key,
    Table,
    interval_text,
    number,
    percent_text,
)
from vieval_plugin.records import OWN, YOUR_IMAGES, JudgeName
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.yaml_json import read_yaml

#: The part of numbers over all parts.
ALL = "all"
#: The constant baseline of a correlation, which is 0.
CONSTANT_LABEL = "best constant: the same score for all"
CEILING_LABEL = "human ceiling: each annotator against the others"

_ASPECTS = ("SC", "PQ", "O")
_WORDS = re.compile("_(?!way)")
#: Statistics that are their own n.
_COUNTS = ("scored", "exact", "failed", "answered", "left_out")

Role: TypeAlias = Literal["judge", "generator", "baseline", "ceiling"]
_Names: TypeAlias = tuple[str, ...]
#: Part, aspect, statistic, judge, breakdown and its value.
Place: TypeAlias = tuple[str, str, str, JudgeName | None, str, str]


@dataclass(frozen=True, eq=False)
class Number:
    """A system's number by a statistic, on a part or on what has one value of a breakdown there."""

    #: The system: a judge, a generator, or what they stand beside.
    system: str
    #: Its value, on all that it has a score of.
    estimate: Estimate
    #: The benchmark's part, or `all`.
    part: str
    #: The rated aspect, or `votes`.
    aspect: str
    statistic: str
    #: Kind of system.
    role: Role = "judge"
    #: Judge whose scores they are, where the system is a generator.
    judge: JudgeName | None = None
    #: Breakdown, such as `category`, or empty.
    breakdown: str = ""
    #: Value of the breakdown.
    value: str = ""
    #: Best and worst rank that the tests leave, None without a rank.
    ranks: tuple[int, int] | None = None
    #: Reason why a system with a number has no rank.
    unranked: str = ""
    #: Samples or prompts that it was asked about, 0 where nobody counts them.
    total: int = 0
    #: Verdicts by status.
    statuses: Mapping[Status, int] = field(default_factory=dict)
    #: Its cell in `cells.json`, None without one.
    key: Key | None = None
    #: Factor between the estimate and its cell, 100 where cells are percent.
    scale: int = 1

    @property
    def place(self) -> Place:
        """Quantity that it measures, whichever system's."""
        return (
            self.part,
            self.aspect,
            self.statistic,
            self.judge,
            self.breakdown,
            self.value,
        )

    @property
    def failed(self) -> int:
        """The number of verdicts without a score, of samples that the judge applies to."""
        return sum(self._failures.values())

    @property
    def failures(self) -> str:
        """Verdicts without a score by status, in words."""
        return ", ".join(f"{status} {n}" for status, n in self._failures.items())

    @property
    def _failures(self) -> dict[Status, int]:
        return {status: n for status, n in self.statuses.items() if not status.usable}

    @property
    def reason(self) -> str:
        """Reason why there is no value, or no rank; empty where there are both."""
        return self.unranked or self.estimate.reason


#: The way in which a layout writes an estimate.
Cell: TypeAlias = Literal["value", "interval", "percent"]


@dataclass(frozen=True)
class Layout:
    """A table as a query of numbers: which of them, what a row and a column are, how a cell is
    written.
    """

    #: Stem of its CSV.
    name: str
    title: str
    #: Patterns of the statistics whose numbers it has, in the order of columns where these are
    #: statistics.
    statistics: tuple[str, ...]
    #: Fields of numbers that name a row, by their heading.
    rows: Mapping[str, str]
    #: Fields of numbers that name a column.
    columns: tuple[str, ...] = ("aspect",)
    #: `all`, a part, or `each` for all but `all`; empty for any.
    part: str = ""
    #: Aspect that its numbers are of; empty for any.
    aspect: str = ""
    breakdown: str = ""
    #: Roles that its numbers have; empty for all.
    roles: tuple[Role, ...] = ()
    #: Headings of columns that are not called by the field.
    words: Mapping[str, str] = field(default_factory=dict)
    #: Way to write estimates.
    cell: Cell = "value"
    #: Decimals of values.
    digits: int = 4
    #: Statistic without a value of which there is no table; empty for none.
    needs: str = ""
    #: Counts: `row` for the largest n of a row, `cell` for one beside each cell.
    n: Literal["", "row", "cell"] = ""

    def table(self, numbers: Iterable[Number]) -> Table:
        """The table, in the order in which rows come among the numbers; without rows where none
        matches.
        """
        by_row = self._cells_by_row(numbers)
        column_names = dict.fromkeys(chain.from_iterable(by_row.values()))
        columns = sorted(column_names, key=self._position)
        header = [*self.rows]
        if self.n == "row":
            header.append("n")
        for column in columns:
            if self._has_count(column):
                header.append("n")
            header.append(self._heading(column))
        orders = [list(dict.fromkeys(names)) for names in zip(*by_row, strict=True)]

        def place(row: _Names) -> list[int]:
            return [order.index(name) for order, name in zip(orders, row, strict=True)]

        rows = []
        for row in sorted(by_row, key=place):
            texts = self._row_texts(row, by_row[row], columns)
            rows.append(tuple(texts))
        return Table(
            name=self.name,
            title=self.title,
            header=tuple(header),
            rows=tuple(rows),
        )

    def _heading(self, column: _Names) -> str:
        headings = []
        for name in column:
            spaced = _WORDS.sub(" ", name).replace("_way", "-way")
            headings.append(self.words.get(name, spaced))
        return " ".join(headings)

    def _cells_by_row(
        self, numbers: Iterable[Number]
    ) -> dict[_Names, dict[_Names, Number]]:
        by_row: dict[_Names, dict[_Names, Number]] = {}
        candidates = list(filter(self._has, numbers))
        if self.needs and not any(map(self._is_needed, candidates)):
            return by_row
        for candidate in candidates:
            row = _field_texts(candidate, self.rows.values())
            column = _field_texts(candidate, self.columns)
            by_row.setdefault(row, {})[column] = candidate
        return by_row

    def _is_needed(self, candidate: Number) -> bool:
        if candidate.statistic != self.needs or candidate.role != "judge":
            return False
        return candidate.estimate.defined

    def _row_texts(
        self, row: _Names, cells: dict[_Names, Number], columns: list[_Names]
    ) -> list[str]:
        texts = [*row]
        if self.n == "row":
            largest_n = max(cell.estimate.n for cell in cells.values())
            texts.append(str(largest_n))
        for column in columns:
            cell = cells.get(column)
            if self._has_count(column):
                texts.append(str(cell.estimate.n) if cell else "")
            texts.append(self._text(cell))
        return texts

    def _has_count(self, column: _Names) -> bool:
        return self.n == "cell" and not set(column) & set(_COUNTS)

    def _position(self, column: _Names) -> list[int]:
        """The place of a column: by each of its names, that of its pattern, or of a usual
        aspect.
        """
        positions = []
        for field_name, name in zip(self.columns, column, strict=True):
            order = self.statistics
            if field_name != "statistic":
                order = _ASPECTS
            positions.append(_pattern_index(name, order))
        return positions

    def _has(self, candidate: Number) -> bool:
        if self.part not in ("", "each", candidate.part):
            return False
        if self.part == "each" and candidate.part == ALL:
            return False
        if self.aspect not in ("", candidate.aspect):
            return False
        if self.breakdown != candidate.breakdown:
            return False
        if self.roles and candidate.role not in self.roles:
            return False
        return any(
            fnmatchcase(candidate.statistic, pattern) for pattern in self.statistics
        )

    def _text(self, candidate: Number | None) -> str:
        if candidate is None:
            return ""
        estimate = candidate.estimate
        if candidate.statistic in _COUNTS:
            if candidate.total:
                return f"{estimate.n} of {candidate.total}"
            return str(estimate.n)
        if self.cell == "value":
            return number(estimate, self.digits)
        if self.cell == "percent":
            return percent_text(estimate)
        return interval_text(estimate, self.digits)


def _field_texts(number: Number, names: Iterable[str]) -> _Names:
    return tuple(str(getattr(number, name)) for name in names)


@cache
def _pattern_index(name: str, patterns: Sequence[str]) -> int:
    """Index of the first pattern that a name matches, or the number of patterns."""
    for index, pattern in enumerate(patterns):
        if fnmatchcase(name, pattern):
            return index
    return len(patterns)


def layouts(family: str) -> tuple[Layout, ...]:
    """The tables of a family of benchmarks, as `layouts.yaml` describes them."""
    text = Path(__file__).with_name("layouts.yaml").read_text(encoding="utf-8")
    described: dict[str, dict[str, Any]] = read_yaml(text)[family]
    for fields in described.values():
        for key, value in fields.items():
            if isinstance(value, list):
                fields[key] = tuple(value)
    return tuple(Layout(name, **fields) for name, fields in described.items())


@dataclass(frozen=True, eq=False)
class RankedStatistic:
    """A statistic by which systems are put in order: which numbers these are, and the test of
    each two systems.
    """

    part: str
    aspect: str
    statistic: str
    #: The statistic in a word, as a sentence has it.
    measured: str
    #: The statistic in words.
    title: str
    #: Reason why it is this one.
    why: str
    #: Lowest and highest value that it can have.
    ends: tuple[float, float]
    #: Statistic of the paired tests under a failure policy.
    compared: Callable[[StatisticsOptions], ComparedStatistic]
    #: References for systems: baselines and the human ceiling.
    references: tuple[Number, ...] = ()
    #: False for one that `vieval compare` alone shows.
    is_headline: bool = True
    #: Correlation of a system, by its label, with the other annotators, less that of an annotator,
    #: on the samples that both rated; None where there is nothing to compare.
    ceiling: Callable[[str], Estimate | None] | None = None
    #: The same statistic on one part of those that it is over; None where it is of one part.
    statistic_in_part: Callable[[str, StatisticsOptions], ComparedStatistic] | None = (
        None
    )
    #: Further choices behind it, such as ties, by name.
    choice: Mapping[str, str] = field(default_factory=dict)
    #: Breakdown whose values the parts are, where it is over all of them; empty where parts break
    #: nothing down.
    parts: str = ""
    #: Judge whose scores they are, where the systems are generators.
    judge: JudgeName | None = None
    #: Breakdown of whose one value they are, or empty.
    breakdown: str = ""
    value: str = ""
    #: Measure, with the words of its answers.
    measure: Measure = AGREEMENT

    def has(self, number: Number) -> bool:
        """True for a number of a system that this ranks."""
        key = (
            self.part,
            self.aspect,
            self.statistic,
            self.judge,
            self.breakdown,
            self.value,
        )
        return number.place == key and number.role in ("judge", "generator")


@dataclass(frozen=True, eq=False)
class Findings:
    """Findings of a family in the verdicts of a benchmark."""

    numbers: tuple[Number, ...]
    #: Statistics by which systems are ranked, the default first.
    ranked: tuple[RankedStatistic, ...] = ()
    #: Tables as queries of the numbers.
    layouts: tuple[Layout, ...] = ()
    #: Tables of what is no number.
    texts: tuple[Table, ...] = ()
    #: Origin of tables that are called by a number.
    paper: str = ""

    def __add__(self, other: Findings) -> Findings:
        """The findings of both, these first."""
        return Findings(
            numbers=(*self.numbers, *other.numbers),
            ranked=(*self.ranked, *other.ranked),
            layouts=(*self.layouts, *other.layouts),
            texts=(*self.texts, *other.texts),
            paper=self.paper or other.paper,
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables that have a row."""
        number_tables = (layout.table(self.numbers) for layout in self.layouts)
        tables = (*number_tables, *self.texts)
        return tuple(table for table in tables if table.rows)

    @property
    def cells(self) -> dict[Key, float]:
        """The numbers by the cells of `cells.json`."""
        return {
            number.key: number.scale * number.estimate.value
            for number in self.numbers
            if number.key
        }

    @property
    def reasons(self) -> dict[Key, str]:
        """Reasons why undefined cells are undefined."""
        return {
            number.key: number.estimate.reason
            for number in self.numbers
            if number.key and not number.estimate.defined
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Leaderboard(RankedStatistic):
    """Systems in order by a statistic, with the groups that paired tests cannot tell apart."""

    benchmark: str
    #: Numbers of the systems: ranked ones by their own number, then the others.
    numbers: tuple[Number, ...]
    #: Tests of each two; without pairs its `reason` says why.
    comparison: Comparison
    #: By breakdown and value, the estimates of systems.
    breakdowns: Mapping[str, Mapping[str, Mapping[str, Estimate]]] = field(
        default_factory=dict
    )
    #: Whose ratings it compares with.
    against: str = "annotators"
    #: Outcomes and cost of verdicts by system.
    costs: Mapping[str, Cost] = field(default_factory=dict)
    #: Failed verdicts by status, and all verdicts; one on a contest counts once.
    failures: Mapping[str, int] = field(default_factory=dict)
    verdicts: int = 0
    #: Sentence on a system that nearly always answers alike.
    same_answers: Mapping[str, str] = field(default_factory=dict)
    #: Places by own number under the policies `drop` and `worst`, of boards with failures.
    positions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    #: Systems that are not shown to be above their constant baseline.
    not_above_constant: frozenset[str] = frozenset()

    @property
    def entrants(self) -> str:
        """Name of the systems, `judges` or `generators`."""
        return self.comparison.compared.entrants

    @property
    def unit(self) -> str:
        """Name of the counted unit."""
        return self.comparison.compared.unit

    @property
    def ranked(self) -> list[Number]:
        """Numbers with a rank, in order."""
        return [number for number in self.numbers if number.ranks]

    @property
    def ranks_generators(self) -> bool:
        """True where the systems are generators."""
        return self.judge is not None

    @property
    def defined(self) -> list[Number]:
        """Numbers that have a value."""
        return [number for number in self.numbers if number.estimate.defined]

    def reasons_of(self, systems: Collection[str]) -> list[str]:
        """Reasons why some of systems have no number, or no rank."""
        return [
            f"{number.system}: {number.reason}"
            for number in self.numbers
            if number.system in systems and number.reason
        ]

    def number_of(self, system: str) -> Number:
        """The number of a system; KeyError without one."""
        by_system = {number.system: number for number in self.numbers}
        return by_system[system]


def benchmark_title(benchmark: str) -> str:
    """The name of a benchmark as a title begins with it.

    >>> benchmark_title("own"), benchmark_title("imagenhub")
    ('Your images', 'imagenhub')
    """
    if benchmark == OWN:
        return YOUR_IMAGES.capitalize()
    return benchmark


def preferred(aspects: Sequence[str]) -> list[str]:
    """Aspects in the order in which they come: O before SC before PQ before others.

    >>> preferred(["SC", "PQ", "O"])
    ['O', 'SC', 'PQ']
    """
    return sorted(aspects, key=_usual_place)


def _usual_place(aspect: str) -> tuple[int, str]:
    usual = ("O", "SC", "PQ")
    place = len(usual)
    if aspect in usual:
        place = usual.index(aspect)
    return place, aspect
