"""The first sentence of a leaderboard is the answer, and true for one system and for twelve."""

import re
from dataclasses import replace

import numpy as np
import pytest

from vieval_plugin.judges.protocol import Choice, SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.headline import Headline
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.report.headlines.costs import Cost
from vieval_plugin.report.headlines.leaderboards import leaderboards
from vieval_plugin.report.headlines.sentences import sentences
from vieval_plugin.report.headlines.tables import headline_lines, headline_table
from vieval_plugin.stats.estimate import Estimate, ImageModelCoverage
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=100)
CEILING = {"human ceiling: each annotator with the others": Estimate(0.8, 0.75, 0.85, n=100)}
EVERYTHING = ImageModelCoverage()
CONSTANT = {"best constant: always first": Estimate(0.4, n=100)}


def said(
    accuracies, items=200, partial=(), references=CEILING | CONSTANT, coverage=EVERYTHING, runs=(), synthetic=False
):
    """Sentences of judges that are right on so many of the items; `partial` judges have a third of the items."""
    own = {}
    for number, (label, accuracy) in enumerate(accuracies.items()):
        right = np.random.default_rng(number).permutation(items) < accuracy * items
        held = range(items // 3 if label in partial else items)
        own[label] = {f"i{n}": JudgedItem(f"i{n}", float(right[n])) for n in held}
    estimates = {}
    for label, answers in own.items():
        value = float(np.mean([item.value for item in answers.values()]))
        estimates[label] = Estimate(value, value - 0.05, value + 0.05, n=len(answers), coverage=coverage)
    constant = np.arange(items) < 0.4 * items
    fixed = [{f"i{n}": float(constant[n]) for n in range(items)}] if CONSTANT.items() <= references.items() else []
    headline = Headline(
        "votes",
        "accuracy",
        "",
        "pairs",
        (0, 1),
        estimates,
        lambda _: compared_means("all", "votes", "accuracy", own, "pairs", constants=fixed),
        references,
        statistic="accuracy",
    )
    [board] = leaderboards([headline], "b", runs, OPTIONS, {}, synthetic)
    return sentences(board)


def test_one_judge_has_its_number():
    first, *others = said({"only": 0.7})
    assert first == "only agrees with annotators on b at accuracy .70 [.65, .75]."
    assert others == ["only is below the human ceiling (.80)."] or "not shown" in others[0]


def board_of(estimates, recorded=()):
    """A leaderboard of judges with these numbers, those in `recorded` replayed from logs."""
    items = {label: {f"i{n}": JudgedItem(f"i{n}", float(n)) for n in range(2)} for label in estimates}
    compared = compared_means("all", "SC", "mean", items, "samples")
    headline = Headline("SC", "mean", "", "samples", (0, 1), estimates, lambda _: compared, {}, statistic="mean SC")
    [board] = leaderboards([headline], "b", (), OPTIONS, {})
    rows = [replace(row, cost=Cost(2, 0, (), 0, 2, None, row.label in recorded)) for row in board.rows]
    return replace(board, rows=tuple(rows))


def test_an_interval_without_width_and_seconds_of_no_run_are_left_out():
    estimates = {"same": Estimate(0.5, 0.5, 0.5, n=2), "other": Estimate(0.4, 0.3, 0.5, n=2)}

    def lines(*recorded):
        board = board_of(estimates, recorded)
        return "\n".join(headline_lines(board, headline_table(board, "x"), ""))

    assert re.search(r"^same +0\.500$", lines(), re.MULTILINE)
    assert "0.400 [0.300, 0.500]" in lines()
    assert "replay" in lines("same")
    assert "seconds" not in lines("same", "other")


def test_of_synthetic_benchmarks_no_annotators_are_said_to_have_rated_them():
    text = said({"poor": 0.3, "good": 0.9}, references=CONSTANT, synthetic=True)
    assert text[0].startswith("good agrees best with the known defects of b: accuracy .90")
    assert "annotator" not in " ".join(text)


@pytest.mark.parametrize(
    "accuracies", [[0.7], [0.9, 0.3], [0.6, 0.6], [0.9, 0.89, 0.3], [0.9, 0.9, 0.3], [0.6] * 12, [0.9] + [0.5] * 49]
)
@pytest.mark.parametrize("partial", [(), ("judge 0",), tuple(f"judge {n}" for n in range(50))])
def test_the_first_sentence_is_short_and_names_the_benchmark_and_the_statistic(accuracies, partial):
    first = said({f"judge {n}": value for n, value in enumerate(accuracies)}, partial=partial)[0]
    assert " on b" in first
    assert "accuracy" in first
    assert len(first) < 260
    assert "0." not in first


def test_of_two_the_better_is_best_with_the_difference():
    first = said({"poor": 0.3, "good": 0.9})[0]
    assert first.startswith(
        "good agrees best with annotators on b: accuracy .90 [.85, .95], significantly better than poor (by .60 ["
    )
    assert first.endswith("], p < .001).")


def voting(label, votes):
    """A run of a judge with these votes, each in the forward and in the reverse order."""
    records = []
    for number, (forward, reverse) in enumerate(votes):
        verdict = Verdict({}, Status.OK, choice=Choice({"forward": forward, "reverse": reverse}))
        source = Provenance("pairwise", (), (), label)
        records.append([Record(SampleId("b", "p", "", str(number)), verdict, source, {})])
    return Run(label, "b", "pairwise", (), {"p": records})


def test_a_judge_that_always_chooses_the_first_image_shown_has_that_as_its_headline():
    always = voting("mid", [("first", "second")] * 100)
    first, second, *_ = said({"mid": 0.0}, runs=[always])
    assert first == (
        "mid agrees with annotators on b at accuracy .00 [-.05, .05], but 200 of 200 answers are the first image shown, which "
        "decides its number."
    )
    assert second == "mid is below the human ceiling (.80)."
    fair = voting("fair", [("first", "first"), ("second", "second")] * 50)
    texts = said({"fair": 0.9, "mid": 0.1}, runs=[always, fair])
    assert texts[0].startswith("fair agrees best")
    assert texts[-1] == "mid: 200 of 200 answers are the first image shown, which decides its number."


@pytest.mark.parametrize("judges", [2, 3, 12])
def test_equal_judges_are_said_to_be_equal(judges):
    first = said({f"judge {n}": 0.6 for n in range(judges)})[0]
    if judges == 2:
        assert first == (
            "judge 0 and judge 1 cannot be told apart by their accuracy with annotators on b: .60 [.55, .65] against .60 "
            "[.55, .65]."
        )
    else:
        assert first.startswith(
            f"The {judges} judges cannot be told apart by their accuracy with annotators on b: from .60 [.55, .65] ("
        )


def test_a_best_that_is_not_better_than_the_next_says_so():
    first = said({"a": 0.9, "b": 0.89, "c": 0.3})[0]
    assert first == (
        "a has the highest accuracy with annotators on b, .90 [.85, .95], but is not significantly better than b; it is "
        "better than c."
    )


def test_two_with_the_same_number_share_it():
    first = said({"a": 0.9, "b": 0.9, "c": 0.3})[0]
    assert first == (
        "a and b have the highest accuracy with annotators on b, .90 [.85, .95]; a is not significantly better than b; it is "
        "better than c."
    )


def test_one_better_than_many_names_how_many():
    first = said({"best": 0.95, **{f"judge {n}": 0.5 for n in range(5)}})[0]
    assert first.startswith(
        "best agrees best with annotators on b: accuracy .95 [.90, 1.00], significantly better than 5 others ("
    )


def test_judges_without_coverage_are_named_with_the_reason_and_never_best():
    first, second, *_ = said({"few": 1.0, "a": 0.9, "b": 0.5}, partial=("few",))
    assert first.startswith("Of the 2 ranked, a agrees best with annotators on b: ")
    assert "few" not in first
    assert second == "Not ranked: few (a score for 66 of 200 pairs)."


def test_a_judge_without_a_rank_that_is_better_than_the_first_is_not_passed_over():
    text = said({"few": 1.0, "a": 0.7, "b": 0.65}, partial=("few",))
    assert text[0].startswith("Of the 2 ranked, a has the highest accuracy") or text[0].startswith(
        "a and b cannot be told apart"
    )
    assert "few is significantly better than a on the 66 pairs that both scored." in text


def test_where_only_one_covers_the_benchmark_there_is_no_order():
    first, second, *_ = said({"few": 0.2, "all": 0.9}, partial=("few",))
    assert first == (
        "all agrees significantly better with annotators on b than few, by accuracy on the pairs that both scored."
    )
    assert second == (
        "Not ranked: few (a score for 66 of 200 pairs). Only all covers the benchmark, so there is no one order."
    )


def test_who_is_not_above_the_constant_is_named_and_nobody_else():
    text = said({"a": 0.9, "b": 0.42, "c": 0.2})
    assert "Not shown to be above the best constant (.40): b." in text
    assert "Below the best constant (.40): c." in text
    assert not any("above the best constant" in line for line in said({"a": 0.9, "b": 0.8}))


def test_an_average_says_what_it_rests_on():
    partial = ImageModelCoverage(21, 29, 5, 7)
    assert said({"a": 0.9}, coverage=partial)[0] == (
        "a agrees with annotators on b at accuracy .90 [.85, .95], on 5 of 7 task types, 21 of 29 image models."
    )
    assert said({"a": 0.9, "b": 0.1}, coverage=partial)[1] == (
        "The number of a is on 5 of 7 task types, 21 of 29 image models."
    )


def test_below_at_or_above_the_ceiling():
    assert "a is above the human ceiling (.80)." in said({"a": 0.95})
    assert "a is not shown to be above or below the human ceiling (.80)." in said({"a": 0.8})
    assert "a is below the human ceiling (.80)." in said({"a": 0.6})


def test_failures_are_said_with_their_share():
    assert Cost(100, 30, ((str(Status.REFUSAL), 30),), 0, 100, None, False).warning == (
        "30 of 100 verdicts have no score (30 refusal)"
    )
