"""Systems compared on items that stand by themselves, such as labelled pairs or contests: means,
and one correlation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.comparison import (
    CommonSamplesStatistic,
    ComparedStatistic,
    System,
    correlates,
    unranked_reason,
)
from vieval_plugin.stats.bootstrap import Seed
from vieval_plugin.stats.comparison import Bools, MeanDifference, paired_comparison
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.estimate import because
from vieval_plugin.stats.paired_correlations import CorrelationDifference


class JudgedItem(NamedTuple):
    """A system's value of an item."""

    #: Cluster of the item.
    group: str
    #: Its score, or 1 where the system is right and 0 where it is not.
    value: float
    #: Rating that scores are correlated with.
    human: float = math.nan
    #: Part of the item; a system without a value of a part is not ranked.
    part: str = ""
    #: Row and column in a table of the part's items, such as a prompt and an image model; by
    #: default one column has all.
    cell: tuple[str, str] = ("", "")
    #: Tags of the item.
    tags: tuple[str, ...] = ()


#: Items of a system by their names.
Items: TypeAlias = Mapping[str, JudgedItem]

PairedCoefficientName: TypeAlias = Literal["spearman", "pearson"]

#: Part, row and column of an item.
_Cell: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class PairedTestSpec:
    """The paired test of a statistic: `items` are a system's by their names, from the rows that the
    statistic is of.

    Their values' means are compared or, with a `coefficient`, their correlations with human
    ratings; `unit` is what items are called.
    """

    items: Callable[[Any], Items]
    coefficient: PairedCoefficientName | None = None
    unit: str = "samples"


def _values(items: Items, names: Sequence[str]) -> list[float]:
    return [items[name].value for name in names]


def _groups(items: Items, names: Sequence[str]) -> list[str]:
    return [items[name].group for name in names]


def compared_means(
    part: str,
    aspect: str,
    statistic: str,
    items: Mapping[str, Items],
    unit: str = "samples",
    entrants: str = "judges",
    total: int = 0,
    constants: Sequence[Mapping[str, float]] = (),
    notes: tuple[str, ...] = (),
) -> ComparedStatistic:
    """Systems compared by the mean of their values on common items, such as their accuracies.

    Args:
        part: the benchmark's.
        aspect: what is rated.
        statistic: what the mean is, in words.
        items: by the system's label, its items by their names.
        unit: what items are called.
        entrants: what systems are called.
        total: number of items that any system was asked about, where that may be more than any has.
        constants: values of answers that never look, by the names of items; a system stands beside
            the best on its own.
        notes: lines to be read beside the result.

    >>> right = {"a": JudgedItem("a", 1.0), "b": JudgedItem("b", 0.0)}
    >>> judges = {"first": right, "second": {"a": JudgedItem("a", 0.0)}}
    >>> compared_means("edit", "votes", "accuracy", judges).pair(0, 1).n
    1
    """
    labels = list(items)

    def pair(first: int, second: int) -> CommonSamplesStatistic:
        first_items = items[labels[first]]
        second_items = items[labels[second]]
        names = sorted(first_items.keys() & second_items.keys())
        if not names:
            return CommonSamplesStatistic(0)
        difference = MeanDifference(
            _values(first_items, names),
            _values(second_items, names),
            _groups(first_items, names),
        )
        return CommonSamplesStatistic(len(names), difference)

    def above_constant(index: int, seed: Seed) -> float:
        own_items = items[labels[index]]
        names = sorted(own_items)
        constant_values = ([constant[name] for name in names] for constant in constants)
        best_constant = max(constant_values, key=math.fsum)
        difference = MeanDifference(
            _values(own_items, names), best_constant, _groups(own_items, names)
        )
        result = paired_comparison(difference, 0, seed, intervals=False)
        if result.difference.value > 0:
            return result.p
        return 1.0

    compared = ComparedStatistic(
        part=part,
        aspect=aspect,
        statistic=statistic,
        systems=_systems(items, unit, total),
        pair=pair,
        unit=unit,
        entrants=entrants,
        notes=notes,
    )
    if constants:
        return replace(compared, above_constant=above_constant)
    return compared


def compared_correlations(
    part: str,
    aspect: str,
    statistic: str,
    items: Mapping[str, Items],
    coefficient: PairedCoefficientName = "spearman",
    total: int = 0,
    why_no_value: Callable[[Floats], str] = lambda human: "",
) -> ComparedStatistic:
    """Judges compared by the correlation of their scores with human ratings on common items,
    averaged over columns.

    Args:
        part: the benchmark's.
        aspect: what is rated.
        statistic: what is correlated, in words.
        items, total: as for `compared_means`.
        coefficient: `spearman` or `pearson`.
        why_no_value: the reason why a column is left out, from human ratings of its common items;
            empty where it counts.

    >>> scores = {str(n): JudgedItem(str(n), n, n % 3) for n in range(9)}
    >>> compared = compared_correlations("all", "SC", "correlation", {"first": scores, "second": scores}, "pearson")
    >>> round(compared.pair(0, 1).statistic.estimates()[0], 3)
    0.316
    """
    tables = _Tables.from_items(items)
    correlated = _CorrelatedItems(
        labels=list(items),
        tables=tables,
        coefficient=coefficient,
        why_no_value=why_no_value,
    )
    available_count = max(total, *map(len, items.values()), 0)
    systems = [correlated.system(index, available_count) for index in range(len(items))]
    pair = correlated.pair
    return ComparedStatistic(
        part=part,
        aspect=aspect,
        statistic=statistic,
        systems=tuple(systems),
        pair=pair,
        above_constant=correlates(pair),
    )


