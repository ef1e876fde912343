"""Grades that a judge gives beside its aspects, such as those of its explanations, as metrics
and as a table.
"""

import pytest

from tests.runs import run_of
from vieval_plugin.meta_evaluation import metrics
from vieval_plugin.meta_evaluation.annotators import WithAnnotators
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.statistics import Rating, summary_of
from vieval_plugin.stats.options import StatisticsOptions

OVERALL, QUESTIONS = "explanation_quality_overall", "explanation_quality_questions"
REPORT = WithAnnotators(("appearance", "intrinsic", "relationship"), "O", 3)
PLAIN = Rating(("O",), REPORT.dimensions)
GRADED = Rating(("O",), REPORT.dimensions, (OVERALL, QUESTIONS))
GRADES = [{OVERALL: 0.8, QUESTIONS: 0.5}, {OVERALL: 0.4}, {}]


ROWS = [
    ("tig", "unnamed", str(n), {"O": n / 4, **grades}, {"O": (n, 2 * n, 3 * n)})
    for n, grades in enumerate(GRADES)
]
RUN = run_of("m", ROWS, benchmark="t2i_eval_bench", judge="t2i_eval")


def test_grades_are_metrics_where_they_are_asked_for():
    plain, graded = (metrics.names(REPORT, rating) for rating in (PLAIN, GRADED))
    assert set(graded) - set(plain) == {
        f"{name}_mean_{what}"
        for name in (OVERALL, QUESTIONS)
        for what in ("value", "ci_low", "ci_high")
    }
    assert not any(one != other and one in other for one in graded for other in graded)


def test_a_metric_is_the_mean_of_the_samples_that_were_graded():
    observed = tuple(map(observe, RUN.records["tig"]))
    summary = summary_of(
        REPORT, observed, GRADED, "b", "t", StatisticsOptions(draws=200)
    )
    overall = summary.estimates[f"{OVERALL}_mean_value"]
    assert overall.value == pytest.approx(0.6)
    assert (overall.low, overall.high) == pytest.approx((0.4, 0.8))
    assert summary.estimates[f"{QUESTIONS}_mean_value"].value == pytest.approx(0.5)
    assert metrics.value(summary, f"{OVERALL}_mean_value") == pytest.approx(0.6)


def test_the_report_says_how_good_the_explanations_were():
    made = REPORT.findings(
        "t2i_eval_bench", ("tig",), [RUN], StatisticsOptions(draws=20)
    )
    [table] = [table for table in made.tables if table.name == "explanations"]
    assert table.header == (
        "judge",
        "n",
        "explanation quality overall",
        "n",
        "explanation quality questions",
    )
    assert table.rows == (("m", "2", "3.0000 [2.0000, 4.0000]", "1", "2.5000"),)
