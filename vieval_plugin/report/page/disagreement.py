"""Disagreement of a judge's verdict on a sample or contest with people, or with other judges.

Judges have scales of their own, so scores are compared by their places: a judge that puts an image
at the 95th place in a hundred where people put it at the 10th is 0.85 away, whatever the two scores
are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import scipy

from vieval_plugin.judges.contests import FIRST, FORWARD, REVERSE, SECOND, ranks
from vieval_plugin.judges.protocol import Choice, SampleId
from vieval_plugin.meta_evaluation.findings import preferred
from vieval_plugin.records import Record, Run
from vieval_plugin.stats.agreement import mean_of_known
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.text.wording import rounded

#: Pictures of the strip under the answer.
MOST_PICTURES = 6


@dataclass(frozen=True)
class Judgement:
    """A judge's verdict on one sample or contest."""

    #: Name of the judge.
    label: str
    #: The verdict.
    record: Record
    #: The compared score.
    aspect: str = ""
    #: Share of the judge's samples of that part that it puts below this one.
    quantile: float = math.nan
    #: The same of people.
    human_quantile: float = math.nan
    #: Distance of the two in [0, 1]; NaN where either is not known.
    disagreement: float = math.nan


@dataclass(frozen=True)
class GalleryItem:
    """Content of a card: a sample or contest with the verdicts of all judges on it, or all those of
    one prompt.

    `disagreement` is how far it is worth a look, in [0, 1].
    """

    id: SampleId
    judgements: tuple[Judgement, ...]
    disagreement: float = 0.0

    @property
    def record(self) -> Record:
        """Record of the first verdict, for what all have in common: kind, tags, ratings, votes."""
        return self.judgements[0].record

    @property
    def records(self) -> list[Record]:
        """Record of the first verdict on each sample or contest."""
        return [
            *{
                judgement.record.id: judgement.record
                for judgement in reversed(self.judgements)
            }.values()
        ][::-1]


def prompt_of(record: Record) -> tuple[str, str, str]:
    """Key that all outputs of a prompt share."""
    return record.id.benchmark, record.id.part, record.group or record.id.uid


def items_of(runs: Sequence[Run], by_prompt: bool = False) -> list[GalleryItem]:
    """Gallery items of a benchmark's runs: each sample and contest once, with the first verdict of
    each judge.

    Where people said nothing, judges are compared with one another, and one judge alone with
    nobody: then the lowest scores are worth a look.

    Args:
        runs: one a judge.
        by_prompt: whether all samples and contests of a prompt are one item.
    """
    judgements = (
        judgement
        for run in runs
        for judged in run.records.values()
        for judgement in _judgements(run.label, [records[0] for records in judged])
    )
    by_item = grouped(
        (prompt_of(j.record) if by_prompt else j.record.id, j) for j in judgements
    )
    return [
        GalleryItem(members[0].record.id, tuple(members), _worth(members))
        for members in by_item.values()
    ]


def _worth(judgements: Sequence[Judgement]) -> float:
    disagreements = [judgement.disagreement for judgement in judgements]
    distances = [distance for distance in disagreements if not math.isnan(distance)]
    if distances:
        return max(distances)
    places = ((judgement.record.id, judgement.quantile) for judgement in judgements)
    by_sample = grouped(place for place in places if not math.isnan(place[1]))
    most = 0.0
    for quantiles in by_sample.values():
        difference = 1 - quantiles[0]
        if len(quantiles) > 1:
            difference = max(quantiles) - min(quantiles)
        most = max(most, difference)
    return most


def _judgements(label: str, records: Sequence[Record]) -> list[Judgement]:
    """The judge's records of one part, with their places among them."""
    if any(record.votes is not None for record in records):
        return [_contest_judgement(label, record) for record in records]
    aspects = []
    for record in records:
        scored = preferred(list(record.verdict.scores))
        rated = (a for a in scored if not math.isnan(_rating(record, a)))
        first = next(iter(scored), "")
        aspects.append(next(rated, first))
    scores = list(map(_score, records, aspects))
    ratings = list(map(_rating, records, aspects))
    judge_quantiles = _quantiles(scores)
    human_quantiles = _quantiles(ratings)
    places = zip(records, aspects, judge_quantiles, human_quantiles, strict=True)
    return [
        Judgement(
            label,
            record,
            aspect,
            judge,
            human,
            abs(judge - human),
        )
        for record, aspect, judge, human in places
    ]


def _score(record: Record, aspect: str) -> float:
    return record.verdict.scores.get(aspect, math.nan)


def _rating(record: Record, aspect: str) -> float:
    """People's mean of an aspect, NaN where they gave none."""
    all_ratings = record.ratings.get(aspect, ())
    ratings = [rating for rating in all_ratings if not math.isnan(rating)]
    if not ratings:
        return math.nan
    # rounded as in `annotator_mean`, so that equal means are equal
    return round(math.fsum(ratings) / len(ratings), 9)


