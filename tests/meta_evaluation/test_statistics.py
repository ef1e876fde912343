"""A statistic of your own: name, interval, CSV row, headline and test."""

from shlex import split

import pytest

from tests.leaderboards import compared_of, headlines_of
from tests.meta_evaluation.stated import REPORT, SIDE, run
from vieval_plugin.meta_evaluation import metrics
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.statistics import (
    Rating,
    Statistic,
    combine,
    summary_of,
)
from vieval_plugin.meta_evaluation.tables import Key, csv_text
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=200)

GOOD, BAD = run("good", range(6)), run("bad", range(36), failed=(59,))


def summary(judge, report=REPORT):
    rows = [observe(records) for records in judge.records["all"]]
    return summary_of(report, rows, Rating(("SC",)), "toy", "all", OPTIONS)


def test_it_has_names_and_a_value_with_an_interval_over_clusters():
    names = metrics.names(REPORT, Rating(("SC",)))
    first = split("right_side_value right_side_ci_low right_side_ci_high scored_count")
    assert names[:4] == tuple(first)
    primary = metrics.primary_statistic(REPORT.statistics(Rating(("SC",))))
    assert primary.metric == "right_side_value"
    value, low, high, _ = (metrics.value(summary(GOOD), name) for name in first)
    assert low < value == 54 / 60 < high
    # samples of a cluster are right or wrong together, so the interval is that of 30 clusters and
    # not of 60 samples
    width = 2 * 1.96 * (0.9 * 0.1 / 30) ** 0.5
    assert high - low == pytest.approx(width, rel=0.15)
    assert metrics.value(summary(BAD), "scored_count") == 59
    assert metrics.higher_is_better("right_side_value")


def test_parts_are_averaged_and_what_is_undefined_says_why():
    both = combine((summary(GOOD), summary(BAD)))
    found = both.estimates["right_side_value"].value
    assert found == pytest.approx((54 / 60 + 23 / 59) / 2)
    nothing = summary(run("none", (), failed=range(60)))
    assert metrics.value(nothing, "right_side_value") is None
    found = metrics.value(nothing, "remarks")
    assert "undefined: right_side no sample has a score" in found


def test_it_has_a_row_in_csv_a_cell_and_one_by_tag():
    tables = REPORT.findings("toy", ("all",), [BAD, GOOD], OPTIONS)
    statistics, skills = tables.tables
    header, bad, good = csv_text(statistics).splitlines()
    assert header == "task,judge,scored,exact,right side"
    assert bad.startswith('all,bad,59,59,"0.3898 [')
    assert good.startswith('all,good,60,60,"0.9000 [')
    found = tables.cells[Key("statistics", "all", "", "good", "right_side", "SC")]
    assert found == pytest.approx(0.9)
    shown = [row[:4] for row in skills.rows]
    assert shown == [("all", judge, "even", "30") for judge in ("bad", "good")]


def test_it_is_a_headline_beside_its_constant_with_ranks_from_a_paired_test():
    [board] = headlines_of(REPORT, "toy", ("all",), [BAD, GOOD], OPTIONS)
    assert (board.title, board.ends) == ("right side", (0.0, 1.0))
    assert [reference.estimate.value for reference in board.references] == [0.5]
    assert board.number_of("good").estimate.n == 60
    ranks = [(number.ranks, number.system) for number in board.numbers]
    assert ranks == [((1, 1), "good"), ((2, 2), "bad")]
    [pair] = board.comparison.pairs
    assert pair.n == 59
    assert pair.better_first().result.difference.value == pytest.approx(30 / 59)
    assert pair.significant


def test_by_several_aspects_it_carries_their_names_and_without_a_test_it_says_so():
    untested = Statistic("right_side", SIDE.compute)
    report = WithLabels((untested, "pearson"), ("SC", "PQ"))
    names = [statistic.name for statistic in report.statistics(Rating(("PQ",)))]
    assert names == ["PQ_right_side", "PQ_pearson", "scored"]
    family = WithLabels((untested,))
    [compared] = compared_of(family, "toy", ("all",), [BAD, GOOD], OPTIONS)
    assert "no paired test" in compared.untestable_reason
