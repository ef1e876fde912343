"""The quality of T2I-Eval's explanations as a metric of the same run."""

from __future__ import annotations

import pytest

from vieval_plugin import annotators
from vieval_plugin.hosts.lmms_eval import metrics
from vieval_plugin.judges.protocol import SampleId, Verdict
from vieval_plugin.meta_evaluation import Options, observe
from vieval_plugin.records import Provenance, Record
from vieval_plugin.report.annotators import tables
from vieval_plugin.report.load import Run

OVERALL, QUESTIONS = "explanation_quality_overall", "explanation_quality_questions"
GRADES = [{OVERALL: 0.8, QUESTIONS: 0.5}, {OVERALL: 0.4}, {}]


def records() -> list[Record]:
    source = Provenance("t2i_eval", "individual", ("O",), "m")
    return [
        Record(
            SampleId("t2i_eval_bench", "tig", "unnamed", str(n)),
            Verdict({"O": n / 4, **grades}, "ok"),
            source,
            {"O": (n, 2 * n, 3 * n)},
        )  # type: ignore[arg-type]
        for n, grades in enumerate(GRADES)
    ]


def test_grades_are_metrics_where_they_are_asked_for() -> None:
    plain, graded = (
        metrics.names(("O",), 1, tuple(map(str, annotators.of_judge("t2i_eval", g)))) for g in (False, True)
    )
    assert set(graded) - set(plain) == {
        f"{name}_mean_{what}" for name in (OVERALL, QUESTIONS) for what in ("value", "ci_low", "ci_high")
    }
    assert annotators.of_judge("viescore", True) == annotators.of_judge("viescore")
    assert not any(one != other and one in other for one in graded for other in graded)


def test_a_metric_is_the_mean_of_the_samples_that_were_graded() -> None:
    observed = tuple(observe([record]) for record in records())
    wanted = annotators.of_judge("t2i_eval", True)
    summary = annotators.summarise(observed, ("O",), wanted, "t", Options(draws=200))
    overall = summary.estimates[f"{OVERALL}_mean"]
    assert overall.value == pytest.approx(0.6)
    assert (overall.low, overall.high) == pytest.approx((0.4, 0.8))
    assert summary.estimates[f"{QUESTIONS}_mean"].value == pytest.approx(0.5)
    assert metrics.take(summary, f"{OVERALL}_mean_value") == pytest.approx(0.6)


def test_the_report_says_how_good_the_explanations_were() -> None:
    run = Run("m", "t2i_eval_bench", ("O",), {"tig": [(record,) for record in records()]})
    made, _ = tables("t2i_eval_bench", [run], Options(draws=20))
    [table] = [table for table in made if table.name == "explanations"]
    assert table.rows == (("m", "2", "3.0000 [2.0000, 4.0000]", "1", "2.5000 [2.5000, 2.5000]"),)
