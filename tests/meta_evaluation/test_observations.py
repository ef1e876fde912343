"""From records to observations, and what a failed verdict is to a statistic."""

from dataclasses import replace

import numpy as np
import pytest

from vieval_plugin.judges.protocol import SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.annotators import WithAnnotators
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.metrics import value
from vieval_plugin.meta_evaluation.observations import (
    Observation,
    StatisticsOptions,
    apply_failure_policy,
    observe,
)
from vieval_plugin.meta_evaluation.statistics import Rating, combine, summary_of
from vieval_plugin.records import Provenance, Record

ASPECTS = ("SC", "PQ", "O")
RATING = Rating(ASPECTS)
REPORTS = [
    ByImageModel(),
    WithLabels(("pearson", "auroc")),
    WithAnnotators(("look",), "O", 3),
]
JUDGED = Provenance("mine", (), ASPECTS)


def record(verdict, **more):
    identity = SampleId("b", "tie", "model", "u1")
    given = Record(identity, verdict, JUDGED, {"SC": (0.0, 0.5)}, ("color",))
    return replace(given, **more)


def test_group_and_place_are_the_records_and_nothing_is_read_from_a_uid():
    verdict = Verdict({"SC": 0.5}, Status.OK)
    placed = observe([record(verdict, group="g", place=(1, 0))])
    assert (placed.group, placed.place, placed.tags) == ("g", (1, 0), ("color",))
    alone = observe([record(verdict, id=SampleId("b", "tie", "model", "u#i1t0"))])
    assert (alone.group, alone.place) == ("u#i1t0", ())


def test_of_several_verdicts_the_mean_counts_and_each_is_kept():
    verdicts = [
        Verdict({"SC": 0.25}, Status.OK),
        Verdict({"SC": 0.75}, Status.REPAIRED),
        Verdict({}, Status.REFUSAL),
    ]
    found = observe([record(verdict) for verdict in verdicts])
    assert found.scores == {"SC": 0.5}
    assert found.status is Status.REFUSAL
    assert found.repeats == ({"SC": 0.25}, {"SC": 0.75}, {})


@pytest.mark.parametrize(("width", "exact"), [(0.0, True), (5e-5, True), (0.02, False)])
def test_a_narrow_interval_makes_a_score_exact(width, exact):
    bounds = {"SC": (0.5 - width / 2, 0.5 + width / 2)}
    verdict = Verdict({"SC": 0.5}, Status.OK, bounds=bounds)
    assert observe([record(verdict)]).exact is exact


@pytest.mark.parametrize(
    ("measured", "scores"),
    [
        ({"SC": 0.1}, {"SC": 0.0}),
        ({"SC": -0.1}, {"SC": -1.0}),
        (dict.fromkeys(ASPECTS, -0.1), dict.fromkeys(ASPECTS, 0.0)),
    ],
)
def test_worst_is_the_lowest_of_the_scale_which_of_a_cosine_is_minus_1(
    measured, scores
):
    rows = [rated(0, Status.TOOL_ERROR, {}), rated(1, Status.OK, measured)]
    filled = apply_failure_policy(rows, tuple(scores), StatisticsOptions("worst"))
    assert filled[0].scores == scores


def rated(number, status, scores):
    ratings = {aspect: (float(number % 2),) * 3 for aspect in (*ASPECTS, "look")}
    return Observation("model", f"u{number:02}", ratings, scores, status)


