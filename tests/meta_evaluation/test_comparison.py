"""Judges two by two, each pair on what both scored, whoever else is there."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.leaderboards import compared_of
from tests.runs import run_of
from tests.work import calls_at_most
from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.meta_evaluation.annotators import WithAnnotators
from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import (
    above_constant_p,
    average_benchmarks,
    compare_systems,
)
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.statistics import Rating, combine, summary_of
from vieval_plugin.report.tables import rank_text
from vieval_plugin.stats.decisions import SIGNIFICANCE_LEVEL
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import holm

ASPECTS = ("SC", "PQ", "O")
OPTIONS = StatisticsOptions(draws=200)
PARTS = {"tie": ("A", "B"), "tig": ("C", "D", "E")}


def people(part, model, uid):
    rng = np.random.default_rng([len(part), ord(part[-1]), ord(model), int(uid[1:])])
    return tuple(rng.choice([0.0, 0.5, 1.0], 3).tolist())


def noisy(noise, seed):
    """A judge that gives what people said, and noise of its own."""

    def score(part, model, uid):
        seeds = [seed, ord(part[-1]), ord(model), int(uid[1:])]
        own = np.random.default_rng(seeds).normal()
        return float(np.clip(np.mean(people(part, model, uid)) + noise * own, 0, 1))

    return score


def lacking(score, *uids):
    return lambda part, model, uid: None if uid in uids else score(part, model, uid)


def run(label, score, uids=30, aspects=ASPECTS, parts=("tie", "tig"), **described):
    rows = []
    for part in parts:
        for model, number in itertools.product(PARTS[part], range(uids)):
            value = score(part, model, f"u{number}")
            rated = dict.fromkeys(ASPECTS, people(part, model, f"u{number}"))
            scores = {} if value is None else dict.fromkeys(aspects, value)
            rows.append((part, model, f"u{number}", scores, rated))
    return run_of(label, rows, aspects, **described)


def compared(*runs, report=None, options=OPTIONS):
    found = compared_of(report or ByImageModel(), "b", tuple(PARTS), runs, options)
    return {one.aspect: compare_systems(one, "b", options) for one in found}


def human_mean(part, model, uid):
    return np.mean(people(part, model, uid))


def z_by_definition(score, part, model, uids):
    """Fisher's z of the correlation of a judge with people on an image model."""
    raters = (score, human_mean)
    judged, human = (
        np.round([rate(part, model, u) for u in uids], 9) for rate in raters
    )
    return np.arctanh(stats.spearmanr(judged, human).statistic)


def values_of(found):
    return {one.label: one.value for one in found.systems}


def labels(found):
    return [f"{rank_text(one.ranks)} {one.label}" for one in found.systems]


def test_a_difference_is_its_definition_on_what_both_scored():
    first, second = noisy(0.2, 1), noisy(0.9, 2)
    uids = [f"u{n}" for n in range(1, 11)]
    runs = (
        run("first", lacking(first, "u0"), 12, parts=("tie",)),
        run("second", lacking(second, "u11"), 12, parts=("tie",)),
    )
    found = compared(*runs)["SC"]
    averages = [
        np.tanh(np.mean([z_by_definition(score, "tie", m, uids) for m in PARTS["tie"]]))
        for score in (first, second)
    ]
    [pair] = found.pairs
    expected = averages[0] - averages[1]
    assert pair.result.difference.value == pytest.approx(expected, abs=1e-9)
    assert pair.n == 2 * len(uids)
    assert [one.n for one in found.systems] == [22, 22]
    assert 0.001 < pair.result.p < 0.99


def test_no_number_of_two_judges_depends_on_a_third_or_on_their_order():
    one = run("one", lacking(noisy(0.3, 1), "u1", "u2"))
    other = run("other", lacking(noisy(0.6, 2), "u7"))
    most = [f"u{n}" for n in range(2, 30)]
    few = run("few", lacking(noisy(0.3, 3), *most), parts=("tie",))
    elsewhere = run("elsewhere", noisy(0.1, 4), uids=40)

    def numbers(*runs, **options):
        found = compared(*runs, **options)["O"]
        own = {system.label: system.value for system in found.systems}
        return found.pair_of("one", "other"), own["one"], own["other"]

    alone = numbers(one, other)
    assert numbers(other, one) == alone
    for third in (few, elsewhere):
        for order in itertools.permutations([one, other, third]):
            pair, *own = numbers(*order)
            assert (pair.result, pair.n, *own) == (
                alone[0].result,
                alone[0].n,
                *alone[1:],
            )
    seeded = numbers(one, other, options=StatisticsOptions(draws=200, seed=1))
    before, after = alone[0].result.difference, seeded[0].result.difference
    assert (after.value, after.low != before.low) == (before.value, True)


