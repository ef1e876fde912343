"""Paired tests against all swaps, and intervals against draws materialised."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from tests.work import calls_at_most
from vieval_plugin.stats import bootstrap, comparison
from vieval_plugin.stats.comparison import (
    AveragedDifference,
    MeanDifference,
    paired_comparison,
    paired_permutation_p,
    resampled_differences,
)
from vieval_plugin.stats.correlation import correlation, fisher_mean
from vieval_plugin.stats.paired_correlations import (
    CorrelationDifference,
    independence_p,
)
from vieval_plugin.stats.ranking import holm, rank_ranges

ALL = 10**9
NAN = math.nan
ROUNDING = 1e-9


def all_swaps(units):
    return np.array(list(itertools.product([False, True], repeat=units)))


def tables(rows=7, models=3, missing=True, seed=0):
    """Scores of two judges on different scales, and people's, with common gaps."""
    rng = np.random.default_rng(seed)
    human = rng.integers(0, 5, (rows, models)).astype(float)
    first = np.round(human + rng.normal(0, 1, human.shape))
    second = 100 + 40 * human + rng.normal(0, 90, human.shape)
    if missing:
        for table in (first, second, human):
            table[1, 0] = table[rows - 1, 2] = NAN
    return first, second, human


def naive_average(scores, human, coefficient="pearson", parts=None):
    """Fisher's average over image models (of a part, then over parts), in loops."""
    found = {}
    for model in range(human.shape[1]):
        have = ~np.isnan(human[:, model])
        r = correlation(human[have, model], scores[have, model], coefficient)
        found.setdefault(parts[model] if parts else 0, []).append(r)
    return fisher_mean([fisher_mean(of_part) for of_part in found.values()])


def naive_standardised(scores, coefficient):
    standardise = stats.rankdata if coefficient == "spearman" else stats.zscore
    out = np.full(scores.shape, NAN)
    for model in range(scores.shape[1]):
        have = ~np.isnan(scores[:, model])
        out[have, model] = standardise(scores[have, model])
    return out


def naive_swaps(first, second, human, coefficient, swaps, parts=None):
    """The difference after each swap of rows, with loops and SciPy."""
    scores = (first, second, human)
    a, b, h = (naive_standardised(table, coefficient) for table in scores)
    differences = []
    for swap in swaps:
        mask = swap.reshape(len(a), -1)
        swapped = np.where(mask, b, a), np.where(mask, a, b)
        one, other = (naive_average(table, h, parts=parts) for table in swapped)
        differences.append(one - other)
    return np.array(differences)


@pytest.mark.parametrize("coefficient", ["spearman", "pearson"])
@pytest.mark.parametrize("parts", [None, ["x", "y", "x"]])
def test_swapped_correlations_are_naive_ones(coefficient, parts):
    scores = tables()
    statistic = CorrelationDifference(*scores, parts=parts, coefficient=coefficient)
    swaps = all_swaps(7)
    naive = naive_swaps(*scores, coefficient, swaps, parts)
    np.testing.assert_allclose(statistic.swapped(swaps), naive, atol=1e-10)
    observed = tuple(
        naive_average(table, scores[2], coefficient, parts) for table in scores[:2]
    )
    assert statistic.estimates() == pytest.approx(observed, abs=1e-12)
    assert naive[0] == pytest.approx(observed[0] - observed[1], abs=1e-12)
    exact = np.mean(np.abs(naive) >= abs(naive[0]) - ROUNDING)
    found = paired_permutation_p(statistic, 3, 40_000, ALL)
    assert found == pytest.approx(exact, abs=1e-12)


