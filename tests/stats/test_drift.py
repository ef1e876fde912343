"""Drift is found in what changed and not in a judge's own noise."""

import numpy as np
import pytest

from bench.anchor_power import power
from vieval_plugin.stats.drift import drift_tests

ITEMS, REPEATS = 200, 3


def answers(rng, noise):
    """Scores 0 to 10 of a judge that changes answers by 1 with chance `noise`."""
    level = rng.integers(2, 9, size=(ITEMS, 1))
    chances = [noise / 2, 1 - noise, noise / 2]
    return level + rng.choice([-1, 0, 1], p=chances, size=(ITEMS, REPEATS + 1))


def is_found(points, usable, seed):
    scores = np.where(usable, points / 10, np.nan)
    tests = drift_tests(np.where(usable, points, -1), scores, usable, seed)
    return min(test.adjusted for test in tests) <= 0.05


def found(noise, change, runs=100):
    rng, count = np.random.default_rng(1), 0
    for seed in range(runs):
        points = answers(rng, noise)
        usable = np.ones(points.shape, dtype=bool)
        change(points, usable, rng)
        count += is_found(points, usable, seed)
    return count


def lowering(count):
    def lower(points, usable, rng):
        points[rng.permutation(ITEMS)[:count], -1] -= 1

    return lower


def refusals(points, usable, rng):
    usable[rng.permutation(ITEMS)[: ITEMS // 10], -1] = False


MANY = pytest.mark.extras  # half a minute of simulation each


@pytest.mark.parametrize(
    "noise", [0.02, *(pytest.param(noise, marks=MANY) for noise in (0, 0.05))]
)
def test_the_same_judge_passes_and_changes_are_found(noise):
    assert found(noise, lambda *answers: None) <= 9
    assert found(noise, lowering(ITEMS // 4)) >= 80
    assert found(noise, refusals) >= 80


def test_the_smallest_difference_is_found_four_times_of_five():
    rng = np.random.default_rng(2)
    noisy = answers(rng, 0.05)
    everything = np.ones(noisy.shape, dtype=bool)
    smallest = drift_tests(noisy, noisy / 10, everything)[1].smallest
    count = round(smallest * 10 * ITEMS)

    assert 65 <= found(0.05, lowering(count)) <= 100
    assert found(0.05, lowering(count // 4)) <= 50


@pytest.mark.parametrize(
    "noise", [0.05, *(pytest.param(noise, marks=MANY) for noise in (0, 0.4))]
)
def test_changed_answers_are_found_four_times_of_five(noise):
    found, claimed = power(noise, items=100, runs=100, seed=0)
    assert 0.7 <= found <= 0.95  # of 100 runs four in a hundred is a standard error
    # the number of changed items is binomial: three expected ones are often fewer
    assert claimed >= 4 / 100


def test_without_a_score_the_others_are_tested_and_one_column_is_refused():
    codes, nothing = np.zeros((30, 4)), np.full((30, 4), np.nan)
    changed, score, usable = drift_tests(codes, nothing, np.zeros((30, 4)))
    assert (changed.adjusted, usable.adjusted, score.n) == (1, 1, 0)
    assert np.isnan([score.latest, score.p, score.adjusted, score.smallest]).all()
    with pytest.raises(ValueError, match="a column for each repeat"):
        drift_tests([[1]], [[1]], [[1]])