@pytest.mark.parametrize("policy", ["drop", "random", "worst", "as_recorded"])
@pytest.mark.parametrize("report", REPORTS, ids=lambda report: type(report).__name__)
def test_what_is_not_applicable_enters_no_statistic_under_any_policy(report, policy):
    options = StatisticsOptions(policy, draws=20)
    rng = np.random.default_rng(0)
    rows = tuple(
        rated(n, Status.OK, dict.fromkeys(ASPECTS, float(rng.random())))
        for n in range(20)
    )
    # even one that came with scores, or that was judged again with another outcome
    verdicts = [Verdict({"SC": 1.0}, s) for s in (Status.OK, Status.NOT_APPLICABLE)]
    other = (
        rated(20, Status.NOT_APPLICABLE, {}),
        rated(21, Status.NOT_APPLICABLE, dict.fromkeys(ASPECTS, 1.0)),
        observe([record(verdict) for verdict in verdicts]),
    )
    filled = apply_failure_policy(other, ASPECTS, options)
    assert all((o.scores, o.repeats) == ({}, ()) for o in filled)
    without, with_them = (
        summary_of(report, some, RATING, "b", "t", options)
        for some in (rows, (*rows, *other))
    )
    for metric, estimate in without.estimates.items():
        # the resamples are of other instructions where there are more of them, the value and its n
        # are not
        assert with_them.estimates[metric].value == estimate.value
        assert with_them.estimates[metric].n == estimate.n
    for summary in (with_them, without):
        assert (summary.scored, summary.exact) == (20, 20)
    assert with_them.statuses == {Status.OK: 20, Status.NOT_APPLICABLE: 3}
    assert value(with_them, "status_not_applicable_share") == pytest.approx(3 / 23)
    found = value(combine((with_them, without)), "status_not_applicable_share")
    assert found == pytest.approx(3 / 43)


@pytest.mark.parametrize("policy", ["drop", "random", "worst"])
def test_what_is_filled_is_what_failed_and_nothing_else(policy):
    given = [
        rated(n, status, {"SC": 0.5} if status.usable else {"PQ": 0.9})
        for n, status in enumerate(Status)
    ]
    filled = apply_failure_policy(given, ("SC", "PQ"), StatisticsOptions(policy))
    pairs = list(zip(given, filled, strict=True))
    assert all(after.scores.items() >= before.scores.items() for before, after in pairs)
    changed = {before.status for before, after in pairs if before != after}
    failed = {Status.PARSE_FAILURE, Status.REFUSAL, Status.GUESSED}
    failed |= {Status.API_ERROR, Status.TOOL_ERROR}
    worst = {Status.NO_IMAGE} if policy == "worst" else set()
    assert changed == (set() if policy == "drop" else failed | worst)


def test_a_random_draw_is_a_samples_own():
    failed = [rated(n, Status.REFUSAL, {}) for n in range(300)]
    options = StatisticsOptions("random", seed=1)
    drawn = apply_failure_policy(failed, ("SC",), options)
    assert apply_failure_policy(failed[::-1], ("SC",), options)[::-1] == drawn
    assert {o.scores["SC"] for o in drawn} == {tenths / 10 for tenths in range(11)}


RECORDED = {"SC": 0.9, "PQ": 0.5, "O": 0.67}


@pytest.mark.parametrize("policy", ["drop", "random", "worst", "as_recorded"])
def test_a_number_kept_apart_enters_no_statistic_but_as_recorded(policy):
    plain = Verdict({"PQ": 0.5}, Status.GUESSED)
    found = []
    for verdict in (replace(plain, recorded=RECORDED), plain):
        observed = observe([record(verdict)])
        assert observed.scores == {"PQ": 0.5}
        [told] = apply_failure_policy([observed], ASPECTS, StatisticsOptions(policy))
        found.append(told.scores)
    apart, none = found
    assert apart == (RECORDED if policy == "as_recorded" else none)


def test_as_recorded_takes_the_number_of_a_log_whatever_a_reader_made_of_the_reply():
    read = Verdict({"SC": 0.8}, Status.REPAIRED, recorded={"SC": 0.2})
    live = Verdict({"SC": 0.4}, Status.OK)
    failed = Verdict({}, Status.API_ERROR)
    options = StatisticsOptions("as_recorded")
    observed = [observe([record(verdict)]) for verdict in (read, live, failed)]
    filled = apply_failure_policy(observed, ("SC",), options)
    assert [o.scores for o in filled] == [{"SC": 0.2}, {"SC": 0.4}, {}]
    together = [observe([record(read), record(live)])]
    [both] = apply_failure_policy(together, ("SC",), options)
    assert both.scores == {"SC": pytest.approx(0.3)}
