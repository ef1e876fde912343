"""Human ratings and votes from a file of their own, put into the place of those that records
have.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

import numpy as np

from vieval_plugin.judges.contests import BOTH_BAD, BOTH_GOOD, SCHEMES, TIE, Votes
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.meta_evaluation.label_plan import LabelPlan, Look, look_at
from vieval_plugin.meta_evaluation.tables import Table, number
from vieval_plugin.records import Record, Run
from vieval_plugin.stats.agreement import Level, krippendorff_alpha, mean_of_known
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.stats.decisions import LEAST_OF_ANNOTATOR
from vieval_plugin.text.errors import VievalError

#: The aspect of a vote on a contest.
VOTE = "vote"
#: Ratings by annotator.
_ByAnnotator: TypeAlias = Mapping[str, float]


@dataclass(frozen=True)
class HumanRatings:
    """Ratings of samples by aspect and rater, in [0, 1], and votes on contests by rater.

    `where` says of each of them in which line of which file it comes first. `plan` is that of
    `vieval label`, if it was given.
    """

    scores: Mapping[SampleId, Mapping[str, _ByAnnotator]]
    votes: Mapping[SampleId, Mapping[str, str]]
    where: Mapping[SampleId, str]
    plan: LabelPlan | None = None

    @property
    def look(self) -> Look | None:
        """State of the plan's labels; None without a plan."""
        if self.plan:
            return look_at(self.plan, self.where)
        return None

    @property
    def annotators(self) -> tuple[str, ...]:
        """The annotators that rated or voted, by name."""
        rated = (
            rater for aspects in self.scores.values() for rater in aspects.values()
        )
        by_rater = chain(rated, self.votes.values())
        return tuple(sorted(set(chain.from_iterable(by_rater))))

    @property
    def answers(self) -> set[str]:
        """The votes that occur."""
        return {vote for by_rater in self.votes.values() for vote in by_rater.values()}


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
    where = {
        identity: line
        for identity, line in ratings.where.items()
        if identity in images | ratings.votes.keys()
    }
    return replace(ratings, scores=scores, where=where)


def drop_constant_annotators(ratings: HumanRatings) -> tuple[HumanRatings, list[str]]:
    """Ratings without those of annotators who gave one value to all of `LEAST_OF_ANNOTATOR` images
    or more, and lines.

    Raises:
        VievalError: nothing is left.
    """
    values = grouped(
        rating
        for aspects in ratings.scores.values()
        for by_annotator in aspects.values()
        for rating in by_annotator.items()
    )
    constant = {
        name: ratings_by_item
        for name, ratings_by_item in values.items()
        if len({*ratings_by_item}) == 1 and len(ratings_by_item) >= LEAST_OF_ANNOTATOR
    }
    notes = [
        f"all {len(ratings_by_item)} ratings by {name} are {ratings_by_item[0]:g}, so they are ignored"
        for name, ratings_by_item in constant.items()
    ]
    scores = {
        identity: _drop_annotators(aspects, constant)
        for identity, aspects in ratings.scores.items()
    }
    scores = {identity: aspects for identity, aspects in scores.items() if aspects}
    where = {
        identity: line
        for identity, line in ratings.where.items()
        if identity in scores.keys() | ratings.votes.keys()
    }
    if not where:
        raise VievalError(
            f"ratings must vary: {'; '.join(notes)}; pass ratings from another person"
        )
    return replace(ratings, scores=scores, where=where), notes


