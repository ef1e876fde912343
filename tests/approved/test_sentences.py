"""The answers of leaderboards and cards, for numbers that a case chooses."""

from dataclasses import replace

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


EQUAL = {"a": 0.6, "b": 0.6, "c": 0.6}
TWO = {"poor": 0.3, "good": 0.9}
DEFECTS = {"references": (CONSTANT,), "against": "the planted order of b"}
FEW = {"partial": ("few",)}

#: Judges by their accuracy, and what else holds for their leaderboard.
BOARDS = {
    "one judge": ({"only": 0.7},),
    "one judge beside nothing": ({"only": 0.7}, {"references": ()}),
    "one judge above the ceiling": ({"only": 0.95},),
    "one judge at the ceiling": ({"only": 0.8},),
    "one judge below the ceiling": ({"only": 0.6},),
    "one judge on some task types": ({"only": 0.9}, {"coverage": PARTLY}),
    "one judge that votes for the first image": ({"mid": 0.0}, {"runs": [ALWAYS_FIRST]}),
    "two judges": (TWO,),
    "two judges on some task types": ({"a": 0.9, "b": 0.1}, {"coverage": PARTLY}),
    "two judges on known defects": (TWO, DEFECTS),
    "two judges, of which one votes for the first image": ({"fair": 0.9, "mid": 0.1}, {"runs": [ALWAYS_FIRST, FAIR]}),
    "two equal judges": ({"a": 0.6, "b": 0.6},),
    "three equal judges": (EQUAL,),
    "twelve equal judges": ({f"judge {n}": 0.6 for n in range(12)},),
    "three equal judges and one without a rank": ({**EQUAL, "few": 0.6}, FEW),
    "two that lead": ({"a": 0.9, "b": 0.89, "c": 0.3},),
    "two with the same number that lead": ({"a": 0.9, "b": 0.9, "c": 0.3},),
    "two with the same number before five": ({"a": 0.9, "b": 0.9, **FIVE},),
    "six that lead": ({"a": 0.9, **dict.fromkeys(FIVE, 0.89), "poor": 0.1},),
    "the best without a rank": ({"few": 1.0, "a": 0.9, "b": 0.5}, FEW),
    "better than equals without a rank": ({"few": 1.0, "a": 0.7, "b": 0.65}, FEW),
    "only one with a rank": ({"few": 0.2, "all": 0.9}, FEW),
    "two not shown to beat a constant answer": ({"a": 0.9, "b": 0.42, "c": 0.2},),
}  # fmt: skip


def test_leaderboard(approve_text):
    texts = {}
    for name, (accuracies, *more) in BOARDS.items():
        about = more[0] if more else {}
        texts[name] = answer(board_of(accuracies, **about)).lines
    approve_text(texts)


def titled(low, high, p=0.5):
    difference = Estimate((low + high) / 2, low, high, n=100)
    return judge(others=[published("A", difference, p)])


def beside(parts):
    return judge(others=[published("A", -0.1, 0.01, parts)], parts=SAME)


def failing(status, count, value=0.4, parts=None):
    cost = replace(COST, failed=count, statuses=((status, count),))
    return judge(value, cost=cost, parts=parts)


SAME = dict.fromkeys(TYPES, 0.4)
SOME = {"tie": 0.5, "tig": 0.1, "sdie": None}
OTHERS = [published("A", -0.1, 0.01), published("B", 0.05, 0.4), published("C", 0.2, 0.001)]  # fmt: skip
RATERS = "human ceiling: each rater against the others"
CEILING = Number(RATERS, estimate(0.7), ALL, "O", "spearman", "ceiling")
JUDGES = {
    "some task types": judge(parts=SOME, useless=("tig", "sdie")),
    "all task types": judge(parts=SAME),
    "no task type": judge(parts=SAME, useless=TYPES),
    "all failed": failing("refusal", 600, None, dict.fromkeys(TYPES)),
    "a quarter failed": failing("parse_failure", 150),
    "some failed": failing("refusal", 90),
    "better and worse than others": judge(others=OTHERS),
    "without a rank": judge(others=OTHERS, unranked="no value for tie"),
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
    "below the human ceiling": judge(references=[CEILING]),
    "drawn images": judge(on="vieval_demo", parts=SAME),
}


def test_card(approve_text):
    texts = {}
    for name, one in JUDGES.items():
        texts[name] = [*answers([one]), *limits([one], card(one))]
    approve_text(texts)


def test_drawn_images_beside_real_ones(approve_text):
    real = judge(others=[published("A", 0.2, 0.01)], parts=SAME)
    approve_text({"both": answers([JUDGES["drawn images"], real])})


EXPECTED = ("as expected", -0.1, 0.2)
OPEN = ("undecided", -0.1, 0.2)
UNNOTICED = ("FLAGGED: does not fall", -0.01, 0.01)
EFFECT = {
    "aspect": "SC", "expected": "same", "n": 20, "failed": 0, "before": 0.5, "after": 0.6, "difference": 0.1,
    "p": 0.5, "p_adjusted": 0.5,
}  # fmt: skip
#: Findings of an audit with the intervals of its effects.
AUDITS = {
    "one as expected": [EXPECTED],
    "one undecided": [OPEN],
    "two of three undecided": [EXPECTED, OPEN, OPEN],
    "fooled by one": [("FLAGGED: rises", -0.1, 0.2), OPEN, OPEN],
    "two not noticed, and fooled by one": [UNNOTICED, UNNOTICED, ("FLAGGED: rises", 0.1, 0.2)],
    "undecided, with an interval around 0": [EXPECTED, ("undecided", -0.01, 0.2)],
    "undecided, with an interval above 0": [EXPECTED, ("undecided", 0.01, 0.2)],
    "undecided, with an interval below 0": [EXPECTED, ("undecided", -0.2, -0.01)],
}  # fmt: skip


def test_audit(approve_text):
    texts = {}
    for name, findings in AUDITS.items():
        changes = ["border"] * len(findings)
        if UNNOTICED in findings:
            changes = ["source blank", "source of another", "praise overlay"]
        rows = [
            EffectRow(change=change, low=low, high=high, finding=finding, **EFFECT)
            for change, (finding, low, high) in zip(changes, findings, strict=True)
        ]
        audit = CardAudit("viescore", "imagenhub", 20, tuple(rows), 0)
        texts[name] = [fooled_text(audit), *limits([], card(audits=[audit]))]
    approve_text(texts)