def test_means_after_every_swap_are_those_of_a_naive_computation():
    first = np.array([1, 1, 0, 1, 1, NAN, 1, 0, 1, 1])
    second = np.array([0, 1, 0, 0, 1, NAN, 0, 1, 0, 0])
    groups = np.array([0, 0, 1, 1, 2, 2, 3, 4, 5, 5])
    statistic = MeanDifference(first, second, groups.tolist())
    swaps = all_swaps(6)
    naive = [
        np.nanmean(np.where(swap[groups], second - first, first - second))
        for swap in swaps
    ]
    np.testing.assert_allclose(statistic.swapped(swaps), naive, atol=1e-12)
    exact = np.mean(np.abs(naive) >= abs(naive[0]) - ROUNDING)
    assert paired_permutation_p(statistic, 1, 40_000, ALL) == pytest.approx(exact)
    found = paired_comparison(statistic, 200, seed=1)
    numbers = (found.p, found.first, found.second, found.difference.value)
    assert numbers == pytest.approx((exact, 7 / 9, 3 / 9, naive[0]), abs=1e-12)


def test_p_counts_hits_and_adds_one_to_both():
    statistic = MeanDifference([1] * 7, [0] * 7, "abcdefg")
    swaps = np.random.default_rng([5, 1]).random((100, 7)) < 0.5
    hits = sum(abs(7 - 2 * swap.sum()) >= 7 for swap in swaps)
    assert paired_permutation_p(statistic, 5, 100, ALL) == (1 + hits) / 101
    assert paired_permutation_p(statistic, permutations=0) == 1


@pytest.mark.parametrize(("most", "is_exact"), [(2**12, True), (2**12 - 1, False)])
def test_p_does_not_depend_on_the_seed_where_all_swaps_are_few_enough(most, is_exact):
    scores = np.random.default_rng(0).random((2, 12))
    statistic = MeanDifference(*scores, "abcdefghijkl")
    found = {paired_permutation_p(statistic, seed, most) for seed in range(5)}
    assert (len(found) == 1) is is_exact


def test_sampling_stops_at_so_many_exceedances_and_p_is_their_share():
    statistic = MeanDifference([1] * 14, [0] * 10 + [1] * 4, "abcdefghijklmn")
    swaps = np.random.default_rng([5, 1]).random((10_000, 14)) < 0.5
    exceeding = np.flatnonzero(np.abs(10 - 2 * swaps[:, :10].sum(axis=1)) >= 10)
    for exceedances in (1, 2, 5, 10):
        found = paired_permutation_p(statistic, 5, exceedances=exceedances)
        assert found == exceedances / (exceeding[exceedances - 1] + 1)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        # 0.1 + 0.2 is not 0.3: in floating point the swaps of a difference of 0 are of the size
        # of 1e-17
        ([0.1, 0.2, 0.0], [0.0, 0.0, 0.3], 1),
        ([1e-15, 2e-15, 3e-15, 4e-15, 5e-15, 6e-15], [0.0] * 6, 2 / 64),
        ([1, 0], [1, 0], 1),
    ],
)
def test_differences_that_are_equal_but_for_rounding_are_hits(first, second, p):
    statistic = MeanDifference(first, second, range(len(first)))
    assert paired_permutation_p(statistic) == p


def test_memory_is_bounded_and_blocks_change_nothing(monkeypatch):
    scores = tables(rows=30)
    p = paired_permutation_p(CorrelationDifference(*scores), 0, 500, ALL)
    monkeypatch.setattr(comparison, "_CELLS_AT_ONCE", 100)
    assert paired_permutation_p(CorrelationDifference(*scores), 0, 500, ALL) == p


@given(st.integers(0, 1000), st.sampled_from(["spearman", "pearson"]))
@settings(max_examples=20)
def test_scales_and_the_order_of_the_judges_do_not_matter(seed, coefficient):
    first, second, human = tables(rows=12, seed=seed)
    found = []
    for pair in ((first, second), (second, first), (first, 3 + second / 1000)):
        statistic = CorrelationDifference(*pair, human, coefficient=coefficient)
        found.append(paired_comparison(statistic, 200, seed))
    one, turned, scaled = found
    assert one.p == turned.p == scaled.p
    ends = (one.difference.value, one.difference.low, one.difference.high)
    back, scaled = turned.difference.negated, scaled.difference
    assert ends == pytest.approx((back.value, back.low, back.high))
    assert ends[1:] == pytest.approx((scaled.low, scaled.high))


