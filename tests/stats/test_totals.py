"""Totals over a population from a random part of it."""

import math

import numpy as np
import pytest

from vieval_plugin.stats.estimate import Estimate, total


@pytest.mark.parametrize("shape", [2.0, 9.0])
def test_an_interval_from_seven_values_holds_the_total_about_as_often_as_it_says(shape):
    generator = np.random.default_rng(3)
    held = 0
    for _ in range(1000):
        population = 5 + generator.gamma(shape, size=60)
        found = total(generator.permutation(population)[:7], 60)
        held += found.low <= population.sum() <= found.high
    assert 0.89 < held / 1000 < 0.97  # skewed values need more than seven for all of it


def test_the_whole_population_is_exact_and_one_value_has_no_interval():
    assert total([1, 2, 4], 3) == Estimate(7, 7, 7)
    assert total([2], 5).value == 10
    assert math.isnan(total([2], 5).low)
    assert not total([2, float("nan")], 5).defined
    assert total([0, 0, 100], 4).low == 100  # never below what is known


@pytest.mark.parametrize(("values", "population"), [([], 3), ([1, 2], 1)])
def test_a_part_is_of_its_population(values, population):
    with pytest.raises(ValueError, match="must have 1 to"):
        total(values, population)
