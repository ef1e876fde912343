"""CUSUM of nights, and statistics of a positive control, by their formulas."""

import numpy as np
import pytest
from scipy import stats

from vieval_plugin.stats.drift import cusum
from vieval_plugin.stats.non_inferiority import control_change, exact_share


def nights(seed, fall=0.0, count=80):
    drawn = np.random.default_rng(seed).normal(0.01, 0.013, count)
    drawn[40:] -= fall
    return drawn


@pytest.mark.parametrize(("seed", "fall"), [(1, 0.0), (2, 0.02), (3, 0.05)])
def test_a_cusum_is_the_one_of_the_formula(seed, fall):
    series = nights(seed, fall)
    first = series[:28]
    total, sums = 0.0, []
    for value in series[28:]:
        z = (value - first.mean()) / (first.std(ddof=1) * np.sqrt(1 + 1 / 28))
        total = max(0.0, total - z - 0.5)
        sums.append(total)
    found = cusum(series)
    assert found.sums == pytest.approx(sums)
    above = [28 + night for night, value in enumerate(sums) if value > 8]
    assert found.alarm == (above[0] if above else None)
    assert bool(above) == (fall > 0)


def test_an_alarm_stays_though_the_nights_recover():
    series = np.concatenate([nights(2, 0.05, 60), np.full(60, 0.05)])
    found = cusum(series)
    assert found.sums[-1] == 0
    assert found.alarm == cusum(series[:60]).alarm


def test_correlated_nights_widen_the_spread_and_without_one_there_is_no_cusum():
    noise = np.random.default_rng(0).normal(size=200)
    for night in range(1, 200):
        noise[night] = 0.8 * noise[night - 1] + 0.6 * noise[night]
    assert cusum(noise).deviation > 1.5 * noise[:28].std(ddof=1)
    assert [cusum(series) for series in ([], [0.1] * 28, [0.1] * 40)] == [None] * 3


def test_a_control_change_has_students_interval():
    own, spoilt = np.random.default_rng(1).uniform(size=(2, 20))
    change = control_change(own, spoilt)
    differences = spoilt - own
    mean, error = np.mean(differences), stats.sem(differences)
    low, high = stats.t.interval(0.95, 19, mean, error)
    assert (change.low, change.high) == pytest.approx((low, high))


@pytest.mark.parametrize(("won", "seen"), [(16, False), (17, True), (20, True)])
def test_a_share_of_contests_has_the_exact_interval(won, seen):
    share = exact_share(won, 20)
    exact = stats.binomtest(won, 20).proportion_ci(method="exact")
    assert (share.low, share.high) == pytest.approx((exact.low, exact.high))
    assert (share.low > 0.6) == seen
