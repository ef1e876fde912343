"""Contests from observations to numbers: votes, rankings and intervals."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.leaderboards import compared_of
from tests.refusals import refusal
from tests.voted import (
    CODES,
    OPTIONS,
    contest,
    findings,
    run,
    scored,
    summarise,
    table,
    values,
)
from vieval_plugin.judges.contests import RANKING, Votes
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation import metrics
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.meta_evaluation.vote_answers import answers_of, pairs_of
from vieval_plugin.meta_evaluation.vote_statistics import bounds
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.stats import bootstrap, thresholds
from vieval_plugin.stats.binary import resampled_mean
from vieval_plugin.stats.votes import BOTH_BAD, BOTH_GOOD, mean, points

# --- votes of a judge


def test_two_orders_by_hand():
    rows = [
        contest("a", "first", forward="first", reverse="first"),
        # inconsistent: a tie, and wrong
        contest("b", "second", forward="second", reverse="first"),
        # differ, and are both a tie
        contest("c", "both_bad", forward="both_bad", reverse="both_good"),
        contest("d", "both_good", forward="both_good"),  # one order unread: no vote
        contest("e", "first", status=Status.PARSE_FAILURE),
    ]
    found = values(rows)
    expected = {
        "accuracy_four_way": 1 / 5,
        "accuracy_three_way": 2 / 5,
        "accuracy_decisive": 1 / 3,
        "forward_accuracy_four_way": 4 / 5,
        "forward_accuracy_three_way": 4 / 5,
        "forward_accuracy_decisive": 2 / 3,
        "both_orders_accuracy": 1 / 5,
        "each_order_accuracy": 5 / 7,
        "consistent_share": 1 / 5,
        "inconsistent_share": 2 / 5,
        # always first is right in 2 of 5, each other answer in at most one
        "above_constant_four_way": -1 / 5,
    }
    for what, value in expected.items():
        assert found[f"votes_{what}"] == pytest.approx(value), what
    assert summarise(rows).scored == 3


@pytest.mark.parametrize("policy", ["drop", "random", "worst", "as_recorded"])
def test_a_missing_answer_is_wrong_and_never_dropped_under_any_policy(policy):
    rows = [
        contest("a", "first", forward="first"),
        contest("b", "first", status=Status.REFUSAL),
    ]
    options = replace(OPTIONS, policy=policy)
    estimates = summarise(rows, options=options).estimates
    found = estimates["votes_accuracy_four_way_value"]
    assert (found.value, found.n) == (0.5, 2)


def test_what_was_never_judged_or_never_voted_on_is_left_out_and_counted():
    rows = [
        contest("a", "first", forward="first"),
        contest("b", "first", status=Status.MISSING),
        contest("c", "left", status=Status.NOT_APPLICABLE),
        contest("d", "", forward="first"),
    ]
    summary = summarise(rows)
    assert summary.estimates["votes_accuracy_four_way_value"].n == summary.scored == 1
    assert metrics.value(summary, "status_missing_share") == 0.25
    mine = run("mine", rows)
    shown = {
        row["judge"]: (row["answered"], row["left out"], row["four-way"].split()[0])
        for row in table(findings(mine), "accuracy")
    }
    assert shown["mine"] == ("1 of 1", "3", "100.00")
    assert shown["always first"] == ("2 of 2", "", "100.00")
    [compared, *_] = compared_of(ByVotes(), "b", ("t",), [mine], OPTIONS)
    [note] = compared.notes
    assert note == "left out of mine: 1 missing, 1 no human vote, 1 not_applicable"


def test_of_one_order_alone_nothing_is_said_of_two():
    rows = [
        contest("a", "first", forward="first"),
        contest("b", "second", forward="first"),
    ]
    found = summarise(rows).estimates
    for what in ("accuracy_four_way", "forward_accuracy_four_way"):
        assert found[f"votes_{what}_value"].value == 0.5
    orders = ("both_orders_accuracy", "each_order_accuracy")
    for what in (*orders, "consistent_share", "inconsistent_share"):
        assert math.isnan(found[f"votes_{what}_value"].value)
        assert found[f"votes_{what}_value"].reason == "only one order was shown"
    made = findings(run("mine", rows))
    assert [one.name for one in made.tables] == ["accuracy"]


def test_a_judge_that_fails_on_everything_is_wrong_everywhere():
    failed = {"paper": "", "status": Status.PARSE_FAILURE}
    votes = ("first", "both_good", "second")
    rows = [contest(str(n), vote, **failed) for n, vote in enumerate(votes)]
    found = values(rows)
    for what in ("accuracy_three_way", "both_orders_accuracy", "consistent_share"):
        assert found[f"votes_{what}"] == 0
    cells = findings(run("mine", rows)).cells
    assert cells[Key("b", "t", "", "mine", "accuracy_paper", "")] == 0
    rows = [replace(row, contest=replace(row.contest, scores=({}, {}))) for row in rows]
    assert values(rows, aspects=("O",))["O_accuracy_decisive"] == 0


def test_a_bare_tie_is_right_for_every_tie_in_three_way_and_paper_and_for_none_in_four_way():
    rows = [contest(vote, vote, forward="tie", paper="tie") for vote in CODES]
    found = values(rows)
    with pytest.raises(ValueError, match="must have two_way votes, got four_way"):
        summarise(rows, "two_way")
    assert found["votes_accuracy_three_way"] == 0.5
    assert found["votes_accuracy_four_way"] == 0
    cells = findings(run("mine", rows)).cells
    for judge in ("mine", "always tie"):
        assert cells[Key("b", "t", "", judge, "accuracy_paper", "")] == 50


FROM_MINUS_1 = "the judge's scores must be numbers from -1 to 1"
EDITED = [
    ({"scheme": "two_way"}, "its votes must be four_way votes, got two_way"),
    ({"vote": "left"}, "got 'left'"),
    ({"annotators": ("first", "tie")}, "got 'tie'"),
    ({"models": ()}, "at least 2 candidates, got 0"),
    ({"models": ("x",)}, "at least 2 candidates, got 1"),
    ({"models": tuple("xyz")}, "votes require exactly 2 candidates, got 3"),
    ({"forward": "left"}, "the judge's vote 'left' is not valid for 2 candidates"),
    ({"sideways": "first"}, "must be forward, reverse or paper, got 'sideways'"),
    ({"preferences": {"forward": 2.0}}, "got 2.0 in the order 'forward'"),
    ({"preferences": {"forward": math.nan}}, "got nan in the order 'forward'"),
    ({"preferences": {"forward": 0.5}}, "a judge must give the same kind of answer"),
    ({"scores": ({"O": 0.5},)}, "the judge must score 2 candidates, got 1 score"),
    ({"scores": ({"O": 0.5}, {"O": 7.0})}, FROM_MINUS_1),
    ({"scores": ({"O": 0.5}, {"O": math.nan})}, FROM_MINUS_1),
]


@pytest.mark.parametrize(("cells", "said"), EDITED)
def test_results_edited_by_hand_are_one_line_that_names_the_contest(cells, said):
    answered = cells.keys() & {"forward", "sideways", "preferences", "scores"}
    answer = {} if answered else {"forward": "first"}
    edited = contest("b", **{"vote": "first", **answer, **cells})
    judged = run("mine", [contest("a", "first", forward="first"), edited])
    line = refusal(findings, judged)
    assert line.startswith("b/t/b of mine: ")
    assert said in line


NO_TIES = 'preferences cannot distinguish "both good" from "both bad"'
ONE_GROUP = "thresholds require contests from at least two groups"


@pytest.mark.parametrize(
    ("said", "aspects", "why"),
    [
        ({"preferences": {"forward": 0.5}}, (), NO_TIES),
        ({"scores": ({"O": 0.5}, {"O": 0.2})}, ("O",), ONE_GROUP),
    ],
)
def test_agreement_with_annotators_without_votes_of_four_says_why(said, aspects, why):
    more = {"group": "g", "annotators": ("first", "both_bad"), **said}
    rows = [contest(uid, "first", **more) for uid in "ab"]
    made = findings(run("mine", rows, aspects=aspects))
    [judged] = [row for row in table(made, "annotators") if row["judge"] == "mine"]
    assert why in judged["all"]
    assert why in judged["annotator 1"]
    if aspects:
        found = summarise(rows, aspects=aspects).estimates
        assert found["O_accuracy_four_way_value"].reason == why
        assert found["O_accuracy_decisive_value"].value == 1


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
    human = [CODES[o.contest.votes.vote] for o in rows]
    ties = [0.0, *np.abs(first - second)]
    goods = [-math.inf, math.inf, *(first + second) / 2]
    votes = (
        thresholds.vote_of_scores(first, second, *both)
        for both in itertools.product(ties, goods)
    )
    best = max(np.mean(each == human) for each in votes)
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
    rows = []
    for n, p in enumerate(np.random.default_rng(1).uniform(-1, 1, 90).tolist()):
        vote = "both_bad" if abs(p) < 0.3 else "first" if p > 0 else "second"
        said = {"forward": p + 0.2, "reverse": p - 0.2}
        rows.append(contest(f"{n:02}", vote, preferences=said))
    found = values(rows)
    assert found["votes_accuracy_decisive"] == 1
    bound = bounds(["three_way"])["upper_bound_three_way"]
    answers = answers_of(pairs_of(rows, "four_way"), "votes", "four_way", [0])
    assert np.nanmean(bound(answers).values) == 1
    assert 0.9 < found["votes_accuracy_three_way"] <= 1


# --- rankings


PEOPLE = st.permutations([0.1, 0.4, 0.4, 0.8])
JUDGE = st.permutations([0.2, 0.5, 0.5, 0.9])


@given(st.lists(st.tuples(PEOPLE, JUDGE), min_size=2, max_size=6))
@settings(max_examples=30)
def test_rankings_are_their_pairs_and_a_contest_is_right_if_all_are(contests):
    rows, decided = [], []
    pairs = list(itertools.combinations(range(4), 2))
    for n, (people, judge) in enumerate(contests):
        levels = [
            "=".join(str(i) for i, score in enumerate(people, 1) if score == level)
            for level in sorted({*people}, reverse=True)
        ]
        said = {"models": tuple("wxyz"), "scores": [{"O": s} for s in judge]}
        rows.append(contest(str(n), ">".join(levels), RANKING, **said))
        signs = [
            (np.sign(people[i] - people[j]), judge[i] - judge[j]) for i, j in pairs
        ]
        decided.append([sign == np.sign(own) for sign, own in signs if sign])
    found = values(rows, RANKING, ("O",))
    got = (found["O_accuracy_decisive"], found["O_all_pairs_accuracy_decisive"])
    expected = (
        np.mean(list(itertools.chain(*decided))),
        np.mean(list(map(all, decided))),
    )
    assert got == pytest.approx(expected)
    assert pairs_of(rows, RANKING).contest_sizes.tolist() == [4] * len(contests)


def test_rankings_by_number_of_candidates():
    def ranked(uid, vote, *scores):
        judged = [{"O": score} for score in scores]
        return contest(
            uid, vote, RANKING, models=tuple("xyz")[: len(scores)], scores=judged
        )

    two = ranked("a", "1>2", 0.9, 0.1)
    three = ranked("b", "2>1=3", 0.5, 0.9, 0.5)
    wrong = ranked("c", "2>1=3", 0.5, 0.9, 0.95)
    judged = run("mine", [two, three, wrong], aspects=("O",))
    rows = table(findings(judged, scheme=RANKING), "sizes")
    found = {(r["candidates"], r["judge"]): r["decisive"].split()[0] for r in rows}
    assert found["2", "mine"] == found["2", "always first"] == "100.00"
    # 1>2>3 is wrong for 2>1
    assert (found["3", "mine"], found["3", "always first"]) == ("50.00", "0.00")


def test_a_judge_may_rank_itself():
    said = {"models": tuple("xyz"), "forward": "2>1=3", "reverse": "2>3>1"}
    found = values([contest("a", "2>1=3", RANKING, **said)], RANKING)
    # of three pairs two agree in both orders; on the third they differ, which is the tie that
    # people say it is
    assert found["votes_accuracy_three_way"] == 1
    for what in ("both_orders_accuracy", "consistent_share"):
        assert found[f"votes_{what}"] == pytest.approx(2 / 3)


# --- names and intervals


def test_intervals_are_those_of_a_bootstrap_over_groups_in_any_order():
    rows = scored(60)
    single = [replace(o, group=o.uid) for o in rows]
    found, back, alone = (
        summarise(some, aspects=("O",)).estimates for some in (rows, rows[::-1], single)
    )
    ends = {n: (e.value, e.low, e.high) for n, e in found.items()}
    assert ends == {n: (e.value, e.low, e.high) for n, e in back.items()}
    answers = answers_of(pairs_of(rows, "four_way"), "O", "four_way", [0])
    right = answers.points("decisive")
    groups, seed = [o.group for o in rows], [OPTIONS.seed, *b"b/t"]
    counts = bootstrap.cluster_counts(groups, OPTIONS.draws, seed)
    value, *got = ends["O_accuracy_decisive_value"]
    assert got == pytest.approx(bootstrap.interval(resampled_mean(right, counts)))
    other = alone["O_accuracy_decisive_value"]
    assert (other.value, other.low) != (value, got[0])
