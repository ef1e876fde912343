"""Agreement between a judge's verdicts and human ratings, per image model, per task and over tasks.

Protocols: `paper` repeats the published computation, `fisher` is the corrected default (see stats/averaging.py).
Both use only samples for which every aspect of the judge was scored.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from vieval_plugin.judges.protocol import Status, worst
from vieval_plugin.records import Record
from vieval_plugin.stats.agreement import krippendorff_alpha, leave_one_out, leave_one_out_resampled, rater_mean
from vieval_plugin.stats.averaging import fisher_mean, fisher_mean_over, paper_mean
from vieval_plugin.stats.bootstrap import cluster_counts, interval
from vieval_plugin.stats.correlation import Floats, Kind, correlation, resampled_correlations, undefined

EXACT = 1e-4

Policy: TypeAlias = Literal["drop", "random", "worst"]
MissingRatings: TypeAlias = Literal["drop", "impute_mean"]


@dataclass(frozen=True)
class Options:
    """How failed verdicts and ratings that a rater did not give enter, and how intervals are drawn."""

    policy: Policy = "drop"
    draws: int = 1000
    seed: int = 0
    missing_ratings: MissingRatings = "drop"


@dataclass(frozen=True)
class Observation:
    """One sample as the statistics see it; hashable, small, and short when printed.

    `ratings` has, per aspect, one value a rater; `scores` the judge's value per aspect it could rate, all in [0, 1]. Of
    several verdicts of one sample, `scores` are the means of those that have them and `repeats` holds each one's.
    `exact` is false where a score is known to an interval wider than the fourth decimal.
    """

    image_model: str
    uid: str
    ratings: tuple[tuple[str, tuple[float, ...]], ...]
    scores: tuple[tuple[str, float], ...]
    status: Status
    repeats: tuple[tuple[tuple[str, float], ...], ...] = ()
    tags: tuple[str, ...] = ()
    exact: bool = True

    def __str__(self) -> str:
        return " ".join([str(self.status), *(f"{aspect}={value:.4g}" for aspect, value in self.scores)])


@dataclass(frozen=True)
class Agreement:
    """Agreement on one aspect; NaN where undefined, and `reasons` says which part was and why.

    `fisher` is the corrected average in [-1, 1] with its 95% interval, `paper` the published one, `count` the number of
    samples behind them, `draws` the bootstrap draws of `fisher`. `consistency` is Krippendorff's alpha (interval) of a
    judge's repeated verdicts with one another, NaN where there are none.
    """

    fisher: float
    low: float
    high: float
    paper: float
    count: int
    draws: Floats = field(repr=False, compare=False)
    reasons: tuple[str, ...] = ()
    consistency: float = math.nan


@dataclass(frozen=True)
class Estimate:
    """A benchmark's own statistic with its 95% interval; NaN where undefined, with the reason."""

    value: float
    low: float
    high: float
    draws: Floats = field(repr=False, compare=False)
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Summary:
    """All a task (or a group of tasks) reports: agreement by aspect, or a benchmark's own statistics by name.

    `exact` counts the scored samples whose scores are known to the fourth decimal.
    """

    aspects: Mapping[str, Agreement]
    statuses: Mapping[Status, int]
    options: Options
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    scored: int = 0
    exact: int = 0

    @property
    def total(self) -> int:
        return sum(self.statuses.values())


@dataclass(frozen=True)
class Columns:
    """The samples of one image model, in uid order: human means and the judge's scores."""

    uids: tuple[str, ...]
    human: Floats
    judge: Floats


def observe(records: Sequence[Record]) -> Observation:
    """What the statistics need of a sample's records: one, or one for each time it was judged."""
    first = records[0]
    scored = [record.verdict.scores for record in records]
    aspects = dict.fromkeys(aspect for scores in scored for aspect in scores)
    means = {a: math.fsum(values) / len(values) for a in aspects if (values := [s[a] for s in scored if a in s])}
    return Observation(
        first.id.image_model,
        first.id.uid,
        tuple((aspect, tuple(values)) for aspect, values in first.ratings.items()),
        tuple(means.items()),
        worst([record.verdict.status for record in records]),
        tuple(tuple(scores.items()) for scores in scored) if len(records) > 1 else (),
        first.tags,
        all(high - low <= EXACT for r in records for low, high in r.verdict.bounds.values()),
    )


