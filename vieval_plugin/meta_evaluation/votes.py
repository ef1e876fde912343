"""The report of benchmarks of contests: how often a judge's choices are those of people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.findings import ALL, Findings, Number, RankedStatistic, layouts, preferred
from vieval_plugin.meta_evaluation.observations import Observation, apply_contest_policy
from vieval_plugin.meta_evaluation.statistics import SCORED, Rating, Statistic, parts_of
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.meta_evaluation.vote_answers import TIE_HANDLINGS, VOTES, answers_of, pairs_of
from vieval_plugin.meta_evaluation.vote_breakdowns import breakdown_numbers
from vieval_plugin.meta_evaluation.vote_ratings import beside_ratings
from vieval_plugin.meta_evaluation.vote_statistics import (
    Entrant,
    JudgedPart,
    Share,
    VoteRows,
    accuracies,
    all_pairs_right_shares,
    bounds,
    entrants_of,
    has_paper,
    order_shares,
    paper_scheme_shares,
    vote_statistics,
)
from vieval_plugin.records import Run
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import VoteScheme, ceiling_points

_LEAST_ANSWERED = 0.95  # a judge that answered less than this share is told of
_UNIT = "pairs of candidates"
_CEILING_LABEL = "human ceiling: annotators with one another"


@dataclass(frozen=True)
class _Point:
    """A pair of candidates: 1 where an entrant is right, else 0, and what the pair is counted under."""

    part: str
    group: str
    tags: tuple[str, ...]
    value: float


@dataclass(frozen=True)
class ByVotes:
    """Accuracy against people's votes, in every way of counting that the benchmark's scheme of votes allows.

    `scheme` is one of `judges.contests`: `four_way`, `three_way`, `two_way` or `ranking`. `rated` says that people
    rated the candidates as well: what follows from their ratings then stands beside the judges (see `vote_ratings`).
    `tie_handling` is that of the headline, the most detailed one where none is named.

    >>> ByVotes("five_way")
    Traceback (most recent call last):
    ValueError: no scheme of votes 'five_way'; known: four_way, three_way, two_way, ranking
    """

    scheme: str = "four_way"
    rated: bool = False
    tie_handling: VoteScheme | None = None

    def __post_init__(self) -> None:
        if self.scheme not in TIE_HANDLINGS:
            raise ValueError(f"no scheme of votes {self.scheme!r}; known: {', '.join(TIE_HANDLINGS)}")

    def statistics(self, rating: Rating) -> tuple[Statistic, ...]:
        """Shares of each subject, and how many contests have an answer.

        >>> [statistic.metric for statistic in ByVotes("two_way").statistics(Rating(("O",)))]
        ['O_accuracy_decisive_value', 'O_above_constant_decisive_value', 'scored_count']
        """
        return (*(s for subject in _subjects(rating) for s in vote_statistics(subject, self.scheme)), SCORED)

    def rows(
        self, observations: Sequence[Observation], rating: Rating, benchmark: str, part: str, options: StatisticsOptions
    ) -> VoteRows:
        """The pairs of the part's contests with the judge's answers to them."""
        bootstrap = Bootstrap.for_part(f"{benchmark}/{part}", options)
        pairs = pairs_of(apply_contest_policy(observations, options), self.scheme)
        answers = {subject: answers_of(pairs, subject, self.scheme, bootstrap.seed) for subject in _subjects(rating)}
        return VoteRows(pairs, answers, bootstrap)

    def findings(
        self, benchmark: str, parts: Sequence[str], runs: Sequence[Run], options: StatisticsOptions
    ) -> Findings:
        """Shares of all judges and constant answers by part, broken down, and pooled over parts."""
        judged = [
            JudgedPart(part, entrants_of(part, runs, self.scheme, bootstrap, options), bootstrap)
            for part in parts_of(parts, runs)
            for bootstrap in [Bootstrap.for_part(f"{benchmark}/{part}", options)]
        ]
        numbers = [n for of_part in judged for n in self._numbers(benchmark, of_part)]
        numbers += [n for of_part in judged for n in breakdown_numbers(of_part, self.scheme)]
        of_ratings, strengths = beside_ratings(benchmark, judged, options) if self.rated else ([], [])
        pooled = Bootstrap.for_part(f"{benchmark}/{ALL}", options)
        ranked: list[RankedStatistic] = []
        handlings = TIE_HANDLINGS[self.scheme]
        for tie_handling in sorted(handlings, key=lambda handling: handling != (self.tie_handling or handlings[0])):
            of_all_parts, statistic = _over_parts(judged, tie_handling, pooled)
            numbers += of_all_parts
            ranked += [statistic] if statistic else []
        ranked = [replace(statistic, is_headline=index == 0) for index, statistic in enumerate(ranked)]
        if len(judged) > 1 or any(not entrant.voting for of_part in judged for entrant in of_part.entrants):
            ranked += [statistic for of_part in judged for statistic in self._of_part(of_part)]
        return Findings((*numbers, *of_ratings), tuple(ranked), layouts("votes"), tuple(strengths))

    def _numbers(self, benchmark: str, judged: JudgedPart) -> Iterator[Number]:
        judges = [entrant for entrant in judged.entrants if not entrant.constant]
        voting = any(entrant.voting for entrant in judges)
        as_authors = any(has_paper(entrant.answers.pairs) for entrant in judges)
        for entrant in judged.entrants:
            answers, shares = entrant.answers, dict[str, Share]()
            if entrant.accepted:
                shares |= accuracies(self.scheme) | bounds(answers.bounds) | all_pairs_right_shares(self.scheme)
                shares |= order_shares(self.scheme) if entrant.voting and voting else {}
                complete, asked = len(answers.complete), len(answers.pairs.observations)
                answered = entrant.number(judged.part, "answered", Estimate(complete, n=complete))
                yield replace(answered, total=asked)
                if entrant.left_out:
                    left_out = Estimate(entrant.left_out_count, n=entrant.left_out_count)
                    yield entrant.number(judged.part, "left_out", left_out)
            if as_authors and has_paper(answers.pairs):
                shares |= paper_scheme_shares()
            for name, share in shares.items():
                estimate = share(answers, judged.bootstrap)
                key = Key(benchmark, judged.part, "", entrant.label, name, entrant.aspect)
                yield replace(entrant.number(judged.part, name, estimate), key=key, scale=100)

    def _of_part(self, judged: JudgedPart) -> Iterator[RankedStatistic]:
        """Each aspect and tie handling on a part. A judge that votes itself stands beside those that score, on each."""
        judges = [entrant for entrant in judged.entrants if not entrant.constant]
        fixed_answers = [entrant for entrant in judged.entrants if entrant.constant and entrant.accepted]
        scored = tuple(dict.fromkeys(entrant.subject for entrant in judges if not entrant.voting))
        for aspect in scored or ((VOTES,) if judges else ()):
            entrants = [entrant for entrant in judges if entrant.voting or entrant.subject == aspect]
            for tie_handling in TIE_HANDLINGS[self.scheme]:
                compared = partial(_compared_on_part, judged.part, aspect, tie_handling, entrants, fixed_answers)
                yield _statistic(judged.part, aspect, tie_handling, cache(compared), (), is_headline=False)


def _compared_on_part(
    part: str, aspect: str, tie_handling: VoteScheme, entrants: Sequence[Entrant], fixed_answers: Sequence[Entrant]
) -> ComparedStatistic:
    points = {entrant.label: _points(part, entrant, tie_handling) for entrant in entrants}
    constants = [_points(part, fixed, tie_handling) for fixed in fixed_answers]
    return _compared(part, aspect, points, tie_handling, constants, _unanswered(entrants))


def _subjects(rating: Rating) -> tuple[str, ...]:
    """A judge that votes itself rates no aspects of its own."""
    return rating.aspects or (VOTES,)


def _statistic(
    part: str,
    aspect: str,
    tie_handling: VoteScheme,
    compared: Callable[[], ComparedStatistic],
    references: tuple[Number, ...],
    is_headline: bool = True,
) -> RankedStatistic:
    counted = tie_handling.replace("_", "-")
    why = f"It is the question that people were asked, counted {counted}; a missing answer is wrong."
    return RankedStatistic(
        part,
        aspect,
        f"accuracy_{tie_handling}",
        f"accuracy ({counted})",
        f"Share of pairs in which the judge says what people say (accuracy, {counted})",
        why,
        (0.0, 1.0),
        lambda _: compared(),
        references,
        is_headline,
    )


def _over_parts(
    judged: Sequence[JudgedPart], tie_handling: VoteScheme, bootstrap: Bootstrap
) -> tuple[list[Number], RankedStatistic | None]:
    """Accuracy pooled over parts, of the judges' votes or of their scores of O, or else SC, and its tests."""
    pooled = {label: _pooled(judged, label, subject, tie_handling) for label, subject in _chosen(judged).items()}
    judges = {label: points for label, points in pooled.items() if points}
    if not judges:
        return [], None
    name = f"accuracy_{tie_handling}"
    numbers = [Number(label, _accuracy(points, bootstrap), ALL, VOTES, name) for label, points in judges.items()]
    breakdowns: dict[str, Callable[[_Point], Sequence[str]]] = {
        "part": lambda point: (point.part,),
        "category": lambda point: point.tags,
    }
    for breakdown, values_of in breakdowns.items():
        values = dict.fromkeys(value for points in judges.values() for p in points.values() for value in values_of(p))
        for value in values if len(values) > 1 else ():
            for label, points in judges.items():
                if of_value := {key: point for key, point in points.items() if value in values_of(point)}:
                    estimate = _accuracy(of_value, bootstrap)
                    numbers.append(Number(label, estimate, ALL, VOTES, name, breakdown=breakdown, value=value))
    fixed_answers = _constants(judged, tie_handling)
    constants = {label: _accuracy(points, bootstrap) for label, points in fixed_answers.items()}
    best = max(constants, key=lambda label: constants[label].value, default=None)
    references = [
        *(
            Number(_CEILING_LABEL, e, ALL, VOTES, name, "ceiling")
            for e in _human_ceiling(judged, tie_handling, bootstrap)
        ),
        *([Number(best, constants[best], ALL, VOTES, name, "baseline")] if best else []),
    ]
    chosen = [e for of_part in judged for e in of_part.entrants if _chosen(judged).get(e.label) == e.subject]
    constant_points, notes = list(fixed_answers.values()), _unanswered(chosen)
    compared = partial(_compared, ALL, VOTES, judges, tie_handling, constant_points, notes)
    statistic = _statistic(ALL, VOTES, tie_handling, cache(compared), tuple(references))

    @cache
    def of_part(part: str, options: StatisticsOptions) -> ComparedStatistic:
        restricted, *constants = (
            {label: {key: p for key, p in of_label.items() if p.part == part} for label, of_label in points.items()}
            for points in (judges, fixed_answers)
        )
        answering = {label: points for label, points in restricted.items() if points}
        return _compared(part, VOTES, answering, tie_handling, list(constants[0].values()), ())

    return numbers, replace(statistic, of_part=of_part, choice={"ties": tie_handling})


