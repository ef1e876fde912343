"""Benchmarks' own statistics, from observations to a task's numbers, a group's and a skill's."""

import itertools

import numpy as np
import pytest
from scipy import stats

from tests.runs import run_of
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation import metrics, statistics
from vieval_plugin.meta_evaluation.label_statistics import STATISTICS, LabelRows
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.statistics import Rating
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=200)


def observation(uid, score, rating, tags=(), exact=True, group="", place=()):
    scores = {} if score is None else {"SC": score}
    status = Status.OK if scores else Status.API_ERROR
    rated = {"SC": tuple(np.atleast_1d(rating).astype(float))}
    more = {"tags": tags, "exact": exact, "group": group, "place": place}
    return Observation("m", uid, rated, scores, status, **more)


def example(name, table, tags=()):
    """A Winoground example from its four scores [[i0t0, i0t1], [i1t0, i1t1]]."""
    found = []
    for i, t in itertools.product((0, 1), (0, 1)):
        more = {"group": name, "place": (i, t)}
        uid = f"{name}#i{i}t{t}"
        found.append(observation(uid, table[i][t], float(i == t), tags, **more))
    return found


def summarise(observations, named, part="t"):
    rows, rating = tuple(observations), Rating(("SC",))
    return statistics.summary_of(WithLabels(named), rows, rating, "b", part, OPTIONS)


def values(observations, named):
    estimates = summarise(observations, named).estimates
    return {name: estimates[f"{name}_value"].value for name in named}


def test_winoground_by_hand():
    both = example("a", [[0.9, 0.1], [0.2, 0.8]], ("Object",))
    text_only = example("b", [[0.5, 0.4], [0.6, 0.7]], ("Relation",))
    equal = example("c", [[0.5, 0.5], [0.5, 0.5]], ("Relation",))
    failed = example("d", [[None, 0.1], [0.2, 0.8]])
    rows = [*both, *text_only, *equal, *failed]
    expected = {"text_score": 2 / 3, "image_score": 1 / 3, "group_score": 1 / 3}
    assert values(rows, tuple(expected)) == pytest.approx(expected)
    rows = LabelRows.from_observations(rows, "SC", "SC", OPTIONS)
    assert STATISTICS["group_score"].compute(rows.having_tag("Object")).value == 1
    assert STATISTICS["text_score"].compute(rows.having_tag("Relation")).value == 0.5


def test_auroc_and_preference_by_hand():
    given = [(0.1, 0), (0.4, 0), (0.35, 1), (0.8, 1)]
    labelled = [observation(str(i), s, y) for i, (s, y) in enumerate(given)]
    assert values(labelled, ("auroc",)) == {"auroc": 0.75}
    between = [observation("a", 0.1, (0, 1)), observation("b", 0.2, (1, 1))]
    estimate = summarise(between, ("auroc",)).estimates["auroc_value"]
    assert np.isnan(estimate.value)
    assert estimate.reasons == ("auroc requires ratings of 0 or 1",)
    judged = {"a": (0.9, 0.1, 1.0), "b": (0.2, 0.5, 0.0), "c": (0.3, 0.3, 1.0)}
    pairs = []
    for name, (first, second, preferred) in judged.items():
        for n, score, share in ((0, first, preferred), (1, second, 1 - preferred)):
            more = {"group": name, "place": (n,)}
            pairs.append(observation(f"{name}#{n}", score, share, **more))
    found = values(pairs, ("preference_accuracy",))
    assert found == {"preference_accuracy": pytest.approx(2.5 / 3)}


def test_correlations_with_mean_human_scores_and_an_interval():
    rng = np.random.default_rng(0)
    raters = rng.integers(1, 6, size=(60, 3))
    judged = raters.mean(axis=1) / 5 + 0.2 * rng.normal(size=60)
    rows = tuple(observation(f"p{i}", float(judged[i]), raters[i]) for i in range(60))
    people = raters.mean(axis=1).round(9)
    expected = {
        "pearson": stats.pearsonr(judged, people).statistic,
        "kendall": stats.kendalltau(judged, people).statistic,
    }
    estimates = summarise(rows, (*expected, "pairwise_accuracy")).estimates
    found = {name: estimates[f"{name}_value"].value for name in expected}
    assert found == pytest.approx(expected)
    for name in (*expected, "pairwise_accuracy"):
        estimate = estimates[f"{name}_value"]
        assert estimate.low < estimate.value < estimate.high


def test_exact_scores_are_counted_and_failed_ones_are_not_scored():
    rough = observation("b", 0.2, 1, exact=False)
    rows = [observation("a", 0.1, 0), rough, observation("c", None, 1)]
    summary = summarise(rows, ("auroc",))
    assert (summary.scored, summary.exact, summary.total) == (2, 1, 3)
    assert metrics.value(summary, "exact_share") == 0.5


def test_a_statistic_that_nobody_knows_is_refused():
    said = "unknown statistic 'auc'; known statistics: pearson, "
    with pytest.raises(ValueError, match=said):
        WithLabels(("auc",))


def test_tables_have_a_row_a_judge_and_one_a_skill_and_their_numbers_as_cells():
    runs = []
    for label, scores in {"x": [0.1, 0.2, 0.3, 0.4], "y": [0.5] * 4}.items():
        rows = [
            ("all", "m", str(i), {"SC": s}, {"SC": (i,)}, {"tags": ("odd",) * (i % 2)})
            for i, s in enumerate(scores)
        ]
        runs.append(run_of(label, rows, ("SC",)))
    made = WithLabels(("pearson",)).findings("b", ("all",), runs, OPTIONS)
    whole, skills = made.tables
    assert whole.header == ("task", "judge", "scored", "exact", "pearson")
    assert whole.rows == (
        ("all", "x", "4", "4", "1.0000"),
        (
            "all",
            "y",
            "4",
            "4",
            "undefined (all values of the first variable are equal)",
        ),
    )
    shown = [row[:5] for row in skills.rows]
    assert shown == [("all", judge, "odd", "2", "2") for judge in "xy"]
    found = made.cells[Key("statistics", "all", "", "x", "pearson", "SC")]
    assert found == pytest.approx(1)
