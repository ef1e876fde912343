"""Rewards from their text, sums, shares of wins, and the mean of a group in place of a failure."""

from functools import cache

import pytest

from tests.refusals import refusal, refuses
from vieval_plugin.config import Config
from vieval_plugin.judges.protocol import Choice, Image, Status, Step, Verdict
from vieval_plugin.rewards.reward import (
    RewardValue,
    imputed,
    read_reward,
    reward_values,
    win_shares,
)
from vieval_plugin.rewards.samples import Conditions, sample_of
from vieval_plugin.run.prepare import prepare


@cache
def prepared(name):
    return prepare(name, None, Config())


def read(text):
    return read_reward(text, prepared)


def failed(status=Status.API_ERROR, reason="away"):
    return Verdict({}, status, trace=(Step(("SC",), status, reason=reason),))


def test_a_reward_is_a_name_and_weighted_scores():
    reward = read("mix=0.7*viescore:SC + -0.3*sharpness")
    found = [(term.judge.spec.name, term.aspect, term.weight) for term in reward.terms]
    assert found == [("viescore", "SC", 0.7), ("sharpness", "PQ", -0.3)]
    assert reward.name == "mix"
    assert read("r=viescore").terms[0].aspect == "O"
    assert read("r=pairwise").groupwise


WRONG = ("viescore", "=viescore", "a b=viescore", "r=", "r=0*sharpness")


@pytest.mark.parametrize("text", [*WRONG, "r=x*sharpness", "r=1.1.1*sharpness"])
def test_what_is_no_reward_is_one_line(text):
    refusal(read, text)


def test_a_sum_lacks_a_value_where_a_part_failed():
    reward = read("mix=0.5*viescore:SC+2*sharpness")
    sharp = Verdict({"PQ": 0.25}, Status.REPAIRED)
    judged = [[Verdict({"SC": 0.8}, Status.OK), failed()], [sharp, sharp]]
    [whole, broken] = reward_values(reward, 2, judged)
    assert (whole.value, whole.status) == (pytest.approx(0.9), Status.REPAIRED)
    found = (broken.value, broken.status, broken.reason)
    assert found == (None, Status.API_ERROR, "away")


def test_a_score_of_an_aspect_counts_although_another_failed():
    trace = (Step(("PQ",), Status.PARSE_FAILURE, reason="prose"),)
    verdict = Verdict({"SC": 0.8}, Status.PARSE_FAILURE, trace=trace)
    assert reward_values(read("r=viescore:SC"), 1, [[verdict]])[0].value == 0.8
    assert reward_values(read("r=viescore:PQ"), 1, [[verdict]])[0].value is None


def vote(forward, reverse):
    choice = Choice({"forward": forward, "reverse": reverse})
    return Verdict({}, Status.OK, choice=choice)


def test_shares_of_wins_count_both_orders_and_no_member_whose_contest_failed():
    # 0 beats 1 in both orders, 0 and 2 are even, 1 and 2 contradict themselves
    for middle, shares in (
        (vote("tie", "tie"), [0.75, 0.25, 0.5]),
        (failed(), [None, 0.25, None]),
    ):
        contests = [vote("first", "first"), middle, vote("first", "second")]
        assert [share for share, _ in win_shares(3, contests)] == shares


def values(*numbers):
    lacking = RewardValue(None, Status.REFUSAL, "no")
    return [lacking if n is None else RewardValue(n, Status.OK) for n in numbers]


def test_a_failed_member_has_the_mean_of_the_others_and_so_no_advantage():
    found = imputed(values(0.2, None, 0.6, 0.1), 0.25)
    assert [value.value for value in found] == pytest.approx([0.2, 0.3, 0.6, 0.1])
    assert [value.imputed for value in found] == [False, True, False, False]


MANY = [((0.2, None, None), 0.5), ((None, None), 0.9), ((0.1, None), 0.1)]


@pytest.mark.parametrize(("numbers", "most"), MANY)
def test_too_many_failures_are_an_error(numbers, most):
    refuses("refusal: no", imputed, values(*numbers), most)


def test_further_images_are_what_the_roles_say():
    red = Image(b"red")
    assert sample_of(0, "p", red, [], Conditions()).kind == "tig"
    edit = sample_of(1, "p", red, [red], Conditions())
    assert (edit.kind, dict(edit.texts)) == ("tie", {"instruction": "p"})
    assert set(edit.images) == {"output", "source"}
    both = sample_of(2, "p", red, [red, red], Conditions("sdie", ("source", "subject")))
    assert set(both.images) == {"output", "source", "subject"}
    refuses("--role", sample_of, 3, "p", red, [red, red], Conditions())
    refuses("characters", sample_of, 4, "p" * 200_000, red, [], Conditions())
