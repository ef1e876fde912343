"""Votes from scores and preferences, by thresholds of other contests."""

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
from vieval_plugin.stats.votes import BOTH_BAD, BOTH_GOOD, mean, points

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
    scores, recorded = ({"O": 0.9}, {"O": 0.1}), ({"O": 0.9}, {"O": 0.2})
    guess = contest("", "first", status=Status.GUESSED, scores=({"O": 0.9}, {}))
    guess = replace(guess, contest=replace(guess.contest, recorded=recorded))
    rows = [contest(str(n), "first", scores=scores) for n in range(10)]
    rows += [replace(guess, uid=f"g{n}") for n in range(10)]
    found = values(rows, aspects=("O",), options=replace(OPTIONS, policy=policy))
    assert found["O_accuracy_decisive"] == accuracy


def scores_in(rows):
    """Scores of the first candidates and of the second ones."""
    return np.array([[dict(one)["O"] for one in o.contest.scores] for o in rows]).T


@pytest.mark.parametrize(
    ("scheme", "ties"), [("four_way", {}), ("three_way", {BOTH_BAD: BOTH_GOOD})]
)
def test_votes_from_scores_are_those_of_nested_thresholds_over_groups(scheme, ties):
    rows = scored()
    found = values(rows, aspects=("O",))
    first, second = scores_in(rows)
    human = np.array([CODES[o.contest.votes.vote] for o in rows])
    for seed in ([7], [OPTIONS.seed, *b"b/t"]):
        judged = (first, second, human, [o.group for o in rows])
        own = thresholds.nested(*judged, seed=seed, scheme=scheme)
        answers = answers_of(pairs_of(rows, "four_way"), "O", "four_way", seed)
        np.testing.assert_array_equal(answers.codes[scheme], own)
    alike = [ties.get(a, a) == ties.get(b, b) for a, b in zip(own, human, strict=True)]
    assert found[f"O_accuracy_{scheme}"] == pytest.approx(np.mean(alike))
    best = thresholds.best_thresholds(first, second, human, scheme)
    votes = thresholds.vote_of_scores(first, second, *best)
    bound = mean(points(votes, human, scheme))
    assert found[f"O_upper_bound_{scheme}"] == pytest.approx(bound)
    assert found[f"O_accuracy_{scheme}"] <= bound


def test_the_upper_bound_is_that_of_brute_force():
    rows = scored(14, seed=3)
    first, second = scores_in(rows)
    people = [o.contest.votes.vote for o in rows]

    def vote(a, b, tie, good):
        if abs(a - b) > tie:
            return "first" if a > b else "second"
        return "both_good" if (a + b) / 2 >= good else "both_bad"

    def right(tie, good):
        votes = [vote(a, b, tie, good) for a, b in zip(first, second, strict=True)]
        return np.mean([vote == said for vote, said in zip(votes, people, strict=True)])

    ties = [0.0, *np.abs(first - second)]
    goods = [-math.inf, math.inf, *(first + second) / 2]
    best = max(right(*both) for both in itertools.product(ties, goods))
    assert values(rows, aspects=("O",))["O_upper_bound_four_way"] == pytest.approx(best)


def test_thresholds_never_see_the_votes_they_are_used_on():
    rows, votes = scored(60), Votes("four_way", "both_bad")
    fold = thresholds.fold_of(pairs_of(rows, "four_way").groups, seed=[0])
    lied = [
        replace(row, contest=replace(row.contest, votes=votes)) if inside else row
        for row, inside in zip(rows, fold == 0, strict=True)
    ]
    before, after = (
        answers_of(pairs_of(some, "four_way"), "O", "four_way", [0]).codes["four_way"]
        for some in (rows, lied)
    )
    np.testing.assert_array_equal(before[fold == 0], after[fold == 0])
    assert (before[fold != 0] != after[fold != 0]).any()


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
        # one order unread: no vote
        contest("d", "first", preferences={"forward": 0.9}, status=Status.REFUSAL),
    ]
    found = summarise(rows).estimates
    assert found["votes_accuracy_decisive_value"].value == 0.5
    got = found["votes_forward_accuracy_decisive_value"].reason
    assert got == "the judge gives preferences, not votes"
    assert math.isnan(found["votes_both_orders_accuracy_value"].value)


def test_preferences_near_zero_are_ties_by_thresholds():
    rng = np.random.default_rng(1)
    preferred = rng.uniform(-1, 1, 90)
    rows = []
    for n, p in enumerate(map(float, preferred)):
        vote = "both_bad" if abs(p) < 0.3 else "first" if p > 0 else "second"
        said = {"forward": p + 0.2, "reverse": p - 0.2}
        rows.append(contest(f"{n:02}", vote, preferences=said))
    found = values(rows)
    assert found["votes_accuracy_decisive"] == 1
    bound = bounds(["three_way"])["upper_bound_three_way"]
    answers = answers_of(pairs_of(rows, "four_way"), "votes", "four_way", [0])
    assert np.nanmean(bound(answers).values) == 1
    assert 0.9 < found["votes_accuracy_three_way"] <= 1
