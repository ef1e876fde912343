"""Input of the statistics: an observation a sample or contest, and what failed verdicts are to
them.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TypeAlias

import numpy as np

from vieval_plugin.judges.contests import Votes
from vieval_plugin.judges.protocol import Choice, Sample, Status, Verdict, worst
from vieval_plugin.records import OWN, UNJUDGED, Record
from vieval_plugin.stats.agreement import mean_of_known
from vieval_plugin.stats.options import StatisticsOptions

#: Scores by aspect.
Scores: TypeAlias = Mapping[str, float]
#: The width up to which a score that is known to an interval counts as known.
EXACT = 1e-4

_NEVER_FILLED = (Status.MISSING, Status.NOT_APPLICABLE, Status.NOT_ASKED)
_NOT_GUESSED = (*_NEVER_FILLED, Status.NO_IMAGE)


@dataclass(frozen=True)
class ContestObservation:
    """A contest as the statistics see it, beyond an `Observation`."""

    #: Those of the candidates in order.
    image_models: tuple[str, ...]
    #: People's votes.
    votes: Votes
    #: The judge's vote by order (`forward`, `reverse`).
    judge_votes: Mapping[str, str] = field(default_factory=dict)
    #: Preference for the first candidate by order, in [-1, 1].
    preferences: Mapping[str, float] = field(default_factory=dict)
    #: Scores of each candidate by aspect.
    scores: tuple[Scores, ...] = ()
    #: People's ratings of each candidate by aspect, one value an annotator.
    rated: tuple[Mapping[str, tuple[float, ...]], ...] = ()
    #: Scores with the numbers that a log keeps apart, seen under `as_recorded` alone.
    recorded: tuple[Scores, ...] = ()
    #: Indices of the candidates that are no image.
    without_image: tuple[int, ...] = ()


@dataclass(frozen=True)
class Observation:
    """A sample or contest as the statistics see it; small, and short when printed.

    One that the judge does not apply to has no scores, whatever it is given: no statistic ever sees
    one.
    """

    image_model: str
    uid: str
    #: One value an annotator by aspect, on the benchmark's own scale.
    ratings: Mapping[str, tuple[float, ...]]
    #: The judge's value by aspect that it could rate, higher being better; of several verdicts the
    #: means of those that have them.
    scores: Scores
    status: Status
    _: KW_ONLY
    #: Scores of each of several verdicts.
    repeats: tuple[Scores, ...] = ()
    tags: tuple[str, ...] = ()
    #: False where a score is known to an interval wider than the fourth decimal.
    exact: bool = True
    #: What the bootstrap draws together, the uid where nothing else is given.
    group: str = ""
    #: Place of the sample in its group.
    place: tuple[int, ...] = ()
    #: Scores with the numbers that a log has and that are none, seen under `as_recorded` alone.
    recorded: Scores = field(default_factory=dict)
    #: Unit of chance, such as the template of a user's own prompts; the group where nothing else is
    #: given.
    cluster: str = ""
    contest: ContestObservation | None = None
    draw: int = 0
    kind: str = ""
    category: str = ""
    #: What an image cost to make and to judge, as far as that is known.
    cost: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", self.group or self.uid)
        object.__setattr__(self, "cluster", self.cluster or self.group)
        if self.status is Status.NOT_APPLICABLE:
            for name, nothing in (("scores", {}), ("repeats", ()), ("recorded", {})):
                object.__setattr__(self, name, nothing)

    def __str__(self) -> str:
        scores = [f"{aspect}={value:.4g}" for aspect, value in self.scores.items()]
        return " ".join([str(self.status), *scores])


def observe(records: Sequence[Record]) -> Observation:
    """Turn a sample's records into the observation that the statistics need.

    Args:
        records: one, or one for each time the sample was judged; not none.

    Returns:
        The sample's ratings with the mean score of each aspect, over the verdicts that have it. Its
        status is that of its worst verdict.

    >>> from vieval_plugin.judges.protocol import SampleId, Verdict
    >>> from vieval_plugin.records import Provenance
    >>> judged = Provenance("mine", (), ("SC",))
    >>> twice = [Verdict({"SC": 0.25}, Status.OK), Verdict({"SC": 0.75}, Status.REPAIRED)]
    >>> print(observe([Record(SampleId("b", "tie", "model", "1"), verdict, judged, {}) for verdict in twice]))
    repaired SC=0.5
    """
    first = records[0]
    verdicts = [record.verdict for record in records]
    scored = [verdict.scores for verdict in verdicts]
    repeats: tuple[Scores, ...] = ()
    if len(scored) > 1:
        repeats = tuple(scored)
    recorded: Scores = {}
    if any(verdict.recorded for verdict in verdicts):
        recorded = _means(
            [{**verdict.scores, **verdict.recorded} for verdict in verdicts]
        )
    cost: Mapping[str, float] = {}
    if first.generation:
        cost = first.generation.cost
    return Observation(
        image_model=first.id.image_model,
        uid=first.id.uid,
        ratings={aspect: tuple(values) for aspect, values in first.ratings.items()},
        scores=_means(scored),
        status=worst([verdict.status for verdict in verdicts]),
        repeats=repeats,
        tags=first.tags,
        exact=all(map(_is_exact, verdicts)),
        group=first.group,
        place=first.place,
        recorded=recorded,
        cluster=_cluster(first),
        contest=_contested(first),
        draw=first.id.draw,
        kind=first.kind,
        category=first.category,
        cost=cost,
    )


def _is_exact(verdict: Verdict) -> bool:
    """True where all scores are known to the fourth decimal."""
    return all(high - low <= EXACT for low, high in verdict.bounds.values())


def _cluster(record: Record) -> str:
    """The group of a user's own sample; empty if missing."""
    if record.row:
        return record.row.group
    if record.id.benchmark == OWN and isinstance(record.sample, Sample):
        return record.sample.group
    return ""