def test_a_judges_value_is_that_of_its_report():
    judged = run("one", noisy(0.3, 1))
    found = compared(judged, run("other", noisy(0.4, 2)))
    parts = []
    for part in PARTS:
        rows = tuple(map(observe, judged.records[part]))
        rated = (rows, Rating(ASPECTS), "b", part, OPTIONS)
        parts.append(summary_of(ByImageModel(), *rated))
    whole = combine(tuple(parts)).estimates
    for aspect in ASPECTS:
        own = values_of(found[aspect])["one"]
        assert own == pytest.approx(whole[f"{aspect}_fisher"].value)
        assert found[aspect].compared.part == "all"
        assert not found[aspect].warnings()


def test_ranks_are_ranges_and_a_line_stands_where_all_above_beat_all_below():
    noises = {"poor": 3.0, "good": 0.2, "as good": 0.2}
    runs = [
        run(name, noisy(noise, n)) for n, (name, noise) in enumerate(noises.items())
    ]
    found = compared(*runs)["SC"]
    assert sorted(labels(found)) == ["1-2 as good", "1-2 good", "3 poor"]
    assert (found.separated, found.family) == ((2,), "Holm correction over 3 pairs")
    adjusted = holm([pair.result.p for pair in found.pairs])
    np.testing.assert_allclose([pair.adjusted for pair in found.pairs], adjusted)
    assert found.beats("good", "poor")
    assert not found.beats("poor", "good")
    for pair in found.pairs:
        ends = pair.result.difference
        assert ends.low <= ends.value <= ends.high
        assert pair.better_first().result.difference.value == abs(ends.value)
    same = compared(runs[0], run("the same", noisy(3.0, 0)))["SC"]
    difference = same.pairs[0].result.difference
    assert (difference.value, difference.low, difference.high) == (0, 0, 0)
    assert (same.pairs[0].adjusted, same.separated) == (1, ())


def test_judges_that_do_not_cover_the_benchmark_are_not_ranked_but_compared():
    runs = [
        run("all", noisy(0.3, 1)),
        run("as many", noisy(0.4, 2)),
        run("one part", noisy(0.01, 3), parts=("tie",)),
        run("few", lacking(noisy(0.01, 4), *(f"u{n}" for n in range(16)))),
    ]
    found = compared(*runs)["SC"]
    assert sorted(labels(found)[2:]) == [" few", " one part"]
    unranked = {one.label: one.unranked for one in found.systems if not one.ranks}
    few = "a score for 70 of 150 samples"
    assert unranked == {"one part": "no value for tig", "few": few}
    assert len(found.pairs) == 1
    assert len(found.other_pairs) == 5
    assert found.pair_of("one part", "few").n == 28
    assert found.beats("one part", "all")
    alone = compared(runs[0], runs[2])["SC"]
    assert (len(alone.all_pairs), alone.ranked) == (1, ())


def test_failures_count_as_the_policy_has_it():
    runs = run("one", lacking(noisy(0.3, 1), "u3")), run("other", noisy(0.5, 2))
    assert compared(*runs)["O"].pairs[0].n == 145
    worst = StatisticsOptions("worst", draws=20)
    assert compared(*runs, options=worst)["O"].pairs[0].n == 150


def test_a_judge_of_one_aspect_is_compared_on_that_and_a_metric_for_all_on_all():
    three, score = run("three", noisy(0.3, 1)), noisy(0.3, 2)
    found = compared(three, run("one", score, aspects=("SC",)))
    assert found["SC"].pairs
    assert not found["PQ"].all_pairs
    assert found["PQ"].reason == "at least two judges are required, got one (three)"
    metric = run("metric", score, aspects=("SC",), against_all=True)
    found = compared(three, metric)
    assert all(found[aspect].pairs for aspect in ASPECTS)


def constant(score, *models):
    return lambda part, model, uid: 0.5 if model in models else score(part, model, uid)


