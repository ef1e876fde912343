"""Votes that follow from scores and preferences: by thresholds that never see what they are used
on.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.voted import CODES, OPTIONS, contest, scored, summarise, values
from vieval_plugin.judges.contests import Votes
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.vote_answers import answers_of, pairs_of
from vieval_plugin.meta_evaluation.vote_statistics import bounds
from vieval_plugin.stats import thresholds
from vieval_plugin.stats.votes import BOTH_GOOD, mean, points

# --- scores and preferences


def test_scores_that_order_all_pairs_rightly_are_right_wherever_people_prefer():
    rows = scored(noise=0.0)
    found = values(rows, aspects=("O",))
    assert found["O_accuracy_decisive"] == 1
    assert found["O_upper_bound_four_way"] == found["O_upper_bound_three_way"] == 1
    assert 0.9 < found["O_accuracy_four_way"] <= found["O_accuracy_three_way"] <= 1


@pytest.mark.parametrize(
    ("policy", "accuracy"), [("drop", 0.5), ("worst", 0.5), ("as_recorded", 1.0)]
)
def test_numbers_that_a_log_keeps_apart_count_under_as_recorded_alone(policy, accuracy):
    rows = [
        contest(str(n), "first", scores=({"O": 0.9}, {"O": 0.1})) for n in range(10)
    ]
    guessed = [
        contest(f"g{n}", "first", status=Status.GUESSED, scores=({"O": 0.9}, {}))
        for n in range(10)
    ]
    recorded = ({"O": 0.9}, {"O": 0.2})
    rows += [
        replace(row, contest=replace(row.contest, recorded=recorded)) for row in guessed
    ]
    found = values(rows, aspects=("O",), options=replace(OPTIONS, policy=policy))
    assert found["O_accuracy_decisive"] == accuracy


def test_votes_from_scores_are_those_of_nested_thresholds_over_groups():
    rows = scored()
    found = values(rows, aspects=("O",))
    listed = [[dict(one)["O"] for one in o.contest.scores] for o in rows]
    first, second = np.array(listed).T
    human = np.array([CODES[o.contest.votes.vote] for o in rows])
    groups = [o.group for o in rows]
    seed = [OPTIONS.seed, *b"b/t"]
    for scheme, tied in (("four_way", None), ("three_way", BOTH_GOOD)):
        own = thresholds.nested(first, second, human, groups, seed=seed, scheme=scheme)
        for other in (seed, [7]):
            codes = answers_of(
                pairs_of(rows, "four_way"), "O", "four_way", other
            ).codes[scheme]
            expected = thresholds.nested(
                first, second, human, groups, seed=other, scheme=scheme
            )
            np.testing.assert_array_equal(codes, expected)
        merged = [
            np.where(np.isin(one, (2, 3)), tied, one) if tied else one
            for one in (own, human)
        ]
        got = found[f"O_accuracy_{scheme}"]
        assert got == (pytest.approx(np.mean(merged[0] == merged[1])))
        best = thresholds.best_thresholds(first, second, human, scheme)
        bound = mean(
            points(thresholds.vote_of_scores(first, second, *best), human, scheme)
        )
        assert found[f"O_upper_bound_{scheme}"] == pytest.approx(bound)
        assert found[f"O_accuracy_{scheme}"] <= bound


def test_the_upper_bound_is_that_of_brute_force():
    rows = scored(14, seed=3)
    listed = [[dict(one)["O"] for one in o.contest.scores] for o in rows]
    first, second = np.array(listed).T
    people = [o.contest.votes.vote for o in rows]

    def right(tie, good):
        votes = [
            ("both_good" if (a + b) / 2 >= good else "both_bad")
            if abs(a - b) <= tie
            else ("first" if a > b else "second")
            for a, b in zip(first, second, strict=True)
        ]
        return np.mean([vote == said for vote, said in zip(votes, people, strict=True)])

    tried = itertools.product(
        [0.0, *np.abs(first - second)], [-math.inf, math.inf, *(first + second) / 2]
    )
    best = max(right(*both) for both in tried)
    assert values(rows, aspects=("O",))["O_upper_bound_four_way"] == pytest.approx(best)


def test_thresholds_never_see_the_votes_they_are_used_on():
    rows = scored(60)
    pairs = pairs_of(rows, "four_way")
    seed = [0]
    fold = thresholds.fold_of(pairs.groups, seed=seed)
    lied = [
        replace(o, contest=replace(o.contest, votes=Votes("four_way", "both_bad")))
        if held_out
        else o
        for o, held_out in zip(rows, fold == 0, strict=True)
    ]
    before, after = (
        answers_of(pairs_of(some, "four_way"), "O", "four_way", seed)
        for some in (rows, lied)
    )
    np.testing.assert_array_equal(
        before.codes["four_way"][fold == 0], after.codes["four_way"][fold == 0]
    )
    assert (
        before.codes["four_way"][fold != 0] != after.codes["four_way"][fold != 0]
    ).any()


def test_contests_of_one_group_have_no_thresholds_and_say_so():
    rows = [replace(o, group="g") for o in scored(6)]
    found = summarise(rows, aspects=("O",)).estimates
    got = found["O_accuracy_four_way_value"].reason
    assert got == "thresholds require contests from at least two groups"
    assert not math.isnan(found["O_accuracy_decisive_value"].value)


def test_a_candidate_without_a_score_is_a_wrong_answer():
    rows = [
        contest("a", "first", scores=({"O": 0.9}, {"O": 0.1})),
        contest("b", "first", scores=({"O": 0.9}, {}), status=Status.PARSE_FAILURE),
        contest("c", "first", scores=({"O": 0.5}, {"O": 0.5})),  # a tie is wrong too
    ]
    found = summarise(rows, aspects=("O",))
    assert found.estimates["O_accuracy_decisive_value"].value == pytest.approx(1 / 3)
    assert found.scored == 2


def test_preferences_are_averaged_over_the_orders():
    rows = [
        contest("a", "first", preferences={"forward": 0.9, "reverse": -0.5}),
        contest("b", "first", preferences={"forward": 0.4, "reverse": -0.5}),
        contest("c", "second", preferences={"forward": -0.4, "reverse": -0.5}),
        contest(
            "d", "first", preferences={"forward": 0.9}, status=Status.REFUSAL
        ),  # one order unread: no vote
    ]
    found = summarise(rows).estimates
    assert found["votes_accuracy_decisive_value"].value == 0.5
    got = found["votes_accuracy_four_way_value"].reason
    assert got == 'preferences cannot distinguish "both good" from "both bad"'
    got = found["votes_forward_accuracy_decisive_value"].reason
    assert got == "the judge gives preferences, not votes"
    assert math.isnan(found["votes_both_orders_accuracy_value"].value)


def test_preferences_near_zero_are_ties_by_thresholds():
    rng = np.random.default_rng(1)
    preferred = rng.uniform(-1, 1, 90)
    votes = [
        "both_bad" if abs(p) < 0.3 else "first" if p > 0 else "second"
        for p in preferred
    ]
    rows = [
        contest(
            f"{n:02}",
            vote,
            preferences={"forward": float(p) + 0.2, "reverse": float(p) - 0.2},
        )
        for n, (vote, p) in enumerate(zip(votes, preferred, strict=True))
    ]
    found = values(rows)
    assert found["votes_accuracy_decisive"] == 1
    bound = bounds(["three_way"])["upper_bound_three_way"]
    answers = answers_of(pairs_of(rows, "four_way"), "votes", "four_way", [0])
    assert np.nanmean(bound(answers).values) == 1
    assert 0.9 < found["votes_accuracy_three_way"] <= 1
