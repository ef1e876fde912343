"""Human ratings and votes from a file of their own, put into the place of those that records
have.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from vieval_plugin.judges.contests import BOTH_BAD, BOTH_GOOD, SCHEMES, TIE, Votes
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.meta_evaluation.label_plan import LabelPlan, Look, look_at
from vieval_plugin.meta_evaluation.tables import Table, number
from vieval_plugin.records import Record, Run
from vieval_plugin.stats.agreement import krippendorff_alpha, mean_of_known
from vieval_plugin.stats.decisions import LEAST_OF_ANNOTATOR
from vieval_plugin.text.errors import VievalError

#: The aspect of a vote on a contest.
VOTE = "vote"


@dataclass(frozen=True)
class HumanRatings:
    """Ratings of samples by aspect and rater, in [0, 1], and votes on contests by rater.

    `where` says of each of them in which line of which file it comes first. `plan` is that of
    `vieval label`, if it was given.
    """

    scores: Mapping[SampleId, Mapping[str, Mapping[str, float]]]
    votes: Mapping[SampleId, Mapping[str, str]]
    where: Mapping[SampleId, str]
    plan: LabelPlan | None = None

    @property
    def look(self) -> Look | None:
        """State of the plan's labels; None without a plan."""
        return look_at(self.plan, self.where) if self.plan else None

    @property
    def annotators(self) -> tuple[str, ...]:
        """The annotators that rated or voted, by name."""
        rating = set()
        for aspects in self.scores.values():
            for by_rater in aspects.values():
                for rater in by_rater:
                    rating.add(rater)
        return tuple(
            sorted(
                rating
                | {rater for by_rater in self.votes.values() for rater in by_rater}
            )
        )


def ratings_at_look(ratings: HumanRatings) -> HumanRatings:
    """The ratings that count at the look of their plan; all without a plan."""
    if ratings.look is None:
        return ratings
    images = frozenset(ratings.look.images)
    scores = {
        identity: aspects
        for identity, aspects in ratings.scores.items()
        if identity in images
    }
    where = {}
    for identity, line in ratings.where.items():
        if identity in images | ratings.votes.keys():
            where[identity] = line
    return replace(ratings, scores=scores, where=where)


def drop_constant_annotators(ratings: HumanRatings) -> tuple[HumanRatings, list[str]]:
    """Ratings without those of annotators who gave one value to all of `LEAST_OF_ANNOTATOR` images
    or more, and lines.

    Raises:
        VievalError: nothing is left.
    """
    values: dict[str, list[float]] = {}
    for by_annotator in chain.from_iterable(
        aspects.values() for aspects in ratings.scores.values()
    ):
        for annotator, value in by_annotator.items():
            values.setdefault(annotator, []).append(value)
    constant = {
        name: ratings_by_item
        for name, ratings_by_item in values.items()
        if len({*ratings_by_item}) == 1 and len(ratings_by_item) >= LEAST_OF_ANNOTATOR
    }
    notes = []
    for name, ratings_by_item in constant.items():
        notes.append(
            f"all {len(ratings_by_item)} ratings by {name} are {ratings_by_item[0]:g}, so they are ignored"
        )
    scores = {
        identity: _drop_annotators(aspects, constant)
        for identity, aspects in ratings.scores.items()
    }
    scores = {identity: aspects for identity, aspects in scores.items() if aspects}
    where = {}
    for identity, line in ratings.where.items():
        if identity in scores.keys() | ratings.votes.keys():
            where[identity] = line
    if not where:
        raise VievalError(
            f"ratings must vary: {'; '.join(notes)}; pass ratings from another person"
        )
    return replace(ratings, scores=scores, where=where), notes


def _drop_annotators(
    aspects: Mapping[str, Mapping[str, float]], annotators: Collection[str]
) -> dict[str, Mapping[str, float]]:
    """Ratings of an image less those of some annotators, and less aspects that have no other."""
    remaining = {}
    for aspect, by_annotator in aspects.items():
        remaining[aspect] = {
            name: value
            for name, value in by_annotator.items()
            if name not in annotators
        }
    return {
        aspect: by_annotator
        for aspect, by_annotator in remaining.items()
        if by_annotator
    }


def rated(
    runs: Sequence[Run], ratings: HumanRatings
) -> tuple[list[Run], list[SampleId]]:
    """Runs with these ratings and votes in the place of all that their records had, and what no run
    has.

    Where each rater rated every sample, each one's ratings are kept; else a sample has the mean of
    those that it was given, because raters with gaps cannot be compared with a judge one by one. A
    contest's vote is that of most raters; where no vote has most, it is a tie, or none in a scheme
    without ties.

    Args:
        runs: of any benchmarks.
        ratings: as they were read.

    Raises:
        VievalError: for votes that the contest's own scheme does not have.
    """
    mean_ratings = _ratings_by_aspect(ratings)
    votes = {}
    for identity, scheme in _schemes(runs, ratings).items():
        votes[identity] = _voted(identity, scheme, ratings)
    matched_ids: set[SampleId] = set()

    def rate(record: Record) -> Record:
        if record.votes is None:
            matched_ids.update({record.id} & set(mean_ratings))
            return replace(record, ratings=mean_ratings.get(record.id, {}))
        matched_ids.update(
            {record.id} & set(votes), set(record.candidates) & set(mean_ratings)
        )
        if record.rated:
            candidate_ratings = tuple(
                mean_ratings.get(candidate, {}) for candidate in record.candidates
            )
        else:
            candidate_ratings = ()
        return replace(
            record, votes=votes.get(record.id, Votes()), rated=candidate_ratings
        )

    rated_runs = []
    for run in runs:
        rated_runs.append(
            replace(
                run,
                records={
                    part: [tuple(map(rate, records)) for records in rows]
                    for part, rows in run.records.items()
                },
            )
        )
    return rated_runs, [
        identity for identity in ratings.where if identity not in matched_ids
    ]


