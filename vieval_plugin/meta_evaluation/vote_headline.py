"""Headlines of benchmarks of votes: in how many pairs a judge says what people say, over all parts together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.headline import Breakdown, Headline, HeadlineNumber, preferred
from vieval_plugin.meta_evaluation.vote_answers import TIE_HANDLINGS, VOTES
from vieval_plugin.meta_evaluation.vote_entrants import Entrant, JudgedPart
from vieval_plugin.meta_evaluation.vote_statistics import Drawing
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import VoteScheme, ceiling_points

ALL_PARTS = "all"


@dataclass(frozen=True)
class _Point:
    """A pair of candidates: 1 where an entrant is right, else 0, and what the pair is counted under."""

    part: str
    group: str
    tags: tuple[str, ...]
    value: float


_Points: TypeAlias = Mapping[str, _Point]


def vote_headlines(
    benchmark: str, judged: Sequence[JudgedPart], scheme: str, options: StatisticsOptions
) -> tuple[Headline, ...]:
    """The headline of a benchmark of votes: accuracy with the most detailed tie handling.

    A judge that scores is taken by O, where it has none by SC.

    Args:
        benchmark: its name, which joins the seed.
        judged: its parts, with all that stand in its tables.
        scheme: that of its votes.
        options: how many draws, the seed.
    """
    tie_handling = TIE_HANDLINGS[scheme][0]
    drawing = Drawing.of(f"{benchmark}/{ALL_PARTS}", options)
    judges = {label: _pooled(judged, label, subject, tie_handling) for label, subject in _subjects(judged).items()}
    constants = [_number(label, points, drawing) for label, points in _constants(judged, tie_handling).items()]
    best = max(constants, key=lambda number: number.value, default=None)
    references = (*_people(judged, tie_handling, drawing), *([best] if best else []))
    headings = {
        "part": lambda point: (point.part,),
        "category": lambda point: point.tags,
    }
    broken = {name: _broken(judges, words_of, drawing) for name, words_of in headings.items()}
    judges_with_points = {label: points for label, points in judges.items() if points}
    return (
        (
            Headline(
                VOTES,
                f"Share of pairs in which the judge says what people say (accuracy, {tie_handling.replace('_', '-')})",
                "It is the question that people were asked, counted in the most detailed way; a missing answer is wrong, and a "
                "judge that is not above the best fixed answer is no judge.",
                "pairs",
                (0.0, 1.0),
                tuple(_number(label, points, drawing) for label, points in judges_with_points.items()),
                lambda: _compared(judges_with_points, tie_handling),
                references,
                {name: breakdown for name, breakdown in broken.items() if len(breakdown) > 1},
            ),
        )
        if judges_with_points
        else ()
    )


def _subjects(judged: Sequence[JudgedPart]) -> dict[str, str]:
    """The source of each judge's votes: its own, or its score of one aspect."""
    subjects_by_judge: dict[str, list[str]] = {}
    for entrant in (entrant for of_part in judged for entrant in of_part.entrants if not entrant.constant):
        subjects_by_judge.setdefault(entrant.label, []).append(entrant.subject)
    return {label: preferred(subjects, dict.fromkeys(subjects, 1))[0] for label, subjects in subjects_by_judge.items()}


def _pooled(judged: Sequence[JudgedPart], label: str, subject: str, tie_handling: VoteScheme) -> _Points:
    """The points of an entrant in the pairs of all parts, by their names; it has none where its answers are not such votes."""
    pooled: dict[str, _Point] = {}
    for of_part in judged:
        for entrant in of_part.entrants:
            if (entrant.label, entrant.subject) == (label, subject) and entrant.accepted:
                pooled |= _points(of_part.part, entrant, tie_handling)
    return pooled


def _points(part: str, entrant: Entrant, tie_handling: VoteScheme) -> _Points:
    pairs = entrant.answers.pairs
    return {
        f"{part}/{pairs.observations[contest].uid}/{first}/{second}": _Point(
            part, f"{part}/{group}", pairs.observations[contest].tags, value
        )
        for contest, (first, second), group, value in zip(
            pairs.contest.tolist(),
            pairs.places.tolist(),
            pairs.groups,
            entrant.answers.points(tie_handling).tolist(),
            strict=True,
        )
        if not np.isnan(value)
    }


def _constants(judged: Sequence[JudgedPart], tie_handling: VoteScheme) -> dict[str, _Points]:
    named = dict.fromkeys((o.label, o.subject) for part in judged for o in part.entrants if o.constant and o.accepted)
    return {f"best constant: {label}": _pooled(judged, label, subject, tie_handling) for label, subject in named}


def _people(judged: Sequence[JudgedPart], tie_handling: VoteScheme, drawing: Drawing) -> list[HeadlineNumber]:
    """Agreement of annotators with one another, where there are several."""
    values: list[float] = []
    groups: list[str] = []
    for of_part in judged:
        pairs = max(
            (entrant.answers.pairs for entrant in of_part.entrants), key=lambda pairs: len(pairs.groups), default=None
        )
        if pairs is not None and len(annotations := pairs.annotations()) > 1:
            points = ceiling_points(annotations, tie_handling)
            values += np.nanmean(points.reshape(-1, points.shape[-1]), axis=0).tolist()
            groups += [f"{of_part.part}/{group}" for group in pairs.groups]
    if not values:
        return []
    ceiling = drawing.share(np.array(values), groups)
    return [
        HeadlineNumber(
            "human ceiling: annotators with one another", ceiling.value, ceiling.low, ceiling.high, ceiling.count
        )
    ]


def _broken(judges: Mapping[str, _Points], words_of: Callable[[_Point], Sequence[str]], drawing: Drawing) -> Breakdown:
    words = dict.fromkeys(word for points in judges.values() for point in points.values() for word in words_of(point))
    return {
        word: [
            _number(label, word_points, drawing)
            for label, points in judges.items()
            if (word_points := {name: point for name, point in points.items() if word in words_of(point)})
        ]
        for word in words
    }


def _number(label: str, points: _Points, drawing: Drawing) -> HeadlineNumber:
    values = np.array([point.value for point in points.values()], dtype=float)
    accuracy = drawing.share(values, [point.group for point in points.values()])
    return HeadlineNumber(label, accuracy.value, accuracy.low, accuracy.high, accuracy.count, accuracy.reason)


def _compared(points: Mapping[str, _Points], tie_handling: VoteScheme) -> ComparedStatistic:
    items = {
        label: {name: JudgedItem(point.group, point.value) for name, point in judge_points.items()}
        for label, judge_points in points.items()
    }
    parts = list(dict.fromkeys(point.part for judge_points in points.values() for point in judge_points.values()))
    missing_parts = {
        label: [part for part in parts if part not in {point.part for point in judge_points.values()}]
        for label, judge_points in points.items()
    }
    statistic = f"accuracy {tie_handling.replace('_', '-')}"
    return compared_means(ALL_PARTS, VOTES, statistic, items, "pairs of candidates", lacking=missing_parts)
