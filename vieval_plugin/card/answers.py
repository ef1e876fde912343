"""Habits of a judge: ties, round numbers, and agreement with itself."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, compress

import numpy as np

from vieval_plugin.audit.anchor import answer_of, score_of
from vieval_plugin.judges.contests import BOTH_BAD, BOTH_GOOD, TIE
from vieval_plugin.judges.protocol import Verdict
from vieval_plugin.meta_evaluation.estimates import Bootstrap, computed_mean
from vieval_plugin.records import Record
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

_LEVEL_VOTES = (TIE, BOTH_GOOD, BOTH_BAD)
_ROUND = 5.0


def tie_share(records: Sequence[Record], aspect: str) -> float | None:
    """Share of tied votes, of tied candidates in contests, or of pairs of an image
    model's samples with the same score.

    Args:
        records: of one judge on one benchmark.
        aspect: of the scores.

    >>> tie_share([], "O") is None
    True
    """
    level = list(chain.from_iterable(map(_level_in_contest, records)))
    if level:
        return sum(level) / len(level)
    cells: dict[tuple[str, str], Counter[float]] = defaultdict(Counter)
    for record in records:
        if aspect in record.verdict.scores:
            score = round(record.verdict.scores[aspect], 9)
            cells[record.id.part, record.id.image_model][score] += 1
    pairs = sum(math.comb(scores.total(), 2) for scores in cells.values())
    tied = sum(
        math.comb(times, 2) for scores in cells.values() for times in scores.values()
    )
    return tied / pairs if pairs else None


def _level_in_contest(record: Record) -> Iterator[bool]:
    choice = record.verdict.choice
    if choice is None:
        return
    yield from (
        "=" in vote or vote in _LEVEL_VOTES for vote in choice.votes.values() if vote
    )
    yield from (value == 0 for value in choice.preferences.values())
    for first, second in combinations(choice.scores, 2):
        aspects = first.keys() & second.keys()
        yield from (first[aspect] == second[aspect] for aspect in aspects)


def round_share(records: Iterable[Record]) -> float | None:
    """Share of sub-scores, on the rubric's own scale, that are multiples of 5; None
    without sub-scores.
    """
    scores = [
        score
        for record in records
        for step in record.verdict.trace
        for score in step.scores
    ]
    if not scores:
        return None
    round_count = sum(score % _ROUND == 0 for score in scores)
    return round_count / len(scores)


def _mean_distance(pairs: Sequence[tuple[Verdict, Verdict]]) -> float:
    """Mean difference between the scores of two repeats."""
    distances = [abs(score_of(first) - score_of(second)) for first, second in pairs]
    return float(np.mean(distances))


def agreement_of_repeats(
    records: Sequence[Record], benchmark: str, options: StatisticsOptions
) -> tuple[Estimate, Estimate]:
    """Share of pairs of repeats with the same answer, and mean difference of two
    repeats, with intervals.

    A pair without any answer does not count.

    Args:
        records: of all repeats.
        benchmark: of the samples; it is part of the seed.
        options: number of resamples, the seed.
    """
    by_id = grouped((record.id, record) for record in records)
    groups = []
    agreements = []
    distances = []
    for repeats in by_id.values():
        pairs = combinations((record.verdict for record in repeats), 2)
        readable_pairs = [
            pair for pair in pairs if any(verdict.status.usable for verdict in pair)
        ]
        if readable_pairs:
            groups.append(repeats[0].group or repeats[0].id.uid)
            # share of pairs of repeats with the same answer
            same_answers = [
                answer_of(first) == answer_of(second)
                for first, second in readable_pairs
            ]
            agreements.append(sum(same_answers) / len(readable_pairs))
            distances.append(_mean_distance(readable_pairs))
    bootstrap = Bootstrap.for_part(f"{benchmark}/repeats", options)

    def mean_of(values: Sequence[float]) -> Estimate:
        is_known = [not math.isnan(value) for value in values]
        known_values = list(compress(values, is_known))
        return bootstrap.estimate(
            computed_mean(known_values, list(compress(groups, is_known)), "no answer")
        )

    return mean_of(agreements).clipped(0.0, 1.0), mean_of(distances)
