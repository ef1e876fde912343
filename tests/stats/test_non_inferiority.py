"""The gate's bound against Student's t, and its decision at the margin."""

import numpy as np
import pytest
from scipy import stats

from vieval_plugin.stats.non_inferiority import (
    MeanOfDifferences,
    fewest_items,
    more_failures_p,
)


@pytest.mark.parametrize("fall", [1.0, 0.5, 2.0])
def test_the_bound_is_students_with_one_more_difference(fall):
    differences = np.random.default_rng(0).normal(0, 0.1, 30)
    mean = MeanOfDifferences.from_differences(differences, range(30), fall)
    low = stats.ttest_1samp([*differences, -fall], 0).confidence_interval(0.95).low
    high = stats.ttest_1samp(differences, 0).confidence_interval(0.95).high
    assert (mean.low, mean.high) == pytest.approx((low, high))


def test_an_end_at_the_margin_itself_does_not_pass():
    mean = MeanOfDifferences.from_differences(np.full(100, 0.05), range(100))
    assert mean.decision(-mean.low) == "undecided"
    assert mean.decision(np.nextafter(-mean.low, 1)) == "not_worse"


def test_several_contests_of_a_prompt_are_one():
    points = np.random.default_rng(0).choice([-0.5, 0.5], 40)
    once = MeanOfDifferences.from_differences(points, range(40), 0.5)
    prompts = np.repeat(range(40), 4).tolist()
    repeated = np.repeat(points, 4)
    four_times = MeanOfDifferences.from_differences(repeated, prompts, 0.5)
    found = (four_times.value, four_times.error, four_times.n)
    assert found == pytest.approx((once.value, once.error, once.n))


@pytest.mark.parametrize(("margin", "fall"), [(0.05, 1.0), (0.02, 0.5), (0.3, 1.0)])
def test_equal_scores_pass_from_the_fewest_on(margin, fall):
    fewest = int(fewest_items(margin, fall))
    means = [MeanOfDifferences(0.0, 0.0, n, fall) for n in (fewest - 1, fewest)]
    decisions = [mean.decision(margin) for mean in means]
    assert decisions == ["undecided", "not_worse"]


def test_the_number_that_would_tell_does_so_four_times_of_five():
    needed = int(MeanOfDifferences(0.0, 0.15 / 10, 100).items_needed(0.05))
    differences = np.random.default_rng(0).normal(0, 0.15, (2000, needed))
    means = [
        MeanOfDifferences.from_differences(d, range(needed)) for d in differences[:400]
    ]
    passed = [mean.decision(0.05) == "not_worse" for mean in means]
    assert np.mean(passed) == pytest.approx(0.8, abs=0.06)


def test_rates_of_failures_are_tested_by_mcnemar():
    expected = stats.binomtest(9, 11, alternative="greater").pvalue
    assert more_failures_p(9, 2) == pytest.approx(expected)
