"""Sentences of a card: true for any numbers."""

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from vieval_plugin.card import making
from vieval_plugin.card.card import (
    VERSION,
    AnswerHabits,
    AuditRow,
    Card,
    CardAudit,
    CardEntry,
    CardNumber,
    Difference,
    EntryCost,
    PublishedPlace,
)
from vieval_plugin.card.sentences import differences_sentence, evidence, limits, sentence, title
from vieval_plugin.card.writing import markdown_text, page
from vieval_plugin.records import Run
from vieval_plugin.stats.options import StatisticsOptions

TYPES = ("tie", "tig", "sdie")
NOTHING = CardNumber(None, note="no score")


def number(value):
    return NOTHING if value is None else CardNumber(value, value - 0.1, value + 0.1, 100)


def place(label, ahead, p, words=()):
    return PublishedPlace(
        label,
        number(0.4),
        (1, 2),
        "",
        Difference(number(ahead), p),
        {},
        {w: Difference(number(d), q) for w, d, q in words},
    )


def entry(value=0.4, useless=(), words=None, published=(), **more):
    words = dict.fromkeys(TYPES, value) if words is None else words
    return CardEntry(
        *("imagenhub", "ImagenHub", more.pop("synthetic", False), "viescore", "0shot", "viescore/v1", "0" * 16, {}),
        unit="samples",
        samples=600,
        available=4801,
        cells=29,
        sample_digest="0" * 64,
        aspect="O",
        statistic="Spearman's correlation",
        number=number(value),
        statistics={},
        ranks=(1, 2) if published else None,
        ranked=len(published) + 1,
        unranked="",
        published=tuple(published),
        references={},
        ceiling="below",
        above_constant=bool(value),
        heading="kind",
        words={word: number(of) for word, of in words.items()},
        useless=tuple(useless),
        answers=AnswerHabits(0.2, 0.5, None),
        spent=EntryCost(600, more.pop("failed", {}), 1200, None, None),
        files={},
    )


def card(*entries):
    return Card(VERSION, "mine", "vieval card", "", entries, (), (), (), {}, 0, "2026-01-01")


def test_task_types_are_named_by_what_is_shown_of_them():
    words = {"tie": 0.5, "tig": 0.1, "sdie": None}
    assert sentence(card(entry(words=words, useless=("tig",)))) == (
        "mine is of use as a judge on text-guided editing (0.50), where it agrees with people better than "
        "the same answer for every image, and is not shown to be so on text-guided generation (0.10); of subject-driven editing too little is known."
    )


def test_all_of_a_benchmark_are_named_together():
    assert sentence(card(entry())).startswith(
        "mine is of use as a judge on all 3 task types of ImagenHub (0.40 to 0.40)"
    )
    text = sentence(card(entry(useless=TYPES)))
    assert text.startswith("mine is not shown to be of use as a judge on all 3 task types of ImagenHub")
    assert "of use as a judge on" in text


def test_without_any_number_nothing_is_claimed():
    made = card(entry(None))
    assert sentence(made) == "Nothing is known of mine as a judge: no verdict has a score on enough samples."
    assert title(made) == "mine has no score on ImagenHub."


def test_failures_are_told_of():
    assert sentence(card(entry(failed={"refusal": 90}))).endswith("; 90 of 600 verdicts have no score.")


def test_the_place_names_who_is_better_and_by_how_much():
    published = [place("A", -0.1, 0.01), place("B", 0.05, 0.4), place("C", 0.2, 0.001)]
    made = card(entry(published=published))
    assert title(made) == "mine judges images better than C and worse than A."
    assert evidence(made) == [
        "mine is number 1 to 2 of 4 ranked judges on ImagenHub (overall agreement 0.40 [0.30, 0.50]): worse than A (by 0.10, p = .010); "
        "better than C; not shown to differ from B."
    ]


def test_the_title_says_equal_only_where_the_interval_is_near_0_and_else_that_nothing_is_shown():
    def titled(low, high, p=0.5):
        ahead = Difference(CardNumber((low + high) / 2, low, high, 100), p)
        return title(card(entry(published=[replace(place("A", 0, 1), difference=ahead)])))

    assert titled(-0.04, 0.05) == "mine judges images about as well as A."
    assert titled(0.01, 0.05, 0.001) == "mine judges images about as well as A."
    assert titled(-0.06, 0.05) == "mine and A cannot be told apart."
    assert titled(0.02, 0.2, 0.01) == "mine judges images better than A."
    low = replace(entry(published=[place("A", 0.3, 0.001)]), above_constant=False)
    assert title(card(low)) == "mine is no better than giving every image the same score."


def test_beside_a_judge_no_difference_is_claimed_that_no_test_shows():
    judge = place("A", -0.1, 0.01, [("tie", 0.2, 0.01), ("tig", -0.3, 0.2)])
    assert differences_sentence(entry(published=[judge]), judge) == (
        "Beside A, by task type: better on text-guided editing (0.20 [0.10, 0.30]); no difference is shown on the other task "
        "type; furthest behind on text-guided generation (-0.30 [-0.40, -0.20], p = .200)."
    )
    judge = replace(judge, differences={"tie": Difference(number(-0.2), 0.01)})
    assert differences_sentence(entry(published=[judge]), judge) == (
        "Beside A, by task type: worse on text-guided editing (-0.20 [-0.30, -0.10])."
    )


