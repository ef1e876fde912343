"""Agreement with each annotator and with their mean, as metrics and as tables; mean grades."""

import math

import numpy as np
import pytest
from scipy import stats

from tests import pairs
from tests.runs import run_of
from vieval_plugin import config
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation import metrics, statistics
from vieval_plugin.meta_evaluation.annotator_agreement import (
    AnnotatedRows,
    annotator_correlation,
    correlations,
)
from vieval_plugin.meta_evaluation.annotators import WithAnnotators
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.observations import Observation, observe
from vieval_plugin.meta_evaluation.statistics import Rating, estimate_of
from vieval_plugin.stats.options import StatisticsOptions

NAN = math.nan
OPTIONS = StatisticsOptions(draws=50)
BOOTSTRAP = Bootstrap.for_part("b/t", OPTIONS)
IMPUTE = StatisticsOptions(draws=50, missing_ratings="impute_mean")
DIMENSIONS = ("appearance", "intrinsic", "relationship")
REPORT = WithAnnotators(DIMENSIONS, "O", 3)
ANNOTATORS = ("1", "2", "3", "avg")
OVERALL_MEAN = "overall_manual_avg_spearman_value"
MEASURES = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}


def observation(uid, ratings, scores, status=Status.OK):
    return Observation("unnamed", uid, ratings, scores, status)


def compare(rows, aspects, wanted, options=OPTIONS):
    dimensions = tuple(dict.fromkeys(statistic.aspect for statistic in wanted))
    rating = Rating(aspects, dimensions)
    of_judge = AnnotatedRows.from_observations(rows, rating, REPORT, options)
    return {one.name: estimate_of(one, of_judge, BOOTSTRAP) for one in wanted}


def summarise(rows, rating, options=OPTIONS):
    return statistics.summary_of(REPORT, rows, rating, "b", "t", options)


def direct(x, y, kind="spearman"):
    return float(MEASURES[kind](x, y).statistic)


@pytest.fixture(scope="module")
def thirty():
    """Thirty pairs with ratings (3, 30) by aspect and noisy scores by aspect, O among them."""
    rng = np.random.default_rng(1)
    rated = pairs.ratings()
    rated["O"] = rated.pop("overall")
    judged = {}
    for aspect in (*DIMENSIONS, "O"):
        noise = rng.normal(0, 0.1, 30)
        judged[aspect] = np.clip(rated[aspect].mean(axis=0) / 10 + noise, 0, 1)
    rows = []
    for i in range(30):
        ratings = {aspect: tuple(values[:, i]) for aspect, values in rated.items()}
        scores = {aspect: float(values[i]) for aspect, values in judged.items()}
        rows.append(observation(str(i), ratings, scores))
    return tuple(rows), rated, judged


@pytest.mark.parametrize("kind", ["spearman", "kendall"])
def test_correlations_are_scipys_with_each_annotator_and_with_their_mean(thirty, kind):
    rows, rated, judged = thirty
    found = compare(rows, ("O",), correlations(("overall", *DIMENSIONS), ANNOTATORS))
    assert len(found) == 4 * 4 * 2
    for dimension in ("overall", *DIMENSIONS):
        aspect = "O" if dimension == "overall" else dimension
        mean = rated[aspect].mean(axis=0).round(9)
        for annotator, people in zip(ANNOTATORS, [*rated[aspect], mean], strict=True):
            expected = direct(judged[aspect], people, kind)
            got = found[f"{dimension}_manual_{annotator}_{kind}"]
            assert got.value == pytest.approx(expected, abs=1e-12)
            assert got.low < got.value < got.high


def test_a_judge_without_o_is_compared_by_sc_and_one_with_o_by_nothing_else():
    rows = tuple(
        observation(str(i), {"O": (i, i, i)}, {"SC": (3 - i) / 10, "O": i / 10})
        for i in range(4)
    )
    failed = observation("4", {"O": (9, 9, 9)}, {"SC": 0.0}, Status.PARSE_FAILURE)
    by_o = summarise((*rows, failed), Rating(("SC", "PQ", "O")))
    assert by_o.estimates["overall_manual_1_spearman_value"].value == 1.0
    assert (by_o.scored, by_o.total) == (4, 5)
    by_sc = compare(rows, ("SC",), correlations(["overall"], ["1"]))
    assert by_sc["overall_manual_1_spearman"].value == -1.0


