"""Headlines of each kind of report, with their references."""

import math
from dataclasses import replace

import pytest

from tests.leaderboards import estimates_of, headlines_of
from tests.runs import run_of
from tests.voted import contest, run
from vieval_plugin.meta_evaluation.annotators import WithAnnotators
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=50)


def raters():
    """What three people say of each sample."""
    return {str(n): (n % 4 / 4, n % 3 / 4, n % 5 / 4) for n in range(20)}


def test_of_rated_images_it_is_by_the_overall_score_if_half_of_the_judges_rate_it():
    two, alone = [], []
    for uid, rated in raters().items():
        mean, ratings = sum(rated) / 3, {"SC": rated, "O": rated}
        two.append(("tie", "m", uid, {"SC": mean, "O": 1 - mean}, ratings))
        alone.append(("tie", "m", uid, {"SC": rated[0]}, ratings))
    both, one = run_of("both", two, ("SC", "O")), run_of("one", alone, ("SC",))
    overall, first = headlines_of(ByImageModel(), "b", ("tie",), [both, one], OPTIONS)
    assert (overall.aspect, first.aspect) == ("O", "SC")
    [inverse], by_sc = (estimates_of(each).items() for each in (overall, first))
    assert (inverse[0], inverse[1].value) == ("both", pytest.approx(-0.9999))
    assert {label: e.n for label, e in by_sc} == {"both": 20, "one": 20}
    best = dict(by_sc)["both"].value
    assert best == pytest.approx(0.9999)
    assert [reference.role for reference in first.references] == ["ceiling", "baseline"]
    ceiling, constant = (reference.estimate.value for reference in first.references)
    assert (ceiling < 0.9, constant) == (True, 0)
    assert first.breakdowns["kind"]["tie"]["both"].value == best
    compared = first.comparison.compared
    assert (compared.aspect, compared.pair(0, 1).n) == ("SC", 20)
    judges = [both, one, replace(one, label="third")]
    boards = headlines_of(ByImageModel(), "b", ("tie",), judges, OPTIONS)
    assert boards[0].aspect == "SC"


def test_of_votes_it_is_the_accuracy_over_all_parts_beside_the_best_constant():
    votes = ["first", "first", "first", "second", "both_bad", "both_good"]
    answers = ["first", "first", "second", "second", "both_bad", ""]
    parts = {
        "p": zip(votes, answers, strict=True),
        "q": [("first", "first"), ("first", "second")],
    }
    runs = [
        run(
            "judge",
            [contest(str(n), v, forward=a) for n, (v, a) in enumerate(said)],
            part,
        )
        for part, said in parts.items()
    ]
    whole = replace(runs[0], records=runs[0].records | runs[1].records)
    [headline] = headlines_of(ByVotes("four_way"), "b", ("p", "q"), [whole], OPTIONS)
    number = estimates_of(headline)["judge"]
    assert (number.value, number.n) == (5 / 8, 8)
    [constant] = headline.references
    assert constant.system == "best constant: always first"
    assert constant.estimate.value == 5 / 8
    parts = headline.breakdowns["part"].items()
    found = {part: several["judge"].value for part, several in parts}
    assert found == pytest.approx({"p": 4 / 6, "q": 1 / 2})


def test_of_labels_it_is_the_first_statistic_and_one_without_a_test_says_so():
    rows = [
        ("p", "m", str(n), {"SC": n / 10}, {"SC": (float(n > 4),)}) for n in range(10)
    ]
    labels, judged = WithLabels(("auroc", "pearson")), [run_of("judge", rows, ("SC",))]
    made = labels.findings("b", ("p",), judged, OPTIONS)
    [headline] = headlines_of(labels, "b", ("p",), judged, OPTIONS)
    value = made.cells[Key("statistics", "p", "", "judge", "auroc", "SC")]
    assert estimates_of(headline)["judge"].value == value == 1
    assert [reference.estimate.value for reference in headline.references] == [0.5]
    assert "no paired test" in headline.comparison.compared.untestable_reason


def test_of_annotators_it_is_the_correlation_with_their_mean_beside_what_they_reach_themselves():
    people = raters().items()
    rows = [("p", "m", uid, {"O": sum(given)}, {"O": given}) for uid, given in people]
    annotators, judged = WithAnnotators((), "O", 3), [run_of("judge", rows)]
    made = annotators.findings("b", ("p",), judged, OPTIONS)
    [headline] = headlines_of(annotators, "b", ("p",), judged, OPTIONS)
    assert estimates_of(headline)["judge"].value == pytest.approx(1)
    ceiling = headline.references[0].estimate
    who = ("statistics", "p", "", "annotators, with the mean of the others")
    names = [f"overall_manual_{n}_spearman" for n in (1, 2, 3)]
    each = [made.cells[Key(*who, name, "overall")] for name in names]
    assert ceiling.value == pytest.approx(sum(each) / 3)
    assert headline.comparison.compared.pair(0, 0).n == 20


def test_of_generators_it_is_the_mean_over_prompts_of_what_each_judge_says():
    rows = [
        ("tig", model, str(n), {"SC": 0.1, "O": value + n % 2 / 10}, {})
        for model, value in (("good", 0.8), ("bad", 0.2))
        for n in range(8)
    ]
    runs = [run_of("judge", rows, ("SC", "O"))]
    [headline] = headlines_of(OfGenerators(), "b", ("tig",), runs, OPTIONS)
    named = (headline.aspect, headline.entrants, headline.judge.model)
    assert named == ("O", "generators", "judge")
    estimates = estimates_of(headline)
    found = {label: estimate.value for label, estimate in estimates.items()}
    assert found == pytest.approx({"good": 0.85, "bad": 0.25})
    pair = headline.comparison.compared.pair(0, 1)
    assert pair.statistic.estimates() == pytest.approx((0.85, 0.25))
    assert not headline.references
    assert not any(math.isnan(estimate.low) for estimate in estimates.values())
