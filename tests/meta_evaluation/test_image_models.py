"""Agreement by image model, from observations to a part's and a whole benchmark's numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from vieval_plugin.judges.protocol import SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.image_model_agreement import compare, human_agreement
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.metrics import combine
from vieval_plugin.meta_evaluation.observations import Observation, fill
from vieval_plugin.meta_evaluation.reports import Rating
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.records import Provenance, Record, Run
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
            ratings = (
                ("SC", tuple(raters[:, 0])),
                ("PQ", tuple(raters[:, 1])),
                ("O", tuple(np.sqrt(raters[:, 0] * raters[:, 1]))),
            )
            scores = (("SC", float(sc)), ("PQ", float(pq)), ("O", math.sqrt(sc * pq)))
            found.append(Observation(model, f"u{i}", ratings, scores, Status.OK))
    return tuple(found)


def constant(rows, *models):
    """The same rows, on some image models of a judge that always says the same."""
    flat = tuple((aspect, 0.5) for aspect in ASPECTS)
    return tuple(replace(o, scores=flat) if o.image_model in models else o for o in rows)


def run(rows, **described):
    """A run whose verdicts gave these observations."""
    source = Provenance("mine", (), tuple(dict(rows[0].scores)), "mine")
    records = [
        (Record(SampleId("b", "t", o.image_model, o.uid), Verdict(dict(o.scores), o.status), source, dict(o.ratings)),)
        for o in rows
    ]
    return Run("mine", "b", "mine", source.aspects, {"t": records}, **described)


def tables(*runs):
    made = ByImageModel().tables("b", ("t",), runs, StatisticsOptions(draws=20))
    return made, {table.name: table for table in made.tables}


def summarise(rows, part="t"):
    return ByImageModel().summarise(rows, Rating(ASPECTS), "b", part, OPTIONS)


def test_a_task_averages_the_correlations_of_its_image_models():
    rows = observations()
    summary = summarise(rows)
    by_model = []
    for model in ("A", "B"):
        human_means = [np.mean(dict(o.ratings)["SC"]) for o in rows if o.image_model == model]
        judged = [dict(o.scores)["SC"] for o in rows if o.image_model == model]
        by_model.append(stats.spearmanr(np.round(human_means, 9), judged).statistic)
    found = summary.aspects["SC"]
    assert found.fisher == pytest.approx(math.tanh(np.mean(np.arctanh(by_model))))
    assert found.paper == pytest.approx(math.tanh(np.mean(np.round(by_model, 4))))
    assert found.low < found.fisher < found.high
    assert found.count == 80


def test_row_order_does_not_change_a_digit():
    rows = observations()
    mixed = tuple(np.random.default_rng(3).permutation(len(rows)))
    a, b = summarise(rows), summarise(tuple(rows[i] for i in mixed))
    assert repr(a.aspects) == repr(b.aspects)  # every digit; a consistency that is NaN equals nothing


def test_a_sample_without_every_aspect_is_in_no_correlation():
    rows = observations()
    broken = Observation("A", "extra", rows[0].ratings, (("SC", 0.0),), Status.PARSE_FAILURE)
    with_broken = summarise((*rows, broken))
    assert with_broken.aspects["SC"].count == 80
    assert with_broken.aspects["SC"].paper == summarise(rows).aspects["SC"].paper
    assert with_broken.statuses == {Status.OK: 80, Status.PARSE_FAILURE: 1}


def test_policies_fill_what_failed_and_say_nothing_of_what_is_missing():
    ratings = observations(1)[0].ratings
    failed = Observation("A", "f", ratings, (("SC", 0.9),), Status.REFUSAL)
    missing = Observation("A", "m", ratings, (), Status.MISSING)
    assert fill([failed, missing], ASPECTS, StatisticsOptions("drop")) == [failed, missing]
    worst = fill([failed, missing], ASPECTS, StatisticsOptions("worst"))
    assert dict(worst[0].scores) == {"SC": 0.9, "PQ": 0.0, "O": 0.0}
    assert worst[1] == missing
    drawn = [dict(fill([failed], ASPECTS, StatisticsOptions("random", seed=s))[0].scores)["PQ"] for s in range(300)]
    assert set(np.round(np.array(drawn) * 10)) == set(range(11))
    assert fill([failed], ASPECTS, StatisticsOptions("random", seed=5)) == fill(
        [failed], ASPECTS, StatisticsOptions("random", seed=5)
    )


def test_an_image_model_of_which_all_scores_are_the_same_counts_as_0_but_in_the_papers_average():
    rows = constant(observations(), "B")
    found = summarise(rows).aspects["SC"]
    alone = summarise(tuple(o for o in rows if o.image_model == "A")).aspects["SC"]
    assert found.fisher == pytest.approx(np.tanh(np.arctanh(alone.fisher) / 2))
    assert found.low < found.fisher < found.high < alone.high
    assert found.paper == pytest.approx(alone.paper)
    assert (found.reasons, found.constant) == ((), ("B: the judge is constant",))
    assert str(found.coverage) == ""


def test_an_image_model_with_few_samples_or_constant_people_has_no_value_and_is_listed():
    rows = observations()
    flat = tuple(
        replace(o, ratings=(("SC", (0.5,) * len(dict(o.ratings)["SC"])),)) if o.image_model == "A" else o for o in rows
    )
    found = summarise(flat).aspects["SC"]
    alone = summarise(tuple(o for o in rows if o.image_model == "B")).aspects["SC"]
    assert found.fisher == pytest.approx(alone.fisher)
    assert found.reasons == ("A: the human mean is constant",)
    assert str(found.coverage) == "1 of 2 image models"
    few = tuple(o for o in rows if o.image_model == "B" or int(o.uid[1:]) < 9)
    found = summarise(few).aspects["SC"]
    assert found.fisher == pytest.approx(alone.fisher)
    assert found.reasons == ("A: 9 samples, 10 are needed",)
    assert found.paper == pytest.approx(summarise(few).aspects["SC"].paper)
    assert abs(found.paper - alone.paper) > 1e-6


def test_groups_average_over_tasks_with_an_interval_of_their_own():
    a, b = summarise(observations(seed=1), "a"), summarise(observations(seed=2, noise=0.8), "b")
    group = combine((a, b))
    found = group.aspects["SC"]
    parts = [a.aspects["SC"], b.aspects["SC"]]
    assert found.fisher == pytest.approx(math.tanh(np.mean(np.arctanh([p.fisher for p in parts]))))
    assert found.high - found.low < max(p.high - p.low for p in parts)
    assert group.total == 160


def test_tasks_are_resampled_independently():
    rows = observations()
    assert not np.array_equal(summarise(rows, "a").aspects["SC"].draws, summarise(rows, "b").aspects["SC"].draws)


def test_samples_of_a_group_are_drawn_together():
    alone = observations()
    paired = tuple(replace(o, group=f"g{int(o.uid[1:]) // 2}") for o in alone)
    apart, together = (summarise(rows).aspects["SC"] for rows in (alone, paired))
    assert apart.fisher == together.fisher
    assert not np.array_equal(apart.draws, together.draws)


def test_a_judge_of_what_people_did_not_rate_agrees_with_nobody():
    rows = tuple(replace(o, scores=(*o.scores, ("style", 0.5))) for o in observations())
    found = ByImageModel().summarise(rows, Rating(("SC", "style")), "b", "t", OPTIONS)
    assert found.aspects["SC"].count == 80
    assert found.aspects["style"].count == 0
    assert found.aspects["style"].reasons[0] == "A: 0 samples, 10 are needed"


def test_human_agreement_of_identical_raters_is_nearly_one():
    rows = tuple(
        Observation(o.image_model, o.uid, tuple((a, (v[0],) * 3) for a, v in o.ratings), o.scores, o.status)
        for o in observations()
    )
    assert human_agreement(rows, ("SC",), "b/t", OPTIONS)["SC"].fisher == pytest.approx(0.9999)


def test_an_undefined_cell_says_why_beside_it():
    made, named = tables(run(constant(observations(models=("A",)), "A")))
    shown = {"corrected": "0.000 [0.000, 0.000]", "table": "undefined (the judge is constant: A)"}
    for name in ("corrected_all", "corrected_tasks", "table_1", "table_2_3"):
        [row] = [row for row in named[name].rows if row[1] == "mine"]
        assert row[-3:] == (shown[name.partition("_")[0]],) * 3, name
    assert [row[3:] for row in named["table_6"].rows] == [("undefined (the judge is constant)",) * 3]
    assert named["table_5"].rows[0][-1] == "undefined (1 pairs, two or more are needed)"
    assert made.reasons[Key("T6", "t", "A", "mine", "spearman", "SC")] == "the judge is constant"
    assert not any(cell == "undefined" for table in made.tables for row in table.rows for cell in row)


def test_what_averages_leave_out_is_listed_with_the_reason():
    _, named = tables(run(constant(observations(models=("A", "B", "C")), "B")))
    assert named["left_out"].rows == (("t", "mine", "SC, PQ, O", "B", "the judge is constant, which counts as 0"),)
    assert "undefined" not in str(named["table_1"].rows)
    _, complete = tables(run(observations()))
    assert "left_out" not in complete


def test_one_score_is_compared_with_all_that_people_rated():
    rows = tuple(replace(o, scores=o.scores[:1]) for o in observations())
    rating = Rating(("SC",), against_all=True)
    assert ByImageModel().names(rating) == ByImageModel().names(Rating(ASPECTS))
    found = ByImageModel().summarise(rows, rating, "b", "t", OPTIONS).aspects
    for aspect in ASPECTS:
        human = [np.round(np.mean(dict(o.ratings)[aspect]), 9) for o in rows if o.image_model == "A"]
        judged = [dict(o.scores)["SC"] for o in rows if o.image_model == "A"]
        expected = stats.spearmanr(human, judged).statistic
        made, named = tables(run(rows, against_all=True, table="T8"))
        assert made.cells[Key("T8", "t", "A", "mine", "spearman", aspect)] == pytest.approx(expected)
        assert found[aspect].count == 80
    assert "table_6" not in named
    assert named["table_8"].title == "Table 8. Spearman by image model"


@pytest.mark.parametrize("policy", ["random", "worst"])
def test_a_failure_of_such_a_judge_is_one_number(policy):
    rows = [replace(o, scores=(), status=Status.TOOL_ERROR) for o in observations(3, ("A",))]
    filled, aspects = compare(rows, ("SC",), ASPECTS, StatisticsOptions(policy))
    assert aspects == ASPECTS
    assert all(len({dict(o.scores)[aspect] for aspect in ASPECTS}) == 1 for o in filled)
