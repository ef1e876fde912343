"""Rankings in bootstrap draws, against SciPy and against repeating what was drawn."""

import numpy as np
import pytest
from scipy import stats

from vieval_plugin.stats.bootstrap import cluster_counts
from vieval_plugin.stats.correlation import correlation
from vieval_plugin.stats.ranking import footrule, resampled_means, resampled_rankings


@pytest.mark.parametrize("seed", range(10))
def test_each_draw_is_what_its_repeated_items_give(seed):
    rng = np.random.default_rng(seed)
    scores, groups = (
        rng.integers(0, 4, (6, 9)).astype(float),
        [str(n // 2) for n in range(9)],
    )
    scores[rng.random(scores.shape) < 0.2] = np.nan
    order = rng.permutation(6)
    counts = cluster_counts(groups, resamples=40, seed=seed)
    rankings = resampled_rankings(resampled_means(scores, counts), order)
    drawn = zip(*rankings, strict=True)
    defined = 0
    for times, found in zip(counts, drawn, strict=True):
        repeated = np.repeat(scores, times, axis=1)
        if np.isnan(repeated).all(axis=1).any():
            assert np.isnan(found).all()
            continue
        means = [row[~np.isnan(row)].mean() for row in repeated]
        defined += 1
        rho, tau = (correlation(means, order, name) for name in ("spearman", "kendall"))
        assert found == pytest.approx((footrule(means, order), rho, tau), abs=1e-12)
    assert defined > 20


@pytest.mark.parametrize("seed", range(10))
def test_rankings_are_scipys(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, 5, 10), rng.integers(0, 5, 10)
    found = [values[0] for values in resampled_rankings(one[None], other)]
    assert found[1] == pytest.approx(stats.spearmanr(one, other).statistic)
    assert found[2] == pytest.approx(stats.kendalltau(one, other).statistic)
    assert found[0] == sum(abs(stats.rankdata(-one) - stats.rankdata(-other)))


def test_alike_means_and_exchanged_places_by_hand():
    """Ten editors: the third and the fourth, and the first and the last, change places."""
    order = np.arange(10, 0, -1)
    judged = np.array([1, 9, 7, 8, 6, 5, 4, 3, 2, 10])
    found = [values[0] for values in resampled_rankings(judged[None], order)]
    assert found == pytest.approx(
        [20, 1 - 6 * (2 * 81 + 2) / 990, 1 - 2 * (17 + 1) / 45]
    )
    assert footrule(judged, order) == 20
    footrules, rhos, taus = resampled_rankings([[1.0, 1.0, 1.0]], [3, 2, 1])
    assert footrules[0] == 2
    assert np.isnan([rhos[0], taus[0]]).all()
