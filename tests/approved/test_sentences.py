"""Sentences that are made from numbers: the answer of a leaderboard and of a card, for numbers
that a case chooses.
"""

from dataclasses import replace
from itertools import cycle

from tests.boards import CONSTANT, board_of, voting
from tests.card.judges import COST, TYPES, card, estimate, judge, published
from vieval_plugin.audit.effects import EffectRow
from vieval_plugin.card.card import CardAudit
from vieval_plugin.card.sentences import answers, fooled_text, limits
from vieval_plugin.meta_evaluation.findings import ALL, Number
from vieval_plugin.report.answer import answer
from vieval_plugin.stats.estimate import Estimate, ImageModelCoverage

FIVE = {f"judge {n}": 0.3 for n in range(5)}
PARTLY = ImageModelCoverage(21, 29, 5, 7)
ALWAYS_FIRST = voting("mid", [("first", "second")] * 100)
FAIR = voting("fair", [("first", "first"), ("second", "second")] * 50)


def test_leaderboard(approve_text):
    boards = {
        "one judge": board_of({"only": 0.7}),
        "one judge beside nothing": board_of({"only": 0.7}, references=()),
        "one judge above the ceiling": board_of({"only": 0.95}),
        "one judge at the ceiling": board_of({"only": 0.8}),
        "one judge below the ceiling": board_of({"only": 0.6}),
        "one judge on some task types": board_of({"only": 0.9}, coverage=PARTLY),
        "one judge that votes for the first image": board_of(
            {"mid": 0.0}, runs=[ALWAYS_FIRST]
        ),
        "two judges": board_of({"poor": 0.3, "good": 0.9}),
        "two judges on some task types": board_of(
            {"a": 0.9, "b": 0.1}, coverage=PARTLY
        ),
        "two judges on known defects": board_of(
            {"poor": 0.3, "good": 0.9},
            references=(CONSTANT,),
            against="the planted order of b",
        ),
        "two judges, of which one votes for the first image": board_of(
            {"fair": 0.9, "mid": 0.1}, runs=[ALWAYS_FIRST, FAIR]
        ),
        "two equal judges": board_of({"a": 0.6, "b": 0.6}),
        "three equal judges": board_of({"a": 0.6, "b": 0.6, "c": 0.6}),
        "twelve equal judges": board_of({f"judge {n}": 0.6 for n in range(12)}),
        "three equal judges and one without a rank": board_of(
            {"a": 0.6, "b": 0.6, "c": 0.6, "few": 0.6}, partial=("few",)
        ),
        "two that lead": board_of({"a": 0.9, "b": 0.89, "c": 0.3}),
        "two with the same number that lead": board_of({"a": 0.9, "b": 0.9, "c": 0.3}),
        "two with the same number before five": board_of({"a": 0.9, "b": 0.9, **FIVE}),
        "six that lead": board_of({"a": 0.9, **dict.fromkeys(FIVE, 0.89), "poor": 0.1}),
        "the best without a rank": board_of(
            {"few": 1.0, "a": 0.9, "b": 0.5}, partial=("few",)
        ),
        "better than equals without a rank": board_of(
            {"few": 1.0, "a": 0.7, "b": 0.65}, partial=("few",)
        ),
        "only one with a rank": board_of({"few": 0.2, "all": 0.9}, partial=("few",)),
        "two not shown to beat a constant answer": board_of(
            {"a": 0.9, "b": 0.42, "c": 0.2}
        ),
    }
    approve_text({name: answer(board).lines for name, board in boards.items()})


def titled(low, high, p=0.5):
    return judge(
        others=[published("A", Estimate((low + high) / 2, low, high, n=100), p)]
    )


def beside(parts):
    return judge(
        others=[published("A", -0.1, 0.01, parts)], parts=dict.fromkeys(TYPES, 0.4)
    )


