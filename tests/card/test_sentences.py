"""Sentences of a card: true for any numbers."""

import math
import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.card.judges import TYPES, card, judge, published
from vieval_plugin.card import placing
from vieval_plugin.card.sentences import Level, Standing, answers, level, limits
from vieval_plugin.card.writing import markdown_text, page
from vieval_plugin.records import Run
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions


def test_an_interval_without_its_own_number_is_not_shown_and_that_is_said():
    biased = judge(others=[published("A", 0.2, 0.01)])
    number = replace(biased.number, estimate=Estimate(0.81, 0.83, 0.99, n=290))
    board = replace(biased.board, numbers=(number, *biased.board.numbers[1:]))
    biased = replace(biased, board=board)
    assert ", with Spearman 0.81: " in answers([biased])[1]
    assert "no interval is shown" in "\n".join(limits([biased], card(biased)))


GOOD = Standing(
    number=Estimate(0.4, 0.3, 0.5, n=600),
    unread=0.0,
    one_answer=False,
    constant=0.0,
    above=True,
    above_by_type=(True,) * 7,
    difference=None,
)
THREE_OF_SEVEN, TWO_OF_SEVEN, NONE_OF_SEVEN = (
    (True,) * shown + (False,) * (7 - shown) for shown in (3, 2, 0)
)
WEAK = Estimate(0.07, -0.08, 0.23, n=460)
ON_FEW_SAMPLES = Estimate(0.3, -0.02, 0.6, n=70)
POOR = {"number": WEAK, "above": False}
POOR_BUT_AS_GOOD = {**POOR, "difference": Estimate(0.0, -0.04, 0.04)}
LEVELS = [
    ({}, Level.ABOVE),
    ({"unread": 0.2}, Level.UNREAD),
    ({"unread": 0.19}, Level.ABOVE),
    ({"unread": 0.9, "number": Estimate(math.nan)}, Level.UNREAD),
    ({"number": Estimate(math.nan)}, Level.UNSCORED),
    ({"one_answer": True}, Level.ONE_ANSWER),
    ({"number": Estimate(-0.4, -0.5, -0.3), "above": False}, Level.WORSE),
    ({"constant": 0.6, "above": False}, Level.WORSE),
    ({"constant": 0.45, "above": False}, Level.NOT_ABOVE),
    (POOR, Level.NOT_ABOVE),
    ({"number": Estimate(-0.16, -0.39, 0.09), "above": False}, Level.NOT_ABOVE),
    ({"number": WEAK, "above_by_type": NONE_OF_SEVEN}, Level.POOR),
    ({"number": WEAK, "above_by_type": TWO_OF_SEVEN}, Level.POOR),
    ({"number": WEAK, "above_by_type": THREE_OF_SEVEN}, Level.ABOVE),
    ({"number": WEAK, "above_by_type": ()}, Level.ABOVE),
    ({"above_by_type": NONE_OF_SEVEN}, Level.ABOVE),
    ({"number": ON_FEW_SAMPLES, "above": False}, Level.UNSHOWN),
    ({"difference": Estimate(-0.01, -0.049, 0.04)}, Level.AS_GOOD),
    ({"difference": Estimate(0.0, 0.0, 0.0)}, Level.AS_GOOD),
    ({"difference": Estimate(0.0, -0.05, 0.05)}, Level.UNDECIDED),
    ({"difference": Estimate(0.1, -0.06, 0.3)}, Level.UNDECIDED),
    ({"difference": Estimate(-0.02, -0.04, -0.001)}, Level.BELOW),
    ({"difference": Estimate(0.02, 0.001, 0.04)}, Level.BETTER),
    ({"difference": Estimate(math.nan)}, Level.UNDECIDED),
    ({"difference": Estimate(0.1, math.nan, math.nan)}, Level.UNDECIDED),
    (POOR_BUT_AS_GOOD, Level.NOT_ABOVE),
]


@pytest.mark.parametrize(("changes", "expected"), LEVELS)
def test_the_level_follows_from_the_numbers(changes, expected):
    assert level(replace(GOOD, **changes)) is expected


@pytest.mark.parametrize("seed", range(40))
def test_any_numbers_make_a_card(seed):
    rng = random.Random(seed)
    judges = []
    for _ in range(rng.randint(1, 3)):
        names = rng.sample(TYPES, rng.randint(0, 3))
        parts = {part: rng.choice([None, rng.uniform(-1, 1)]) for part in names}
        others = []
        for n in range(rng.choice([0, 1, 9])):
            ahead = (rng.uniform(-1, 1), rng.random())
            by_part = {p: (rng.uniform(-1, 1), rng.random()) for p in parts}
            others.append(published(f"judge {n}", *ahead, by_part))
        useless = [part for part in parts if rng.random() < 0.5]
        value = rng.choice([None, rng.uniform(-1, 1)])
        judges.append(judge(value, others, parts, useless))
    made = card(*judges)
    for text in (*made.answers, *limits(judges, made)):
        assert text.endswith(".")
        assert "None" not in text
        assert "nan" not in text
    assert made.answers[0] in markdown_text(made, judges).replace("\\", "")
    assert "<script" not in page(made, judges)


def test_by_task_type_the_test_against_a_constant_is_adjusted(monkeypatch):
    """Three types with p .03 each are none above it, and one with p .01 is."""
    p_values = iter([0.03, 0.03, 0.03, 0.01, 0.03, 0.03])
    p_of_mine = lambda *_: {"mine": next(p_values)}
    numbers = [SimpleNamespace(system="mine")]
    measured = {"aspect": "O", "statistic": "spearman", "references": ()}
    kinds = {"kind": {key: {} for key in TYPES}}
    board = SimpleNamespace(breakdowns=kinds, numbers=numbers, **measured)
    monkeypatch.setattr(placing, "above_constant_p", p_of_mine)
    monkeypatch.setattr(placing, "restrict_systems", lambda compared, labels: compared)
    monkeypatch.setattr(placing, "leaderboard", lambda *_, **options: board)
    in_part = lambda part, options: part
    has = lambda _: True
    statistic = SimpleNamespace(has=has, judge=None, statistic_in_part=in_part)
    findings = SimpleNamespace(ranked=[statistic], numbers=numbers)
    report = SimpleNamespace(findings=lambda *_: findings)
    benchmark = SimpleNamespace(name="b", synthetic=False, parts={}, report=report)
    run = Run("mine", "b", "viescore", ("O",), {part: [] for part in TYPES})
    placed = (benchmark, run, [], StatisticsOptions())
    assert placing.place_among(*placed).useless == TYPES
    assert placing.place_among(*placed).useless == TYPES[1:]
