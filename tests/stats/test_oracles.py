"""Prediction-powered means beside an independent implementation, glide's."""

import numpy as np
import pytest

from vieval_plugin.stats.prediction_powered import prediction_powered_mean


@pytest.fixture(scope="module")
def estimators():
    pytest.importorskip("glide", reason="glide-py needs Python 3.12")
    from glide import estimators

    return estimators


def partly_rated(seed, shrink, strata=1, groups=300, rated_groups=120, size=3):
    """Groups of like items, some rated, and a judge of `shrink` times people."""
    rng = np.random.default_rng(seed)
    stratum = np.repeat(np.arange(groups) % strata, size)
    group = np.repeat(np.arange(groups), size)
    human = 0.5 + 0.2 * stratum + np.repeat(rng.normal(0, 0.2, groups), size)
    human = human + rng.normal(0, 0.1, groups * size)
    judge = 0.1 + shrink * human + rng.normal(0, 0.1 * shrink, groups * size)
    rated = np.isin(group, rng.choice(groups, rated_groups, replace=False))
    return np.where(rated, human, np.nan), judge, group, stratum


def require_equal(found, expected, rated):
    """The same mean and, but for degrees of freedom, the same width."""
    interval = expected.confidence_interval
    width = interval.upper_bound - interval.lower_bound
    assert found.mean.value == pytest.approx(interval.mean, abs=width / rated)
    assert found.mean.high - found.mean.low == pytest.approx(width, rel=2 / rated)


@pytest.mark.parametrize("shrink", [0.7, 0.2], ids=["good", "clipped"])
def test_items_and_groups_have_glides_estimate(estimators, shrink):
    """Both tune the weight, and ours is at most 1, as without tuning."""
    tuned = {"power_tuning": shrink > 0.5}
    ratings, judge, _, _ = partly_rated(0, shrink, size=1, groups=900, rated_groups=360)
    expected = estimators.PPIMeanEstimator().estimate(ratings, judge, **tuned)
    require_equal(prediction_powered_mean(ratings, judge), expected, 360)
    ratings, judge, group, _ = partly_rated(1, shrink)
    clustered = estimators.ClusteredPPIMeanEstimator()
    expected = clustered.estimate(ratings, judge, group, **tuned)
    found = prediction_powered_mean(ratings, judge, group.tolist())
    require_equal(found, expected, 120)
    alone = prediction_powered_mean(ratings, judge)
    assert found.mean.high - found.mean.low > 1.2 * (alone.mean.high - alone.mean.low)


def test_strata_have_glides_estimate(estimators):
    """With a weight of 1, as glide tunes one for each stratum and this project one for all."""
    sizes = {"strata": 3, "size": 1, "groups": 900, "rated_groups": 360}
    ratings, judge, _, stratum = partly_rated(2, 0.2, **sizes)
    stratified = estimators.StratifiedPPIMeanEstimator()
    expected = stratified.estimate(ratings, judge, stratum, power_tuning=False)
    found = prediction_powered_mean(ratings, judge, strata=stratum.tolist())
    assert found.weight == 1
    require_equal(found, expected, 120)
