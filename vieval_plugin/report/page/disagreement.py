"""How far a judge's verdict on a sample or contest is from what people said, or from what other judges said.

Judges have scales of their own, so scores are compared by their places: a judge that puts an image at the 95th place in a
hundred where people put it at the 10th is 0.85 away, whatever the two scores are.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scipy.stats import rankdata

from vieval_plugin.judges.contests import FIRST, FORWARD, REVERSE, SECOND, ranks
from vieval_plugin.judges.protocol import Choice, SampleId
from vieval_plugin.meta_evaluation.headline import preferred
from vieval_plugin.records import Record, Run


@dataclass(frozen=True)
class Judgement:
    """A judge's verdict on one sample or contest.

    `aspect` is the score that is compared, `place` the share of the judge's samples of that part that it puts below this one,
    `people` the same of people. `apart` is how far the two are from each other, in [0, 1]; NaN where either is not known.
    """

    label: str
    record: Record
    aspect: str = ""
    place: float = math.nan
    people: float = math.nan
    apart: float = math.nan


@dataclass(frozen=True)
class GalleryItem:
    """A sample or contest with the verdicts of all judges on it; `apart` is how far it is worth a look, in [0, 1]."""

    id: SampleId
    judgements: tuple[Judgement, ...]
    apart: float = field(default=0.0)

    @property
    def record(self) -> Record:
        """What all its verdicts have in common: kind, tags, ratings, votes."""
        return self.judgements[0].record


def items_of(runs: Sequence[Run]) -> list[GalleryItem]:
    """All samples and contests of a benchmark's runs, each once; of several verdicts by one judge the first.

    Where people said nothing, judges are compared with one another, and one judge alone with nobody: then the lowest scores
    are worth a look.

    Args:
        runs: one a judge.
    """
    held: dict[SampleId, list[Judgement]] = defaultdict(list)
    for run in runs:
        for judged in run.records.values():
            records = [together[0] for together in judged]
            for one in _judgements(run.label, records):
                held[one.record.id].append(one)
    return [GalleryItem(identity, tuple(several), _worth(several)) for identity, several in held.items()]


def _worth(judgements: Sequence[Judgement]) -> float:
    apart = [one.apart for one in judgements if not math.isnan(one.apart)]
    if apart:
        return max(apart)
    places = [one.place for one in judgements if not math.isnan(one.place)]
    if len(places) > 1:
        return max(places) - min(places)
    return 1 - places[0] if places else 0.0


def _judgements(label: str, records: Sequence[Record]) -> list[Judgement]:
    """The judge's records of one part, with their places among them."""
    if any(record.votes is not None for record in records):
        return [_of_contest(label, record) for record in records]
    found = []
    own: dict[int, tuple[str, float]] = {}
    for number, record in enumerate(records):
        scored = preferred(list(record.verdict.scores), dict.fromkeys(record.verdict.scores, 1))
        rated = [aspect for aspect in scored if _rated(record, aspect)]
        for aspect in (rated or scored)[:1]:
            own[number] = aspect, record.verdict.scores[aspect]
    places = _places({number: value for number, (_, value) in own.items()})
    people = _places(
        {number: value for number, (aspect, _) in own.items() if (value := _rated(records[number], aspect))}
    )
    for number, record in enumerate(records):
        place, others = places.get(number, math.nan), people.get(number, math.nan)
        found.append(Judgement(label, record, own.get(number, ("", 0.0))[0], place, others, abs(place - others)))
    return found


def _rated(record: Record, aspect: str) -> float | None:
    """People's mean of an aspect, a little above 0 where it is that, so that it counts as given."""
    given = [value for value in record.ratings.get(aspect, ()) if not math.isnan(value)]
    return math.fsum(given) / len(given) + 1e-12 if given else None


def _places(values: Mapping[int, float]) -> dict[int, float]:
    """The place of each value among all, in [0, 1]; that of equal values is the same."""
    if not values:
        return {}
    ordered = rankdata(list(values.values()), "average")
    most = max(len(values) - 1, 1)
    return {number: float(rank - 1) / most for number, rank in zip(values, ordered, strict=True)}


def _of_contest(label: str, record: Record) -> Judgement:
    said = answer(record)
    vote = record.votes.vote if record.votes else ""
    return Judgement(label, record, apart=math.nan if not vote else 1.0 if not said else _between(said, vote, record))


def _between(said: str, vote: str, record: Record) -> float:
    """0 where both say the same, 1 where each prefers what the other does not, else half."""
    if said == vote:
        return 0.0
    number = len(record.candidates)
    judged, people = ranks(said, number), ranks(vote, number)
    if judged and people:
        pairs = [(i, j) for i in range(number) for j in range(i)]
        wrong = sum(_sign(judged[i] - judged[j]) != _sign(people[i] - people[j]) for i, j in pairs)
        return wrong / len(pairs)
    return 1.0 if {said, vote} == {FIRST, SECOND} else 0.5


def answer(record: Record) -> str:
    """What a judge says of a contest, in a word, or as a ranking; empty where it says nothing.

    Scores of candidates make the one with the higher score the better, equal ones a tie: thresholds, by which the tables have
    ties, are learnt from all contests and are no affair of one.
    """
    choice = record.verdict.choice or Choice()
    if choice.votes:
        said = [choice.votes[order] for order in (FORWARD, REVERSE) if order in choice.votes]
        return said[0] if said and all(one == said[0] for one in said) else "tie" if said else ""
    if choice.preferences:
        mean = math.fsum(choice.preferences.values()) / len(choice.preferences)
        return FIRST if mean > 0 else SECOND if mean < 0 else "tie"
    aspects = preferred(list(held := dict.fromkeys(a for one in choice.scores for a in one)), dict.fromkeys(held, 1))
    scored = [one.get(aspect) for aspect in aspects[:1] for one in choice.scores]
    values = [value for value in scored if value is not None]
    if len(values) < 2 or len(values) < len(scored):
        return ""
    if len(values) == 2:
        return FIRST if values[0] > values[1] else SECOND if values[0] < values[1] else "tie"
    places = sorted(range(len(values)), key=lambda place: -values[place])
    told = str(places[0] + 1)
    for before, place in itertools.pairwise(places):
        told += f"{'=' if values[before] == values[place] else '>'}{place + 1}"
    return told


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