def annotator_table(ratings: HumanRatings) -> Table:
    """Agreement of raters with one another, one row per aspect.

    Krippendorff's alpha, of ratings with the difference of an interval scale, of votes with that of
    names.
    """
    rows = []
    annotators = ratings.annotators
    aspects = dict.fromkeys(
        aspect for sample_scores in ratings.scores.values() for aspect in sample_scores
    )
    for aspect in aspects:
        table = [
            [
                sample_ratings.get(aspect, {}).get(annotator, math.nan)
                for sample_ratings in ratings.scores.values()
            ]
            for annotator in annotators
        ]
        rows.append(
            _agreement(
                aspect,
                np.array(table, dtype=float),
                krippendorff_alpha(table, "interval"),
            )
        )
    if ratings.votes:
        votes = set()
        for by_annotator in ratings.votes.values():
            for vote in by_annotator.values():
                votes.add(vote)
        vote_values = sorted(votes)
        table = []
        for annotator in annotators:
            codes = []
            for by_annotator in ratings.votes.values():
                code = math.nan
                if annotator in by_annotator:
                    code = float(vote_values.index(by_annotator[annotator]))
                codes.append(code)
            table.append(codes)
        rows.append(
            _agreement(
                VOTE, np.array(table, dtype=float), krippendorff_alpha(table, "nominal")
            )
        )
    header = ("aspect", "raters", "rated", "by two or more", "Krippendorff's alpha")
    return Table("raters", "Agreement between human raters", header, tuple(rows))


def _agreement(aspect: str, table: np.ndarray, alpha: float) -> tuple[str, ...]:
    present = ~np.isnan(table)
    rated_twice = int((present.sum(axis=0) > 1).sum())
    reason = "no item has two ratings" if not rated_twice else "all ratings are equal"
    annotators = int(present.any(axis=1).sum())
    items = int(present.any(axis=0).sum())
    return (
        aspect,
        str(annotators),
        str(items),
        str(rated_twice),
        number(alpha, 3, reason),
    )


def _ratings_by_aspect(
    ratings: HumanRatings,
) -> dict[SampleId, dict[str, tuple[float, ...]]]:
    """The ratings of each sample by aspect: one a rater, or their mean where some rater left
    some out.
    """
    by_sample = {
        identity: _add_overall(aspects) for identity, aspects in ratings.scores.items()
    }
    annotators = {
        annotator
        for aspects in by_sample.values()
        for scores in aspects.values()
        for annotator in scores
    }
    complete = all(
        set(scores) == annotators
        for aspects in by_sample.values()
        for scores in aspects.values()
    )
    sample_ratings: dict[SampleId, dict[str, tuple[float, ...]]] = {}
    for identity, aspects in by_sample.items():
        sample_ratings[identity] = {}
        for aspect, by_annotator in aspects.items():
            if complete:
                values = [by_annotator[annotator] for annotator in sorted(by_annotator)]
            else:
                column = [[value] for value in by_annotator.values()]
                values = [float(mean_of_known(column)[0])]
            sample_ratings[identity][aspect] = tuple(values)
    return sample_ratings


def _add_overall(
    aspects: Mapping[str, Mapping[str, float]],
) -> dict[str, Mapping[str, float]]:
    """O follows from SC and PQ, rater by rater, for who did not rate it."""
    sc_and_pq = {}
    for annotator, sc in aspects.get("SC", {}).items():
        if annotator in aspects.get("PQ", {}):
            sc_and_pq[annotator] = (sc, aspects["PQ"][annotator])
    derived = {
        annotator: math.sqrt(sc * pq) for annotator, (sc, pq) in sc_and_pq.items()
    }
    overall = {**derived, **aspects.get("O", {})}
    return {**aspects, "O": overall} if overall else dict(aspects)


def _schemes(runs: Sequence[Run], ratings: HumanRatings) -> dict[SampleId, str]:
    """The scheme of each contest that was voted on: its own, else the one that has all words
    that were used.
    """
    used = set()
    for by_annotator in ratings.votes.values():
        for vote in by_annotator.values():
            used.add(vote)
    common = "four_way" if used & {BOTH_GOOD, BOTH_BAD} else "three_way"
    records = chain.from_iterable(run.all_records for run in runs)
    return {
        record.id: (record.votes.scheme or common)
        for record in records
        if record.votes is not None and record.id in ratings.votes
    }


def _voted(identity: SampleId, scheme: str, ratings: HumanRatings) -> Votes:
    votes = ratings.votes[identity]
    for annotator, vote in votes.items():
        if vote not in SCHEMES.get(scheme, ()):
            raise VievalError(
                f"{ratings.where[identity]}: the vote of {annotator} on {identity} must be a "
                f"{scheme} vote, got {vote!r}; correct the file"
            )
    commonest = Counter(votes.values()).most_common(2)
    even = len(commonest) > 1 and commonest[0][1] == commonest[1][1]
    tied = TIE if TIE in SCHEMES[scheme] else ""
    annotators = tuple(votes[annotator] for annotator in sorted(votes))
    return Votes(scheme, tied if even else commonest[0][0], annotators)
