"""Means corrected by a few ratings: the authors' numbers, and coverage."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from vieval_plugin.stats.prediction_powered import (
    common_weight,
    prediction_powered_difference,
    prediction_powered_mean,
)

ITEMS = np.arange(30)
TRUTH = 0.5 + 0.4 * np.sin(ITEMS * 1.7)
RATINGS = np.where(ITEMS % 3 == 0, TRUTH, np.nan)


# mean and interval by ppi_mean_pointestimate and ppi_mean_ci of ppi-python 0.2.3 for the same
# made-up numbers
WAVES = 0.1 * np.cos(ITEMS * 2.3)
GOOD = 0.7 * TRUTH + 0.2 + WAVES
UNRELATED = 0.5 + 0.3 * np.cos(ITEMS * 0.9 + 1)
OPPOSITE = 0.8 - (0.7 * TRUTH + WAVES)
EXPECTED = [
    (GOOD, 0.49592252882329024, 0.38188176536584806, 0.6099632922807324),
    (UNRELATED, 0.474619823815721, 0.30364163390712545, 0.6455980137243165),
    (OPPOSITE, 0.47891988952023706, 0.3062798981757112, 0.6515598808647629),
]


@pytest.mark.parametrize(
    ("scores", "value", "low", "high"), EXPECTED, ids=["good", "unrelated", "opposite"]
)
def test_each_item_by_itself_equals_the_authors_package(scores, value, low, high):
    mean = prediction_powered_mean(RATINGS, scores).mean
    found = (mean.value, mean.low, mean.high)
    assert found == pytest.approx((value, low, high), abs=1e-14)


def test_a_judge_that_says_nothing_or_the_opposite_is_left_out():
    plain = prediction_powered_mean(RATINGS, np.full(30, 0.5))
    assert plain.weight == 0.0
    assert plain.mean.value == pytest.approx(RATINGS[::3].mean())
    assert prediction_powered_mean(RATINGS, -TRUTH).mean == plain.mean


def test_items_of_a_group_count_as_one():
    """Each item four times over in one group is no more known than once."""
    once = prediction_powered_mean(RATINGS, GOOD)
    fourfold = np.repeat(RATINGS, 4), np.repeat(GOOD, 4)
    often = prediction_powered_mean(*fourfold, [str(n) for n in np.repeat(ITEMS, 4)])
    found = (often.weight, often.mean.value, often.mean.high)
    expected = (once.weight, once.mean.value, once.mean.high)
    assert found == pytest.approx(expected, abs=1e-12)
    assert prediction_powered_mean(*fourfold).mean.high < once.mean.high


@pytest.mark.parametrize(
    "scores", [[0.1, 0.2], [0.1, float("nan"), 0.3], [0.1, float("inf"), 0.3]]
)
def test_scores_that_do_not_fit_are_an_error(scores):
    with pytest.raises(ValueError, match="a finite score"):
        prediction_powered_mean([0.1, 0.2, 0.3], scores)


def _two_kinds(rng):
    """300 items of one kind and 100 of a better one, with 20 ratings of each."""
    kinds = np.repeat(["plain", "good"], [300, 100])
    people = np.where(kinds == "good", 0.8, 0.4) + rng.normal(0, 0.1, 400)
    judge = 0.7 * people + 0.3 + rng.normal(0, 0.1, 400)
    plain = rng.choice(300, 20, replace=False)
    rated = np.concatenate([plain, 300 + rng.choice(100, 20, replace=False)])
    return np.where(np.isin(np.arange(400), rated), people, np.nan), judge, kinds


def test_kinds_of_which_other_shares_were_rated_count_by_their_size():
    ratings, judge, kinds = _two_kinds(np.random.default_rng(0))
    found = prediction_powered_mean(ratings, judge, strata=kinds).mean
    assert found.value == pytest.approx(0.5, abs=0.03)
    assert prediction_powered_mean(ratings, judge).mean.value > 0.52
    by_people = prediction_powered_mean(ratings, np.zeros(400), strata=kinds).mean
    plain, good = (np.nanmean(ratings[kinds == kind]) for kind in ("plain", "good"))
    assert by_people.value == pytest.approx(0.75 * plain + 0.25 * good)
    assert found.high - found.low < by_people.high - by_people.low


@pytest.mark.parametrize("strata", [["one"] * 30, ["small"] + ["large"] * 29])
def test_one_stratum_and_strata_with_too_few_ratings_are_as_without(strata):
    plain = prediction_powered_mean(RATINGS, GOOD)
    found = prediction_powered_mean(RATINGS, GOOD, strata=strata)
    assert found[:2] == pytest.approx(plain[:2])


def test_intervals_over_strata_hold_the_truth():
    held = 0
    for number in range(200):
        ratings, judge, kinds = _two_kinds(np.random.default_rng([7, number]))
        found = prediction_powered_mean(ratings, judge, strata=kinds)
        held += found.mean.low <= 0.5 <= found.mean.high
    assert 180 <= held <= 199


def _two_generators(rng, better_by):
    """Two generators on 200 shared prompts; the judge likes the second too much."""
    prompts = rng.normal(0.5, 0.15, 200)
    rated = np.isin(np.arange(200), rng.choice(200, 80, replace=False))
    generators = []
    for quality, bias in ((better_by, 0.0), (0.0, 0.2)):
        people = prompts + quality + rng.normal(0, 0.05, 200)
        judge = people + bias + rng.normal(0, 0.05, 200)
        generators.append((np.where(rated, people, np.nan), judge))
    return generators


@pytest.mark.parametrize(
    ("better_by", "least", "most"), [(0.0, 0, 20), (0.05, 180, 200)]
)
def test_the_test_of_two_means_has_its_level(better_by, least, most):
    significant, held, widths = 0, 0, []
    for number in range(200):
        made = _two_generators(np.random.default_rng([3, number]), better_by)
        sides = [prediction_powered_mean(*one, groups=range(200)) for one in made]
        difference, p = prediction_powered_difference(*sides)
        significant += p <= 0.05
        held += difference.low <= better_by <= difference.high
        apart = math.hypot(*(side.mean.high - side.mean.low for side in sides))
        widths.append((difference.high - difference.low) / apart)
    assert least <= significant <= most
    assert held >= 180
    assert max(widths) < 0.8  # what a prompt does to both generators cancels


@pytest.mark.parametrize("prompts", [6, 10, 40])
def test_the_test_of_two_rated_generators_is_students_paired_test(prompts):
    """With a judge that says nothing, whether or not some images are unrated."""
    rng = np.random.default_rng(prompts)
    first, second = rng.normal(0.6, 0.2, prompts), rng.normal(0.5, 0.2, prompts)
    expected = stats.ttest_rel(first, second)
    low, high = expected.confidence_interval(0.95)
    for unrated in (0, 25):
        more, silent = np.full(unrated, np.nan), np.zeros(prompts + unrated)
        means = [
            prediction_powered_mean(np.append(people, more), silent, range(len(silent)))
            for people in (first, second)
        ]
        difference, p = prediction_powered_difference(*means)
        found = (difference.low, difference.high, p)
        assert found == pytest.approx((low, high, expected.pvalue), abs=1e-12)


def test_a_single_rated_group_has_no_estimate_and_no_difference_to_another():
    rated = ([0.5, 0.7, np.nan], [0.5, 0.6, 0.7], ["a", "a", "b"])
    alone = prediction_powered_mean(*rated)
    difference, p = prediction_powered_difference(alone, alone)
    assert difference.reason == alone.mean.reason == "fewer than two rated prompts"
    assert np.isnan([alone.mean.value, p]).all()


@pytest.mark.parametrize(
    ("follows", "least", "most"), [("difficulty", 0.97, 1.03), ("people", 0.4, 0.85)]
)
def test_following_difficulty_makes_nothing_worse(follows, least, most):
    squares = []
    for number in range(200):
        rng = np.random.default_rng([44, number])
        difficulty = rng.normal(0.5, 0.2, 200)
        people = difficulty + rng.normal(0, 0.12, (2, 200))
        followed = people if follows == "people" else difficulty
        scores = followed + rng.normal(0, 0.08, (2, 200))
        ratings = np.where(np.arange(200) < 50, people, np.nan)
        first, second = (
            partial(prediction_powered_mean, y, f, range(200), 0.95, None)
            for y, f in zip(ratings, scores, strict=True)
        )
        weight = common_weight(first, second)
        corrected, _ = prediction_powered_difference(first(weight), second(weight))
        alone, _ = prediction_powered_difference(first(0.0), second(0.0))
        squares.append((corrected.value**2, alone.value**2))
    error, of_ratings = np.sqrt(np.mean(squares, axis=0))
    assert least <= error / of_ratings <= most