MISSING = [  # three annotators' ratings of five pairs, the judge's score
    ((1.0, 2.0, 3.0), 0.1),
    ((NAN, 6.0, 3.0), 0.4),
    ((7.0, 4.0, NAN), 0.3),
    ((8.0, 8.0, 9.0), 0.8),
    ((NAN, NAN, NAN), 0.9),
]
GAPPED = tuple(
    observation(str(i), {"O": given}, {"O": score})
    for i, (given, score) in enumerate(MISSING)
)


@pytest.mark.parametrize(
    ("options", "annotator", "rated", "judged"),
    [
        (OPTIONS, "1", [1, 7, 8], [0.1, 0.3, 0.8]),
        (IMPUTE, "1", [1, 4.5, 7, 8], [0.1, 0.4, 0.3, 0.8]),
        (IMPUTE, "3", [3, 3, 5.5, 9], [0.1, 0.4, 0.3, 0.8]),
        (OPTIONS, "avg", [2, 4.5, 5.5, 25 / 3], [0.1, 0.4, 0.3, 0.8]),
        (IMPUTE, "avg", [2, 4.5, 5.5, 25 / 3], [0.1, 0.4, 0.3, 0.8]),
    ],
)
def test_missing_ratings_are_filled(options, annotator, rated, judged):
    found = compare(GAPPED, ("O",), correlations(["overall"], [annotator]), options)
    for kind in MEASURES:
        value = found[f"overall_manual_{annotator}_{kind}"].value
        assert value == pytest.approx(direct(judged, rated, kind), abs=1e-12)


@pytest.mark.parametrize(
    ("ratings", "scores"),
    [({}, {"relationship": 0.5}), ({"relationship": (1.0, 2.0, 3.0)}, {})],
)
def test_a_dimension_without_scores_or_ratings_is_undefined(ratings, scores):
    rows = tuple(observation(str(i), ratings, scores) for i in range(3))
    found = compare(rows, ("O",), correlations(["relationship"], ["avg"]))
    assert all(math.isnan(estimate.value) for estimate in found.values())
    reasons = {estimate.reason for estimate in found.values()}
    assert reasons == {"at least two pairs are needed, got 0"}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_annotators_agree_with_the_mean_of_all_and_with_that_of_the_others(
    thirty, number
):
    rows, rated, _ = thirty
    own, others = rated["O"][number - 1], np.delete(rated["O"], number - 1, axis=0)
    for people, left_out in ((rated["O"], False), (others, True)):
        wanted = annotator_correlation(["overall"], [str(number)], left_out)
        found = compare(rows, ("O",), wanted)
        for kind in MEASURES:
            expected = direct(own, people.mean(axis=0).round(9), kind)
            got = found[f"overall_manual_{number}_{kind}"].value
            assert got == pytest.approx(expected, abs=1e-12)


OVERALL, QUESTIONS = "explanation_quality_overall", "explanation_quality_questions"
GRADED = Rating(("O",), DIMENSIONS, (OVERALL, QUESTIONS))


def test_only_a_judge_that_scores_dimensions_or_grades_has_metrics_of_them():
    plain, by_dimension, graded = (
        set(metrics.names(REPORT, rating))
        for rating in (Rating(("SC", "PQ", "O")), Rating(("O",), DIMENSIONS), GRADED)
    )
    ends = ("value", "ci_low", "ci_high")
    assert {"overall_manual_1_spearman_value", OVERALL_MEAN} < plain
    assert set(metrics.names(REPORT, Rating(("SC",), ("style",)))) == plain
    assert by_dimension - plain == {
        f"{d}_manual_avg_{k}_{end}"
        for d in DIMENSIONS
        for k in MEASURES
        for end in ends
    }
    assert graded - by_dimension == {
        f"{g}_mean_{e}" for g in GRADED.grades for e in ends
    }
    assert plain < by_dimension < graded