def _chosen(judged: Sequence[JudgedPart]) -> dict[str, str]:
    """The source of each judge's votes: its own, or its score of one aspect."""
    subjects_by_judge: dict[str, list[str]] = {}
    for entrant in (entrant for of_part in judged for entrant in of_part.entrants if not entrant.constant):
        subjects_by_judge.setdefault(entrant.label, []).append(entrant.subject)
    return {label: preferred(subjects)[0] for label, subjects in subjects_by_judge.items()}


def _pooled(judged: Sequence[JudgedPart], label: str, subject: str, tie_handling: VoteScheme) -> dict[str, _Point]:
    """The points of an entrant in the pairs of all parts, by their names; it has none where its answers are not such votes."""
    return {
        name: point
        for of_part in judged
        for entrant in of_part.entrants
        if (entrant.label, entrant.subject) == (label, subject) and entrant.accepted
        for name, point in _points(of_part.part, entrant, tie_handling).items()
    }


def _points(part: str, entrant: Entrant, tie_handling: VoteScheme) -> dict[str, _Point]:
    pairs = entrant.answers.pairs
    return {
        f"{part}/{pairs.observations[contest].uid}/{first}/{second}": _Point(
            part, f"{part}/{group}", pairs.observations[contest].tags, value
        )
        for contest, (first, second), group, value in zip(
            pairs.contest.tolist(),
            pairs.indices.tolist(),
            pairs.groups,
            entrant.answers.points(tie_handling).tolist(),
            strict=True,
        )
        if not np.isnan(value)
    }


