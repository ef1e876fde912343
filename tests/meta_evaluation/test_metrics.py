"""Metrics by name, whichever the host."""

import math
from itertools import permutations

import numpy as np
import pytest

from tests.tables import table
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import tasks
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation import metrics
from vieval_plugin.meta_evaluation.annotators import WithAnnotators
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.label_statistics import STATISTICS
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.statistics import (
    Rating,
    Statistic,
    Summary,
    combine,
    summary_of,
)
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

DIMENSIONS = ("appearance", "intrinsic", "relationship")
REPORTS = {
    "image_models": ByImageModel(),
    "labels": WithLabels(tuple(STATISTICS)),
    "annotators": WithAnnotators(DIMENSIONS, "O", 3),
    **{name: one.report for name, one in benchmark_registry.benchmarks().items()},
}
GRADES = ("explanation_quality_overall", "explanation_quality_questions")
RATINGS = [
    Rating(("SC", "PQ", "O"), repeats=3),
    Rating(("SC",), intervals=True),
    Rating(("O",), DIMENSIONS, GRADES),
    *(
        Rating(spec.aspects, spec.dimensions, intervals=spec.intervals)
        for spec in judge_registry.judges().values()
    ),
]


@pytest.mark.parametrize("report", REPORTS)
def test_no_metric_name_is_part_of_another_and_all_end_in_shares_and_remarks(report):
    shares = [f"status_{status}_share" for status in Status]
    for rating in RATINGS:
        names = metrics.names(REPORTS[report], rating)
        pairs = permutations(names, 2)
        assert not [(one, other) for one, other in pairs if one in other]
        assert names[-len(shares) - 1 :] == (*shares, "remarks")
        assert ("exact_share" in names) is rating.intervals


def observations(aspects):
    rng = np.random.default_rng(0)
    found = []
    for i in range(12):
        ratings = {aspect: (float(i % 2),) * 3 for aspect in (*aspects, "O", "SC")}
        scores = {aspect: float(rng.random()) for aspect in aspects}
        found.append(Observation("model", f"{i}", ratings, scores, Status.OK))
    return tuple(found)


@pytest.mark.parametrize("report", REPORTS)
def test_every_name_has_a_value_of_a_summary_and_of_the_whole(report):
    for rating in RATINGS:
        judged = (observations((*rating.aspects, "SC")), rating, "b", "t")
        found = summary_of(REPORTS[report], *judged, StatisticsOptions(draws=10))
        for summary in (found, combine((found, found))):
            for name in metrics.names(REPORTS[report], rating):
                kinds = str if name == "remarks" else (float, type(None))
                assert isinstance(metrics.value(summary, name), kinds)


@pytest.mark.parametrize(
    ("samples", "fisher", "remark"),
    [
        (12, 0, "counted as 0: SC m: all scores of the judge are equal"),
        (4, None, "undefined: SC m: needs 10 samples, got 4"),
    ],
)
def test_an_undefined_number_is_none_and_its_reason_a_remark(samples, fisher, remark):
    ok = ({"SC": 0.5}, Status.OK)
    rows = [Observation("m", str(i), {"SC": (float(i),)}, *ok) for i in range(samples)]
    judged = (ByImageModel(), rows, Rating(("SC",)), "b", "t")
    found = summary_of(*judged, StatisticsOptions("worst", draws=10, seed=2))
    assert metrics.value(found, "SC_fisher") == fisher
    assert metrics.value(found, "SC_paper") is None
    remarks = metrics.value(found, "remarks")
    assert remarks.startswith("failures: worst; 10 draws; seed 2; ")
    assert remarks.endswith(remark)
    with pytest.raises(KeyError):
        metrics.value(found, "PQ_fisher")


@pytest.mark.parametrize(*table("directions.jsonl"))
def test_more_is_better_less_is_or_neither(name, better):
    assert metrics.higher_is_better(name) is better


@pytest.mark.parametrize(
    "row", tasks.table(), ids=lambda row: f"{row.benchmark} {row.judge} {row.setting}"
)
def test_a_hosts_table_shows_one_number_of_each_task_by_o_or_else_sc(row):
    spec = judge_registry.judge(row.judge)
    described = {"intervals": spec.intervals, "against_all": spec.against_all}
    rating = Rating(spec.aspects, spec.dimensions, (), **described)
    statistics = benchmark_registry.benchmark(row.benchmark).report.statistics(rating)
    primary = metrics.primary_statistic(statistics)
    assert primary.interval
    known = {one.aspect for one in statistics if one.primary} & {"O", "SC"}
    assert not known or primary.aspect == min(known)


NUMBER = Estimate(0.51234, 0.25, 0.75, n=3)
UNDEFINED = Estimate(math.nan, reasons=("no sample",))
FEW = Estimate(math.nan, reasons=tuple(f"{m}: needs 10 samples, got 3" for m in "ab"))
SOME = {Status.OK: 1, Status.MISSING: 2, Status.NOT_APPLICABLE: 4}


@pytest.mark.parametrize(
    ("estimate", "statuses", "cell"),
    [
        (NUMBER, {Status.OK: 3}, "0.512 [0.250, 0.750], n 3, failed 0"),
        (NUMBER, SOME, "0.512 [0.250, 0.750], n 3, failed 2"),
        (UNDEFINED, {Status.API_ERROR: 2}, "undefined (no sample), n 0, failed 2"),
        (FEW, {Status.OK: 6}, "undefined (needs 10 samples, got 3), n 0, failed 0"),
    ],
)
def test_a_hosts_cell_has_an_interval_and_counts_or_a_reason(estimate, statuses, cell):
    statistic = Statistic("SC", lambda rows: Estimate(0.5), primary=True, aspect="SC")
    estimates = {"SC_value": estimate}
    summary = Summary((statistic,), estimates, statuses, StatisticsOptions())
    assert metrics.host_table_cell(summary) == cell