@pytest.mark.parametrize("coefficient", ["spearman", "pearson"])
def test_the_bootstrap_draws_the_same_groups_for_both(coefficient):
    judged = tables(rows=12)
    groups = [f"g{row // 2}" for row in range(12)]
    statistic = CorrelationDifference(*judged, groups, coefficient=coefficient)
    slow = []
    for draw in bootstrap.cluster_counts(groups, 40, seed=2):
        *scores, human = (np.repeat(table, draw, axis=0) for table in judged)
        have = ~np.isnan(human)
        r = np.full((2, human.shape[1]), NAN)
        for judge, model in itertools.product((0, 1), range(human.shape[1])):
            rows = have[:, model]
            pair = human[rows, model], scores[judge][rows, model]
            r[judge, model] = correlation(*pair, coefficient)
        r[:, np.isnan(r).any(axis=0)] = NAN
        slow.append(fisher_mean(r[0]) - fisher_mean(r[1]))
    fast = resampled_differences(statistic, 40, seed=2)
    np.testing.assert_allclose(fast, slow, atol=1e-9)
    found = paired_comparison(statistic, 40, seed=2).difference
    assert (found.low, found.high) == pytest.approx(bootstrap.interval(slow))


def test_groups_are_drawn_within_their_part_or_among_those_of_the_same_parts():
    tables = np.full((3, 9, 3), NAN)
    tables[:, :4, 0] = tables[:, 4:8, 1] = np.arange(12.0).reshape(3, 4) % 5
    tables[:, 3:5, 2] = np.arange(6.0).reshape(3, 2)
    statistic = CorrelationDifference(*tables, parts=["x", "y", "z"])
    assert statistic.strata.tolist() == [0, 0, 0, 1, 2, 3, 3, 3, 4]
    drawn = []
    statistic.resampled = lambda counts: drawn.append(counts) or np.zeros(len(counts))
    resampled_differences(statistic, 50)
    [counts] = drawn
    for stratum in range(5):
        members = statistic.strata == stratum
        assert (counts[:, members].sum(axis=1) == members.sum()).all()
        assert (counts[:, members] != 1).any() == (members.sum() > 1)


def test_the_bootstrap_of_means_equals_repeating_the_items():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 2, (2, 30)).astype(float)
    first[3] = second[3] = NAN
    groups = [f"g{item % 7}" for item in range(30)]
    counts = bootstrap.cluster_counts(groups, 25, seed=4)
    slow = [np.nanmean(np.repeat(first - second, draw)) for draw in counts]
    found = resampled_differences(MeanDifference(first, second, groups), 25, seed=4)
    np.testing.assert_allclose(found, slow)


def test_an_image_model_on_which_a_judge_is_constant_counts_as_0_and_one_on_which_people_are_for_neither():
    first, second, human = tables(rows=10, missing=False)
    first[:, 1] = 3.0
    left = [0, 2]
    statistic = CorrelationDifference(first, second, human)
    without = CorrelationDifference(first[:, left], second[:, left], human[:, left])
    found = statistic.estimates()[0]
    assert found == pytest.approx(np.tanh(np.arctanh(without.estimates()[0]) * 2 / 3))
    assert statistic.estimates()[1] == naive_average(second, human, "spearman")
    none = np.zeros((1, 10), dtype=bool)
    found = statistic.swapped(none)[0]
    assert found == pytest.approx(np.subtract(*statistic.estimates()))
    human[:, 1] = 1.0
    found = paired_comparison(CorrelationDifference(first, second, human), 200)
    assert found == paired_comparison(without, 200)