@lru_cache(maxsize=16)
def summarise(
    observations: tuple[Observation, ...],
    aspects: tuple[str, ...],
    name: str,
    added_last: int | None = None,
    options: Options = Options(),
) -> Summary:
    """A task's agreement per aspect, with bootstrap intervals over instructions.

    `name` (of the task) is part of the seed, so that tasks are resampled independently; `added_last` is the rater whose
    O the published code adds last. Cached, because a host asks once for every metric.
    """
    filled = fill(observations, aspects, options)
    return Summary(
        {aspect: _agreement(filled, aspects, aspect, name, added_last, options) for aspect in aspects},
        Counter(o.status for o in observations),
        options,
        scored=sum(bool(o.scores) for o in observations),
        exact=sum(bool(o.scores) and o.exact for o in observations),
    )


def _agreement(
    observations: Sequence[Observation],
    aspects: tuple[str, ...],
    aspect: str,
    name: str,
    added_last: int | None,
    options: Options,
) -> Agreement:
    by_model = columns(observations, aspects, aspect)
    exact = columns(observations, aspects, aspect, added_last)
    counts = _counts(observations, name, options)
    values, papers, draws, reasons = [], [], [], []
    for model, c in by_model.items():
        values.append(correlation(c.human, c.judge))
        papers.append(correlation(exact[model].human, exact[model].judge))
        draws.append(resampled_correlations(c.human, c.judge, counts(c.uids)))
        if why := undefined(c.human, c.judge):
            reasons.append(
                f"{model}: {why.replace('first variable', 'human mean').replace('second variable', 'judge')}"
            )
    averaged = fisher_mean_over(draws) if draws else np.full(options.draws, np.nan)
    low, high = interval(averaged)
    count = sum(len(c.uids) for c in by_model.values())
    return Agreement(
        fisher_mean(values),
        low,
        high,
        paper_mean(papers),
        count,
        averaged,
        tuple(reasons),
        _consistency(observations, aspect),
    )


def _consistency(observations: Sequence[Observation], aspect: str) -> float:
    """Alpha of repeated verdicts, each time of judging a rater; NaN where no sample was judged twice."""
    times = max((len(o.repeats) for o in observations), default=0)
    if times < 2:
        return math.nan
    absent = [math.nan] * times
    table = [[dict(scores).get(aspect, math.nan) for scores in o.repeats] or absent for o in observations]
    return krippendorff_alpha(np.array(table).T, "interval")


def human(
    observations: Sequence[Observation], aspects: tuple[str, ...], name: str, options: Options = Options()
) -> dict[str, Agreement]:
    """Leave-one-out agreement of human raters per aspect, over all rated samples of a task."""
    result = {}
    counts = _counts(observations, name, options)
    for aspect in aspects:
        values: list[float] = []
        papers: list[float] = []
        draws: list[Floats] = []
        reasons: list[str] = []
        for model, (uids, ratings) in rating_columns(observations, aspect).items():
            per_rater = leave_one_out(ratings)
            values.extend(per_rater)
            papers.append(paper_mean(per_rater, rounded=False))
            draws.extend(leave_one_out_resampled(ratings, counts(uids)))
            reasons.extend(f"{model}: rater {r + 1} is constant" for r in np.flatnonzero(np.isnan(per_rater)))
        averaged = fisher_mean_over(draws)
        low, high = interval(averaged)
        count = len(observations)
        result[aspect] = Agreement(fisher_mean(values), low, high, paper_mean(papers), count, averaged, tuple(reasons))
    return result


def over_tasks(parts: Sequence[Agreement]) -> Agreement:
    """The average over tasks of their averages, both ways, with an interval from the tasks' independent draws."""
    draws = fisher_mean_over([part.draws for part in parts])
    low, high = interval(draws)
    return Agreement(
        fisher_mean([part.fisher for part in parts]),
        low,
        high,
        paper_mean(part.paper for part in parts),
        sum(part.count for part in parts),
        draws,
        tuple(dict.fromkeys(reason for part in parts for reason in part.reasons)),
        math.fsum(part.consistency for part in parts) / len(parts),
    )


@lru_cache(maxsize=16)
def combine(summaries: tuple[Summary, ...]) -> Summary:
    """A group's summary from its tasks'; each aspect over the tasks that rate it. Cached, as `summarise` is."""
    aspects = dict.fromkeys(aspect for summary in summaries for aspect in summary.aspects)
    names = dict.fromkeys(name for summary in summaries for name in summary.estimates)
    statuses: Counter[Status] = Counter()
    for summary in summaries:
        statuses.update(summary.statuses)
    return Summary(
        {a: over_tasks([s.aspects[a] for s in summaries if a in s.aspects]) for a in aspects},
        statuses,
        summaries[0].options,
        {name: _mean_estimate([s.estimates[name] for s in summaries if name in s.estimates]) for name in names},
        sum(s.scored for s in summaries),
        sum(s.exact for s in summaries),
    )


