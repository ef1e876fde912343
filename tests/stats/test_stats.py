"""Statistics against SciPy, their definitions, and draws materialised."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.stats.draws import draws_of
from vieval_plugin.stats import agreement, bootstrap, correlation

levels = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


@given(st.lists(st.tuples(levels, levels), min_size=2, max_size=25), st.integers(0, 5))
@pytest.mark.parametrize("coefficient", ["spearman", "pearson", "kendall"])
def test_resampled_correlation_equals_repeating_the_pairs(coefficient, pairs, seed):
    x, y = map(np.array, zip(*pairs, strict=True))
    counts = draws_of(len(x), seed)
    fast = correlation.resampled_correlations(x, y, counts, coefficient)
    drawn = [(np.repeat(x, c), np.repeat(y, c)) for c in counts]
    slow = [correlation.correlation(*pair, coefficient) for pair in drawn]
    np.testing.assert_allclose(fast, slow, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("coefficient", ["spearman", "kendall"])
def test_resampled_correlation_works_in_blocks(monkeypatch, coefficient):
    rng = np.random.default_rng(1)
    x, y = rng.random(50), rng.random(50)
    counts = draws_of(50, 3, draws=40)
    whole = correlation.resampled_correlations(x, y, counts, coefficient)
    monkeypatch.setattr(correlation, "_CELLS_AT_ONCE", 350)
    again = correlation.resampled_correlations(x, y, counts, coefficient)
    np.testing.assert_array_equal(again, whole)


def test_correlations_are_the_same_numbers_as_scipys():
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 9, 40).astype(float), rng.normal(size=40)
    counts = draws_of(40, 2, draws=30)
    drawn = [(np.repeat(x, c), np.repeat(y, c)) for c in counts]
    slow = [stats.kendalltau(*pair).statistic for pair in drawn]
    fast = correlation.resampled_correlations(x, y, counts, "kendall")
    np.testing.assert_array_equal(fast, slow)
    y = rng.integers(0, 4, 40)
    assert correlation.correlation(x, y, "kendall") == stats.kendalltau(x, y).statistic
    assert correlation.correlation(x, y, "pearson") == stats.pearsonr(x, y).statistic


def test_sums_over_pairs_stay_exact_where_single_precision_would_not():
    counts = np.array([[2**25 + 1, 1, 3]])
    ones = lambda i, j: np.ones((3, 3))[i, j]
    [found] = correlation.weighted_pairs(counts, ones).tolist()
    assert found == 4 * (2**25 + 1) + 3


def test_a_whole_cluster_comes_and_goes_together():
    counts = bootstrap.cluster_counts(["a", "b", "a", "c", "b"], resamples=200, seed=9)
    assert (counts[:, 0] == counts[:, 2]).all()
    assert (counts[:, 1] == counts[:, 4]).all()
    assert (counts[:, 0] + counts[:, 1] + counts[:, 3] == 3).all()


@pytest.mark.parametrize(
    ("correlations", "fisher", "paper"),
    [
        (
            [0.2, 0.5, 0.8],
            math.tanh(np.mean(np.arctanh([0.2, 0.5, 0.8]))),
            math.tanh(0.5),
        ),
        ([0.5, math.nan], 0.5, math.tanh(0.5)),
        ([math.nan], math.nan, math.nan),
        ([1.0, 1.0], 0.9999, math.tanh(1.0)),
    ],
)
def test_averages_differ_as_their_formulas_do(correlations, fisher, paper):
    found = correlation.fisher_mean(correlations)
    assert found == pytest.approx(fisher, nan_ok=True)
    found = correlation.paper_mean(correlations)
    assert found == pytest.approx(paper, rel=0, abs=0, nan_ok=True)


def test_rater_mean_with_a_rater_last_keeps_the_published_order_of_addition():
    o = np.array([[math.sqrt(0.5)], [1.0], [math.sqrt(0.25)]])
    for last in range(3):
        first, second = (o[r, 0] for r in range(3) if r != last)
        found = agreement.annotator_mean(o, added_last=last)[0]
        assert found == ((first + second) + o[last, 0]) / 3


@given(st.lists(st.tuples(levels, levels, levels), min_size=3, max_size=20))
def test_leave_one_out_is_a_rater_against_the_mean_of_the_others(rows):
    ratings = np.array(rows).T
    for rater, r in enumerate(agreement.leave_one_out(ratings)):
        a, b = (ratings[i] for i in range(3) if i != rater)
        expected = correlation.correlation(ratings[rater], np.round((a + b) / 2, 9))
        assert r == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("x", "y", "why"),
    [([], [], "needed, got 0"), ([1, 1], [1, 2], "first"), ([1, 2], [3, 3], "second")],
)
def test_an_undefined_correlation_says_why(x, y, why):
    assert math.isnan(correlation.correlation(x, y))
    assert why in correlation.undefined(x, y)


NAN = math.nan
LEVELS = ("nominal", "ordinal", "interval")
# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section D, with its missing data
FOUR_OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


# What alpha was computed once with the package krippendorff 0.9.0 (GPL-3, so it is not installed
# with VIEval), as krippendorff.alpha(reliability_data=numpy.array(data),
# level_of_measurement=level) for the levels in the order of LEVELS.
PUBLISHED = (0.743421052631579, 0.8153875037548814, 0.8491071428571428)
# the first three items lack one score, the fourth has one only, the last none
GAPPED = [
    [NAN, NAN, NAN, 0.14, 0.599, 0.565, 0.495, 0.952, 0.845, NAN],
    [0.597, 0.475, 0.894, NAN, 0.623, NAN, 0.705, 0.986, 0.618, NAN],
    [0.205, -0.024, 0.894, NAN, 0.368, 0.434, 0.799, 0.681, 0.57, NAN],
    [0.289, 0.346, 0.701, NAN, 0.13, 0.548, 0.87, 0.692, 0.81, NAN],
]
OF_GAPPED = (0.03315649867373993, 0.5886013452739431, 0.5105620945218974)


@pytest.mark.parametrize(
    ("data", "expected"), [(FOUR_OBSERVERS, PUBLISHED), (GAPPED, OF_GAPPED)]
)
def test_alpha_is_that_of_the_package(data, expected):
    found = [agreement.krippendorff_alpha(data, level) for level in LEVELS]
    assert found == pytest.approx(expected, abs=1e-14)


def test_alpha_works_in_blocks(monkeypatch):
    ratings = np.random.default_rng(1).random((3, 40))
    whole = agreement.krippendorff_alpha(ratings, "interval")
    monkeypatch.setattr(agreement, "_CELLS_AT_ONCE", 500)
    found = agreement.krippendorff_alpha(ratings, "interval")
    assert found == pytest.approx(whole, abs=1e-14)


def test_alpha_of_disagreement_is_below_zero_and_undefined_without_pairs_that_differ():
    assert agreement.krippendorff_alpha([[0, 1, 0, 1], [1, 0, 1, 0]]) < 0
    constant, single = [[1, 1], [1, 1]], [[1, 2, 3]]
    apart, one_pair = [[1, NAN], [NAN, 2]], [[1, 1, 2], [1, 1, NAN]]
    for ratings in (constant, single, apart, one_pair):
        assert math.isnan(agreement.krippendorff_alpha(ratings))


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        x = rng.normal(size=80)
        y = 0.6 * x + 0.8 * rng.normal(size=80)
        counts = draws_of(80, trial, draws=400)
        drawn = correlation.resampled_correlations(x, y, counts, "pearson")
        low, high = bootstrap.interval(drawn)
        covered += low <= 0.6 <= high
    assert 0.88 <= covered / 200 <= 0.99
