"""`vieval rank --margin`: each outcome of a gate."""

from tests.builders import a_contest_file, a_verdict_file, some_scores
from vieval_plugin.judges.protocol import Status

GATE = "vieval rank v.jsonl --margin 0.05"


def test_passed(approve):
    a_verdict_file(aurora=some_scores(200, 0.62, seed=1), borealis=some_scores(200))
    approve(GATE)


def test_worse(approve):
    a_verdict_file(aurora=some_scores(mean=0.45, seed=1), borealis=some_scores())
    approve(GATE)


def test_undecided(approve):
    a_verdict_file(aurora=some_scores(12, 0.58, seed=1), borealis=some_scores(12))
    approve(GATE)


def test_fails_more_often(approve):
    a_verdict_file(aurora=[*some_scores(80, 0.7), *[Status.NO_IMAGE] * 20], borealis=some_scores(100))
    approve(GATE)


def test_lost_verdicts(approve):
    a_verdict_file(aurora=[*some_scores(95, 0.7), *[Status.API_ERROR] * 5], borealis=some_scores(100))
    approve(GATE)


def test_contests(approve):
    a_contest_file(votes=["second"] * 40 + ["first"] * 20)
    approve(GATE)


def test_margin_of_zero(approve):
    a_verdict_file(aurora=some_scores(100), borealis=some_scores(100))
    approve("vieval rank v.jsonl --margin 0")
