"""The report of benchmarks of contests: how often a judge's choices are those of people."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import ClassVar, TypeAlias

import numpy as np

from vieval_plugin.judges.contests import PAPER
from vieval_plugin.meta_evaluation.common_items import Items, JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.findings import (
    ALL,
    Findings,
    Number,
    RankedStatistic,
    Role,
    layouts,
)
from vieval_plugin.meta_evaluation.observations import Observation, apply_contest_policy
from vieval_plugin.meta_evaluation.statistics import (
    SCORED,
    Rating,
    Report,
    Statistic,
    parts_of,
)
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.meta_evaluation.vote_answers import (
    TIE_HANDLINGS,
    VOTES,
    answers_of,
    pairs_of,
)
from vieval_plugin.meta_evaluation.vote_breakdowns import breakdown_numbers
from vieval_plugin.meta_evaluation.vote_ratings import rating_comparison
from vieval_plugin.meta_evaluation.vote_statistics import (
    Entrant,
    JudgedPart,
    Points,
    Scored,
    VoteRows,
    accuracies,
    all_pairs_right_shares,
    bounds,
    default_subjects,
    entrants_of,
    order_shares,
    paper_scheme_shares,
    vote_statistics,
)
from vieval_plugin.records import Run
from vieval_plugin.stats.decisions import LEAST_VOTED
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import VoteScheme, ceiling_points

_UNIT = "pairs of candidates"
_CEILING_LABEL = "human ceiling: annotators against each other"


#: Points by the label of an entrant and the name of a pair of candidates.
_ItemsByLabel: TypeAlias = Mapping[str, Items]


@dataclass(frozen=True)
class ByVotes(Report):
    """Accuracy against people's votes, in every way of counting that the benchmark's scheme of
    votes allows.

    `scheme` is one of `judges.contests`: `four_way`, `three_way`, `two_way` or `ranking`. `rated`
    says that people rated the candidates as well: what follows from their ratings then stands
    beside the judges (see `vote_ratings`). `tie_handling` is that of the headline, the most
    detailed one where none is named.

    >>> ByVotes("five_way")
    Traceback (most recent call last):
    ValueError: unknown vote scheme 'five_way'; known schemes: four_way, three_way, two_way, ranking
    """

    rates_contests: ClassVar[bool] = True

    scheme: str = "four_way"
    rated: bool = False
    tie_handling: VoteScheme | None = None

    def __post_init__(self) -> None:
        if self.scheme not in TIE_HANDLINGS:
            raise ValueError(
                f"unknown vote scheme {self.scheme!r}; known schemes: "
                f"{', '.join(TIE_HANDLINGS)}"
            )

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """Shares of each subject, and how many contests have an answer.

        >>> [statistic.metric for statistic in ByVotes("two_way").statistics(Rating(("O",)))]
        ['O_accuracy_decisive_value', 'O_above_constant_decisive_value', 'scored_count']
        """
        return (
            *(
                statistic
                for subject in _subjects(rating)
                for statistic in vote_statistics(subject, self.scheme)
            ),
            SCORED,
        )

    def rows(
        self,
        observations: Sequence[Observation],
        rating: Rating,
        benchmark: str,
        part: str,
        options: StatisticsOptions,
    ) -> VoteRows:
        """The pairs of the part's contests with the judge's answers to them."""
        bootstrap = Bootstrap.for_part(f"{benchmark}/{part}", options)
        pairs = pairs_of(apply_contest_policy(observations, options), self.scheme)
        answers = {
            subject: answers_of(pairs, subject, self.scheme, bootstrap.seed)
            for subject in _subjects(rating)
        }
        return VoteRows(pairs, answers, bootstrap)

    def findings(
        self,
        benchmark: str,
        parts: Sequence[str],
        runs: Sequence[Run],
        options: StatisticsOptions,
    ) -> Findings:
        """Shares of all judges and constant answers by part, broken down, and pooled over parts."""
        judged = self._judged_parts(benchmark, parts, runs, options)
        numbers = self._part_numbers(benchmark, judged)
        rated_parts = judged if self.rated else []
        rating_numbers, strengths = rating_comparison(benchmark, rated_parts, options)
        pooled = Bootstrap.for_part(f"{benchmark}/{ALL}", options)
        ranked = list[RankedStatistic]()
        handlings = TIE_HANDLINGS[self.scheme]
        headline = self.tie_handling or handlings[0]
        for ties in sorted(handlings, key=lambda handling: handling != headline):
            total_numbers, statistics = _total_statistics(judged, ties, pooled)
            # the only part may be called `all`
            existing = {(number.system, number.place) for number in numbers}
            numbers += [
                number
                for number in total_numbers
                if (number.system, number.place) not in existing
            ]
            ranked += statistics
        part_order = ["", *(part_votes.part for part_votes in judged)]
        ranked.sort(key=lambda statistic: part_order.index(statistic.value))
        subjects = default_subjects(chain(*(votes.judges for votes in judged)))
        for part_votes in judged:
            ranked += self._aspect_statistics(part_votes, subjects)
        ranked = [
            replace(statistic, is_headline=index == 0)
            for index, statistic in enumerate(ranked)
        ]
        return Findings(
            numbers=(*numbers, *rating_numbers),
            ranked=tuple(ranked),
            layouts=layouts("votes"),
            texts=tuple(strengths),
        )

    def _numbers(self, benchmark: str, judged: JudgedPart) -> Iterator[Number]:
        voting = any(not entrant.aspect for entrant in judged.judges)
        as_authors = any(PAPER in entrant.answers.by_order for entrant in judged.judges)
        for entrant in judged.entrants:
            answers = entrant.answers
            shares = dict[str, Scored]()
            if entrant.accepted:
                shares |= accuracies(self.scheme)
                shares |= bounds(answers.bounds)
                shares |= all_pairs_right_shares(self.scheme)
                if voting and not entrant.aspect:
                    shares |= order_shares(self.scheme)
                complete = len(answers.complete)
                left_out = sum(entrant.left_out.values())
                answer_count = judged.number(
                    entrant, "answered", Estimate(complete, n=complete)
                )
                yield replace(answer_count, total=len(answers.pairs.observations))
                if left_out:
                    yield judged.number(
                        entrant, "left_out", Estimate(left_out, n=left_out)
                    )
            if as_authors and PAPER in answers.by_order:
                shares |= paper_scheme_shares()
            columns = (benchmark, judged.part, "", entrant.label)
            for name, share in shares.items():
                number = judged.number(entrant, name, share(answers))
                yield replace(
                    number, key=Key(*columns, name, entrant.aspect), scale=100
                )

    def _judged_parts(
        self,
        benchmark: str,
        parts: Sequence[str],
        runs: Sequence[Run],
        options: StatisticsOptions,
    ) -> list[JudgedPart]:
        judged = []
        for part in parts_of(parts, runs):
            bootstrap = Bootstrap.for_part(f"{benchmark}/{part}", options)
            entrants = entrants_of(part, runs, self.scheme, bootstrap, options)
            judged.append(JudgedPart(part, entrants, bootstrap))
        return judged

    def _part_numbers(
        self, benchmark: str, judged: Sequence[JudgedPart]
    ) -> list[Number]:
        numbers = [
            number
            for part_votes in judged
            for number in self._numbers(benchmark, part_votes)
        ]
        for part_votes in judged:
            numbers += breakdown_numbers(part_votes, self.scheme)
        return numbers

    def _aspect_statistics(
        self, judged: JudgedPart, subjects: Mapping[str, str]
    ) -> Iterator[RankedStatistic]:
        """Each aspect that several judges score on a part, but that which they stand for anyway."""
        for aspect in dict.fromkeys(
            filter(None, (entrant.aspect for entrant in judged.judges))
        ):
            judges = [entrant for entrant in judged.judges if entrant.aspect == aspect]
            is_further = len(judges) > 1 and any(
                subjects[entrant.label] != aspect for entrant in judges
            )
            for ties in TIE_HANDLINGS[self.scheme] if is_further else ():
                columns = (judged.part, aspect, ties)
                yield _statistic(
                    *columns,
                    partial(
                        _compared,
                        *columns,
                        _items(judges, ties),
                        _items(judged.constants, ties),
                        judges,
                    ),
                )


def _subjects(rating: Rating) -> tuple[str, ...]:
    """A judge that votes itself rates no aspects of its own."""
    return rating.aspects or (VOTES,)


def _statistic(
    part: str, aspect: str, ties: VoteScheme, compared: Callable[[], ComparedStatistic]
) -> RankedStatistic:
    scheme_name = ties.replace("_", "-")
    once = cache(compared)
    return RankedStatistic(
        part=part,
        aspect=aspect,
        statistic=f"accuracy_{ties}",
        measured=f"accuracy ({scheme_name})",
        title=f"Share of pairs in which the judge agrees with people (accuracy, {scheme_name})",
        why=f"This matches the question that people were asked ({scheme_name}). "
        "A missing answer counts as wrong.",
        ends=(0.0, 1.0),
        compared=lambda _: once(),
    )


def _total_statistics(
    judged: Sequence[JudgedPart], ties: VoteScheme, bootstrap: Bootstrap
) -> tuple[list[Number], list[RankedStatistic]]:
    """Accuracy over all parts and on each, of the judges' votes or of their scores of O, or else
    SC, and its tests.
    """
    all_judges = [judge for part_votes in judged for judge in part_votes.judges]
    subjects = default_subjects(all_judges)
    judges = [judge for judge in all_judges if subjects[judge.label] == judge.subject]
    constants = [constant for part_votes in judged for constant in part_votes.constants]
    judge_items = _items(judges, ties)
    constant_items = _items(constants, ties)
    numbers = list[Number]()
    statistics = list[RankedStatistic]()
    for breakdown, value in _places(judge_items):
        number = partial(_total_number, bootstrap, ties, breakdown, value)
        restricted = _restricted(judge_items, breakdown, value)
        for label, label_items in restricted.items():
            numbers.append(number(label, _points(label_items), "judge"))
        if breakdown == "category":
            continue
        parts = [part_votes for part_votes in judged if value in ("", part_votes.part)]
        restricted_constants = _restricted(constant_items, breakdown, value)
        compared = partial(
            _compared,
            value or ALL,
            VOTES,
            ties,
            restricted,
            restricted_constants,
            [judge for judge in judges if value in ("", judge.part)],
        )
        statistic = replace(
            _statistic(ALL, VOTES, ties, compared),
            breakdown=breakdown,
            value=value,
            references=_references(number, parts, ties, restricted_constants),
            choice={"ties": ties},
        )
        statistics.append(statistic)
    return numbers, _add_part_statistics(statistics)


def _total_number(
    bootstrap: Bootstrap,
    ties: VoteScheme,
    breakdown: str,
    value: str,
    label: str,
    points: Points,
    role: Role,
) -> Number:
    return Number(
        system=label,
        estimate=bootstrap.share(*points),
        part=ALL,
        aspect=VOTES,
        statistic=f"accuracy_{ties}",
        role=role,
        breakdown=breakdown,
        value=value,
    )


def _references(
    number: Callable[[str, Points, Role], Number],
    judged: Sequence[JudgedPart],
    ties: VoteScheme,
    constants: _ItemsByLabel,
) -> tuple[Number, ...]:
    """References for judges: annotators against each other, and the best constant answer."""
    references = []
    ceiling = _human_ceiling(judged, ties)
    if len(ceiling.values):
        references.append(number(_CEILING_LABEL, ceiling, "ceiling"))
    baselines = [
        number(label, _points(label_items), "baseline")
        for label, label_items in constants.items()
    ]
    baselines.sort(key=lambda baseline: -baseline.estimate.value)
    return (*references, *baselines[:1])


def _add_part_statistics(
    statistics: Sequence[RankedStatistic],
) -> list[RankedStatistic]:
    """Statistics of which that over all parts knows those of each part."""
    by_part = {statistic.value: statistic for statistic in statistics}

    def statistic_in_part(part: str, options: StatisticsOptions) -> ComparedStatistic:
        return by_part.get(part, by_part[""]).compared(options)

    with_parts = []
    for statistic in statistics:
        if not statistic.value:
            statistic = replace(statistic, statistic_in_part=statistic_in_part)
        with_parts.append(statistic)
    return with_parts


def _items(entrants: Iterable[Entrant], ties: VoteScheme) -> _ItemsByLabel:
    """Points of entrants in pairs of candidates; an entrant whose answers are no such votes has
    none.
    """
    items: dict[str, dict[str, JudgedItem]] = {}
    for entrant in entrants:
        part = entrant.part
        pairs = entrant.answers.pairs
        columns = (
            pairs.contest.tolist(),
            pairs.indices.tolist(),
            pairs.groups,
            entrant.answers.points(ties).tolist(),
        )
        label = entrant.label
        if entrant.constant:
            # of three-way votes any tie is right
            tie = "a tie"
            if ties != "three_way":
                tie = r"both \1"
            label = f"best constant: {re.sub('both_(good|bad)', tie, label)}"
        for contest, (first, second), group, value in zip(*columns, strict=True):
            if not math.isnan(value):
                observation = pairs.observations[contest]
                item = JudgedItem(
                    f"{part}/{group}", value, part=part, tags=observation.tags
                )
                name = f"{part}/{observation.uid}/{first}/{second}"
                items.setdefault(label, {})[name] = item
    return items


def _values(item: JudgedItem, breakdown: str) -> tuple[str, ...]:
    if breakdown == "part":
        return (item.part,)
    return item.tags


def _places(items: _ItemsByLabel) -> list[tuple[str, str]]:
    """All of the items, and each value of a breakdown that has several."""
    slice_keys = [("", "")] if items else []
    for breakdown in ("part", "category"):
        values = dict.fromkeys(
            value
            for label_items in items.values()
            for item in label_items.values()
            for value in _values(item, breakdown)
        )
        if len(values) > 1:
            slice_keys += [(breakdown, value) for value in values]
    return slice_keys


def _restricted(items: _ItemsByLabel, breakdown: str, value: str) -> _ItemsByLabel:
    """_ItemsByLabel with a value of a breakdown, of the labels that have any."""
    if not breakdown:
        return items
    with_value = {
        label: {
            name: item
            for name, item in label_items.items()
            if value in _values(item, breakdown)
        }
        for label, label_items in items.items()
    }
    return {
        label: label_items for label, label_items in with_value.items() if label_items
    }


def _points(items: Items) -> Points:
    values = np.array([item.value for item in items.values()])
    groups = [item.group for item in items.values()]
    return Points(values, groups)


def _human_ceiling(judged: Sequence[JudgedPart], ties: VoteScheme) -> Points:
    """Agreement of annotators with one another, where there are several."""
    values: list[float] = []
    groups: list[str] = []
    for part_votes in judged:
        pairs = max(
            (entrant.answers.pairs for entrant in part_votes.entrants),
            key=lambda pairs: len(pairs.groups),
        )
        if len(annotations := pairs.annotations()) > 1:
            points = ceiling_points(annotations, ties)
            voted_twice = np.flatnonzero(~np.isnan(points).all(axis=0))
            values += np.nanmean(points[:, voted_twice], axis=0).tolist()
            groups += [
                f"{part_votes.part}/{pairs.groups[index]}" for index in voted_twice
            ]
    return Points(np.array(values), groups)


def _compared(
    part: str,
    aspect: str,
    ties: VoteScheme,
    items: _ItemsByLabel,
    constants: _ItemsByLabel,
    judges: Sequence[Entrant],
) -> ComparedStatistic:
    scheme_name = ties.replace("_", "-")
    constant_values = [
        {name: item.value for name, item in constant.items()}
        for constant in constants.values()
    ]
    return compared_means(
        part,
        aspect,
        f"accuracy {scheme_name}",
        items,
        _UNIT,
        constants=constant_values,
        notes=_unanswered(judges),
    )


def _unanswered(entrants: Sequence[Entrant]) -> tuple[str, ...]:
    """Notes on contests that were left out, and on how many each judge answered where some
    answered far fewer.
    """
    notes = [
        f"left out of {entrant.label}: "
        f"{', '.join(f'{n} {why}' for why, n in entrant.left_out.items())}"
        for entrant in entrants
        if entrant.left_out
    ]
    counts = [
        (
            entrant.label,
            len(entrant.answers.complete),
            len(entrant.answers.pairs.observations),
        )
        for entrant in entrants
    ]
    if any(answers < LEAST_VOTED * contests for _, answers, contests in counts):
        texts = ", ".join(
            f"{label} {answers} of {contests}" for label, answers, contests in counts
        )
        notes.append(f"missing answers count as wrong; answered: {texts}")
    return tuple(dict.fromkeys(notes))
