"""Estimates of large data sets: the resamples do not depend on how many are in memory at once."""

import numpy as np

from vieval_plugin.meta_evaluation import estimates
from vieval_plugin.meta_evaluation.estimates import Bootstrap, computed_mean


def test_resamples_are_the_same_in_blocks(monkeypatch):
    values = np.random.default_rng(1).normal(size=300)
    mean = computed_mean(values, [str(row // 3) for row in range(300)], "")
    at_once = Bootstrap(101, (7,)).estimate(mean)
    monkeypatch.setattr(
        estimates, "_MOST_COUNTS", 3000
    )  # blocks of ten resamples, the last of one
    in_blocks = Bootstrap(101, (7,)).estimate(mean)
    assert len(in_blocks.resamples) == 101
    np.testing.assert_allclose(in_blocks.resamples, at_once.resamples, rtol=1e-14)
    assert in_blocks.low < in_blocks.value < in_blocks.high


def test_the_interval_of_a_mean_of_few_clusters_holds_it_more_often():
    held = {6: 0, 20: 0}
    for clusters in held:
        for number in range(200):
            values = np.random.default_rng([44, clusters, number]).normal(
                0.5, 0.1, clusters
            )
            mean = computed_mean(
                list(values), [str(row) for row in range(clusters)], ""
            )
            estimate = Bootstrap(1000, (number,)).estimate(mean)
            held[clusters] += estimate.low <= 0.5 <= estimate.high
    assert min(held.values()) >= 182