UNDEFINED = {
    "constant": CorrelationDifference(*np.ones((3, 4, 2))),
    "no samples": CorrelationDifference(*np.zeros((3, 0, 0))),
    "no values": MeanDifference([NAN], [NAN], "a"),
    "nothing": MeanDifference([], [], []),
}


@pytest.mark.parametrize("statistic", UNDEFINED.values(), ids=UNDEFINED)
def test_without_anything_defined_there_is_no_p(statistic):
    first, second, difference, p = paired_comparison(statistic, 10)
    numbers = (first, second, difference.value, difference.low, difference.high, p)
    assert all(math.isnan(number) for number in numbers)


FIRST, SECOND, HUMAN = tables()
LACKING = SECOND.copy()
LACKING[0, 0] = NAN
ONE_ONLY = "got 1 with a score in only one"
ENTRIES = "must have 7 entries .* `parts` 3 .* got 3"


@pytest.mark.parametrize(
    ("make", "arguments", "said"),
    [
        (CorrelationDifference, (FIRST, LACKING, HUMAN), ONE_ONLY),
        (CorrelationDifference, (FIRST, SECOND, LACKING), ONE_ONLY),
        (MeanDifference, ([1, NAN], [1, 0], "ab"), ONE_ONLY),
        (CorrelationDifference, (FIRST, SECOND[:2], HUMAN), "same shape"),
        (CorrelationDifference, (FIRST, SECOND, HUMAN, "abc"), ENTRIES),
        (MeanDifference, ([1, 0], [1], "a"), "same shape"),
        (MeanDifference, ([1, 0], [1, 0], "a"), "must have a group"),
    ],
)
def test_what_only_one_judge_has_is_an_error(make, arguments, said):
    with pytest.raises(ValueError, match=said):
        make(*arguments)


def test_holm_by_hand_in_any_order_and_without_undefined_ones():
    given = [0.01, 0.04, 0.03, NAN, 0.005]
    np.testing.assert_allclose(holm(given), [0.03, 0.06, 0.06, NAN, 0.02])


@given(arrays(float, st.integers(1, 8), elements=st.floats(0, 1)), st.floats(0.01, 0.2))
def test_holm_rejects_what_the_step_down_procedure_rejects(p, level):
    adjusted = holm(p)
    assert (adjusted >= p).all()
    rejected = set()
    for step, test in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if p[test] * (len(p) - step) > level:
            break
        rejected.add(test)
    assert {i for i in range(len(p)) if adjusted[i] <= level} == rejected


NONE = np.zeros((4, 4), dtype=bool)
FIRST_BEATS_LAST = NONE.copy()
FIRST_BEATS_LAST[0, 3] = True


@pytest.mark.parametrize(
    ("beats", "lowest", "highest"),
    [
        (NONE, [1, 1, 1, 1], [4, 4, 4, 4]),
        (np.triu(~NONE, 1), [1, 2, 3, 4], [1, 2, 3, 4]),
        (FIRST_BEATS_LAST, [1, 1, 1, 2], [3, 4, 4, 4]),
        (np.zeros((0, 0)), [], []),
    ],
)
def test_ranks_are_ranges_where_the_data_cannot_tell(beats, lowest, highest):
    assert [ranks.tolist() for ranks in rank_ranges(beats)] == [lowest, highest]


@pytest.mark.parametrize("beats", [np.ones((2, 2)), np.zeros((2, 3)), np.eye(2)])
def test_systems_that_beat_each_other_or_themselves_have_no_ranks(beats):
    with pytest.raises(ValueError, match="square matrix"):
        rank_ranges(beats)


def test_no_loop_goes_through_the_samples_for_each_of_a_thousand_swaps():
    rng = np.random.default_rng(0)
    statistic = CorrelationDifference(*rng.normal(size=(3, 179, 8)))
    contests = MeanDifference(*rng.integers(0, 2, (2, 2000)), list(range(2000)))
    with calls_at_most(100_000):  # some 12,000
        paired_comparison(statistic, 1000)
        paired_comparison(contests, 1000)


