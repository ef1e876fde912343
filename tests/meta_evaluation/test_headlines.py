"""What each report object puts first: the number that its tables have, beside people and answers
that never look.
"""

import math
from dataclasses import replace

import pytest

from tests.leaderboards import estimates_of, headlines_of
from tests.runs import run_of
from vieval_plugin.judges.contests import Votes
from vieval_plugin.judges.protocol import Choice, SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.annotators import WithAnnotators
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=50)


def contests(label, answers, votes, part="p"):
    """A run on contests with a vote of people and a judge's vote each."""
    records = []
    for number, (said, vote) in enumerate(zip(answers, votes, strict=True)):
        choice = Choice({"forward": said} if said else {})
        verdict = Verdict({}, Status.OK if said else Status.REFUSAL, choice=choice)
        candidates = tuple(SampleId("b", part, model, str(number)) for model in "xy")
        identity = SampleId("b", part, "", str(number))
        source = Provenance("mine", (), (), label)
        more = {"group": str(number), "votes": Votes("four_way", vote)}
        more["candidates"] = candidates
        records.append((Record(identity, verdict, source, {}, **more),))
    return Run(label, "b", "mine", (), {part: records})


def of(board, label):
    return board.number_of(label).estimate


def raters():
    """What three people say of each sample."""
    return {str(n): (n % 4 / 4, n % 3 / 4, n % 5 / 4) for n in range(20)}


def test_of_rated_images_it_is_what_the_tables_have_by_the_overall_score_if_half_of_the_judges_rate_it():
    two, alone = [], []
    for uid, rated in raters().items():
        mean, ratings = sum(rated) / 3, {"SC": rated, "O": rated}
        two.append(("tie", "m", uid, {"SC": mean, "O": 1 - mean}, ratings))
        alone.append(("tie", "m", uid, {"SC": rated[0]}, ratings))
    both, one = run_of("both", two, ("SC", "O")), run_of("one", alone, ("SC",))
    overall, first = headlines_of(ByImageModel(), "b", ("tie",), [both, one], OPTIONS)
    assert (overall.aspect, first.aspect) == ("O", "SC")
    assert list(estimates_of(overall)) == ["both"]
    assert sorted(estimates_of(first)) == ["both", "one"]
    assert of(overall, "both").value == pytest.approx(-0.9999)
    assert of(first, "both").value == pytest.approx(0.9999)
    assert of(first, "one").n == 20
    assert [reference.role for reference in first.references] == ["ceiling", "baseline"]
    third = replace(one, label="third")
    judges = [both, one, third]
    boards = headlines_of(ByImageModel(), "b", ("tie",), judges, OPTIONS)
    assert boards[0].aspect == "SC"
    ceiling, constant = (reference.estimate for reference in first.references)
    assert ceiling.value < 0.9
    assert constant.value == 0
    assert first.breakdowns["kind"]["tie"]["both"].value == of(first, "both").value
    compared = first.comparison.compared
    assert compared.aspect == "SC"
    assert compared.pair(0, 1).n == 20


def test_of_votes_it_is_the_accuracy_over_all_parts_beside_the_best_constant():
    votes = ["first", "first", "first", "second", "both_bad", "both_good"]
    answers = ["first", "first", "second", "second", "both_bad", ""]
    judge = contests("judge", answers, votes)
    other = contests("judge", ["first", "second"], ["first", "first"], "q")
    whole = Run("judge", "b", "mine", (), {**judge.records, **other.records})
    [headline] = headlines_of(ByVotes("four_way"), "b", ("p", "q"), [whole], OPTIONS)
    number = of(headline, "judge")
    assert number.value == pytest.approx(5 / 8)
    assert number.n == 8
    [constant] = headline.references
    assert constant.system == "best constant: always first"
    assert constant.estimate.value == pytest.approx(5 / 8)
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
    assert of(headline, "judge").value == value == 1
    assert [reference.estimate.value for reference in headline.references] == [0.5]
    assert "no paired test" in headline.comparison.compared.untestable_reason


def test_of_annotators_it_is_the_correlation_with_their_mean_beside_what_they_reach_themselves():
    people = raters().items()
    rows = [("p", "m", uid, {"O": sum(given)}, {"O": given}) for uid, given in people]
    annotators, judged = WithAnnotators((), "O", 3), [run_of("judge", rows)]
    made = annotators.findings("b", ("p",), judged, OPTIONS)
    [headline] = headlines_of(annotators, "b", ("p",), judged, OPTIONS)
    assert of(headline, "judge").value == pytest.approx(1)
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
    assert headline.aspect == "O"
    assert headline.entrants == "generators"
    assert headline.judge.model == "judge"
    estimates = estimates_of(headline)
    found = {label: estimate.value for label, estimate in estimates.items()}
    assert found == pytest.approx({"good": 0.85, "bad": 0.25})
    pair = headline.comparison.compared.pair(0, 1)
    assert pair.statistic.estimates() == pytest.approx((0.85, 0.25))
    assert not headline.references
    assert not any(math.isnan(estimate.low) for estimate in estimates.values())
