"""Contests from observations to numbers, by hand and by brute force: votes, rankings, names and
intervals.
"""

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.leaderboards import compared_of
from tests.refusals import refusal
from tests.voted import CODES, OPTIONS, contest, run, scored, summarise, table, values
from vieval_plugin.judges.contests import RANKING
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation import metrics
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.meta_evaluation.vote_answers import answers_of, pairs_of
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.stats import bootstrap
from vieval_plugin.stats.binary import resampled_mean

# --- votes of a judge


def test_two_orders_by_hand():
    rows = [
        contest("a", "first", forward="first", reverse="first"),
        contest(
            "b", "second", forward="second", reverse="first"
        ),  # inconsistent: a tie, and wrong
        contest(
            "c", "both_bad", forward="both_bad", reverse="both_good"
        ),  # differ, and are both a tie
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
    found = summarise(rows, options=replace(OPTIONS, policy=policy)).estimates[
        "votes_accuracy_four_way_value"
    ]
    assert (found.value, found.n) == (0.5, 2)


def test_what_was_never_judged_or_never_voted_on_is_left_out_and_counted():
    rows = [
        contest("a", "first", forward="first"),
        contest("b", "first", status=Status.MISSING),
        contest("c", "first", status=Status.NOT_APPLICABLE),
        contest("d", "", forward="first"),
    ]
    summary = summarise(rows)
    assert summary.estimates["votes_accuracy_four_way_value"].n == summary.scored == 1
    assert metrics.value(summary, "status_missing_share") == 0.25
    made = ByVotes().findings("b", ("t",), [run("mine", rows)], OPTIONS)
    row = table(made, "accuracy")[-1]
    assert (row["judge"], row["answered"]) == ("mine", "1 of 1")
    assert row["left out"] == "3"
    [compared, *_] = compared_of(ByVotes(), "b", ("t",), [run("mine", rows)], OPTIONS)
    assert compared.notes == (
        "left out of mine: 1 missing, 1 no human vote, 1 not_applicable",
    )


def test_of_one_order_alone_nothing_is_said_of_two():
    rows = [
        contest("a", "first", forward="first"),
        contest("b", "second", forward="first"),
    ]
    found = summarise(rows).estimates
    assert (
        found["votes_accuracy_four_way_value"].value
        == found["votes_forward_accuracy_four_way_value"].value
        == 0.5
    )
    for what in (
        "both_orders_accuracy",
        "each_order_accuracy",
        "consistent_share",
        "inconsistent_share",
    ):
        assert math.isnan(found[f"votes_{what}_value"].value)
        assert found[f"votes_{what}_value"].reason == "only one order was shown"
    made = ByVotes().findings("b", ("t",), [run("mine", rows)], OPTIONS)
    assert [one.name for one in made.tables] == ["accuracy"]


def test_a_judge_that_fails_on_everything_is_wrong_everywhere():
    rows = [
        contest(str(n), vote, status=Status.API_ERROR)
        for n, vote in enumerate(["first", "both_good", "second"])
    ]
    found = values(rows)
    assert (
        found["votes_accuracy_three_way"]
        == found["votes_both_orders_accuracy"]
        == found["votes_consistent_share"]
        == 0
    )
    scored = values(
        [replace(row, contest=replace(row.contest, scores=({}, {}))) for row in rows],
        aspects=("O",),
    )
    assert scored["O_accuracy_decisive"] == 0


def test_a_log_of_which_no_reply_can_be_read_has_accuracy_0_and_not_no_row():
    rows = [
        contest(str(n), "first", paper="", status=Status.PARSE_FAILURE)
        for n in range(12)
    ]
    made = ByVotes().findings("b", ("t",), [run("mine", rows)], OPTIONS)
    assert made.cells[Key("b", "t", "", "mine", "accuracy_paper", "")] == 0


def test_a_bare_tie_is_right_for_every_tie_in_three_way_and_paper_and_for_none_in_four_way():
    rows = [contest(vote, vote, forward="tie", paper="tie") for vote in CODES]
    found = values(rows)
    assert found["votes_accuracy_three_way"] == 0.5
    assert found["votes_accuracy_four_way"] == 0
    made = ByVotes().findings("b", ("t",), [run("mine", rows)], OPTIONS)
    assert made.cells[Key("b", "t", "", "mine", "accuracy_paper", "")] == 50
    assert made.cells[Key("b", "t", "", "always tie", "accuracy_paper", "")] == 50


def test_votes_of_another_scheme_are_an_error():
    with pytest.raises(
        ValueError, match="contest a must have four_way votes, got two_way"
    ):
        summarise([contest("a", "first", "two_way", forward="first")])


edited_contest = partial(contest, "b", "first")
FROM_MINUS_1 = "the judge's scores must be numbers from -1 to 1"
GOOD, LARGE, NO_NUMBER = {"O": 0.5}, {"O": 7.0}, {"O": math.nan}


@pytest.mark.parametrize(
    ("edited", "said"),
    [
        (
            contest("b", "first", "two_way", forward="first"),
            "its votes must be four_way votes, got two_way",
        ),
        (contest("b", "left", forward="first"), "got 'left'"),
        (edited_contest(annotators=("first", "tie"), forward="first"), "got 'tie'"),
        (edited_contest(models=(), forward="first"), "at least 2 candidates, got 0"),
        (
            edited_contest(models=("x",), forward="first"),
            "at least 2 candidates, got 1",
        ),
        (
            edited_contest(models=tuple("xyz"), forward="first"),
            "votes require exactly 2 candidates, got 3",
        ),
        (
            edited_contest(forward="left"),
            "the judge's vote 'left' is not valid for 2 candidates",
        ),
        (
            edited_contest(sideways="first"),
            "must be forward, reverse or paper, got 'sideways'",
        ),
        (
            edited_contest(preferences={"forward": 2.0}),
            "got 2.0 in the order 'forward'",
        ),
        (
            edited_contest(preferences={"forward": math.nan}),
            "got nan in the order 'forward'",
        ),
        (
            edited_contest(preferences={"forward": 0.5}),
            "a judge must give the same kind of answer",
        ),
        (
            edited_contest(scores=(GOOD,)),
            "the judge must score 2 candidates, got 1 score",
        ),
        (edited_contest(scores=(GOOD, LARGE)), FROM_MINUS_1),
        (edited_contest(scores=(GOOD, NO_NUMBER)), FROM_MINUS_1),
    ],
)
def test_results_edited_by_hand_are_one_line_that_names_the_contest(edited, said):
    runs = [run("mine", [contest("a", "first", forward="first"), edited])]
    line = refusal(ByVotes("four_way").findings, "b", ("t",), runs, OPTIONS)
    assert line.startswith("b/t/b of mine: ")
    assert said in line


def test_a_contest_that_no_judge_was_asked_about_for_its_votes_is_left_out():
    wrong = contest("b", "left", status=Status.NOT_APPLICABLE)
    runs = [run("mine", [contest("a", "first", forward="first"), wrong])]
    rows = table(ByVotes("four_way").findings("b", ("t",), runs, OPTIONS), "accuracy")
    assert {row["judge"]: (row["answered"], row["left out"]) for row in rows} == {
        **{f"always {word}": ("1 of 1", "") for word in CODES},
        "mine": ("1 of 1", "1"),
    }


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            {"preferences": {"forward": 0.5}},
            'preferences cannot distinguish "both good" from "both bad"',
        ),
        (
            {"scores": ({"O": 0.5}, {"O": 0.2})},
            "thresholds require contests from at least two groups",
        ),
    ],
)
def test_agreement_with_annotators_without_votes_of_four_says_why(said, why):
    rows = [
        contest(uid, "first", group="g", annotators=("first", "both_bad"), **said)
        for uid in "ab"
    ]
    aspects = ("O",) if "scores" in said else ()
    made = ByVotes("four_way").findings(
        "b", ("t",), [run("mine", rows, aspects=aspects)], OPTIONS
    )
    [judged] = [row for row in table(made, "annotators") if row["judge"] == "mine"]
    assert why in judged["all"]
    assert why in judged["annotator 1"]