def test_an_average_of_differences_is_that_of_its_parts_in_every_swap_and_draw():
    rng = np.random.default_rng(2)
    one = MeanDifference(rng.random(6), rng.random(6), list("aabbcc"))
    other = MeanDifference(rng.random(4), rng.random(4), list("wxyz"))
    both = AveragedDifference([one, other], [1, 3])
    swap = rng.random((5, 7)) < 0.5
    parts = 0.25 * one.swapped(swap[:, :3]) + 0.75 * other.swapped(swap[:, 3:])
    np.testing.assert_allclose(both.swapped(swap), parts)
    counts = np.concatenate([np.full((2, 3), 1), np.full((2, 4), 2)], axis=1)
    of_one, of_other = one.resampled(counts[:, :3]), other.resampled(counts[:, 3:])
    np.testing.assert_allclose(both.resampled(counts), 0.25 * of_one + 0.75 * of_other)
    assert len(set(both.strata[:3])) == len(set(both.strata[3:])) == 1
    assert both.strata[0] != both.strata[-1]
    first, second = both.estimates()
    found = paired_comparison(both, resamples=50).difference.value
    assert found == pytest.approx(first - second)


def test_scores_permuted_within_image_models_are_those_of_a_naive_computation():
    first, second, human = tables()
    statistic = CorrelationDifference(first, second, human, parts=["p", "p", "q"])
    keys = np.random.default_rng(1).random((20, len(first)))
    permuted = statistic.permuted(lambda groups: np.argsort(keys[:, groups], axis=1))
    for key, found in zip(keys, permuted, strict=True):
        given_away = np.full(first.shape, NAN)
        for model in range(first.shape[1]):
            rows = np.flatnonzero(~np.isnan(first[:, model]))
            given_away[rows, model] = first[rows[np.argsort(key[rows])], model]
        expected = naive_average(given_away, human, "spearman", ["p", "p", "q"])
        assert found == pytest.approx(expected)
    in_place = statistic.permuted(lambda groups: np.arange(len(groups))[None])
    assert in_place[0] == pytest.approx(statistic.estimates()[0])


def test_p_of_independence_is_that_of_all_permutations():
    first, _, human = tables(6, 1, missing=False, seed=3)
    rho = lambda order: stats.spearmanr(first[list(order), 0], human[:, 0]).statistic
    every = np.abs([rho(order) for order in itertools.permutations(range(6))])
    exact = np.mean(every >= every[0] - ROUNDING)
    statistic = CorrelationDifference(first, first, human)
    found = independence_p(statistic, permutations=9_999)
    assert found == pytest.approx(exact, abs=0.02)


def test_a_judge_that_does_not_look_at_images_is_above_0_in_one_case_of_40_and_one_that_does_always():
    """People and judge each like some instructions, so these are permuted whole."""
    above = dict.fromkeys(("blind", "looks"), 0)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        human = rng.normal(size=(40, 1)) + 0.7 * rng.normal(size=(40, 6))
        blind = rng.normal(size=(40, 1)) + 0.7 * rng.normal(size=(40, 6))
        for name, scores in (("blind", blind), ("looks", blind + 0.8 * human)):
            statistic = CorrelationDifference(scores, scores, human)
            is_significant = independence_p(statistic, seed, 199) <= 0.05
            above[name] += is_significant and statistic.estimates()[0] > 0
    assert above["blind"] <= 12
    assert above["looks"] >= 190
    assert math.isnan(independence_p(CorrelationDifference(blind, blind, 0 * human)))


def cases():
    """Differences by group: continuous, few values, tied, skewed; a unit a group or several."""
    found = []
    for number in range(400):
        rng = np.random.default_rng([44, number])
        units = int(rng.integers(1, 40))
        laws = (
            rng.normal(0.1, 0.2, units),
            rng.integers(-1, 3, units) / 10,
            rng.choice([0.0, 0.1, 0.3], units),
            rng.exponential(0.1, units) - 0.05,
        )
        drawn = rng.integers(0, units, units).tolist()
        groups = list(range(units)) if number % 3 else drawn
        found.append((laws[number % 4], groups))
    return found