def test_without_published_judges_the_number_stands_beside_what_there_is():
    people = {"human ceiling: each rater with the others": number(0.5)}
    low = replace(entry(), above_constant=False, references=people)
    assert evidence(card(low))[0] == (
        "mine has overall agreement (Spearman on O) 0.40 [0.30, 0.50] with people on ImagenHub, which is not shown to be better "
        "than the same answer for every image, beside a human ceiling of 0.50 [0.40, 0.60]; no published judge stands beside it there."
    )
    assert "not shown" not in evidence(card(entry()))[0]
    assert "accuracy 0.40" in evidence(card(replace(entry(), unit="contests", statistic="Share of pairs")))[0]


def test_drawn_images_are_no_people_and_nothing_is_of_use_on_them():
    drawn = replace(entry(), title="vieval_demo", synthetic=True)
    alone = card(drawn)
    assert title(alone) == "mine was measured on drawn images alone, which say nothing of real ones."
    assert "with the known defects of vieval_demo (drawn images)" in evidence(alone)[0]
    assert sentence(alone) == (
        "Nothing is known of mine as a judge of real images; the drawn images of vieval_demo say nothing of real ones."
    )
    mixed = sentence(card(drawn, entry(), drawn))
    assert "of use as a judge on all 3 task types of ImagenHub" in mixed
    assert mixed.endswith("; the drawn images of vieval_demo say nothing of real ones.")
    assert mixed.count("vieval_demo") == 1


def test_what_an_audit_leaves_undecided_is_not_passed():
    def fooled(*findings):
        rows = tuple(AuditRow("border", "SC", number(0.1), finding) for finding in findings)
        return limits(replace(card(), audits=(CardAudit("viescore", "imagenhub", 20, rows),)))

    undecided = "2 of 3 effects are undecided on 20 samples (--audit N for more)."
    assert fooled("as expected", "undecided", "undecided") == [f"viescore: nothing is shown to fool it; {undecided}"]
    assert fooled("FLAGGED: rises", "undecided", "undecided") == [f"viescore: it is fooled by border; {undecided}"]
    assert fooled("as expected") == ["viescore: nothing is shown to fool it on 20 samples."]
    assert fooled("undecided") == [
        "viescore: it is not decided what fools it; 1 of 1 effects are undecided on 20 samples (--audit N for more)."
    ]


def test_an_interval_without_0_is_not_passed_over():
    def fooled(low, high):
        moved = CardNumber((low + high) / 2, low, high, 20)
        rows = AuditRow("border", "SC", number(0.0), "as expected"), AuditRow("letters", "SC", moved, "undecided")
        return limits(replace(card(), audits=(CardAudit("viescore", "imagenhub", 20, rows),)))[0]

    assert fooled(-0.01, 0.2).startswith("viescore: nothing is shown to fool it; 1 of 2 effects")
    assert fooled(0.01, 0.2).startswith("viescore: it is not decided what fools it; 1 of 2 effects")
    assert fooled(-0.2, -0.01).startswith("viescore: it is not decided what fools it; 1 of 2 effects")


@pytest.mark.parametrize("seed", range(40))
def test_any_numbers_make_a_card(seed):
    rng = random.Random(seed)
    entries = []
    for _ in range(rng.randint(1, 3)):
        words = {word: rng.choice([None, rng.uniform(-1, 1)]) for word in rng.sample(TYPES, rng.randint(0, 3))}
        published = [
            place(
                f"judge {n}", rng.uniform(-1, 1), rng.random(), [(w, rng.uniform(-1, 1), rng.random()) for w in words]
            )
            for n in range(rng.choice([0, 1, 9]))
        ]
        useless = [word for word in words if rng.random() < 0.5]
        entries.append(entry(rng.choice([None, rng.uniform(-1, 1)]), useless, words, published))
    made = card(*entries)
    made = replace(made, sentence=sentence(made))
    for text in (title(made), made.sentence, *evidence(made), *limits(made)):
        assert text.endswith(".")
        assert "None" not in text
        assert "nan" not in text
    assert made.sentence in markdown_text(made).replace("\\", "")
    assert "<script" not in page(made)


def test_by_task_type_the_test_against_a_constant_is_adjusted(monkeypatch):
    """Three types with p .03 each are none above it, and one with p .01 is."""
    p_values = iter([0.03, 0.03, 0.03, 0.01, 0.03, 0.03])
    monkeypatch.setattr(making, "above_constant_p", lambda *_: {"mine": next(p_values)})
    monkeypatch.setattr(making, "among", lambda compared, labels: compared)
    board = SimpleNamespace(breakdowns={"kind": {key: {} for key in TYPES}}, numbers=(), comparison=None)
    monkeypatch.setattr(making, "leaderboard", lambda *_, **options: board)
    statistic = SimpleNamespace(has=lambda _: True, judge=None, of_part=lambda part, options: part)
    findings = SimpleNamespace(ranked=[statistic], numbers=[SimpleNamespace(system="mine")])
    report = SimpleNamespace(findings=lambda *_: findings)
    benchmark = SimpleNamespace(name="b", synthetic=False, parts={}, report=report)
    run = Run("mine", "b", "viescore", ("O",), {part: [] for part in TYPES})
    useless = [making.placement_of(benchmark, run, [], StatisticsOptions()).useless for _ in range(2)]
    assert useless == [TYPES, TYPES[1:]]
