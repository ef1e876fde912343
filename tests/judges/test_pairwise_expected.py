"""A judge of contests by the probabilities of its answers: preferences, and bounds where they are not all known."""

import itertools
import random

import pytest

from tests.asked_contests import build, contest, known
from tests.playing import play
from vieval_plugin.judges.pairwise import preference_of, step_of
from vieval_plugin.judges.protocol import Failure, Probabilities, Status, Text


def test_a_preference_is_the_difference_and_turned_round():
    played = play(build(mode="expected")(contest()), [known(0.6, 0.2), known(0.1, 0.5, 0.05)])
    assert {ask.continuations for ask in played.asks} == {("A", " A", "B", " B")}
    verdict = played.verdict
    assert dict(verdict.choice.preferences) == pytest.approx({"forward": 0.4, "reverse": 0.4})
    assert dict(verdict.choice.votes) == {}
    assert (verdict.status, verdict.findings, verdict.scores) == (Status.OK, (), {})


def test_a_preference_for_a_position_is_inconsistent():
    verdict = play(build(mode="expected")(contest()), [known(0.7, 0.1), known(0.6, 0.2)]).verdict
    assert dict(verdict.choice.preferences) == pytest.approx({"forward": 0.6, "reverse": -0.4})
    assert verdict.findings == ("inconsistent",)


def test_an_answer_that_begins_otherwise_is_counted():
    verdict = play(build(mode="expected")(contest()), [known(0.1, 0.05), known(0.3, 0.6)]).verdict
    assert verdict.findings == ("neither letter likely",)


def test_one_order_without_probabilities_leaves_the_other():
    verdict = play(build(mode="expected")(contest()), [Failure(Status.API_ERROR, "no"), known(0.2, 0.7)]).verdict
    assert (verdict.status, dict(verdict.choice.preferences)) == (Status.API_ERROR, pytest.approx({"reverse": 0.5}))
    verdict = play(build(mode="expected")(contest()), [Text("A"), known(0.2, 0.7)]).verdict
    assert verdict.status is Status.API_ERROR


def test_bounds_are_all_that_is_possible_and_no_more():
    draw = random.Random(0)
    for _ in range(50):
        low = [draw.random() / 4 for _ in "aabb"]
        high = [p + draw.random() / 3 for p in low]
        least, most = step_of(Probabilities(tuple(low), tuple(high)), "forward").bounds
        inside = [
            (draw.uniform(sum(low[:2]), sum(high[:2])), draw.uniform(sum(low[2:]), sum(high[2:]))) for _ in range(300)
        ]
        ends = itertools.product((sum(low[:2]), sum(high[:2])), (sum(low[2:]), sum(high[2:])))
        corners = [(a, min(b, 1 - a)) for a, b in ends] + [(1 - sum(low[2:]), sum(low[2:]))]
        possible = [a - b for a, b in inside if a + b <= 1]
        assert all(least - 1e-9 <= difference <= most + 1e-9 for difference in possible)
        reached = [a - b for a, b in corners if sum(low[:2]) <= a <= sum(high[:2]) + 1e-9 and b >= sum(low[2:]) - 1e-9]
        assert (min(reached), max(reached)) == pytest.approx((least, most))


def test_what_is_known_to_an_interval_only_is_said_so():
    unlisted = Probabilities((0.6, 0.0, 0.0, 0.0), (0.6, 0.01, 0.1, 0.1))
    verdict = play(build(mode="expected")(contest()), [unlisted, unlisted]).verdict
    assert dict(verdict.bounds) == {
        "forward": pytest.approx((0.4, 0.61)),
        "reverse": pytest.approx((-0.61, -0.4)),
    }
    assert verdict.choice.preferences["reverse"] == pytest.approx(-0.505)
    assert verdict.trace[1].bounds == pytest.approx((0.4, 0.61))
    assert preference_of((0.0, 0.0), "reverse") == (0.0, 0.0)