# --- rankings


@given(
    st.lists(
        st.tuples(
            st.permutations([0.1, 0.4, 0.4, 0.8]), st.permutations([0.2, 0.5, 0.5, 0.9])
        ),
        min_size=2,
        max_size=6,
    )
)
@settings(max_examples=30)
def test_rankings_are_their_pairs_and_a_contest_is_right_if_all_are(contests):
    def ranking(scores):
        levels = sorted(set(scores), reverse=True)
        return ">".join(
            "=".join(str(n) for n, s in enumerate(scores, 1) if s == level)
            for level in levels
        )

    rows = [
        contest(
            str(n),
            ranking(people),
            RANKING,
            models=tuple("wxyz"),
            scores=[{"O": s} for s in judge],
        )
        for n, (people, judge) in enumerate(contests)
    ]
    found = values(rows, RANKING, ("O",))
    sign = [
        [
            (np.sign(p[i] - p[j]), np.sign(s[i] - s[j]))
            for i, j in itertools.combinations(range(4), 2)
        ]
        for p, s in contests
    ]
    decided = [[p == s for p, s in one if p] for one in sign]
    got = found["O_accuracy_decisive"]
    assert got == (pytest.approx(np.mean(list(itertools.chain(*decided)))))
    got = found["O_all_pairs_accuracy_decisive"]
    assert got == (pytest.approx(np.mean([all(one) for one in decided])))
    assert pairs_of(rows, RANKING).contest_sizes.tolist() == [4] * len(contests)


