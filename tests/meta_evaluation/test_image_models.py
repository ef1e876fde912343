"""Agreement by image model, from observations to a part's and a whole benchmark's numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.runs import run_of
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation import metrics, statistics
from vieval_plugin.meta_evaluation.image_model_agreement import (
    filled_observations,
    human_agreement,
)
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.statistics import Rating
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.report import printed_cells
from vieval_plugin.stats.options import StatisticsOptions

ASPECTS = ("SC", "PQ", "O")
OPTIONS = StatisticsOptions()


def observations(n=40, models=("A", "B"), seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    found = []
    for model in models:
        for i in range(n):
            raters = rng.integers(0, 3, size=(3, 2)) / 2
            truth = raters.mean(axis=0)
            sc, pq = np.clip(truth + noise * rng.normal(size=2), 0, 1)
            ratings = {
                "SC": tuple(raters[:, 0]),
                "PQ": tuple(raters[:, 1]),
                "O": tuple(np.sqrt(raters[:, 0] * raters[:, 1])),
            }
            scores = {"SC": float(sc), "PQ": float(pq), "O": math.sqrt(sc * pq)}
            found.append(Observation(model, f"u{i}", ratings, scores, Status.OK))
    return tuple(found)


def constant(rows, *models):
    """The same rows, on some image models of a judge that always says the same."""
    flat = dict.fromkeys(ASPECTS, 0.5)
    return tuple(
        replace(o, scores=flat) if o.image_model in models else o for o in rows
    )


def of_model(rows, model):
    return tuple(o for o in rows if o.image_model == model)


def only_sc(rows, change=lambda score: score):
    """The same rows of a judge of SC alone."""
    return tuple(replace(o, scores={"SC": change(o.scores["SC"])}) for o in rows)


def run(rows, **described):
    """A run whose verdicts gave these observations."""
    judged = [("t", o.image_model, o.uid, o.scores, o.ratings) for o in rows]
    return run_of("mine", judged, tuple(rows[0].scores), **described)


def tables(*runs):
    made = ByImageModel().findings("b", ("t",), runs, StatisticsOptions(draws=20))
    return made, {table.name: table for table in made.tables}


def summarise(rows, part="t", rating=None):
    rating = rating or Rating(ASPECTS)
    return statistics.summary_of(ByImageModel(), rows, rating, "b", part, OPTIONS)


def test_a_task_averages_the_correlations_of_its_image_models():
    rows = observations()
    summary = summarise(rows)
    by_model = []
    for model in ("A", "B"):
        human_means = [np.mean(o.ratings["SC"]) for o in of_model(rows, model)]
        judged = [o.scores["SC"] for o in of_model(rows, model)]
        by_model.append(stats.spearmanr(np.round(human_means, 9), judged).statistic)
    found, paper = (summary.estimates[f"SC_{which}"] for which in ("fisher", "paper"))
    assert found.value == pytest.approx(math.tanh(np.mean(np.arctanh(by_model))))
    assert paper.value == pytest.approx(math.tanh(np.mean(np.round(by_model, 4))))
    assert found.low < found.value < found.high
    assert found.n == summary.estimates["SC_count"].value == 80


def test_a_sample_without_every_aspect_is_in_no_correlation():
    rows = observations()
    status = Status.PARSE_FAILURE
    broken = Observation("A", "extra", rows[0].ratings, {"SC": 0.0}, status)
    with_broken = summarise((*rows, broken))
    assert with_broken.estimates["SC_count"].value == 80
    found = with_broken.estimates["SC_paper"].value
    assert found == summarise(rows).estimates["SC_paper"].value
    assert with_broken.statuses == {Status.OK: 80, Status.PARSE_FAILURE: 1}


def test_an_image_model_of_which_all_scores_are_the_same_counts_as_0_but_in_the_papers_average():
    rows = constant(observations(), "B")
    (found, paper), (alone, paper_alone) = (
        [summarise(some).estimates[f"SC_{which}"] for which in ("fisher", "paper")]
        for some in (rows, of_model(rows, "A"))
    )
    assert found.value == pytest.approx(np.tanh(np.arctanh(alone.value) / 2))
    assert found.low < found.value < found.high < alone.high
    assert paper.value == pytest.approx(paper_alone.value)
    assert (found.reasons, found.zeros) == (
        (),
        ("B: all scores of the judge are equal",),
    )
    assert str(found.coverage) == ""


def test_an_image_model_with_few_samples_or_constant_people_has_no_value_and_is_listed():
    rows = observations()
    people = {"SC": (0.5,) * 3}
    flat = [replace(o, ratings=people) if o.image_model == "A" else o for o in rows]
    few = [o for o in rows if o.image_model == "B" or int(o.uid[1:]) < 9]
    alone = summarise(of_model(rows, "B")).estimates
    for some, reason in (
        (flat, "A: all mean ratings are equal"),
        (few, "A: needs 10 samples, got 9"),
    ):
        found = summarise(tuple(some)).estimates
        fisher = found["SC_fisher"]
        assert fisher.value == pytest.approx(alone["SC_fisher"].value)
        assert fisher.reasons == (reason,)
        assert str(fisher.coverage) == "1 of 2 image models"
        assert fisher.sample_count == f"{alone['SC_fisher'].n} of {fisher.n}"
    assert abs(found["SC_paper"].value - alone["SC_paper"].value) > 1e-6


def test_groups_average_over_tasks_with_an_interval_of_their_own():
    a = summarise(observations(seed=1), "a")
    b = summarise(observations(seed=2, noise=0.8), "b")
    group = statistics.combine((a, b))
    found = group.estimates["SC_fisher"]
    parts = [a.estimates["SC_fisher"], b.estimates["SC_fisher"]]
    expected = pytest.approx(math.tanh(np.mean(np.arctanh([p.value for p in parts]))))
    assert found.value == expected
    assert found.high - found.low < max(p.high - p.low for p in parts)
    assert group.total == 160


def test_resamples_depend_on_groups_and_tasks_and_not_on_the_order_of_rows():
    rows = observations()
    order = np.random.default_rng(3).permutation(len(rows))
    mixed = summarise(tuple(rows[i] for i in order))
    assert repr(mixed.estimates) == repr(summarise(rows).estimates)  # every digit
    paired = tuple(replace(o, group=f"g{int(o.uid[1:]) // 2}") for o in rows)
    judged = ((rows, "a"), (rows, "b"), (paired, "a"))
    found = [summarise(*some).estimates["SC_fisher"] for some in judged]
    assert len({estimate.value for estimate in found}) == 1
    assert len({estimate.resamples.tobytes() for estimate in found}) == 3


def test_a_judge_of_what_people_did_not_rate_agrees_with_nobody():
    rows = tuple(replace(o, scores={**o.scores, "style": 0.5}) for o in observations())
    found = summarise(rows, rating=Rating(("SC", "style"))).estimates
    assert (found["SC_count"].value, found["style_count"].value) == (80, 0)
    reason = found["style_fisher"].reasons[0]
    assert reason == "A: no sample has both ratings and a score"


def test_human_agreement_of_identical_raters_is_nearly_one():
    rows = tuple(
        replace(o, ratings={a: (v[0],) * 3 for a, v in o.ratings.items()})
        for o in observations()
    )
    found = human_agreement(rows, ("SC",), "b/t", OPTIONS)["SC"][0].value
    assert found == pytest.approx(0.9999)


def test_an_undefined_cell_says_why_beside_it():
    made, named = tables(run(constant(observations(models=("A",)), "A")))
    shown = {
        "corrected": "0.000",
        "table": "undefined (all scores of the judge are equal: A)",
    }
    for name in ("corrected_all", "corrected_tasks", "table_1", "table_2_3"):
        [row] = [row for row in named[name].rows if row[1] == "mine"]
        assert row[-3:] == (shown[name.partition("_")[0]],) * 3, name
    found = [row[3:] for row in named["table_6"].rows]
    assert found == [("undefined (all scores of the judge are equal)",) * 3]
    found = named["table_5_distance"].rows[0][-1]
    assert found == "undefined (at least two pairs are needed, got 1)"
    found = made.reasons[Key("T6", "t", "A", "mine", "spearman", "SC")]
    assert found == "all scores of the judge are equal"
    cells = [cell for table in made.tables for row in table.rows for cell in row]
    assert "undefined" not in cells


def test_what_averages_leave_out_is_listed_with_the_reason():
    _, named = tables(run(constant(observations(models=("A", "B", "C")), "B")))
    why = "all scores of the judge are equal, which counts as 0"
    assert named["left_out"].rows == (("t", "mine", "SC, PQ, O", "B", why),)
    assert "undefined" not in str(named["table_1"].rows)
    _, complete = tables(run(observations()))
    assert "left_out" not in complete


def test_one_score_is_compared_with_all_that_people_rated():
    rows = only_sc(observations())
    rating = Rating(("SC",), against_all=True)
    names = [metrics.names(ByImageModel(), each) for each in (rating, Rating(ASPECTS))]
    assert names[0] == names[1]
    found = summarise(rows, rating=rating).estimates
    made, named = tables(run(rows, against_all=True, table="T8"))
    own = of_model(rows, "A")
    for aspect in ASPECTS:
        human = [np.round(np.mean(o.ratings[aspect]), 9) for o in own]
        judged = [o.scores["SC"] for o in own]
        expected = stats.spearmanr(human, judged).statistic
        got = made.cells[Key("T8", "t", "A", "mine", "spearman", aspect)]
        assert got == pytest.approx(expected)
        assert found[f"{aspect}_count"].value == 80
    assert "table_6" not in named
    assert named["table_8"].title == "Table 8. Spearman by image model"


def test_tables_printed_apart_are_one(tmp_path):
    rows = only_sc(observations(), lambda score: score - 0.5)
    made, named = tables(run(rows, against_all=True, table="T10/11"))
    assert named["table_10_11"].title == "Tables 10 and 11. Spearman by image model"
    value = made.cells[Key("T10/11", "t", "A", "mine", "spearman", "SC")]
    header = (
        "table,task,image_model,judge,statistic,aspect,printed,reproducible,why_not"
    )
    lines = [f"T{number},t,A,mine,spearman,SC,{value:.4f},yes," for number in (10, 11)]
    printed = tmp_path / "printed.csv"
    printed.write_text("\n".join([header, *lines]) + "\n")
    comparison = printed_cells.compare_with_printed(printed, made.cells)
    assert (len(comparison.exact), comparison.missing) == (2, [])


def test_image_models_are_ranked_by_a_metric_of_one_score_too():
    better = only_sc(observations(models=("A",)))
    worse = only_sc(observations(models=("B",)), lambda score: score / 4)
    made, named = tables(run((*better, *worse), against_all=True, table="T8"))
    ranks = [row[1:] for row in named["table_5"].rows]
    assert ranks == [("A", "mine", "1.5", "1.0"), ("B", "mine", "1.5", "2.0")]
    assert Key("T5", "t", "", "mine", "footrule", "O") in made.cells


@pytest.mark.parametrize("policy", ["random", "worst"])
def test_a_failure_of_such_a_judge_is_one_number(policy):
    failed = {"scores": {}, "status": Status.TOOL_ERROR}
    rows = [replace(o, **failed) for o in observations(3, ("A",))]
    judged = (rows, ("SC",), ASPECTS, StatisticsOptions(policy))
    filled, aspects = filled_observations(*judged)
    assert aspects == ASPECTS
    assert all(len({o.scores[aspect] for aspect in ASPECTS}) == 1 for o in filled)
