"""Sentences of a card: true for any numbers."""

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.card.judges import COST, TYPES, card, estimate, judge, published
from vieval_plugin.card import placing
from vieval_plugin.card.card import CardAudit
from vieval_plugin.card.sentences import answers, limits
from vieval_plugin.card.writing import markdown_text, page
from vieval_plugin.meta_evaluation.findings import ALL, Number
from vieval_plugin.records import Run
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

CLAIM = "agrees with people better than the same answer for every image"


def test_task_types_are_named_by_what_is_shown_of_them():
    of_some = judge(parts={"tie": 0.5, "tig": 0.1, "sdie": None}, useless=("tig", "sdie"))
    assert answers([of_some])[-1] == (
        f"mine {CLAIM} on text-guided editing (0.50) of ImagenHub; no test shows that on text-guided generation (0.10); of "
        "subject-driven editing too little is known."
    )
    assert (
        answers([judge(parts=dict.fromkeys(TYPES, 0.4))])[-1] == f"mine {CLAIM} on all three task types of ImagenHub."
    )
    of_none = judge(parts=dict.fromkeys(TYPES, 0.4), useless=TYPES)
    assert answers([of_none])[-1] == f"No test shows that mine {CLAIM} on any task type of ImagenHub."


def test_without_any_number_nothing_is_claimed_and_the_failures_are_counted():
    failed = judge(None, cost=replace(COST, failed=600, statuses=(("refusal", 600),)), parts=dict.fromkeys(TYPES))
    assert answers([failed]) == ["mine has no score on ImagenHub.", "600 of 600 verdicts have no score (600 refusal)."]
    assert limits([failed], card(failed)) == []
    html = page(card(failed), [failed])
    assert "no score</p>" in html
    assert "Ticks are" not in html
    assert "Hollow" not in html


def test_failures_are_told_of():
    some = judge(cost=replace(COST, failed=90, statuses=(("refusal", 90),)))
    assert "mine: 90 of 600 verdicts have no score (90 refusal)." in limits([some], card(some))


def test_the_place_names_who_is_better_and_by_how_much():
    others = [published("A", -0.1, 0.01), published("B", 0.05, 0.4), published("C", 0.2, 0.001)]
    assert answers([judge(others=others)]) == [
        "mine judges images better than C and worse than A.",
        "mine is number 1 to 2 of 4 ranked judges on ImagenHub, with Spearman 0.40 (95% interval 0.30 to 0.50): worse than A (by 0.10, p = .010); "
        "better than C; not shown to differ from B.",
    ]
    unranked = answers([judge(others=others, unranked="no value for tie")])[1]
    assert "has no rank among the published judges on ImagenHub (no value for text-guided editing)" in unranked


def test_the_title_says_equal_only_where_the_interval_is_near_0_and_else_that_nothing_is_shown():
    def titled(low, high, p=0.5):
        return answers([judge(others=[published("A", Estimate((low + high) / 2, low, high, n=100), p)])])[0]

    assert titled(-0.04, 0.05) == "mine judges images about as well as A."
    assert titled(0.01, 0.05, 0.001) == "mine judges images about as well as A."
    assert titled(-0.06, 0.05) == "mine and A cannot be told apart."
    assert titled(0.02, 0.2, 0.01) == "mine judges images better than A."
    low = judge(others=[published("A", 0.3, 0.001)], below_constant=True)
    assert answers([low])[0] == "mine is no better than giving every image the same score."


def test_beside_a_judge_no_difference_is_claimed_that_no_test_shows():
    def beside(parts):
        of_types = judge(others=[published("A", -0.1, 0.01, parts)], parts=dict.fromkeys(TYPES, 0.4))
        return answers([of_types])[2]

    assert beside({"tie": (0.2, 0.01), "tig": (-0.3, 0.2)}) == (
        "Beside A, by task type: better on text-guided editing (by 0.20, p = .010); no difference is shown on the "
        "other task type."
    )
    assert beside({"tie": (-0.2, 0.01)}) == (
        "Beside A, by task type: worse on text-guided editing (by 0.20, p = .010)."
    )


def test_without_published_judges_the_answer_is_that_of_a_report():
    people = [Number("human ceiling: each rater with the others", estimate(0.7), ALL, "O", "spearman", "ceiling")]
    alone = judge(references=people)
    assert answers([alone]) == [
        "mine agrees with annotators on imagenhub better than the same answer for every image does.",
        "Spearman 0.40 (95% interval 0.30 to 0.50).",
    ]
    assert limits([alone], card(alone)) == ["mine is below the human ceiling (0.70)."]