def _quantiles(values: Sequence[float]) -> list[float]:
    """The place of each value among all, in [0, 1]; that of equal values is the same, that of
    NaN is NaN.
    """
    defined_count = sum(not math.isnan(value) for value in values)
    highest = max(defined_count - 1, 1)
    value_ranks = scipy.stats.rankdata(values, "average", nan_policy="omit")
    return [float(rank - 1) / highest for rank in value_ranks]


def _contest_judgement(label: str, record: Record) -> Judgement:
    human_vote = record.votes.vote if record.votes else ""
    if not human_vote:
        return Judgement(label, record)
    judge_vote = answer(record)
    disagreement = 1.0
    if judge_vote:
        disagreement = _vote_distance(judge_vote, human_vote, record)
    return Judgement(label, record, disagreement=disagreement)


def _vote_distance(judge_vote: str, vote: str, record: Record) -> float:
    """0 where both say the same, 1 where each prefers what the other does not, else half."""
    if judge_vote == vote:
        return 0.0
    number = len(record.candidates)
    judged = ranks(judge_vote, number)
    human = ranks(vote, number)
    if judged and human:
        pairs = list(itertools.combinations(range(number), 2))
        discordant = 0
        for i, j in pairs:
            judge_order = _sign(judged[i] - judged[j])
            human_order = _sign(human[i] - human[j])
            discordant += judge_order != human_order
        return discordant / len(pairs)
    if {judge_vote, vote} == {FIRST, SECOND}:
        return 1.0
    return 0.5


def answer(record: Record) -> str:
    """Vote of a judge on a contest, in a word, or as a ranking; empty where it has none.

    Scores of candidates make the one with the higher score the better, equal ones a tie:
    thresholds, by which the tables have ties, are learnt from all contests and are no affair of
    one.
    """
    choice = record.verdict.choice or Choice()
    if choice.votes:
        orders = choice.votes.keys() & {FORWARD, REVERSE}
        votes = {choice.votes[order] for order in orders}
        if len(votes) == 1:
            return votes.pop()
        return "tie" if votes else ""
    if choice.preferences:
        # above 0 where the first is preferred
        total = math.fsum(choice.preferences.values())
        return _better_side(total, 0.0)
    if any(choice.scores):
        return _answer_by_scores(choice)
    return ""


def _answer_by_scores(choice: Choice) -> str:
    names = dict.fromkeys(itertools.chain(*choice.scores))
    aspect = preferred([*names])[0]
    values = [scores[aspect] for scores in choice.scores if aspect in scores]
    count = len(values)
    if count < max(2, len(choice.scores)):
        return ""
    if count == 2:
        return _better_side(*values)
    ranked = sorted(range(count), key=lambda index: -values[index])
    ranking = str(ranked[0] + 1)
    for previous, index in itertools.pairwise(ranked):
        relation = "=" if values[previous] == values[index] else ">"
        ranking += f"{relation}{index + 1}"
    return ranking


def _better_side(first: float, second: float) -> str:
    if first > second:
        return FIRST
    if first < second:
        return SECOND
    return "tie"


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def largest_disagreements(
    items: Iterable[GalleryItem], annotators: str
) -> dict[SampleId, tuple[str, ...]]:
    """Samples and contests on which a judge is furthest from the ratings, one of each prompt, with
    what was said of each.

    Args:
        items: the furthest apart first.
        annotators: what gave the ratings, in a word.
    """
    prompts = set()
    lines = {}
    for item in items:
        disagreeing = [
            judgement for judgement in item.judgements if judgement.disagreement > 0
        ]
        prompt = prompt_of(item.record)
        if not disagreeing or prompt in prompts:
            continue
        furthest = max(disagreeing, key=lambda judgement: judgement.disagreement)
        prompts.add(prompt)
        lines[item.id] = _disagreement_lines(item, furthest, annotators)
        if len(lines) == MOST_PICTURES:
            break
    return lines


def _disagreement_lines(
    item: GalleryItem,
    furthest: Judgement,
    annotators: str,
) -> tuple[str, ...]:
    record = furthest.record
    if record.votes is not None:
        human_vote = _worded(record.votes.vote, item)
        judge_vote = _worded(answer(record), item)
        rated = f"{annotators}: {human_vote}"
        judged = f"{furthest.label}: {judge_vote}"
        return rated, judged
    aspect = furthest.aspect
    mean = mean_of_known(item.record.ratings[aspect])
    score = record.verdict.scores[aspect]
    rated = f"{aspect} {rounded(float(mean), 2)}"
    judged = f"{aspect} {rounded(score, 2)}"
    return f"{annotators}: {rated}", f"{furthest.label}: {judged}"


def _worded(vote: str, item: GalleryItem) -> str:
    """The image model that a vote prefers, or the vote in words."""
    index = {FIRST: 0, SECOND: 1}.get(vote)
    if index is None:
        return vote.replace("_", " ") or "no answer"
    return item.record.candidates[index].image_model
