"""Statistics of benchmarks that compare scores with labels, preferences or human scores of their own kind.

Each works on the observations that have a score and is given with a 95% interval by a cluster bootstrap: all pairs of an
example, and all images of a prompt, are drawn together.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vieval_plugin.meta_evaluation import Estimate, Observation, Options, Summary, fill
from vieval_plugin.stats import binary, compositional, pairwise
from vieval_plugin.stats.bootstrap import cluster_counts, interval
from vieval_plugin.stats.correlation import Floats, Kind, correlation, resampled_correlations, undefined

ASPECT = "SC"
Counts = NDArray[np.int64]
Computed = tuple[float, Callable[[Counts], Floats], list[str], str]
"""A value, its resamples from counts of its rows, the cluster of each row, and why it is undefined."""


@lru_cache(maxsize=16)
def summarise(
    observations: tuple[Observation, ...], statistics: tuple[str, ...], name: str, options: Options = Options()
) -> Summary:
    """A task's statistics by name, with intervals. Cached, because a host asks once for every metric."""
    filled = [o for o in fill(observations, (ASPECT,), options) if dict(o.scores).get(ASPECT) is not None]
    filled.sort(key=lambda o: (o.uid, o.image_model))
    return Summary(
        {},
        Counter(o.status for o in observations),
        options,
        {statistic: estimate(filled, statistic, name, options) for statistic in statistics},
        scored=len(filled),
        exact=sum(o.exact for o in filled),
    )


def by_tag(
    observations: Sequence[Observation], statistics: tuple[str, ...], name: str, options: Options
) -> dict[str, Summary]:
    """The same statistics for each skill tag, over the observations that carry it; empty where there are none."""
    tagged: dict[str, list[Observation]] = defaultdict(list)
    for observation in observations:
        for tag in observation.tags:
            tagged[tag].append(observation)
    return {tag: summarise(tuple(tagged[tag]), statistics, f"{name}/{tag}", options) for tag in sorted(tagged)}


def estimate(observations: Sequence[Observation], statistic: str, name: str, options: Options) -> Estimate:
    """One statistic of scored observations with its interval; NaN with a reason where it is undefined."""
    return with_interval(_STATISTICS[statistic](observations), name, options)


def with_interval(computed: Computed, name: str, options: Options) -> Estimate:
    """What was computed with the interval of its resamples; `name` (of the task) is part of the seed."""
    value, resample, drawn, reason = computed
    if math.isnan(value):
        return Estimate(math.nan, math.nan, math.nan, np.full(options.draws, np.nan), reason or "undefined")
    seed = [options.seed, *name.encode()]
    draws = resample(cluster_counts(drawn, options.draws, seed))
    low, high = interval(draws)
    return Estimate(value, low, high, draws)


def correlated(judged: Floats, rated: Floats, drawn: list[str], kind: Kind) -> Computed:
    """Correlation of a judge's scores with ratings, where `drawn` names what is drawn together."""
    return (
        correlation(judged, rated, kind),
        lambda counts: resampled_correlations(judged, rated, counts, kind),
        drawn,
        undefined(judged, rated),
    )


def clusters(observations: Sequence[Observation]) -> list[str]:
    """What is drawn together: samples whose uids are alike up to a `#`."""
    return [o.uid.split("#")[0] for o in observations]


def _scores(observations: Sequence[Observation]) -> tuple[Floats, Floats]:
    judged = np.array([dict(o.scores)[ASPECT] for o in observations], dtype=float)
    rated = np.array([np.mean(dict(o.ratings)[ASPECT]) for o in observations], dtype=float)
    return judged, np.round(rated, 9)


def _correlation(kind: Kind) -> Callable[[Sequence[Observation]], Computed]:
    return lambda observations: correlated(*_scores(observations), clusters(observations), kind)


def _pairwise(observations: Sequence[Observation]) -> Computed:
    """The interval keeps the epsilon that was calibrated on all pairs."""
    judged, rated = _scores(observations)
    found = pairwise.calibrated(judged, rated)
    epsilon = found.epsilon
    return (
        found.accuracy,
        lambda c: pairwise.resampled_accuracy(judged, rated, epsilon, c),
        clusters(observations),
        "too few samples",
    )


def _auroc(observations: Sequence[Observation]) -> Computed:
    judged, rated = _scores(observations)
    value = binary.auroc(rated, judged)
    return (
        value,
        lambda c: binary.resampled_auroc(rated, judged, c),
        clusters(observations),
        "labels of one class only",
    )


def _examples(observations: Sequence[Observation], cells: Sequence[str]) -> dict[str, dict[str, Observation]]:
    """Observations by example and by what follows `#` in their uid, of those examples that have all."""
    found: dict[str, dict[str, Observation]] = defaultdict(dict)
    for observation in observations:
        example, _, cell = observation.uid.partition("#")
        found[example][cell] = observation
    return {example: by_cell for example, by_cell in found.items() if set(cells) <= set(by_cell)}


def _preference(observations: Sequence[Observation]) -> Computed:
    examples = _examples(observations, ("0", "1"))
    first, second = (np.array([dict(e[k].scores)[ASPECT] for e in examples.values()], dtype=float) for k in "01")
    preferred = np.array([dict(e["0"].ratings)[ASPECT][0] for e in examples.values()], dtype=float)
    value = binary.accuracy(preferred, first, second)
    return value, lambda c: binary.resampled_accuracy(preferred, first, second, c), list(examples), "no complete pair"


def _compositional(which: int) -> Callable[[Sequence[Observation]], Computed]:
    cells = ("i0t0", "i0t1", "i1t0", "i1t1")

    def compute(observations: Sequence[Observation]) -> Computed:
        examples = _examples(observations, cells)
        scores = np.array([[dict(e[c].scores)[ASPECT] for c in cells] for e in examples.values()], dtype=float)
        table = scores.reshape(-1, 2, 2)
        value = float(compositional.shares(table)[which])
        return value, lambda c: compositional.resampled_shares(table, c)[which], list(examples), "no complete example"

    return compute


_STATISTICS: dict[str, Callable[[Sequence[Observation]], Computed]] = {
    "pearson": _correlation("pearson"),
    "kendall": _correlation("kendall"),
    "pairwise_accuracy": _pairwise,
    "auroc": _auroc,
    "preference_accuracy": _preference,
    "text_score": _compositional(0),
    "image_score": _compositional(1),
    "group_score": _compositional(2),
}