def test_a_policy_for_missing_ratings_other_than_the_default_is_told(tmp_path):
    summary = summarise(GAPPED, Rating(("O",)), IMPUTE)
    assert "missing ratings: impute_mean" in metrics.value(summary, "remarks")
    options = tmp_path / "v.yaml"
    options.write_text("statistics: {missing_ratings: impute_mean}\n")
    found = config.read(str(options)).statistics.options()
    assert found == StatisticsOptions(missing_ratings="impute_mean")


def test_table_1_has_annotators_and_each_judge_that_scores_a_dimension_has_its_table(
    thirty,
):
    rows, rated, judged = thirty
    by_dimension, by_sc = [], []
    for o in rows:
        scores = {} if o.uid == "7" else o.scores
        by_dimension.append(("tig", "unnamed", o.uid, scores, o.ratings))
        by_sc.append(("tig", "unnamed", o.uid, {"SC": o.scores["O"]}, o.ratings))
    runs = [run_of("by dimension", by_dimension), run_of("by SC", by_sc, ("SC",))]
    made = REPORT.findings("b", ("tig",), runs, OPTIONS)
    table, intervals, looks, *_ = (
        {row[0]: dict(zip(one.header, row, strict=True)) for row in one.rows}
        for one in made.tables
    )
    others = [
        f"annotators, with the mean of {whose}" for whose in ("all", "the others")
    ]
    counts = {judge: (row["n"], row["failed"]) for judge, row in table.items()}
    shown = {"by dimension": ("29", "1"), "by SC": ("30", "0")}
    assert counts == {**dict.fromkeys(others, ("30", "")), **shown}
    overall = rated["O"]
    mean, of_others = overall.mean(axis=0).round(9), overall[1:].mean(axis=0).round(9)
    expected = {
        (others[0], "manual 2 rho"): direct(overall[1], mean),
        (others[1], "manual 1 tau"): direct(overall[0], of_others, "kendall"),
        ("by SC", "manual avg rho"): direct(judged["O"], mean),
    }
    found = {key: float(table[key[0]][key[1]]) for key in expected}
    assert found == pytest.approx(expected, abs=6e-5)
    assert table[others[0]]["manual avg rho"] == ""
    assert intervals["by SC"]["manual avg rho"].startswith(
        f"{found['by SC', 'manual avg rho']:.4f} ["
    )
    assert list(looks) == [*others, "by dimension"]
    cells = {(key.judge, key.statistic): cell for key, cell in made.cells.items()}
    shown = f"{cells['by dimension', 'appearance_manual_avg_spearman']:.4f}"
    assert looks["by dimension"]["manual avg rho"] == shown


def test_the_mean_of_grades_is_a_metric_and_a_row_of_a_table():
    grades = [{OVERALL: 0.8, QUESTIONS: 0.5}, {OVERALL: 0.4}, {}]
    rows = [
        ("tig", "unnamed", str(n), {"O": n / 4, **given}, {"O": (n, 2 * n, 3 * n)})
        for n, given in enumerate(grades)
    ]
    judged, options = run_of("m", rows), StatisticsOptions(draws=200)
    observed = tuple(map(observe, judged.records["tig"]))
    summary = summarise(observed, GRADED, options)
    overall = summary.estimates[f"{OVERALL}_mean_value"]
    found = (overall.value, overall.low, overall.high)
    assert found == pytest.approx((0.6, 0.4, 0.8))
    assert metrics.value(summary, f"{QUESTIONS}_mean_value") == pytest.approx(0.5)
    made = REPORT.findings("b", ("tig",), [judged], options)
    [table] = [table for table in made.tables if table.name == "explanations"]
    titles = ("explanation quality overall", "explanation quality questions")
    assert table.header == ("judge", "n", titles[0], "n", titles[1])
    assert table.rows == (("m", "2", "3.0000 [2.0000, 4.0000]", "1", "2.5000"),)