def _drop_annotators(
    aspects: Mapping[str, _ByAnnotator], annotators: Collection[str]
) -> dict[str, _ByAnnotator]:
    """Ratings of an image less those of some annotators, and less aspects that have no other."""
    return {
        aspect: {
            name: value
            for name, value in by_annotator.items()
            if name not in annotators
        }
        for aspect, by_annotator in aspects.items()
        if not set(by_annotator) <= set(annotators)
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
    votes = {
        identity: _voted(identity, scheme, ratings)
        for identity, scheme in _schemes(runs, ratings).items()
    }
    matched_ids: set[SampleId] = set()

    def rate(record: Record) -> Record:
        if record.votes is None:
            matched_ids.update({record.id} & set(mean_ratings))
            return replace(record, ratings=mean_ratings.get(record.id, {}))
        matched_ids.update({record.id} & set(votes))
        matched_ids.update(set(record.candidates) & set(mean_ratings))
        if record.rated:
            candidate_ratings = tuple(
                mean_ratings.get(candidate, {}) for candidate in record.candidates
            )
        else:
            candidate_ratings = ()
        return replace(
            record, votes=votes.get(record.id, Votes()), rated=candidate_ratings
        )

    rated_runs = [
        replace(
            run,
            records={
                part: [tuple(map(rate, records)) for records in rows]
                for part, rows in run.records.items()
            },
        )
        for run in runs
    ]
    return rated_runs, [
        identity for identity in ratings.where if identity not in matched_ids
    ]


def annotator_table(ratings: HumanRatings) -> Table:
    """Agreement of raters with one another, one row per aspect.

    Krippendorff's alpha, of ratings with the difference of an interval scale, of votes with that of
    names.
    """
    annotators = ratings.annotators
    scores = ratings.scores.values()
    rows = []
    for aspect in dict.fromkeys(chain.from_iterable(scores)):
        by_item = [by_aspect.get(aspect, {}) for by_aspect in scores]
        rows.append(_agreement(aspect, "interval", by_item, annotators))
    if ratings.votes:
        answers = sorted(ratings.answers)
        codes = {vote: float(code) for code, vote in enumerate(answers)}
        coded = [
            {annotator: codes[vote] for annotator, vote in by_annotator.items()}
            for by_annotator in ratings.votes.values()
        ]
        rows.append(_agreement(VOTE, "nominal", coded, annotators))
    header = ("aspect", "raters", "rated", "by two or more", "Krippendorff's alpha")
    return Table(
        name="raters",
        title="Agreement between human raters",
        header=header,
        rows=tuple(rows),
    )


def _agreement(
    aspect: str,
    level: Level,
    by_item: Sequence[_ByAnnotator],
    annotators: Sequence[str],
) -> tuple[str, ...]:
    table = np.array(
        [
            [by_annotator.get(annotator, math.nan) for by_annotator in by_item]
            for annotator in annotators
        ],
        dtype=float,
    )
    present = ~np.isnan(table)
    rated_twice = int((present.sum(axis=0) > 1).sum())
    reason = "all ratings are equal"
    if not rated_twice:
        reason = "no item has two ratings"
    alpha = krippendorff_alpha(table, level)
    raters = int(present.any(axis=1).sum())
    rated_items = int(present.any(axis=0).sum())
    alpha_text = number(alpha, 3, reason)
    return (aspect, str(raters), str(rated_items), str(rated_twice), alpha_text)


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
    aspects: Mapping[str, _ByAnnotator],
) -> dict[str, _ByAnnotator]:
    """O follows from SC and PQ, rater by rater, for who did not rate it."""
    pq_by_annotator = aspects.get("PQ", {})
    derived = {}
    for annotator, sc_rating in aspects.get("SC", {}).items():
        if annotator in pq_by_annotator:
            derived[annotator] = math.sqrt(sc_rating * pq_by_annotator[annotator])
    overall = {**derived, **aspects.get("O", {})}
    if overall:
        return {**aspects, "O": overall}
    return dict(aspects)


def _schemes(runs: Sequence[Run], ratings: HumanRatings) -> dict[SampleId, str]:
    """The scheme of each contest that was voted on: its own, else the one that has all words
    that were used.
    """
    common = "three_way"
    if ratings.answers & {BOTH_GOOD, BOTH_BAD}:
        common = "four_way"
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
    counts = [count for _, count in commonest]
    overall_vote = commonest[0][0]
    if len(counts) > 1 and counts[0] == counts[1]:
        overall_vote = ""
        if TIE in SCHEMES[scheme]:
            overall_vote = TIE
    annotator_votes = tuple(votes[annotator] for annotator in sorted(votes))
    return Votes(scheme, overall_vote, annotator_votes)