def above_0(differences, groups):
    """The difference of a judge from one that always scores 0."""
    return MeanDifference(differences, np.zeros(len(differences)), groups)


def test_the_interval_of_a_mean_is_of_all_shifts_that_its_test_does_not_reject():
    for number, (differences, groups) in enumerate(cases()):
        found = paired_comparison(above_0(differences, groups), seed=number)
        low, high = found.difference.low, found.difference.high
        assert (math.isnan(low) or low <= 0 <= high) == (found.p > 0.05)
        assert math.isnan(low) or low <= found.difference.value <= high
        if number < 120 and high - low >= 1e-6:
            inside, outside = [low + 1e-7, high - 1e-7], [low - 1e-7, high + 1e-7]
            for shift in (*inside, *outside):
                moved = above_0(differences - shift, groups)
                assert (paired_permutation_p(moved, number) > 0.05) == (shift in inside)


def test_fewer_than_six_units_have_no_interval_and_equal_differences_one_without_width():
    for units in range(1, 14):
        equal = MeanDifference([0.3] * units, [0.1] * units, range(units))
        found = paired_comparison(equal).difference
        assert math.isnan(found.low) == math.isnan(found.high) == (units < 6)
        assert not found.has_interval
        varied = paired_comparison(above_0(np.arange(units) / 20, range(units)))
        assert varied.difference.has_interval == (units >= 6)


def test_an_average_over_benchmarks_has_the_interval_of_its_test():
    for number in range(60):
        rng = np.random.default_rng([45, number])
        sizes = rng.integers(4, 12, 2)
        parts = [above_0(rng.normal(0.2, 0.3, n), range(n)) for n in sizes]
        found = paired_comparison(AveragedDifference(parts, [1, 2]), seed=number)
        ends = found.difference
        assert (ends.low <= 0 <= ends.high) == (found.p > 0.05)
        assert ends.low <= ends.value <= ends.high


def clustered(rng, better=0.0):
    """100 instructions x 8 image models: people's scores, and two judges of which the first is
    `better`.

    Instructions are easy or hard for people, for both judges alike, and for each judge in its own
    way.
    """
    people = rng.normal(size=(100, 1)) + rng.normal(size=(100, 8))
    both = 0.7 * rng.normal(size=(100, 1))

    def judge(more):
        own = rng.normal(size=(100, 1)) + rng.normal(size=people.shape)
        return (1 + more) * people + both + own

    first = judge(better)
    return first, 100 * judge(0), people


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nulls", "others"), [(200, 80), pytest.param(1000, 400, marks=pytest.mark.extras)]
)
def test_size_and_power_with_clustered_data(capsys, nulls, others):
    """Rejections at 5% with 199 swaps: p <= 0.05 has probability 10/200 where swapping is
    allowed.
    """

    def drawn(better, seed):
        scores = clustered(np.random.default_rng([11, seed]), better)
        return CorrelationDifference(*scores)

    def rejects(better, seed):
        return paired_permutation_p(drawn(better, seed), [12, seed], 199, ALL) <= 0.05

    size = sum(rejects(0.0, seed) for seed in range(nulls))
    power = sum(rejects(0.3, seed) for seed in range(others)) / others
    gains = [np.subtract(*drawn(0.3, seed).estimates()) for seed in range(others)]
    with capsys.disabled():
        print(
            f"\ngroups swapped: {size} of {nulls:,} rejected at the null; power {power:.3f} at a "
            f"mean difference of {np.mean(gains):.3f}"
        )
    standard_error = np.sqrt(0.05 * 0.95 * nulls)
    assert abs(size - 0.05 * nulls) <= 2.2 * standard_error
    assert 0.08 < np.mean(gains) < 0.12
    assert power > 0.6