def test_an_image_model_on_which_a_judge_is_constant_counts_as_0_for_it():
    flat = constant(noisy(0.3, 1), "A", "C")
    found = compared(run("one", noisy(0.3, 1)), run("flat on two", flat))["SC"]
    assert found.pairs[0].n == 150
    values = values_of(found)
    uids = [f"u{n}" for n in range(30)]
    by_part = [
        np.mean(
            [0.0 if m in "AC" else z_by_definition(flat, part, m, uids) for m in models]
        )
        for part, models in PARTS.items()
    ]
    assert values["flat on two"] == pytest.approx(np.tanh(np.mean(by_part)), abs=1e-6)
    got = found.pair_of("one", "flat on two").result.difference.value
    assert got == pytest.approx(values["one"] - values["flat on two"])
    always = run("flat", constant(noisy(0.3, 2), *"ABCDE"))
    found = compared(run("one", noisy(0.2, 1)), always)["SC"]
    assert (labels(found), values_of(found)["flat"]) == (["1 one", "2 flat"], 0)


def test_image_models_with_few_common_samples_are_left_out_and_said():
    def but_few_of_c(part, model, uid):
        is_few = model == "C" and uid not in ("u1", "u2", "u3")
        return None if is_few else noisy(0.3, 2)(part, model, uid)

    found = compared(run("one", noisy(0.3, 1)), run("other", but_few_of_c))["SC"]
    assert found.pairs[0].n == 120
    [note] = found.pairs[0].notes
    assert note == "not used to compare one and other: needs 10 samples, got 3: tig/C"


def test_judges_without_anything_in_common_are_told_in_one_line():
    halves = [{f"u{n}" for n in range(30) if n % 2 == odd} for odd in (0, 1)]
    runs = [run(f"{n}", lacking(noisy(0.3, 1), *half)) for n, half in enumerate(halves)]
    found = compared(*runs)["SC"]
    assert found.reason == "no two of these judges share samples that a test can use"
    nothing = run("nothing", lambda part, model, uid: None)
    found = compared(nothing, run("a", noisy(0.3, 1)), run("b", noisy(0.3, 2)))["SC"]
    assert found.pairs[0].n == 150
    assert found.systems[-1].undefined == "no sample has a score"


def test_over_benchmarks_each_counts_alike_and_a_judge_of_one_is_not_compared():
    def means(benchmark, part, names):
        runs = [run(n, noisy(0.3, i), parts=(part,)) for i, n in enumerate(names)]
        found = compared_of(ByImageModel(), benchmark, (part,), runs, OPTIONS)
        return next(one for one in found if one.aspect == "SC")

    both = {"b": means("b", "tie", "xyz"), "c": means("c", "tig", "xy")}
    average = average_benchmarks({name: [one] for name, one in both.items()})
    found = compare_systems(average, "all", OPTIONS, intervals=False)
    own = [
        values_of(compare_systems(each, "b", OPTIONS))["x"] for each in both.values()
    ]
    assert values_of(found)["x"] == pytest.approx(sum(own) / 2)
    assert found.systems[-1].undefined == "not compared on c"
    assert len(found.pairs) == 1


def single(label, scores, rated, aspects=("SC",), places=((),)):
    """A judge's scores of examples, each with a sample a place."""
    rows = []
    for number, (score, rating) in enumerate(zip(scores, rated, strict=True)):
        example, place = divmod(number, len(places))
        given = tuple(np.atleast_1d(np.array(rating, dtype=float)).tolist())
        more = {"group": f"g{example}", "place": places[place]}
        judged = dict.fromkeys(aspects, score)
        rows.append(("t", "m", f"u{number}", judged, {aspects[0]: given}, more))
    return run_of(label, rows, aspects)


def of_labels(statistics, *runs):
    return [
        compare_systems(one, "b", OPTIONS)
        for one in compared_of(WithLabels(statistics), "b", ("t",), runs, OPTIONS)
    ]


@pytest.mark.parametrize(
    ("statistic", "places"),
    [
        ("pearson", ((),)),
        ("preference_accuracy", ((0,), (1,))),
        ("text_score", ((0, 0), (0, 1), (1, 0), (1, 1))),
        ("group_score", ((0, 0), (0, 1), (1, 0), (1, 1))),
    ],
)
def test_values_on_labels_are_those_of_the_report(statistic, places):
    rng = np.random.default_rng(5)
    rated = rng.choice([0.0, 0.5, 1.0], 80)
    runs = [
        single(name, rng.random(80).tolist(), rated.tolist(), places=places)
        for name in ("one", "other")
    ]
    [found] = of_labels((statistic, "kendall"), *runs)
    assert found.all_pairs[0].n == 80 // len(places)
    for judged in runs:
        observed = tuple(map(observe, judged.records["t"]))
        report = WithLabels((statistic,))
        summary = summary_of(report, observed, Rating(("SC",)), "b", "t", OPTIONS)
        got = values_of(found)[judged.label]
        assert got == pytest.approx(summary.estimates[f"{statistic}_value"].value)
    [pair] = found.pairs
    ends = pair.result.difference
    assert ends.low < ends.value < ends.high
    assert 0 < pair.result.p <= 1


