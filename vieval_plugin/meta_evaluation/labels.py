"""The report of benchmarks with labels, preferences or human scores of their own kind: one row a part, judge and aspect."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.headline import Headline, HeadlineNumber
from vieval_plugin.meta_evaluation.label_statistics import (
    ASPECT,
    STATISTICS,
    compared_aspect,
    compared_with_labels,
    label_statistics,
    label_statistics_by_tag,
    of_aspect,
)
from vieval_plugin.meta_evaluation.observations import Observation, Summary, observe
from vieval_plugin.meta_evaluation.reports import Rating
from vieval_plugin.meta_evaluation.tables import Key, Table, Tables, with_interval
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

UNSEEN: Mapping[str, float] = MappingProxyType(
    {
        "pearson": 0.0,
        "spearman": 0.0,
        "kendall": 0.0,
        "auroc": 0.5,
        "preference_accuracy": 0.5,
        "text_score": 1 / 4,
        "image_score": 1 / 4,
        "group_score": 1 / 6,
    }
)
"""Mean of a constant or random baseline, by statistic. Source of the last three: Thrush et al., Winoground (2022)."""


def label_headlines(
    statistics: Sequence[str],
    summaries: Mapping[tuple[str, str], Summary],
    tagged: Mapping[tuple[str, str], Mapping[str, Summary]],
    runs: Sequence[Run],
    options: StatisticsOptions,
    aspect: str = ASPECT,
) -> tuple[Headline, ...]:
    """Headlines, a part each.

    Args:
        statistics: those of the benchmark, the first of which is taken.
        summaries: by part and judge.
        tagged: the same by tag.
        runs: one a judge.
        options: what failed verdicts are.
        aspect: what people rated.
    """
    statistic = statistics[0]
    parts = list(dict.fromkeys(part for part, _ in summaries))
    return tuple(_headline(statistic, part, summaries, tagged, runs, options, len(parts) > 1, aspect) for part in parts)


def _headline(
    statistic: str,
    part: str,
    summaries: Mapping[tuple[str, str], Summary],
    tagged: Mapping[tuple[str, str], Mapping[str, Summary]],
    runs: Sequence[Run],
    options: StatisticsOptions,
    several: bool,
    aspect: str,
) -> Headline:
    labels = [label for judged_part, label in summaries if judged_part == part]
    words = dict.fromkeys(tag for label in labels for tag in tagged.get((part, label), {}))
    by_tag = {
        word: [
            _number(label, tagged[part, label][word], statistic)
            for label in labels
            if word in tagged.get((part, label), {})
        ]
        for word in words
    }
    unseen = UNSEEN.get(statistic)
    nothing = HeadlineNumber("scores that never look", unseen, math.nan, math.nan, 0) if unseen is not None else None
    correlated = statistic in ("pearson", "spearman", "kendall")
    return Headline(
        aspect,
        f"{statistic.replace('_', ' ')}{f', {part}' if several else ''}",
        "It is the first of the statistics that this benchmark was published with.",
        "samples",
        (-1.0 if correlated else 0.0, 1.0),
        tuple(_number(label, summaries[part, label], statistic) for label in labels),
        lambda: _compared(statistic, part, runs, options, aspect),
        (nothing,) if nothing else (),
        {"tag": by_tag} if by_tag else {},
    )


def _number(label: str, summary: Summary, statistic: str) -> HeadlineNumber:
    estimate = summary.estimates[statistic]
    return HeadlineNumber(label, estimate.value, estimate.low, estimate.high, summary.scored, estimate.reason)


def _compared(
    statistic: str, part: str, runs: Sequence[Run], options: StatisticsOptions, aspect: str
) -> ComparedStatistic:
    judging = [run for run in runs if part in run.records]
    [compared] = [
        statistic
        for statistic in compared_with_labels((part,), judging, (statistic,), options, aspect)
        if statistic.part == part
    ]
    return compared


@dataclass(frozen=True)
class WithLabels:
    """Some of the statistics of `label_statistics.STATISTICS`, on each of the `aspects` that people rated.

    >>> WithLabels(("auc",))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: no statistic 'auc'; known: pearson, spearman, kendall, ...
    """

    statistics: tuple[str, ...]
    aspects: tuple[str, ...] = (ASPECT,)

    def __post_init__(self) -> None:
        if unknown := [statistic for statistic in self.statistics if statistic not in STATISTICS]:
            raise ValueError(f"no statistic {unknown[0]!r}; known: {', '.join(STATISTICS)}")

    def names(self, rating: Rating) -> tuple[str, ...]:
        """Each statistic with the ends of its interval, and how many samples have a score; the same for all judges.

        Where people rated several aspects, those that the judge rates, by aspect.

        >>> WithLabels(("auroc",)).names(Rating(("SC",)))
        ('auroc_value', 'auroc_ci_low', 'auroc_ci_high', 'scored_count')
        >>> WithLabels(("spearman",), ("SC", "PQ")).names(Rating(("PQ", "O")))
        ('PQ_spearman_value', 'PQ_spearman_ci_low', 'PQ_spearman_ci_high', 'scored_count')
        """
        named = [
            f"{self._named(aspect, statistic)}_{what}"
            for aspect in self._of(rating.aspects, rating.against_all)
            for statistic in self.statistics
            for what in ("value", "ci_low", "ci_high")
        ]
        return (*named, "scored_count")

    def shown(self, rating: Rating) -> tuple[str, ...]:
        """Each statistic, by aspect where people rated several.

        >>> WithLabels(("pearson", "kendall")).shown(Rating(("SC",)))
        ('pearson_value', 'kendall_value')
        """
        return tuple(
            f"{self._named(aspect, statistic)}_value"
            for aspect in self._of(rating.aspects, rating.against_all)
            for statistic in self.statistics
        )

    def summarise(
        self,
        observations: tuple[Observation, ...],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> Summary:
        """A part's statistics; see `label_statistics`. Of several aspects, `scored` is the number of the one with fewest."""
        summary_by_aspect = self._summaries(
            observations, rating.aspects, rating.against_all, f"{benchmark}/{part}", options
        )
        estimates = {
            self._named(aspect, statistic): estimate
            for aspect, summary in summary_by_aspect.items()
            for statistic, estimate in summary.estimates.items()
        }
        fewest = min(summary_by_aspect.values(), key=lambda summary: summary.scored, default=None)
        scored, exact = (fewest.scored, fewest.exact) if fewest else (0, 0)
        return Summary({}, Counter(o.status for o in observations), options, estimates, scored, exact)

    def tables(self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions) -> Tables:
        """A row a part, judge and aspect, one a skill where samples have tags, and the numbers as cells (`statistics`)."""
        rows: list[tuple[str, ...]] = []
        by_skill: list[tuple[str, ...]] = []
        cells: dict[Key, float] = {}
        reasons: dict[Key, str] = {}
        summaries: dict[str, dict[tuple[str, str], Summary]] = {aspect: {} for aspect in self.aspects}
        by_tag: dict[str, dict[tuple[str, str], dict[str, Summary]]] = {aspect: {} for aspect in self.aspects}
        for run in runs:
            for part, judged in run.records.items():
                observed = tuple(observe(records) for records in judged)
                name = f"{benchmark}/{part}"
                summary_by_aspect = self._summaries(observed, run.aspects, run.against_all, name, options)
                for aspect, summary in summary_by_aspect.items():
                    row_head = (part, run.label, *([aspect] if len(self.aspects) > 1 else []))
                    summaries[aspect][part, run.label] = summary
                    rows.append((*row_head, *_cells(summary)))
                    for statistic, estimate in summary.estimates.items():
                        key = Key("statistics", part, "", run.label, statistic, aspect)
                        cells[key] = estimate.value
                        reasons |= {key: estimate.reason} if estimate.reason else {}
                    scored = compared_aspect(aspect, run.aspects, run.against_all)
                    tagged = label_statistics_by_tag(
                        of_aspect(observed, aspect, scored), self.statistics, name, options
                    )
                    by_tag[aspect][part, run.label] = tagged
                    by_skill += [(*row_head, tag, *_cells(of_tag)) for tag, of_tag in tagged.items()]
        row_head = ("task", "judge", *(["aspect"] if len(self.aspects) > 1 else []))
        header = ("scored", "exact", *self.statistics)
        tables = (
            Table("statistics", "Statistics [95% interval]", (*row_head, *header), tuple(rows)),
            Table("skills", "By skill", (*row_head, "skill", *header), tuple(by_skill)),
        )
        headlines = tuple(
            headline
            for aspect in self.aspects
            for headline in label_headlines(self.statistics, summaries[aspect], by_tag[aspect], runs, options, aspect)
        )
        return Tables(tuple(table for table in tables if table.rows), cells, reasons=reasons, headlines=headlines)

    def compared(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Sequence[ComparedStatistic]:
        """Each aspect, part and statistic that has a paired test; see `compared_with_labels`."""
        return [
            statistic
            for aspect in self.aspects
            for statistic in compared_with_labels(parts, runs, self.statistics, options, aspect)
        ]

    def _of(self, aspects: Sequence[str], against_all: bool) -> tuple[str, ...]:
        """The aspects that a judge is compared on: a benchmark of one aspect compares every judge on that."""
        if len(self.aspects) == 1 or against_all:
            return self.aspects
        return tuple(aspect for aspect in self.aspects if aspect in aspects)

    def _summaries(
        self,
        observations: Sequence[Observation],
        aspects: Sequence[str],
        against_all: bool,
        name: str,
        options: StatisticsOptions,
    ) -> dict[str, Summary]:
        """The statistics of each aspect that a judge is compared on."""
        return {
            aspect: label_statistics(
                of_aspect(observations, aspect, compared_aspect(aspect, aspects, against_all)),
                self.statistics,
                name,
                options,
            )
            for aspect in self._of(aspects, against_all)
        }

    def _named(self, aspect: str, statistic: str) -> str:
        return statistic if len(self.aspects) == 1 else f"{aspect}_{statistic}"


def _cells(summary: Summary) -> list[str]:
    intervals = [with_interval(e.value, e.low, e.high, e.reason) for e in summary.estimates.values()]
    return [str(summary.scored), str(summary.exact), *intervals]
