"""Contests from observations to numbers, by hand and by brute force: votes, rankings, names and
intervals.
"""

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
        contest("c", "first", status=Status.NOT_APPLICABLE),
        contest("d", "", forward="first"),
    ]
    summary = summarise(rows)
    assert summary.estimates["votes_accuracy_four_way_value"].n == summary.scored == 1
    assert metrics.value(summary, "status_missing_share") == 0.25
    mine = run("mine", rows)
    row = table(findings(mine), "accuracy")[-1]
    assert (row["judge"], row["answered"]) == ("mine", "1 of 1")
    assert row["left out"] == "3"
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
    votes = ["first", "both_good", "second"]
    rows = [
        contest(str(n), vote, status=Status.API_ERROR) for n, vote in enumerate(votes)
    ]
    found = values(rows)
    for what in ("accuracy_three_way", "both_orders_accuracy", "consistent_share"):
        assert found[f"votes_{what}"] == 0
    rows = [replace(row, contest=replace(row.contest, scores=({}, {}))) for row in rows]
    assert values(rows, aspects=("O",))["O_accuracy_decisive"] == 0


def test_a_log_of_which_no_reply_can_be_read_has_accuracy_0_and_not_no_row():
    failed = {"paper": "", "status": Status.PARSE_FAILURE}
    rows = [contest(str(n), "first", **failed) for n in range(12)]
    made = findings(run("mine", rows))
    assert made.cells[Key("b", "t", "", "mine", "accuracy_paper", "")] == 0


def test_a_bare_tie_is_right_for_every_tie_in_three_way_and_paper_and_for_none_in_four_way():
    rows = [contest(vote, vote, forward="tie", paper="tie") for vote in CODES]
    found = values(rows)
    assert found["votes_accuracy_three_way"] == 0.5
    assert found["votes_accuracy_four_way"] == 0
    cells = findings(run("mine", rows)).cells
    for judge in ("mine", "always tie"):
        assert cells[Key("b", "t", "", judge, "accuracy_paper", "")] == 50


def test_votes_of_another_scheme_are_an_error():
    said = "contest a must have four_way votes, got two_way"
    with pytest.raises(ValueError, match=said):
        summarise([contest("a", "first", "two_way", forward="first")])


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


def test_a_contest_that_no_judge_was_asked_about_for_its_votes_is_left_out():
    wrong = contest("b", "left", status=Status.NOT_APPLICABLE)
    judged = run("mine", [contest("a", "first", forward="first"), wrong])
    rows = table(findings(judged), "accuracy")
    shown = {row["judge"]: (row["answered"], row["left out"]) for row in rows}
    constants = {f"always {word}": ("1 of 1", "") for word in CODES}
    assert shown == {**constants, "mine": ("1 of 1", "1")}


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
    made = findings(run("mine", rows, aspects=aspects))
    [judged] = [row for row in table(made, "annotators") if row["judge"] == "mine"]
    assert why in judged["all"]
    assert why in judged["annotator 1"]


# --- rankings


PEOPLE = st.permutations([0.1, 0.4, 0.4, 0.8])
JUDGE = st.permutations([0.2, 0.5, 0.5, 0.9])


@given(st.lists(st.tuples(PEOPLE, JUDGE), min_size=2, max_size=6))
@settings(max_examples=30)
def test_rankings_are_their_pairs_and_a_contest_is_right_if_all_are(contests):
    def ranking(scores):
        levels = sorted(set(scores), reverse=True)
        return ">".join(
            "=".join(str(n) for n, s in enumerate(scores, 1) if s == level)
            for level in levels
        )

    rows = []
    for n, (people, judge) in enumerate(contests):
        said = {"models": tuple("wxyz"), "scores": [{"O": s} for s in judge]}
        rows.append(contest(str(n), ranking(people), RANKING, **said))
    found = values(rows, RANKING, ("O",))
    pairs = list(itertools.combinations(range(4), 2))
    decided = [
        [np.sign(p[i] - p[j]) == np.sign(s[i] - s[j]) for i, j in pairs if p[i] != p[j]]
        for p, s in contests
    ]
    got = found["O_accuracy_decisive"]
    assert got == pytest.approx(np.mean(list(itertools.chain(*decided))))
    got = found["O_all_pairs_accuracy_decisive"]
    assert got == pytest.approx(np.mean([all(one) for one in decided]))
    assert pairs_of(rows, RANKING).contest_sizes.tolist() == [4] * len(contests)


def test_rankings_by_number_of_candidates():
    two = contest("a", "1>2", RANKING, scores=({"O": 0.9}, {"O": 0.1}))
    scores = ({"O": 0.5}, {"O": 0.9}, {"O": 0.5})
    three = contest("b", "2>1=3", RANKING, models=tuple("xyz"), scores=scores)
    scores = ({"O": 0.5}, {"O": 0.9}, {"O": 0.95})
    wrong = contest("c", "2>1=3", RANKING, models=tuple("xyz"), scores=scores)
    judged = run("mine", [two, three, wrong], aspects=("O",))
    rows = table(findings(judged, scheme=RANKING), "sizes")
    found = {(row["candidates"], row["judge"]): row["decisive"] for row in rows}
    assert found["2", "mine"] == found["2", "always first"] == "100.00"
    assert found["3", "mine"].startswith("50.00")
    assert found["3", "always first"].startswith("0.00")  # 1>2>3 is wrong for 2>1


def test_a_judge_may_rank_itself():
    said = {"models": tuple("xyz"), "forward": "2>1=3", "reverse": "2>3>1"}
    found = values([contest("a", "2>1=3", RANKING, **said)], RANKING)
    # of three pairs two agree in both orders; on the third they differ, which is the tie that
    # people say it is
    assert found["votes_accuracy_three_way"] == 1
    for what in ("both_orders_accuracy", "consistent_share"):
        assert found[f"votes_{what}"] == pytest.approx(2 / 3)


# --- names and intervals


def test_intervals_are_those_of_a_bootstrap_over_groups():
    rows = scored(60)
    found = summarise(rows, aspects=("O",)).estimates["O_accuracy_decisive_value"]
    answers = answers_of(pairs_of(rows, "four_way"), "O", "four_way", [0])
    right = answers.points("decisive")
    groups, seed = [o.group for o in rows], [OPTIONS.seed, *b"b/t"]
    counts = bootstrap.cluster_counts(groups, OPTIONS.draws, seed)
    got = (found.low, found.high)
    assert got == pytest.approx(bootstrap.interval(resampled_mean(right, counts)))
    single = [replace(o, group=o.uid) for o in rows]
    alone = summarise(single, aspects=("O",)).estimates["O_accuracy_decisive_value"]
    assert (alone.value, alone.low) != (found.value, found.low)


def test_the_order_of_contests_does_not_matter():
    rows = scored(40)
    there, back = (
        summarise(some, aspects=("O",)).estimates for some in (rows, rows[::-1])
    )
    found = {n: (e.value, e.low, e.high) for n, e in there.items()}
    assert found == {n: (e.value, e.low, e.high) for n, e in back.items()}