def test_drawn_images_are_no_people_and_nothing_is_of_use_on_them():
    drawn = judge(on="vieval_demo", parts=dict.fromkeys(TYPES, 0.4))
    assert answers([drawn])[0] == "mine was measured on drawn images alone, which say nothing of real ones."
    mixed = answers([drawn, judge(others=[published("A", 0.2, 0.01)], parts=dict.fromkeys(TYPES, 0.4))])
    assert mixed[0] == "mine judges images better than A."
    assert [line for line in mixed if CLAIM in line] == [f"mine {CLAIM} on all three task types of ImagenHub."]


def test_an_interval_without_its_own_number_is_not_shown_and_that_is_said():
    biased = judge(others=[published("A", 0.2, 0.01)])
    number = replace(biased.number, estimate=Estimate(0.81, 0.83, 0.99, n=290))
    board = replace(biased.board, numbers=(number, *biased.board.numbers[1:]))
    biased = replace(biased, board=board)
    assert ", with Spearman 0.81: " in answers([biased])[1]
    assert any("no interval is shown" in line for line in limits([biased], card(biased)))


def effect(finding, low=-0.1, high=0.2):
    return {"change": "border", "difference": 0.1, "low": low, "high": high, "n": 20, "finding": finding}


def fooled(*rows):
    return limits([], card(audits=[CardAudit("viescore", "imagenhub", 20, rows, 0)]))


def test_what_an_audit_leaves_undecided_is_not_passed():
    undecided = "2 of 3 effects are undecided on 20 samples (--audit N for more)."
    findings = ("as expected", "undecided", "undecided")
    assert fooled(*map(effect, findings)) == [f"viescore: nothing is shown to fool it; {undecided}"]
    assert fooled(effect("FLAGGED: rises"), *map(effect, findings[1:])) == [
        f"viescore: it is fooled by border; {undecided}"
    ]
    assert fooled(effect("as expected")) == ["viescore: nothing is shown to fool it on 20 samples."]
    assert fooled(effect("undecided")) == [
        "viescore: it is not decided what fools it; 1 of 1 effects are undecided on 20 samples (--audit N for more)."
    ]


@pytest.mark.parametrize(("low", "high", "moves"), [(-0.01, 0.2, False), (0.01, 0.2, True), (-0.2, -0.01, True)])
def test_an_interval_without_0_is_not_passed_over(low, high, moves):
    [line] = fooled(effect("as expected"), effect("undecided", low, high))
    assert line.startswith("viescore: it is not decided" if moves else "viescore: nothing is shown to fool it; 1 of 2")


@pytest.mark.parametrize("seed", range(40))
def test_any_numbers_make_a_card(seed):
    rng = random.Random(seed)
    judges = []
    for _ in range(rng.randint(1, 3)):
        parts = {part: rng.choice([None, rng.uniform(-1, 1)]) for part in rng.sample(TYPES, rng.randint(0, 3))}
        others = [
            published(
                f"judge {n}", rng.uniform(-1, 1), rng.random(), {p: (rng.uniform(-1, 1), rng.random()) for p in parts}
            )
            for n in range(rng.choice([0, 1, 9]))
        ]
        useless = [part for part in parts if rng.random() < 0.5]
        judges.append(judge(rng.choice([None, rng.uniform(-1, 1)]), others, parts, useless))
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
    monkeypatch.setattr(placing, "above_constant_p", lambda *_: {"mine": next(p_values)})
    monkeypatch.setattr(placing, "among", lambda compared, labels: compared)
    numbers = [SimpleNamespace(system="mine")]
    board = SimpleNamespace(
        breakdowns={"kind": {key: {} for key in TYPES}},
        numbers=numbers,
        aspect="O",
        statistic="spearman",
        references=(),
    )
    monkeypatch.setattr(placing, "leaderboard", lambda *_, **options: board)
    statistic = SimpleNamespace(has=lambda _: True, judge=None, of_part=lambda part, options: part)
    findings = SimpleNamespace(ranked=[statistic], numbers=numbers)
    report = SimpleNamespace(findings=lambda *_: findings)
    benchmark = SimpleNamespace(name="b", synthetic=False, parts={}, report=report)
    run = Run("mine", "b", "viescore", ("O",), {part: [] for part in TYPES})
    useless = [placing.place_among(benchmark, run, [], StatisticsOptions()).useless for _ in range(2)]
    assert useless == [TYPES, TYPES[1:]]
