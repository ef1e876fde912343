"""Votes and thresholds against their definitions and brute force."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.work import calls_at_most
from vieval_plugin.stats import bootstrap
from vieval_plugin.stats.binary import resampled_mean
from vieval_plugin.stats.orders import (
    both_orders_points,
    consistent_points,
    each_order_points,
    overall_votes,
)
from vieval_plugin.stats.thresholds import (
    best_thresholds,
    fold_of,
    nested,
    vote_of_scores,
)
from vieval_plugin.stats.votes import (
    BOTH_BAD,
    BOTH_GOOD,
    FIRST,
    NONE,
    SECOND,
    TIE,
    annotator_points,
    best_constant,
    ceiling_points,
    group_points,
    mean,
    points,
    share,
)

NAN = math.nan
codes = st.sampled_from([FIRST, SECOND, BOTH_GOOD, BOTH_BAD])
contests = st.lists(st.tuples(codes | st.sampled_from([TIE, NONE]), codes), max_size=20)
levels = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.75, 1.0, NAN])
scored = st.lists(st.tuples(levels, levels, codes), min_size=1, max_size=12)


def naive_accuracy(own, human, scheme):
    right = []
    for mine, theirs in zip(own, human, strict=True):
        tied = theirs in (BOTH_GOOD, BOTH_BAD)
        if scheme == "decisive" and tied:
            continue
        if scheme == "three_way" and tied:
            right.append(mine in (BOTH_GOOD, BOTH_BAD, TIE))
        elif scheme == "paper" and tied:
            right.append(mine in (theirs, TIE))
        else:
            right.append(mine == theirs)
    return sum(right) / len(right) if right else NAN


@given(contests, st.sampled_from(["four_way", "three_way", "decisive", "paper"]))
def test_accuracy_is_its_definition(rows, scheme):
    own, human = zip(*rows, strict=True) if rows else ((), ())
    found = mean(points(own, human, scheme))
    assert found == pytest.approx(naive_accuracy(own, human, scheme), nan_ok=True)


@pytest.mark.parametrize(
    ("own", "human", "scheme", "expected"),
    [
        # no answer is wrong and never dropped
        ([NONE] * 3, [FIRST, BOTH_GOOD, BOTH_BAD], "four_way", [0, 0, 0]),
        ([NONE] * 3, [FIRST, BOTH_GOOD, BOTH_BAD], "three_way", [0, 0, 0]),
        ([NONE] * 3, [FIRST, BOTH_GOOD, BOTH_BAD], "decisive", [0, NAN, NAN]),
        # people who only say "tie" are counted in three_way
        ([TIE, BOTH_BAD, FIRST], [TIE] * 3, "three_way", [1, 1, 0]),
        *(
            ([TIE], [TIE], scheme, [NAN])
            for scheme in ("four_way", "decisive", "paper")
        ),
    ],
)
def test_missing_answers_and_bare_ties_count_as_stated(own, human, scheme, expected):
    np.testing.assert_array_equal(points(own, human, scheme), expected)


def naive_vote(one, other, tie, good):
    if math.isnan(one) or math.isnan(other):
        return NONE
    if abs(one - other) <= tie:
        return BOTH_GOOD if (one + other) / 2 >= good else BOTH_BAD
    return FIRST if one > other else SECOND


TIES = st.sampled_from([0.0, 0.2, 0.25, 2.0])
GOODS = st.sampled_from([-math.inf, 0.3, 0.5, math.inf])


@given(scored, TIES, GOODS)
def test_votes_of_scores_are_the_rule(rows, tie, good):
    one, other, _ = map(np.array, zip(*rows, strict=True))
    expected = [naive_vote(a, b, tie, good) for a, b in zip(one, other, strict=True)]
    assert vote_of_scores(one, other, tie, good).tolist() == expected


def test_infinite_scores_are_voted_on():
    first, second = [math.inf, -math.inf, 1], [math.inf, 0, -math.inf]
    assert vote_of_scores(first, second, 5, 0).tolist() == [2, 1, 0]


@given(scored, st.sampled_from(["four_way", "three_way", "decisive"]))
def test_best_thresholds_are_those_of_brute_force(rows, scheme):
    one, other, human = map(np.array, zip(*rows, strict=True))
    distances = {0.0, *np.abs(one - other)[~np.isnan(one - other)]}
    middles = {-math.inf, math.inf, *((one + other) / 2)[~np.isnan(one + other)]}

    def right(*chosen):
        return np.nansum(points(vote_of_scores(one, other, *chosen), human, scheme))

    tried = itertools.product(distances, middles)
    reached = {chosen: right(*chosen) for chosen in tried}
    found = best_thresholds(one, other, human, scheme)
    best = max(reached.values())
    assert right(*found) == best
    # of equals: the smallest tie, then the smallest `good` of the means of contests that both then
    # tie
    assert found.tie == min(tie for (tie, _), right in reached.items() if right == best)
    tied = (np.abs(one - other) <= found.tie) & np.isin(human, (BOTH_GOOD, BOTH_BAD))
    tried = {-math.inf, math.inf, *((one + other) / 2)[tied]}
    assert found.good == min(good for good in tried if reached[found.tie, good] == best)


@pytest.mark.parametrize(
    ("scores", "human", "scheme", "expected"),
    [
        # ties 0.1, 0.3 apart, a win 0.2 apart: 0.1 is as good as 0.3
        (([0] * 3, [0.1, 0.3, 0.2]), [BOTH_BAD, BOTH_BAD, SECOND], "three_way", (0.1,)),
        (([0, 0], [0.1, 0.4]), [TIE, SECOND], "three_way", (0.1, -math.inf)),
        (([0, 0], [0.1, 0.4]), [TIE, SECOND], "four_way", (0.0, -math.inf)),
        # without a tie nothing says what is good
        (([0, 1], [1, 0]), [SECOND, FIRST], "four_way", (0.0, -math.inf)),
        (([1, 1],) * 2, [BOTH_BAD, BOTH_BAD], "four_way", (0.0, math.inf)),
        (([1, 2, 3],) * 2, [BOTH_BAD, BOTH_GOOD, BOTH_GOOD], "four_way", (0.0, 2.0)),
        # bad, good, bad, good: 2 and 4 are equally right, and so the smaller
        (([1, 2, 3, 4],) * 2, [BOTH_BAD, BOTH_GOOD] * 2, "four_way", (0.0, 2.0)),
    ],
)
def test_the_choice_among_equals_is_stated(scores, human, scheme, expected):
    assert best_thresholds(*scores, human, scheme)[: len(expected)] == expected


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (points, ([5], [0], "four_way"), "from -1 to 4, got 5"),
        (points, ([0.5], [0], "four_way"), "from -1 to 4"),
        (points, ([0], [NONE], "four_way"), "from 0 to 4"),
        (points, ([0, 1], [0], "four_way"), "same shape"),
        (vote_of_scores, ([1], [2], -0.1), "at least 0"),
        (vote_of_scores, ([1], [2, 3]), "same length"),
        (best_thresholds, ([1], [2], []), "one human vote"),
        (fold_of, ("aa", 5), "2 folds and 2 groups"),
        (fold_of, ("ab", 1), "2 folds and 2 groups"),
        (nested, ([1, 2], [1, 2], [0, 1], "abc"), "each contest must have a group"),
        (share, ([1.0, 0.0], "a"), "must have a group"),
    ],
)
def test_bad_votes_scores_and_groups_are_refused(function, arguments, said):
    with pytest.raises(ValueError, match=said):
        function(*arguments)


def drawn_contests(n=400, seed=0):
    """Scores in 40 groups, and noisy votes of people by thresholds 0.4 and 0."""
    rng = np.random.default_rng(seed)
    groups = [f"g{number}" for number in rng.integers(0, n // 10, n)]
    scores = rng.normal(size=(2, n))
    noisy = scores + 0.3 * rng.normal(size=scores.shape)
    return scores[0], scores[1], vote_of_scores(*noisy, 0.4, 0.0), groups


@pytest.mark.parametrize("scheme", ["four_way", "three_way"])
def test_nested_thresholds_never_see_the_contests_they_are_used_on(scheme):
    one, other, human, groups = drawn_contests()
    found = nested(one, other, human, groups, folds=4, seed=3, scheme=scheme)
    fold = fold_of(groups, 4, 3)
    assert len(set(zip(groups, fold.tolist(), strict=True))) == len(set(groups))
    for held_out in range(4):
        inside = fold == held_out
        others = (one[~inside], other[~inside], human[~inside])
        chosen = best_thresholds(*others, scheme)
        votes = vote_of_scores(one[inside], other[inside], *chosen)
        np.testing.assert_array_equal(found[inside], votes)
        # whatever people say there, the votes are the same
        lied = np.where(inside, FIRST, human)
        again = nested(one, other, lied, groups, folds=4, seed=3, scheme=scheme)
        np.testing.assert_array_equal(again[inside], found[inside])
    bound = vote_of_scores(one, other, *best_thresholds(one, other, human, scheme))
    reached, most = (mean(points(own, human, scheme)) for own in (found, bound))
    assert 0.5 < reached <= most


def test_folds_are_of_whole_groups_and_of_one_size():
    groups = [f"g{number % 23}" for number in range(100)]
    fold = fold_of(groups, 5, seed=1)
    by_group = set(zip(groups, fold.tolist(), strict=True))
    assert len(by_group) == 23
    sizes = np.bincount([number for _, number in by_group])
    assert sorted(sizes.tolist()) == [4, 4, 5, 5, 5]
    assert fold.tolist() == fold_of(groups, 5, seed=1).tolist()
    assert fold.tolist() != fold_of(groups, 5, seed=2).tolist()
    assert len(set(fold_of(["a", "b"], 5))) == 2
    assert fold_of([]).tolist() == nested([], [], [], []).tolist() == []


def test_a_group_is_right_only_if_all_its_pairs_are():
    right = [1, 1, 1, 0, 1, 1, NAN, NAN]
    groups = ["b", "a", "a", "a", "b", "c", "c", "d"]
    names, found = group_points(right, groups)
    assert names == ["b", "a", "c", "d"]
    np.testing.assert_array_equal(found, [1, 0, 1, NAN])


some_codes = codes | st.just(NONE)
orders = st.tuples(some_codes, some_codes, codes)


@given(st.lists(orders, min_size=1, max_size=20))
def test_both_orders(rows):
    forward, reverse, human = zip(*rows, strict=True)
    both = [float(f == h and r == h) for f, r, h in rows]
    assert both_orders_points(forward, reverse, human, "four_way").tolist() == both
    same = [float(f == r != NONE) for f, r, _ in rows]
    assert consistent_points(forward, reverse).tolist() == same
    n = len(rows)
    merged = [
        TIE if code in (BOTH_GOOD, BOTH_BAD) else code for code in forward + reverse
    ]
    alike = [float(f == r != NONE) for f, r in zip(merged[:n], merged[n:], strict=True)]
    assert consistent_points(forward, reverse, "three_way").tolist() == alike
    counted = [
        float(vote == h)
        for f, r, h in rows
        for vote in (f, r)
        if h in (FIRST, SECOND) and vote != NONE
    ]
    found = mean(each_order_points(forward, reverse, human))
    assert found == pytest.approx(np.mean(counted) if counted else NAN, nan_ok=True)


@given(st.lists(st.tuples(some_codes, some_codes), min_size=1))
def test_two_orders_make_one_vote(rows):
    forward, reverse = zip(*rows, strict=True)
    expected = [NONE if NONE in (f, r) else f if f == r else TIE for f, r in rows]
    assert overall_votes(forward, reverse).tolist() == expected


annotated = st.lists(some_codes, min_size=4, max_size=4)


@given(st.lists(annotated, min_size=1, max_size=4))
def test_ceiling_is_pooled_over_pairs_of_annotators(annotations):
    agree = [
        one == other
        for contest in zip(*annotations, strict=True)
        for one, other in itertools.combinations(contest, 2)
        if NONE not in (one, other)
    ]
    found = mean(ceiling_points(annotations))
    assert found == pytest.approx(np.mean(agree) if agree else NAN, nan_ok=True)
    judge = annotations[0]
    said = [zip(judge, annotator, strict=True) for annotator in annotations]
    own = [mine == theirs for mine, theirs in itertools.chain(*said) if theirs != NONE]
    got = mean(annotator_points(judge, annotations))
    assert got == pytest.approx(np.mean(own) if own else NAN, nan_ok=True)


def test_the_interval_of_a_share_equals_repeating_the_contests():
    rng = np.random.default_rng(2)
    right = rng.integers(0, 2, 60).astype(float)
    right[5] = NAN
    groups = [f"g{number}" for number in rng.integers(0, 15, 60)]
    found = share(right, groups, resamples=80, seed=6)
    counts = bootstrap.cluster_counts(groups, 80, 6)
    got = (found.low, found.high)
    assert got == pytest.approx(bootstrap.interval(resampled_mean(right, counts)))
    assert (found.value, found.n) == (pytest.approx(np.nanmean(right)), 59)
    pooled = share(np.stack([right, 1 - right]), groups, resamples=80, seed=6)
    assert (pooled.value, pooled.low, pooled.high, pooled.n) == (0.5, 0.5, 0.5, 118)
    assert math.isnan(share([], []).low)


schemes = st.sampled_from(["four_way", "three_way", "decisive", "paper"])


@given(st.lists(codes, max_size=30), schemes)
def test_the_best_constant_is_that_of_brute_force(human, scheme):
    votes = (FIRST, SECOND, BOTH_GOOD, BOTH_BAD, TIE)[
        : 2 if scheme == "decisive" else 5
    ]
    constants = [points([vote] * len(human), human, scheme) for vote in votes]
    found = best_constant(human, scheme)
    assert mean(found) == pytest.approx(max(map(mean, constants)), nan_ok=True)
    assert any(np.array_equal(found, one, equal_nan=True) for one in constants)


def test_no_loop_goes_through_two_thousand_contests_for_each_threshold_or_draw():
    one, other, human, groups = drawn_contests(2000)
    with calls_at_most(100_000):  # some 6,000, and 1,300
        own = nested(one, other, human, groups)
        share(points(own, human), range(2000), resamples=2000)
        best_constant(human)
