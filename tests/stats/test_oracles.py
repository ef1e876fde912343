"""Tests and estimates beside independent implementations: SciPy's permutation test, and glide's prediction-powered means."""

import math

import numpy as np
import pytest
from scipy import stats

from vieval_plugin.stats.comparison import MeanDifference, paired_permutation_p
from vieval_plugin.stats.correlation import fisher_mean
from vieval_plugin.stats.paired_correlations import CorrelationDifference
from vieval_plugin.stats.prediction_powered import prediction_powered_mean

ALL = 10**9
SWAPS = 40_000
GROUPS = list("aabbbcdeeffghij")


def paired_scores(seed, better, image_models=3):
    """Two judges' scores with ties, and people's, shape (rows, image models); the first judge is better by so much."""
    rng = np.random.default_rng(seed)
    human = rng.integers(0, 4, (len(GROUPS), image_models)).astype(float)
    first = np.round(human * better + rng.normal(0, 2, human.shape))
    second = np.round(human + rng.normal(0, 3, human.shape), 1)
    return first, second, human


def scipy_p(difference):
    """P of SciPy's test over all swaps; `difference` takes for each group whether it is swapped."""
    groups = len(dict.fromkeys(GROUPS))

    def statistic(sides, _other_sides):
        return difference(sides.astype(bool))

    sides = np.zeros(groups), np.ones(groups)
    found = stats.permutation_test(
        sides, statistic, permutation_type="samples", vectorized=False, n_resamples=2**groups, alternative="two-sided"
    )
    assert len(found.null_distribution) == 2**groups
    return found.pvalue


def swapped_rows(first, second, swapped_groups):
    number = {group: place for place, group in enumerate(dict.fromkeys(GROUPS))}
    swap = np.array([swapped_groups[number[group]] for group in GROUPS])
    swap = swap.reshape(-1, *[1] * (first.ndim - 1))
    return np.where(swap, second, first), np.where(swap, first, second)


def average(ranks, human):
    return fisher_mean(
        [np.corrcoef(of_judge, of_people)[0, 1] for of_judge, of_people in zip(ranks.T, human.T, strict=True)]
    )


@pytest.mark.parametrize(("seed", "better"), [(0, 1.0), (1, 1.5), (2, 3.0)])
def test_differences_of_correlations_have_scipys_p(seed, better):
    scores = paired_scores(seed, better)
    ranks = [stats.rankdata(table, axis=0) for table in scores]

    def difference(swapped_groups):
        one, other = swapped_rows(ranks[0], ranks[1], swapped_groups)
        return average(one, ranks[2]) - average(other, ranks[2])

    exact = scipy_p(difference)
    found = paired_permutation_p(CorrelationDifference(*scores, GROUPS), seed, SWAPS, ALL)
    assert found == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / SWAPS))


@pytest.mark.parametrize(("seed", "better"), [(0, 1.0), (1, 1.5), (2, 3.0)])
def test_differences_of_means_have_scipys_p_also_where_sampling_stops_early(seed, better):
    first, second, _ = paired_scores(seed, better, image_models=1)
    first, second = first[:, 0], second[:, 0]

    def difference(swapped_groups):
        one, other = swapped_rows(first, second, swapped_groups)
        return one.mean() - other.mean()

    exact = scipy_p(difference)
    statistic = MeanDifference(first, second, GROUPS)
    found = paired_permutation_p(statistic, seed, SWAPS, ALL)
    assert found == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / SWAPS))
    early = [paired_permutation_p(statistic, [seed, n]) for n in range(200)]
    assert np.mean(early) == pytest.approx(exact, rel=0.1)


@pytest.fixture(scope="module")
def estimators():
    pytest.importorskip("glide", reason="glide-py is not installed: it needs Python 3.12")
    from glide import estimators

    return estimators


def partly_rated(seed, shrink, strata=1, groups=300, rated_groups=120, size=3):
    """Groups of so many items each, alike in part, of which some are rated; a judge of `shrink` times people's ratings."""
    rng = np.random.default_rng(seed)
    stratum = np.repeat(np.arange(groups) % strata, size)
    group = np.repeat(np.arange(groups), size)
    human = 0.5 + 0.2 * stratum + np.repeat(rng.normal(0, 0.2, groups), size) + rng.normal(0, 0.1, groups * size)
    judge = 0.1 + shrink * human + rng.normal(0, 0.1 * shrink, groups * size)
    rated = np.isin(group, rng.choice(groups, rated_groups, replace=False))
    return np.where(rated, human, np.nan), judge, group, stratum


def require_equal(found, expected, rated):
    """The same mean and, but for degrees of freedom, the same width."""
    width = expected.upper_bound - expected.lower_bound
    assert found.mean.value == pytest.approx(expected.mean, abs=width / rated)
    assert found.mean.high - found.mean.low == pytest.approx(width, rel=2 / rated)


@pytest.mark.parametrize("shrink", [0.7, 0.2], ids=["good", "clipped"])
def test_items_by_themselves_have_glides_estimate(estimators, shrink):
    """The weight is tuned by both; where it would be above 1, ours is 1 as in plain prediction-powered inference."""
    ratings, judge, _, _ = partly_rated(0, shrink, size=1, groups=900, rated_groups=360)
    expected = estimators.PPIMeanEstimator().estimate(ratings, judge, power_tuning=shrink > 0.5)
    require_equal(prediction_powered_mean(ratings, judge), expected.confidence_interval, 360)


@pytest.mark.parametrize("shrink", [0.7, 0.2], ids=["good", "clipped"])
def test_groups_have_glides_estimate_of_clusters(estimators, shrink):
    ratings, judge, group, _ = partly_rated(1, shrink)
    expected = estimators.ClusteredPPIMeanEstimator().estimate(ratings, judge, group, power_tuning=shrink > 0.5)
    found = prediction_powered_mean(ratings, judge, group.tolist())
    require_equal(found, expected.confidence_interval, 120)
    alone = prediction_powered_mean(ratings, judge)
    assert found.mean.high - found.mean.low > 1.2 * (alone.mean.high - alone.mean.low)


def test_strata_have_glides_estimate(estimators):
    """With a weight of 1, as glide tunes one for each stratum and this project one for all."""
    ratings, judge, _, stratum = partly_rated(2, 0.2, strata=3, size=1, groups=900, rated_groups=360)
    expected = estimators.StratifiedPPIMeanEstimator().estimate(ratings, judge, stratum, power_tuning=False)
    found = prediction_powered_mean(ratings, judge, strata=stratum.tolist())
    assert found.weight == 1
    require_equal(found, expected.confidence_interval, 120)
