"""The first sentence of a leaderboard is the answer, and true for one system and for twelve."""

import re

import numpy as np
import pytest

from vieval_plugin.judges.protocol import Choice, SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.costs import Cost
from vieval_plugin.meta_evaluation.findings import ALL, Findings, Number, RankedStatistic
from vieval_plugin.meta_evaluation.leaderboards import leaderboard
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.report.answer import answer
from vieval_plugin.report.tables import cost_table, leaderboard_table
from vieval_plugin.stats.estimate import Estimate, ImageModelCoverage
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=100)
CEILING = Number(
    "human ceiling: each annotator with the others",
    Estimate(0.8, 0.75, 0.85, n=100),
    ALL,
    "votes",
    "accuracy",
    "ceiling",
)
CONSTANT = Number("best constant: always first", Estimate(0.4, n=100), ALL, "votes", "accuracy", "baseline")
EVERYTHING = ImageModelCoverage()


def board_of(
    accuracies,
    items=200,
    partial=(),
    references=(CEILING, CONSTANT),
    coverage=EVERYTHING,
    runs=(),
    against="annotators on b",
    width=0.05,
):
    """A leaderboard of judges that are right on so many of the items; `partial` judges have a third of the items."""
    own = {}
    for number, (label, accuracy) in enumerate(accuracies.items()):
        right = np.random.default_rng(number).permutation(items) < accuracy * items
        held = range(items // 3 if label in partial else items)
        own[label] = {f"i{n}": JudgedItem(f"i{n}", float(right[n])) for n in held}
    numbers = []
    for label, answers in own.items():
        value = float(np.mean([item.value for item in answers.values()]))
        estimate = Estimate(value, value - width, value + width, n=len(answers), coverage=coverage)
        numbers.append(Number(label, estimate, ALL, "votes", "accuracy"))
    constant = np.arange(items) < 0.4 * items
    fixed = [{f"i{n}": float(constant[n]) for n in range(items)}] if CONSTANT in references else []
    statistic = RankedStatistic(
        *(ALL, "votes", "accuracy", "accuracy", "", "", (0, 1)),
        lambda _: compared_means("all", "votes", "accuracy", own, "pairs", constants=fixed),
        tuple(references),
    )
    return leaderboard(statistic, Findings(tuple(numbers)), "b", runs, OPTIONS, against=against)


def said(*args, **kwargs):
    """The sentences on a leaderboard of `board_of`, the title first."""
    return answer(board_of(*args, **kwargs)).lines


def test_one_judge_has_its_number():
    first, second, *others = said({"only": 0.7})
    assert first == "only agrees with annotators on b better than the same answer for every image does."
    assert second == "Accuracy 0.70 (95% interval 0.65 to 0.75)."
    assert others == ["only is not shown to be above or below the human ceiling (0.80)."]


def test_one_judge_beside_nothing_is_compared_with_nothing():
    first, *_ = said({"only": 0.7}, references=())
    assert first == "Only only judged b, so there is nothing to compare it with."


def test_equal_judges_beside_one_that_is_not_ranked_are_called_the_ranked():
    first, *_ = said({"a": 0.6, "b": 0.6, "c": 0.6, "few": 0.6}, partial=("few",))
    assert first == "The three ranked judges cannot be told apart."


def test_an_interval_without_width_is_left_out():
    same, other = (leaderboard_table(board_of({"a": 0.5}, references=(), width=width)) for width in (0, 0.1))
    assert same.rows[0][2] == "0.500"
    assert other.rows[0][2] == "0.500 [0.400, 0.600]"
    assert said({"a": 0.5}, references=(), width=0)[1] == "Accuracy 0.50."


@pytest.mark.parametrize(("recorded", "tokens", "expected"), [(True, None, "replay"), (False, 7, "12 (alone)")])
def test_what_verdicts_took_is_a_table_of_its_own(recorded, tokens, expected):
    by = Provenance("pairwise", (), (), "m", recorded=recorded)
    verdict = Verdict({"O": 0.5}, Status.OK)
    records = [(Record(SampleId("b", "p", "", str(n)), verdict, by, {}, tokens=tokens),) for n in range(3)]
    table = cost_table([Run("m", "b", "pairwise", (), {"p": records})], {("b", "m"): "12 (alone)"})
    [row] = (dict(zip(table.header, row, strict=True)) for row in table.rows)
    assert row == {
        "judge": "m",
        "verdicts": "3",
        "failed": "0",
        "answers": "0",
        "tokens": "21" if tokens else "not known",
        "seconds": expected,
    }


def test_of_synthetic_benchmarks_no_annotators_are_said_to_have_rated_them():
    text = said({"poor": 0.3, "good": 0.9}, references=(CONSTANT,), against="the known defects of b")
    assert text[0] == "good agrees best with the known defects of b."
    assert "annotator" not in " ".join(text)


@pytest.mark.parametrize(
    "accuracies", [[0.7], [0.9, 0.3], [0.6, 0.6], [0.9, 0.89, 0.3], [0.9, 0.9, 0.3], [0.6] * 12, [0.9] + [0.5] * 49]
)
@pytest.mark.parametrize("partial", [(), ("judge 0",), tuple(f"judge {n}" for n in range(50))])
def test_the_title_is_short_and_without_numbers_and_the_evidence_names_the_statistic(accuracies, partial):
    names = {f"j{chr(97 + n // 26)}{chr(97 + n % 26)}": value for n, value in enumerate(accuracies)}
    partial = {name for n, name in enumerate(names) if f"judge {n}" in partial}
    first, second, *_ = said(names, partial=partial)
    assert len(first) < 160
    assert not re.search(r"0\.|\[|\(|%", first)
    assert second.startswith("Accuracy ")


def test_of_two_the_better_is_best_with_the_difference():
    first, second, *_ = said({"poor": 0.3, "good": 0.9})
    assert first == "good agrees best with annotators on b."
    assert second == ("Accuracy of good 0.90, 0.60 more than poor (95% interval 0.52 to 0.68), on 200 pairs.")


def voting(label, votes):
    """A run of a judge with these votes, each in the forward and in the reverse order."""
    records = []
    for number, (forward, reverse) in enumerate(votes):
        verdict = Verdict({}, Status.OK, choice=Choice({"forward": forward, "reverse": reverse}))
        source = Provenance("pairwise", (), (), label)
        records.append([Record(SampleId("b", "p", "", str(number)), verdict, source, {})])
    return Run(label, "b", "pairwise", (), {"p": records})


def test_a_judge_that_always_chooses_the_first_image_shown_has_that_as_its_title():
    always = voting("mid", [("first", "second")] * 100)
    first, second, third, *_ = said({"mid": 0.0}, runs=[always])
    assert first == "mid nearly always gives the same answer on b."
    assert second == "Accuracy 0.00 (95% interval -0.05 to 0.05)."
    assert third == "mid: 200 of 200 answers are the first image shown, so its number says little."
    fair = voting("fair", [("first", "first"), ("second", "second")] * 50)
    board = board_of({"fair": 0.9, "mid": 0.1}, runs=[always, fair])
    assert answer(board).title == "fair agrees best with annotators on b."
    assert answer(board).limits[0] == third
    rows = {row[1]: row for row in leaderboard_table(board).rows}
    assert third.removeprefix("mid: ").removesuffix(".") in rows["mid"][-1]
    assert rows["fair"][-1] == ""


@pytest.mark.parametrize("judges", [2, 3, 12])
def test_equal_judges_are_said_to_be_equal(judges):
    first, second, *_ = said({f"judge {n}": 0.6 for n in range(judges)})
    if judges == 2:
        assert first == "judge 0 and judge 1 cannot be told apart."
        assert second == (
            "Accuracy of judge 0 0.60, 0.00 more than judge 1 (95% interval -0.10 to 0.10), on 200 pairs."
        )
    else:
        assert first == f"The {'three' if judges == 3 else judges} judges cannot be told apart."
        assert re.match(
            r"Accuracy from 0\.60 \(.*\) for judge \d+ to 0\.60 .*\. The smallest p of \d+ pairs is ", second
        )


@pytest.mark.parametrize(
    ("accuracies", "equal", "evidence"),
    [
        ({"a": 0.9, "b": 0.89, "c": 0.3}, "b", "; a is better than c; b is better than c."),
        ({"a": 0.9, "b": 0.9, "c": 0.3}, "b", "; a and b have the same number. a is better"),
        (
            {"a": 0.9, "b": 0.9, **{f"judge {n}": 0.3 for n in range(5)}},
            "b",
            "; a and b have the same number. a is better than five others; b is better than five others.",
        ),
        ({"a": 0.9, **{f"judge {n}": 0.89 for n in range(5)}, "poor": 0.1}, "five others", "; a is better than poor;"),
    ],
)
def test_a_best_that_is_not_better_than_the_next_says_so(accuracies, equal, evidence):
    first, second, *_ = said(accuracies)
    assert first == f"a agrees most with annotators on b, but cannot be told apart from {equal}."
    assert second.startswith(f"Accuracy 0.90 (95% interval 0.85 to 0.95){evidence}")


def test_judges_without_coverage_are_named_with_the_reason_and_never_best():
    first, second, third, *_ = said({"few": 1.0, "a": 0.9, "b": 0.5}, partial=("few",))
    assert first == "Of the two ranked, a agrees best with annotators on b."
    assert "few" not in second
    assert third == "Not ranked: few (a score for 66 of 200 pairs)."


def test_a_judge_without_a_rank_that_is_better_than_the_first_is_not_passed_over():
    text = said({"few": 1.0, "a": 0.7, "b": 0.65}, partial=("few",))
    assert text[0] == "a and b cannot be told apart."
    assert "few is significantly better than a on the 66 pairs that both scored." in text


def test_where_only_one_covers_the_benchmark_there_is_no_order():
    first, second, third, *_ = said({"few": 0.2, "all": 0.9}, partial=("few",))
    assert first == "all is better than few, on what both scored."
    assert second.endswith(" Only all covers b, so there is no one order.")
    assert third == "Not ranked: few (a score for 66 of 200 pairs)."


def test_who_is_not_above_the_constant_is_named_and_nobody_else():
    text = said({"a": 0.9, "b": 0.42, "c": 0.2})
    assert "Not shown to be better than the same answer for everything (0.40): b and c." in text
    assert not any("the same answer" in line for line in said({"a": 0.9, "b": 0.8}))


def test_an_average_says_what_it_rests_on():
    partial = ImageModelCoverage(21, 29, 5, 7)
    assert said({"a": 0.9}, coverage=partial)[1] == (
        "Accuracy 0.90 (95% interval 0.85 to 0.95), on 5 of 7 task types, 21 of 29 image models."
    )
    assert "The number of a is on 5 of 7 task types, 21 of 29 image models." in said(
        {"a": 0.9, "b": 0.1}, coverage=partial
    )


def test_below_at_or_above_the_ceiling():
    assert "a is above the human ceiling (0.80)." in said({"a": 0.95})
    assert "a is not shown to be above or below the human ceiling (0.80)." in said({"a": 0.8})
    assert "a is below the human ceiling (0.80)." in said({"a": 0.6})


def test_failures_are_said_with_their_share():
    assert Cost(100, 30, ((str(Status.REFUSAL), 30),), 0, 100, None, False).warning == (
        "30 of 100 verdicts have no score (30 refusal)"
    )
