"""Shrinkage of corrections: each generator's is drawn to the gap that all have in common, as far as labels are few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.prediction_powered import PredictionPoweredMean


def shrunken_means(judged: ArrayLike, corrected: Sequence[PredictionPoweredMean]) -> Floats:
    """Means for an order of generators: the judge's, corrected as far as corrections differ by more than chance.

    A gap between judge and people that all generators have changes no order. What a generator's correction differs from it
    is kept by the share of its variance that is no error of a few labels.

    Args:
        judged: the judge's own mean of each generator, shape (generators,).
        corrected: the corrected mean of each, all defined, groups called alike.

    Returns:
        Shape (generators,), in people's unit, between the judge's mean with the common gap and the corrected mean.

    Source: Morris 1983, Parametric Empirical Bayes Inference; the variance between generators by moments, as DerSimonian
    and Laird 1986; errors are those of deviations from the common gap, so what labels of one prompt share cancels.

    >>> from vieval_plugin.stats.prediction_powered import prediction_powered_mean
    >>> labels = [[0.4, 0.6, 0.5], [0.3, 0.7, 0.5], [0.5, 0.5, 0.5]]
    >>> corrected = [prediction_powered_mean(of_generator, of_generator) for of_generator in labels]
    >>> shrunken_means([0.7, 0.6, 0.8], corrected).round(2).tolist()
    [0.5, 0.46, 0.54]
    """
    means, number = np.asarray(judged, dtype=float), len(corrected)
    corrections = np.array([estimate.mean.value for estimate in corrected]) - means
    from_gap = corrections - corrections.mean()
    groups = list(dict.fromkeys(group for estimate in corrected for group in estimate.deviations))
    deviations = np.array([[estimate.deviations.get(group, 0.0) for group in groups] for estimate in corrected])
    errors = ((deviations - deviations.mean(axis=0)) ** 2).sum(axis=1)
    spread = max((from_gap @ from_gap - errors.sum()) / number, 0.0)
    kept = spread / (spread + errors) if spread > 0 else np.zeros(number)
    return np.asarray(means + corrections.mean() + kept * from_gap)