@dataclass(frozen=True)
class _CorrelatedItems:
    """Items of judges whose scores are correlated with human ratings, by column."""

    labels: Sequence[str]
    tables: _Tables
    coefficient: PairedCoefficientName
    #: Reason why a column is left out, from human ratings of its common items.
    why_no_value: Callable[[Floats], str]

    def system(self, index: int, available_count: int) -> System:
        """One judge on all that it scored."""
        common, why_not = self._common(index, index)
        n = int(common.sum())
        parts_with_value = set()
        all_parts: dict[str, None] = {}
        for (part, _), why in zip(self.tables.columns, why_not, strict=True):
            all_parts[part] = None
            if not why:
                parts_with_value.add(part)
        undefined = ""
        if not n:
            undefined = "no sample has a score"
        elif not parts_with_value:
            undefined = f"undefined for every image model ({why_not[0]})"
        missing_parts = [part for part in all_parts if part not in parts_with_value]
        unranked = unranked_reason(n, available_count, missing_parts)
        return System(
            label=self.labels[index],
            n=n,
            undefined=undefined,
            unranked=unranked,
        )

    def pair(self, first: int, second: int) -> CommonSamplesStatistic:
        """Two judges on what both scored."""
        tables = self.tables
        common, why_not = self._common(first, second)
        columns = [column for column, why in enumerate(why_not) if not why]
        compared = common[:, columns]
        if not compared.any():
            return CommonSamplesStatistic(0)
        rows = np.any(compared, axis=1)
        sides = (tables.scores[first], tables.scores[second], tables.human)
        first_scores, second_scores, human = (
            np.where(compared, side[:, columns], np.nan)[rows] for side in sides
        )
        difference = CorrelationDifference(
            first_scores,
            second_scores,
            human,
            list(compress(tables.groups, rows)),
            [tables.columns[column][0] for column in columns],
            coefficient=self.coefficient,
        )
        left_out = self._left_out(common, why_not)
        n = int(compared.sum())
        if first == second or not left_out:
            return CommonSamplesStatistic(n, difference)
        note = (
            f"not used to compare {self.labels[first]} and {self.labels[second]}: "
            f"{because(left_out)}"
        )
        return CommonSamplesStatistic(n, difference, notes=(note,))

    def _common(self, first: int, second: int) -> tuple[Bools, list[str]]:
        """Common items of two judges, and the reason why each column has no value."""
        first_scored = ~np.isnan(self.tables.scores[first])
        second_scored = ~np.isnan(self.tables.scores[second])
        common = first_scored & second_scored
        why_not = []
        for human, rows in zip(self.tables.human.T, common.T, strict=True):
            why_not.append(self.why_no_value(human[rows]))
        return common, why_not

    def _left_out(self, common: Bools, why_not: Sequence[str]) -> list[str]:
        """Columns with common items that have no value, each with the reason."""
        has_samples = np.any(common, axis=0)
        left_out = []
        for name, why, has in zip(
            self.tables.columns, why_not, has_samples, strict=True
        ):
            if why and has:
                left_out.append(f"{'/'.join(name)}: {why}")
        return left_out


class _Tables(NamedTuple):
    """Human ratings and the scores of each judge, tables of shape (rows, columns), NaN without
    an item.
    """

    human: Floats
    scores: tuple[Floats, ...]
    #: Cluster of each row.
    groups: tuple[tuple[str, str], ...]
    #: Part and name of each column.
    columns: tuple[tuple[str, str], ...]

    @classmethod
    def from_items(cls, items: Mapping[str, Items]) -> _Tables:
        """Return those of all items; rows are sorted, so that two judges' do not depend on a
        third.
        """
        by_cell = [_items_by_cell(label_items) for label_items in items.values()]
        all_items: dict[_Cell, JudgedItem] = {}
        for label_items in by_cell:
            all_items |= label_items
        groups = {}
        for part, row, column in sorted(all_items):
            group = all_items[part, row, column].group
            groups[part, row] = (part, group)
        columns = sorted({(part, column) for part, _, column in all_items})
        row_of = {name: number for number, name in enumerate(groups)}
        column_of = {name: number for number, name in enumerate(columns)}

        def table(cells: Mapping[_Cell, JudgedItem], field: str) -> Floats:
            array = np.full((len(groups), len(columns)), np.nan)
            for (part, row, column), item in cells.items():
                row_index = row_of[part, row]
                column_index = column_of[part, column]
                array[row_index, column_index] = getattr(item, field)
            return array

        human = table(all_items, "human")
        scores = tuple(table(label_items, "value") for label_items in by_cell)
        return cls(human, scores, tuple(groups.values()), tuple(columns))


def _items_by_cell(items: Items) -> dict[_Cell, JudgedItem]:
    """Items of a system by part, row and column; an item without a row has one of its own."""
    cells = {}
    for name, item in items.items():
        row, column = item.cell
        cells[item.part, row or name, column] = item
    return cells


def _systems(items: Mapping[str, Items], unit: str, total: int) -> tuple[System, ...]:
    available_count = max(total, *map(len, items.values()), 0)
    parts_of = {
        label: dict.fromkeys(item.part for item in label_items.values())
        for label, label_items in items.items()
    }
    parts = dict.fromkeys(chain.from_iterable(parts_of.values()))
    systems = []
    for label, system_items in items.items():
        n = len(system_items)
        undefined = ""
        missing_parts = [part for part in parts if part not in parts_of[label]]
        if not n:
            undefined = f"no {unit} with a score"
            missing_parts = []
        unranked = unranked_reason(n, available_count, missing_parts, unit)
        systems.append(
            System(
                label=label,
                n=n,
                undefined=undefined,
                unranked=unranked,
            )
        )
    return tuple(systems)
