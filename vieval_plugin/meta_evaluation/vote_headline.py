"""Headlines of benchmarks of votes: in how many pairs a judge says what people say, over all parts together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.headline import Breakdown, Headline, HeadlineNumber, preferred
from vieval_plugin.meta_evaluation.vote_answers import COUNTED, VOTES
from vieval_plugin.meta_evaluation.vote_entrants import Entrant, JudgedPart
from vieval_plugin.meta_evaluation.vote_statistics import Drawing
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import VoteScheme, ceiling_points

ALL_PARTS = "all"


@dataclass(frozen=True)
class _Point:
    """Whether an entrant is right in a pair, and what the pair is counted under."""

    part: str
    group: str
    tags: tuple[str, ...]
    value: float


_Points: TypeAlias = Mapping[str, _Point]


def vote_headlines(
    benchmark: str, judged: Sequence[JudgedPart], scheme: str, options: StatisticsOptions
) -> tuple[Headline, ...]:
    """One: accuracy, counted in the most detailed way. A judge that scores is taken by O, where it has none by SC.

    Args:
        benchmark: its name, which joins the seed.
        judged: its parts, with all that stand in its tables.
        scheme: that of its votes.
        options: how many draws, the seed.
    """
    counted = COUNTED[scheme][0]
    drawing = Drawing.of(f"{benchmark}/{ALL_PARTS}", options)
    judges = {label: _pooled(judged, label, subject, counted) for label, subject in _subjects(judged).items()}
    constants = [_number(label, points, drawing) for label, points in _constants(judged, counted).items()]
    best = max(constants, key=lambda one: one.value, default=None)
    references = (*_people(judged, counted, drawing), *([best] if best else []))
    headings = {
        "part": lambda point: (point.part,),
        "category": lambda point: point.tags,
    }
    broken = {name: _broken(judges, under, drawing) for name, under in headings.items()}
    held = {label: points for label, points in judges.items() if points}
    return (
        (
            Headline(
                VOTES,
                f"Share of pairs in which the judge says what people say (accuracy, {counted.replace('_', '-')})",
                "It is the question that people were asked, counted in the most detailed way; a missing answer is wrong, and a "
                "judge that is not above the best fixed answer is no judge.",
                "pairs",
                (0.0, 1.0),
                tuple(_number(label, points, drawing) for label, points in held.items()),
                lambda: _compared(held, counted),
                references,
                {name: one for name, one in broken.items() if len(one) > 1},
            ),
        )
        if held
        else ()
    )


def _subjects(judged: Sequence[JudgedPart]) -> dict[str, str]:
    """What each judge's votes come from: its own, or its score of one aspect."""
    found: dict[str, list[str]] = {}
    for one in (entrant for of_part in judged for entrant in of_part.entrants if not entrant.constant):
        found.setdefault(one.label, []).append(one.subject)
    return {label: preferred(subjects, dict.fromkeys(subjects, 1))[0] for label, subjects in found.items()}


def _pooled(judged: Sequence[JudgedPart], label: str, subject: str, counted: VoteScheme) -> _Points:
    """The points of an entrant in the pairs of all parts, by their names; it has none where its answers are not such votes."""
    found: dict[str, _Point] = {}
    for of_part in judged:
        for one in of_part.entrants:
            if (one.label, one.subject) == (label, subject) and one.accepted:
                found |= _points(of_part.part, one, counted)
    return found


def _points(part: str, entrant: Entrant, counted: VoteScheme) -> _Points:
    pairs = entrant.answers.pairs
    return {
        f"{part}/{pairs.observations[contest].uid}/{first}/{second}": _Point(
            part, f"{part}/{group}", pairs.observations[contest].tags, value
        )
        for contest, (first, second), group, value in zip(
            pairs.contest.tolist(),
            pairs.places.tolist(),
            pairs.groups,
            entrant.answers.points(counted).tolist(),
            strict=True,
        )
        if not np.isnan(value)
    }


def _constants(judged: Sequence[JudgedPart], counted: VoteScheme) -> dict[str, _Points]:
    named = dict.fromkeys((o.label, o.subject) for part in judged for o in part.entrants if o.constant and o.accepted)
    return {f"best constant: {label}": _pooled(judged, label, subject, counted) for label, subject in named}


def _people(judged: Sequence[JudgedPart], counted: VoteScheme, drawing: Drawing) -> list[HeadlineNumber]:
    """How far annotators agree with one another, where there are several."""
    values: list[float] = []
    groups: list[str] = []
    for of_part in judged:
        pairs = max((one.answers.pairs for one in of_part.entrants), key=lambda one: len(one.groups), default=None)
        if pairs is not None and len(annotations := pairs.annotations()) > 1:
            points = ceiling_points(annotations, counted)
            values += np.nanmean(points.reshape(-1, points.shape[-1]), axis=0).tolist()
            groups += [f"{of_part.part}/{group}" for group in pairs.groups]
    if not values:
        return []
    found = drawing.share(np.array(values), groups)
    return [
        HeadlineNumber("human ceiling: annotators with one another", found.value, found.low, found.high, found.count)
    ]


def _broken(judges: Mapping[str, _Points], under: Callable[[_Point], Sequence[str]], drawing: Drawing) -> Breakdown:
    words = dict.fromkeys(word for points in judges.values() for point in points.values() for word in under(point))
    return {
        word: [
            _number(label, some, drawing)
            for label, points in judges.items()
            if (some := {name: point for name, point in points.items() if word in under(point)})
        ]
        for word in words
    }


def _number(label: str, points: _Points, drawing: Drawing) -> HeadlineNumber:
    values = np.array([point.value for point in points.values()], dtype=float)
    found = drawing.share(values, [point.group for point in points.values()])
    return HeadlineNumber(label, found.value, found.low, found.high, found.count, found.reason)


def _compared(points: Mapping[str, _Points], counted: VoteScheme) -> ComparedStatistic:
    items = {
        label: {name: JudgedItem(point.group, point.value) for name, point in own.items()}
        for label, own in points.items()
    }
    parts = list(dict.fromkeys(point.part for own in points.values() for point in own.values()))
    lacking = {
        label: [part for part in parts if part not in {point.part for point in own.values()}]
        for label, own in points.items()
    }
    statistic = f"accuracy {counted.replace('_', '-')}"
    return compared_means(ALL_PARTS, VOTES, statistic, items, "pairs of candidates", lacking=lacking)