def _constants(judged: Sequence[JudgedPart], tie_handling: VoteScheme) -> dict[str, dict[str, _Point]]:
    names = dict.fromkeys((o.label, o.subject) for part in judged for o in part.entrants if o.constant and o.accepted)
    tie = "a tie" if tie_handling == "three_way" else r"both \1"  # of three-way votes any tie is right
    return {
        f"best constant: {re.sub('both_(good|bad)', tie, label)}": _pooled(judged, label, subject, tie_handling)
        for label, subject in names
    }


def _human_ceiling(judged: Sequence[JudgedPart], tie_handling: VoteScheme, bootstrap: Bootstrap) -> Iterator[Estimate]:
    """Agreement of annotators with one another, where there are several."""
    values: list[float] = []
    groups: list[str] = []
    for of_part in judged:
        pairs = max(
            (entrant.answers.pairs for entrant in of_part.entrants), key=lambda pairs: len(pairs.groups), default=None
        )
        if pairs is not None and len(annotations := pairs.annotations()) > 1:
            points = ceiling_points(annotations, tie_handling)
            points = points.reshape(-1, points.shape[-1])
            voted_twice = np.flatnonzero(~np.isnan(points).all(axis=0))
            values += np.nanmean(points[:, voted_twice], axis=0).tolist()
            groups += [f"{of_part.part}/{pairs.groups[index]}" for index in voted_twice]
    if values:
        yield bootstrap.share(np.array(values), groups)