def test_a_judge_that_answered_under_half_of_what_any_was_asked_is_not_ranked_and_under_worst_it_is():
    rng = np.random.default_rng(3)
    rated = [float(n % 2) for n in range(60)]
    answered = {"few": 29, "fewer": 20}
    runs = [single(name, rng.random(60).tolist(), rated) for name in answered]
    for judged in runs:
        for number in range(answered[judged.label], 60):
            [record] = judged.records["t"][number]
            refused = replace(record, verdict=Verdict({}, Status.REFUSAL))
            judged.records["t"][number] = (refused,)
    few = {name: f"a score for {n} of 60 samples" for name, n in answered.items()}
    for statistic in ("pearson", "auroc"):
        [found] = of_labels((statistic,), *runs)
        assert {one.label: one.unranked for one in found.systems} == few
        worst = StatisticsOptions("worst", draws=10)
        [of_worst] = compared_of(WithLabels((statistic,)), "b", ("t",), runs, worst)
        assert not any(system.unranked for system in of_worst.systems)


def not_above(compared):
    """Systems that no test shows to be above their constant baseline."""
    p_values = above_constant_p(compared, "b", OPTIONS)
    return {label for label, p in p_values.items() if not p <= SIGNIFICANCE_LEVEL}


@pytest.mark.parametrize(("right", "above"), [(0.9, True), (0.5, False), (0.2, False)])
def test_an_accuracy_is_above_its_constant_where_the_paired_difference_is(right, above):
    """The constant that is best on a judge's own items counts."""
    rng = np.random.default_rng(4)
    items = {
        f"i{n}": JudgedItem(f"g{n // 2}", float(rng.random() < right))
        for n in range(120)
    }
    constants = [
        {name: float(n % 2 == side) for n, name in enumerate(items)} for side in (0, 1)
    ]
    judged = ("all", "votes", "accuracy", {"judge": items})
    assert (not not_above(compared_means(*judged, constants=constants))) is above
    assert not not_above(compared_means(*judged))


def test_a_correlation_is_above_0_by_a_permutation_within_image_models():
    good = noisy(0.3, 1)
    judges = {
        "one": (good, set()),
        "blind": (noisy(1e6, 7), {"blind"}),
        "turned": (lambda *image: 1 - good(*image), {"turned"}),
    }
    for label, (score, expected) in judges.items():
        for comparison in compared(
            run(label, score), run("other", noisy(0.2, 2))
        ).values():
            assert not_above(comparison.compared) == expected


def test_a_statistic_without_a_paired_test_says_so():
    runs = [single(name, [0.1, 0.9, 0.4], [0, 1, 1]) for name in ("one", "other")]
    [found] = of_labels(("auroc",), *runs)
    said = "judges cannot be compared by auroc, because it has no paired test"
    assert found.reason == said
    assert not found.pairs


def test_annotators_mean_is_what_judges_are_compared_with():
    rng = np.random.default_rng(1)
    rated = rng.integers(0, 11, (40, 3)).astype(float)
    rated[3] = math.nan
    rated[4, 0] = math.nan
    runs = [
        single(name, rng.random(40).tolist(), rated.tolist(), ("O",))
        for name in ("one", "other")
    ]
    [one] = compared_of(WithAnnotators((), "O", 3), "b", ("t",), runs, OPTIONS)
    found = compare_systems(one, "b", OPTIONS)
    assert found.pairs[0].n == 39
    known = [n for n in range(40) if n != 3]
    for judged in runs:
        scores = [judged.records["t"][n][0].verdict.scores["O"] for n in known]
        expected = stats.spearmanr(scores, np.nanmean(rated[known], axis=1)).statistic
        assert values_of(found)[judged.label] == pytest.approx(expected)


def test_no_loop_goes_through_the_samples(monkeypatch):
    monkeypatch.setitem(PARTS, "many", tuple("ABCDEFGH"))
    runs = [run(f"{n}", noisy(0.3, n), 179, parts=("many",)) for n in range(5)]
    with calls_at_most(5_000_000):  # for each sample it would be 700,000,000
        found = compared(*runs, options=StatisticsOptions(draws=1000))
    assert all(len(one.pairs) == 10 for one in found.values())
