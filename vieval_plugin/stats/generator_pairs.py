"""Pairwise accuracy of generators: how often a judge orders two generators as people do, hard
and soft.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.bootstrap import Seed, interval
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.estimate import Estimate

#: Generators that a task type needs for a value of its own, and pairs that a value over several
#: needs.
LEAST_GENERATORS = 4
LEAST_PAIRS = 10


class PairAgreement(NamedTuple):
    """A judge and people on two generators of a task type, by their indices: how far the two
    agree, in [0, 1].
    """

    first: int
    second: int
    hard: float
    soft: float


def sign_flip_p(differences: ArrayLike) -> float:
    """The one-sided p that the first of two generators is not better, from paired differences of
    prompts.

    It is that of the test which gives each difference a random sign, with the normal distribution
    of the same variance in the place of all signs.

    Args:
        differences: first less second, one a prompt, shape (prompts,).

    Returns:
        In (0, 1), below 1/2 where the first is better; 1/2 where all differences are 0.

    Source: Thompson et al. 2024, Improving Statistical Significance in Human Evaluation of
    Automatic Metrics via Soft Pairwise Accuracy (WMT); Fisher 1935 for the test.

    >>> sign_flip_p([0.0, 0.0]), round(sign_flip_p([0.2] * 9), 4)
    (0.5, 0.0013)
    """
    values = np.asarray(differences, dtype=float)
    scale = math.sqrt(float(values @ values))
    if scale:
        z = float(values.sum()) / scale
        return math.erfc(z / math.sqrt(2)) / 2
    return 0.5


def pair_agreement(
    first: int,
    second: int,
    judged: ArrayLike,
    rated: ArrayLike,
) -> PairAgreement:
    """Agreement on two generators: hard by the signs of both mean differences, soft by how near the
    two p are.

    Args:
        first, second: their indices.
        judged: the judge's differences, first less second, one a prompt that it scored of both.
        rated: people's, one a prompt that they rated of both.

    >>> pair_agreement(0, 1, [0.1, 0.3], [1.0, 2.0]).hard
    1.0
    """
    by_judge = sign_flip_p(judged)
    by_people = sign_flip_p(rated)
    signs = np.sign([0.5 - by_judge, 0.5 - by_people])
    if signs[0] * signs[1] == 0 and signs[0] != signs[1]:
        hard = 0.5
    else:
        hard = float(signs[0] == signs[1])
    return PairAgreement(
        first=first,
        second=second,
        hard=hard,
        soft=1 - abs(by_judge - by_people),
    )


def accuracy_over_pairs(
    parts: Sequence[tuple[int, Sequence[PairAgreement]]],
    resamples: int,
    seed: Seed,
) -> tuple[Estimate, Estimate]:
    """Pairwise accuracy, hard and soft, over all pairs within task types.

    Args:
        parts: of each task type, how many generators it has and the agreement on each two of them.
        resamples: number of bootstrap resamples of generators within task types; a resample with
            one distinct generator of a task type contributes no pair of it.
        seed: theirs.

    Returns:
        Both in [0, 1], with 95% intervals; NaN with a reason for too few generators or pairs.

    >>> one = [PairAgreement(i, j, 1.0, 0.5) for i in range(5) for j in range(i)]
    >>> [round(e.value, 2) for e in accuracy_over_pairs([(5, one)], 20, 0)]
    [1.0, 0.5]
    """
    n = sum(len(pairs) for _, pairs in parts)
    reason = _few_pairs_reason([generators for generators, _ in parts], n)
    if reason:
        undefined = Estimate(math.nan, n=n, reasons=(reason,))
        return undefined, undefined
    value, weight = _resampled_pairs(seed, parts, resamples)
    with np.errstate(invalid="ignore"):
        resampled: Floats = (weight @ value) / weight.sum(axis=1, keepdims=True)
    means = value.mean(axis=0)
    hard, soft = (
        Estimate(float(mean), *interval(column), column, n)
        for mean, column in zip(means, resampled.T, strict=True)
    )
    return hard, soft


def _few_pairs_reason(generators: Sequence[int], n: int) -> str:
    """The reason why there is no accuracy with so many generators of each task type and so many
    pairs; empty where there is one.
    """
    if len(generators) == 1:
        if not n:
            return "no sample has scores of two generators"
        if generators[0] < LEAST_GENERATORS:
            return f"needs {LEAST_GENERATORS} generators, got {generators[0]}"
    elif n < LEAST_PAIRS:
        return f"needs {LEAST_PAIRS} pairs, got {n}"
    return ""


def _resampled_pairs(
    seed: Seed,
    parts: Sequence[tuple[int, Sequence[PairAgreement]]],
    resamples: int,
) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    weights = []
    values = []
    for generators, pairs in parts:
        counts = rng.multinomial(
            generators, [1 / generators] * generators, size=resamples
        )
        first = [pair.first for pair in pairs]
        second = [pair.second for pair in pairs]
        weights.append(counts[:, first] * counts[:, second])
        agreements = [(pair.hard, pair.soft) for pair in pairs]
        values.append(np.array(agreements, dtype=float).reshape(-1, 2))
    return np.concatenate(values), np.concatenate(weights, axis=1).astype(float)
