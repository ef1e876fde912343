"""Estimates of large data sets: the resamples do not depend on how many are in memory at once."""

import numpy as np
import pytest

from vieval_plugin.meta_evaluation import estimates
from vieval_plugin.meta_evaluation.estimates import Bootstrap, computed_mean


def test_resamples_are_the_same_in_blocks(monkeypatch):
    values = np.random.default_rng(1).normal(size=300)
    mean = computed_mean(values, [str(row // 3) for row in range(300)], "")
    at_once = Bootstrap(101, (7,)).estimate(mean)
    # blocks of ten resamples, the last of one
    monkeypatch.setattr(estimates, "_MOST_COUNTS", 3000)
    in_blocks = Bootstrap(101, (7,)).estimate(mean)
    assert len(in_blocks.resamples) == 101
    np.testing.assert_allclose(in_blocks.resamples, at_once.resamples, rtol=1e-14)
    assert in_blocks.low < in_blocks.value < in_blocks.high


@pytest.mark.parametrize("clusters", [6, 20])
def test_the_interval_of_a_mean_of_few_clusters_holds_it_more_often(clusters):
    names, held = [str(row) for row in range(clusters)], 0
    for number in range(200):
        rng = np.random.default_rng([44, clusters, number])
        mean = computed_mean(list(rng.normal(0.5, 0.1, clusters)), names, "")
        estimate = Bootstrap(1000, (number,)).estimate(mean)
        held += estimate.low <= 0.5 <= estimate.high
    assert held >= 182