def _accuracy(points: Mapping[str, _Point], bootstrap: Bootstrap) -> Estimate:
    values = np.array([point.value for point in points.values()], dtype=float)
    return bootstrap.share(values, [point.group for point in points.values()])


def _compared(
    part: str,
    aspect: str,
    points: Mapping[str, Mapping[str, _Point]],
    tie_handling: VoteScheme,
    constants: Iterable[Mapping[str, _Point]],
    notes: tuple[str, ...],
) -> ComparedStatistic:
    items = {
        label: {name: JudgedItem(point.group, point.value) for name, point in of_judge.items()}
        for label, of_judge in points.items()
    }
    parts = list(dict.fromkeys(point.part for of_judge in points.values() for point in of_judge.values()))
    missing = {
        label: [part for part in parts if part not in {point.part for point in of_judge.values()}]
        for label, of_judge in points.items()
    }
    fixed = [{name: point.value for name, point in constant.items()} for constant in constants]
    statistic = f"accuracy {tie_handling.replace('_', '-')}"
    compared = compared_means(part, aspect, statistic, items, _UNIT, missing_parts=missing, constants=fixed)
    return replace(compared, notes=(*compared.notes, *notes))


def _unanswered(entrants: Sequence[Entrant]) -> tuple[str, ...]:
    """Notes on contests that were left out, and on how many each judge answered where some answered far fewer."""
    left_out = [f"left out of {entrant.label}: {entrant.left_out}" for entrant in entrants if entrant.left_out]
    counts = [(e.label, len(e.answers.complete), len(e.answers.pairs.observations)) for e in entrants]
    if all(answers >= _LEAST_ANSWERED * contests for _, answers, contests in counts):
        return tuple(dict.fromkeys(left_out))
    texts = ", ".join(f"{label} {answers} of {contests}" for label, answers, contests in counts)
    return (*dict.fromkeys(left_out), f"a missing answer is wrong; answered: {texts}")