def mean_rating(observation: Observation, aspect: str) -> float:
    """People's mean rating, on the benchmark's scale; NaN if it has no ratings."""
    ratings = observation.ratings.get(aspect)
    if not ratings:
        return math.nan
    [mean] = mean_of_known([[rating] for rating in ratings])
    return float(mean)


def apply_contest_policy(
    observations: Iterable[Observation], options: StatisticsOptions
) -> tuple[Observation, ...]:
    """Observations of contests under a failure policy.

    `as_recorded` takes candidates' scores with the numbers that a log keeps apart. Under each other
    policy an answer that is missing is wrong, so nothing is filled in.

    Args:
        observations: as judged, in any order.
        options: the policy.
    """
    if options.policy != "as_recorded":
        return tuple(observations)
    return tuple(map(_use_recorded_scores, observations))


def _use_recorded_scores(observation: Observation) -> Observation:
    contest = observation.contest
    if contest is None or not contest.recorded:
        return observation
    return replace(observation, contest=replace(contest, scores=contest.recorded))


def _contested(record: Record) -> ContestObservation | None:
    """The contest of a record; of several verdicts on it the first counts."""
    if record.votes is None:
        return None
    choice = record.verdict.choice or Choice()
    return ContestObservation(
        image_models=tuple(candidate.image_model for candidate in record.candidates),
        votes=record.votes,
        judge_votes=choice.votes,
        preferences=choice.preferences,
        scores=tuple(choice.scores),
        rated=record.rated,
        recorded=tuple(choice.recorded),
        without_image=tuple(
            int(step.path[0]) - 1
            for step in record.verdict.trace
            if step.status is Status.NO_IMAGE and step.path[1:] == UNJUDGED
        ),
    )


def _means(scored: Sequence[Scores]) -> Scores:
    """The mean of each aspect over those that have it."""
    if len(scored) == 1:
        return scored[0]
    values_by_aspect: dict[str, list[float]] = {}
    for scores in scored:
        for aspect, value in scores.items():
            values_by_aspect.setdefault(aspect, []).append(value)
    return {
        aspect: math.fsum(values) / len(values)
        for aspect, values in values_by_aspect.items()
    }