def _mean_estimate(parts: Sequence[Estimate]) -> Estimate:
    """The plain mean over tasks of a statistic, with an interval from their independent draws."""
    draws = np.mean([part.draws for part in parts], axis=0)
    low, high = interval(draws)
    reasons = tuple(dict.fromkeys(part.reason for part in parts if part.reason))
    return Estimate(math.fsum(part.value for part in parts) / len(parts), low, high, draws, ", ".join(reasons))


def columns(
    observations: Sequence[Observation], aspects: tuple[str, ...], aspect: str, added_last: int | None = None
) -> dict[str, Columns]:
    """Human means and judge's scores on an aspect by image model, over samples scored on all `aspects`."""
    found = {}
    for model, rows in _by_model(observations).items():
        complete = [o for o in rows if set(aspects) <= {name for name, _ in o.scores}]
        ratings = np.array([dict(o.ratings)[aspect] for o in complete], dtype=float).T
        found[model] = Columns(
            tuple(o.uid for o in complete),
            rater_mean(ratings, added_last) if complete else np.zeros(0),
            np.array([dict(o.scores)[aspect] for o in complete], dtype=float),
        )
    return found


def rating_columns(observations: Sequence[Observation], aspect: str) -> dict[str, tuple[tuple[str, ...], Floats]]:
    """All ratings on an aspect by image model: uids, and an array (raters, uids)."""
    return {
        model: (tuple(o.uid for o in rows), np.array([dict(o.ratings)[aspect] for o in rows], dtype=float).T)
        for model, rows in _by_model(observations).items()
    }


def per_model(
    observations: Sequence[Observation],
    aspects: tuple[str, ...],
    aspect: str,
    added_last: int | None = None,
    kind: Kind = "spearman",
) -> dict[str, float]:
    """The correlation of each image model (NaN where undefined), in the published order of addition."""
    found = columns(observations, aspects, aspect, added_last)
    return {model: correlation(c.human, c.judge, kind) for model, c in found.items()}


def fill(observations: Sequence[Observation], aspects: tuple[str, ...], options: Options) -> list[Observation]:
    """Observations under a failure policy.

    `drop` leaves failed ones out of correlations; `random` gives each aspect that failed a seeded draw from
    {0, 0.1, ..., 1}, the published penalty; `worst` gives it 0. O follows from SC and PQ where the judge rates both. What
    was never recorded (`missing`) stays out.
    """
    if options.policy == "drop":
        return list(observations)
    return [o if o.status.usable or o.status is Status.MISSING else _filled(o, aspects, options) for o in observations]


def _filled(observation: Observation, aspects: tuple[str, ...], options: Options) -> Observation:
    rng = np.random.default_rng([options.seed, zlib.crc32(f"{observation.image_model}/{observation.uid}".encode())])
    derived = {"SC", "PQ", "O"} <= set(aspects)
    scores = {}
    for aspect in (a for a in aspects if not (derived and a == "O")):
        guess = float(rng.integers(0, 11)) / 10 if options.policy == "random" else 0.0
        scores[aspect] = dict(observation.scores).get(aspect, guess)
    if derived:
        scores["O"] = math.sqrt(scores["SC"] * scores["PQ"])
    return replace(observation, scores=tuple(scores.items()))


def _by_model(observations: Sequence[Observation]) -> dict[str, list[Observation]]:
    grouped: dict[str, list[Observation]] = {}
    for observation in sorted(observations, key=lambda o: (o.image_model, o.uid)):
        grouped.setdefault(observation.image_model, []).append(observation)
    return grouped


def _counts(
    observations: Sequence[Observation], name: str, options: Options
) -> Callable[[Sequence[str]], np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """How often each instruction of a task is drawn: one set of draws, shared by its image models."""
    uids = sorted({o.uid for o in observations})
    drawn = cluster_counts(uids, options.draws, [options.seed, zlib.crc32(name.encode())])
    place = {uid: number for number, uid in enumerate(uids)}
    return lambda wanted: drawn[:, [place[uid] for uid in wanted]]