def test_rankings_by_number_of_candidates():
    two = contest("a", "1>2", RANKING, scores=({"O": 0.9}, {"O": 0.1}))
    scores = ({"O": 0.5}, {"O": 0.9}, {"O": 0.5})
    three = contest("b", "2>1=3", RANKING, models=tuple("xyz"), scores=scores)
    scores = ({"O": 0.5}, {"O": 0.9}, {"O": 0.95})
    wrong = contest("c", "2>1=3", RANKING, models=tuple("xyz"), scores=scores)
    made = ByVotes(RANKING).findings(
        "b", ("t",), [run("mine", [two, three, wrong], aspects=("O",))], OPTIONS
    )
    found = {
        (row["candidates"], row["judge"]): row["decisive"]
        for row in table(made, "sizes")
    }
    assert found["2", "mine"] == found["2", "always first"] == "100.00"
    assert found["3", "mine"].startswith("50.00")
    assert found["3", "always first"].startswith("0.00")  # 1>2>3 is wrong for 2>1


def test_a_judge_may_rank_itself():
    rows = [
        contest(
            "a", "2>1=3", RANKING, models=tuple("xyz"), forward="2>1=3", reverse="2>3>1"
        )
    ]
    found = values(rows, RANKING)
    # of three pairs two agree in both orders; on the third they differ, which is the tie that
    # people say it is
    assert found["votes_accuracy_three_way"] == 1
    assert (
        found["votes_both_orders_accuracy"]
        == found["votes_consistent_share"]
        == pytest.approx(2 / 3)
    )


# --- names and intervals


def test_intervals_are_those_of_a_bootstrap_over_groups():
    rows = scored(60)
    found = summarise(rows, aspects=("O",)).estimates["O_accuracy_decisive_value"]
    right = answers_of(pairs_of(rows, "four_way"), "O", "four_way", [0]).points(
        "decisive"
    )
    counts = bootstrap.cluster_counts(
        [o.group for o in rows], OPTIONS.draws, [OPTIONS.seed, *b"b/t"]
    )
    got = (found.low, found.high)
    assert got == (pytest.approx(bootstrap.interval(resampled_mean(right, counts))))
    alone = summarise(
        [replace(o, group=o.uid) for o in rows], aspects=("O",)
    ).estimates["O_accuracy_decisive_value"]
    assert (alone.value, alone.low) != (found.value, found.low)


def test_the_order_of_contests_does_not_matter():
    rows = scored(40)
    there, back = (
        summarise(some, aspects=("O",)).estimates for some in (rows, rows[::-1])
    )
    found = {n: (e.value, e.low, e.high) for n, e in there.items()}
    assert found == {n: (e.value, e.low, e.high) for n, e in back.items()}