def against_all(
    observations: Sequence[Observation], aspect: str, rated: Sequence[str]
) -> list[Observation]:
    """Observations of a judge with one score, as if it had given that for every aspect that people
    rated.

    Args:
        observations: in any order, failures already filled.
        aspect: the one that the judge rates.
        rated: those that people rated.

    >>> one = Observation("model", "1", {}, {"SC": 0.5}, Status.OK)
    >>> print(*against_all([one], "SC", ("SC", "PQ")))
    ok SC=0.5 PQ=0.5
    """

    def widened(scores: Scores) -> Scores:
        if aspect in scores:
            return dict.fromkeys(rated, scores[aspect])
        return {}

    return [
        replace(
            observation,
            scores=widened(observation.scores),
            repeats=tuple(map(widened, observation.repeats)),
            recorded=widened(observation.recorded),
        )
        for observation in observations
    ]


def apply_failure_policy(
    observations: Sequence[Observation],
    aspects: Sequence[str],
    options: StatisticsOptions,
) -> list[Observation]:
    """Observations under a failure policy: what a failed verdict is to a statistic.

    `drop` leaves failed ones as they are, without the scores that they lack; `random` gives each
    aspect that failed a seeded draw from {0, 0.1, ..., 1}, the published penalty; `worst` gives it
    the lowest of the scale: 0, or -1 for a metric with any score below 0. O follows from SC and PQ
    where the judge rates all three. `as_recorded` takes all numbers that a log has and that are no
    scores: guesses, whatever a reader makes of the replies behind them, and what no live reply
    could have had. What was never recorded (`missing`) or asked (`not_applicable`) stays without
    scores under each. An image that was never made (`no_image`) has the lowest under `worst`, and
    no number is drawn for it.

    Args:
        observations: in any order; a draw of `random` depends on seed, image model, uid and the
            image's number alone.
        aspects: the aspects and further scores that the judge gives.
        options: the policy, and the seed of `random`.

    Returns:
        The observations in their order.

    >>> failed = Observation("model", "1", {}, {"SC": 0.5}, Status.REFUSAL)
    >>> [filled] = apply_failure_policy([failed], ("SC", "PQ", "O"), StatisticsOptions("worst"))
    >>> print(filled)
    refusal SC=0.5 PQ=0 O=0
    """
    if options.policy == "drop":
        return list(observations)
    if options.policy == "as_recorded":
        return [
            replace(observation, scores=observation.recorded or observation.scores)
            for observation in observations
        ]
    unfilled: tuple[Status, ...] = _NEVER_FILLED
    if options.policy == "random":
        unfilled = _NOT_GUESSED
    lowest = 0.0
    if any(
        score < 0
        for observation in observations
        for score in observation.scores.values()
    ):
        lowest = -1.0
    imputed = []
    for observation in observations:
        if not observation.status.usable and observation.status not in unfilled:
            observation = _fill_failures(observation, aspects, options, lowest)
        imputed.append(observation)
    return imputed


def _fill_failures(
    observation: Observation,
    aspects: Sequence[str],
    options: StatisticsOptions,
    lowest: float,
) -> Observation:
    draw = ""
    if observation.draw:
        draw = f"/{observation.draw}"
    name = f"{observation.image_model}/{observation.uid}{draw}"
    seed = [options.seed, zlib.crc32(name.encode())]
    rng = np.random.default_rng(seed)
    derived = {"SC", "PQ", "O"} <= set(aspects)
    scores = {}
    for aspect in aspects:
        if derived and aspect == "O":
            continue
        # drawn whether it is needed or not, so that an aspect's draw does not depend on which
        # others failed
        if options.policy == "random":
            guess = float(rng.integers(0, 11)) / 10
        else:
            guess = lowest * (not derived)
        scores[aspect] = observation.scores.get(aspect, guess)
    if derived:
        scores["O"] = math.sqrt(scores["SC"] * scores["PQ"])
    return replace(observation, scores=scores)
