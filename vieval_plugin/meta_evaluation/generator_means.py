"""Means of a generator's scores over prompts, with intervals: of its images, and of the best image of each prompt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from vieval_plugin.meta_evaluation.estimates import Computed, estimated
from vieval_plugin.meta_evaluation.observations import Estimate, Observation, StatisticsOptions, Summary, fill
from vieval_plugin.stats.correlation import Floats

COSTS = ("generation_seconds", "generation_tokens", "judging_tokens")
"""What an image may have cost, each a mean over the images of which it is known."""


@lru_cache(maxsize=16)
def means_of_generator(
    observations: tuple[Observation, ...],
    aspects: tuple[str, ...],
    name: str,
    options: StatisticsOptions,
    best: bool = False,
) -> Summary:
    """A generator's means on a part. Cached, because a host asks once for every metric.

    Args:
        observations: one an image, in any order.
        aspects: the scores that the judge gives.
        name: that of the part; it joins the seed.
        options: what a failed verdict is, how many draws, the seed.
        best: whether a prompt has several images, of which the best counts as well.

    Returns:
        `<aspect>_mean` over prompts of the mean of a prompt's images, `<aspect>_best` of the best of them, all in [0, 1], and
        the mean of each of `COSTS`. Prompts of which no image has the score are in no mean.

    >>> from vieval_plugin.judges.protocol import Status
    >>> images = [("1", 0, 0.25), ("1", 1, 0.75), ("2", 0, 1.0)]
    >>> seen = tuple(Observation("m", uid, (), (("PQ", v),), Status.OK, draw=n) for uid, n, v in images)
    >>> found = means_of_generator(seen, ("PQ",), "b/p", StatisticsOptions(draws=50), True).estimates
    >>> found["PQ_mean"].value, found["PQ_best"].value
    (0.75, 0.875)
    """
    ordered = sorted(observations, key=lambda one: (one.group, one.uid, one.draw))
    filled = fill(ordered, aspects, options)
    estimates = {f"{a}_mean": over_prompts(filled, a, name, options) for a in aspects}
    if best:
        estimates |= {f"{a}_best": over_prompts(filled, a, name, options, max) for a in aspects}
    estimates |= {cost: _cost(ordered, cost, name, options) for cost in COSTS}
    scored = sum(bool(one.scores) for one in filled)
    exact = sum(bool(one.scores) and one.exact for one in filled)
    return Summary({}, Counter(one.status for one in ordered), options, estimates, scored, exact)


def mean_of(values: Sequence[float]) -> float:
    """The mean of the scores of one prompt's images.

    >>> mean_of([0.5, 1.0])
    0.75
    """
    return math.fsum(values) / len(values)


def by_prompt(
    observations: Sequence[Observation], aspect: str, of_images: Callable[[Sequence[float]], float] = mean_of
) -> Mapping[str, float]:
    """The score of each prompt from those of its images that have one.

    Args:
        observations: one an image, failures already filled.
        aspect: the score.
        of_images: what several images of a prompt count as, such as their mean or the best.

    >>> from vieval_plugin.judges.protocol import Status
    >>> by_prompt([Observation("m", "1", (), (("PQ", 0.5),), Status.OK)], "PQ")
    {'1': 0.5}
    """
    held: dict[str, list[float]] = {}
    for one in observations:
        scores = dict(one.scores)
        if aspect in scores:
            held.setdefault(one.group, []).append(scores[aspect])
    return {group: of_images(values) for group, values in held.items()}


def over_prompts(
    observations: Sequence[Observation],
    aspect: str,
    name: str,
    options: StatisticsOptions,
    of_images: Callable[[Sequence[float]], float] = mean_of,
) -> Estimate:
    """The mean of `by_prompt` over prompts, with its interval by a bootstrap over prompts.

    Args:
        observations, aspect, of_images: as for `by_prompt`, in an order of their own.
        name: what joins the seed.
        options: how many draws, the seed.

    >>> over_prompts([], "PQ", "b/p", StatisticsOptions(draws=10)).reason
    'no image has a score'
    """
    found = by_prompt(observations, aspect, of_images)
    return estimated(_mean(np.array(list(found.values())), list(found), "no image has a score"), name, options)


def _cost(observations: Sequence[Observation], cost: str, name: str, options: StatisticsOptions) -> Estimate:
    known = [(one.group, dict(one.cost)[cost]) for one in observations if cost in dict(one.cost)]
    return estimated(_mean(np.array([value for _, value in known]), [group for group, _ in known], ""), name, options)


def _mean(values: Floats, groups: Sequence[str], reason: str) -> Computed:
    if len(values) == 0:
        return Computed(math.nan, lambda counts: np.full(len(counts), np.nan), groups, reason)
    return Computed(
        math.fsum(values) / len(values),
        lambda counts: (counts @ values) / np.maximum(counts.sum(axis=1), 1),
        groups,
        "",
    )