def test_card(approve_text):
    others = [
        published("A", -0.1, 0.01),
        published("B", 0.05, 0.4),
        published("C", 0.2, 0.001),
    ]
    people = [
        Number(
            "human ceiling: each rater against the others",
            estimate(0.7),
            ALL,
            "O",
            "spearman",
            "ceiling",
        )
    ]
    same = dict.fromkeys(TYPES, 0.4)
    judges = {
        "some task types": judge(
            parts={"tie": 0.5, "tig": 0.1, "sdie": None}, useless=("tig", "sdie")
        ),
        "all task types": judge(parts=same),
        "no task type": judge(parts=same, useless=TYPES),
        "all failed": judge(
            None,
            cost=replace(COST, failed=600, statuses=(("refusal", 600),)),
            parts=dict.fromkeys(TYPES),
        ),
        "a quarter failed": judge(
            cost=replace(COST, failed=150, statuses=(("parse_failure", 150),))
        ),
        "some failed": judge(
            cost=replace(COST, failed=90, statuses=(("refusal", 90),))
        ),
        "better and worse than others": judge(others=others),
        "without a rank": judge(others=others, unranked="no value for tie"),
        "equal": titled(-0.04, 0.05),
        "equal, although a test finds a difference": titled(0.01, 0.05, 0.001),
        "not told apart": titled(-0.06, 0.05),
        "better": titled(0.02, 0.2, 0.01),
        "as good, with a lower number": titled(-0.03, 0.01),
        "below the best": titled(-0.2, -0.01, 0.01),
        "not shown to beat a constant answer": judge(
            others=[published("A", 0.3, 0.001)], below_constant=True
        ),
        "better on one type, not shown on another": beside(
            {"tie": (0.2, 0.01), "tig": (-0.3, 0.2)}
        ),
        "worse on one type": beside({"tie": (-0.2, 0.01)}),
        "below the human ceiling": judge(references=people),
        "drawn images": judge(on="vieval_demo", parts=same),
    }
    approve_text(
        {
            name: [*answers([one]), *limits([one], card(one))]
            for name, one in judges.items()
        }
    )


def test_drawn_images_beside_real_ones(approve_text):
    same = dict.fromkeys(TYPES, 0.4)
    drawn, real = (
        judge(on="vieval_demo", parts=same),
        judge(others=[published("A", 0.2, 0.01)], parts=same),
    )
    approve_text({"both": answers([drawn, real])})


def test_audit(approve_text):
    def fooled(*findings, changes=("border",)):
        rows = [
            EffectRow(
                change=change,
                aspect="SC",
                expected="same",
                n=20,
                failed=0,
                before=0.5,
                after=0.6,
                difference=0.1,
                low=low,
                high=high,
                p=0.5,
                p_adjusted=0.5,
                finding=finding,
            )
            for change, (finding, low, high) in zip(cycle(changes), findings)
        ]
        audit = CardAudit("viescore", "imagenhub", 20, tuple(rows), 0)
        return [fooled_text(audit), *limits([], card(audits=[audit]))]

    expected, open_ = ("as expected", -0.1, 0.2), ("undecided", -0.1, 0.2)
    approve_text(
        {
            "one as expected": fooled(expected),
            "one undecided": fooled(open_),
            "two of three undecided": fooled(expected, open_, open_),
            "fooled by one": fooled(("FLAGGED: rises", -0.1, 0.2), open_, open_),
            "two not noticed, and fooled by one": fooled(
                *[("FLAGGED: does not fall", -0.01, 0.01)] * 2,
                ("FLAGGED: rises", 0.1, 0.2),
                changes=("source blank", "source of another", "praise overlay"),
            ),
            "undecided, with an interval around 0": fooled(
                expected, ("undecided", -0.01, 0.2)
            ),
            "undecided, with an interval above 0": fooled(
                expected, ("undecided", 0.01, 0.2)
            ),
            "undecided, with an interval below 0": fooled(
                expected, ("undecided", -0.2, -0.01)
            ),
        }
    )
