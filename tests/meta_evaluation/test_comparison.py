"""Judges two by two, each pair on what both scored: against every swap enumerated, and never
changed by a third judge.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.leaderboards import compared_of
from tests.runs import run_of
from tests.work import calls_at_most
from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.meta_evaluation.annotators import WithAnnotators
from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import (
    ComparedStatistic,
    Comparison,
    above_constant_p,
    average_benchmarks,
    compare_systems,
)
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.statistics import Rating, Report, combine, summary_of
from vieval_plugin.records import Run
from vieval_plugin.report.tables import rank_text
from vieval_plugin.stats.decisions import SIGNIFICANCE_LEVEL
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import holm

ASPECTS = ("SC", "PQ", "O")
OPTIONS = StatisticsOptions(draws=200)
PARTS = {"tie": ("A", "B"), "tig": ("C", "D", "E")}
Score = Callable[[str, str, str], float | None]


def people(part: str, model: str, uid: str) -> tuple[float, float, float]:
    rng = np.random.default_rng([len(part), ord(part[-1]), ord(model), int(uid[1:])])
    return tuple(rng.choice([0.0, 0.5, 1.0], 3).tolist())


def noisy(noise: float, seed: int) -> Score:
    """A judge that gives what people said, and noise of its own."""

    def score(part: str, model: str, uid: str) -> float:
        own = np.random.default_rng(
            [seed, ord(part[-1]), ord(model), int(uid[1:])]
        ).normal()
        return float(np.clip(np.mean(people(part, model, uid)) + noise * own, 0, 1))

    return score


def lacking(score: Score, *uids: str) -> Score:
    return lambda part, model, uid: None if uid in uids else score(part, model, uid)


def run(
    label: str,
    score: Score,
    uids: int = 30,
    aspects: tuple[str, ...] = ASPECTS,
    parts: Sequence[str] = ("tie", "tig"),
    **described: object,
) -> Run:
    rows = []
    for part in parts:
        for model, number in itertools.product(PARTS[part], range(uids)):
            value = score(part, model, f"u{number}")
            rated = people(part, model, f"u{number}")
            scores = {} if value is None else dict.fromkeys(aspects, value)
            rows.append(
                (part, model, f"u{number}", scores, dict.fromkeys(ASPECTS, rated))
            )
    return run_of(label, rows, aspects, **described)


def compared(
    *runs: Run, report: Report | None = None, options: StatisticsOptions = OPTIONS
) -> dict[str, Comparison]:
    found = compared_of(report or ByImageModel(), "b", tuple(PARTS), runs, options)
    return {one.aspect: compare_systems(one, "b", options) for one in found}


def naive(
    first: Score, second: Score, uids: Sequence[str]
) -> tuple[list[list[list[NDArray[np.float64]]]], float]:
    """Ranks by part and image model of the first, the second and people; and the difference of
    averages by their definition.
    """
    ranks = [
        [
            [
                stats.rankdata(np.round(scores, 9))
                for scores in (
                    [first(part, model, uid) for uid in uids],
                    [second(part, model, uid) for uid in uids],
                    [np.mean(people(part, model, uid)) for uid in uids],
                )
            ]
            for model in models
        ]
        for part, models in PARTS.items()
    ]
    return ranks, difference(ranks)


def difference(ranks: list[list[list[NDArray[np.float64]]]]) -> float:
    def average(judge: int) -> float:
        z = [
            np.mean(
                [
                    np.arctanh(stats.pearsonr(of_model[judge], of_model[2]).statistic)
                    for of_model in of_part
                ]
            )
            for of_part in ranks
        ]
        return float(np.tanh(np.mean(z)))

    return average(0) - average(1)


def labels(found: Comparison) -> list[str]:
    return [f"{rank_text(one.ranks)} {one.label}" for one in found.systems]


def test_difference_and_p_are_those_of_their_definitions_on_a_small_example():
    first, second = noisy(0.2, 1), noisy(0.9, 2)
    uids = [f"u{n}" for n in range(1, 11)]
    runs = (
        run("first", lacking(first, "u0"), 12, parts=("tie",)),
        run("second", lacking(second, "u11"), 12, parts=("tie",)),
    )
    found = compared(*runs)["SC"]
    ranks = naive(first, second, uids)[0][:1]
    observed = difference(ranks)
    [pair] = found.pairs
    assert pair.result.difference.value == pytest.approx(observed, abs=1e-9)
    assert pair.n == 2 * len(uids)
    assert [one.n for one in found.systems] == [22, 22]
    hits, swaps = 0, list(itertools.product([False, True], repeat=len(uids)))
    for swap in swaps:
        side = np.array(swap)
        swapped = [
            [[np.where(side, b, a), np.where(side, a, b), h] for a, b, h in ranks[0]]
        ]
        hits += abs(difference(swapped)) >= abs(observed) - 1e-9
    assert 0.001 < hits / len(swaps) < 0.99
    assert pair.result.p == pytest.approx(hits / len(swaps), rel=0.5)


def test_no_number_of_two_judges_depends_on_a_third():
    one = run("one", lacking(noisy(0.3, 1), "u1", "u2"))
    other = run("other", lacking(noisy(0.6, 2), "u7"))
    few = run(
        "few", lacking(noisy(0.3, 3), *(f"u{n}" for n in range(2, 30))), parts=("tie",)
    )
    elsewhere = run("elsewhere", noisy(0.1, 4), uids=40)
    alone = compared(one, other)["O"]
    for third in (few, elsewhere):
        for order in itertools.permutations([one, other, third]):
            found = compared(*order)["O"]
            got = found.pair_of("one", "other").result
            assert got == alone.pair_of("one", "other").result
            assert found.pair_of("one", "other").n == alone.pair_of("one", "other").n
            own = {system.label: system.value for system in found.systems}
            seen = {label: own[label] for label in ("one", "other")}
            assert seen == {system.label: system.value for system in alone.systems}


def test_a_judges_value_is_that_of_its_report():
    judged = run("one", noisy(0.3, 1))
    found = compared(judged, run("other", noisy(0.4, 2)))
    report = ByImageModel()
    parts = [
        summary_of(
            report,
            tuple(map(observe, judged.records[part])),
            Rating(ASPECTS),
            "b",
            part,
            OPTIONS,
        )
        for part in PARTS
    ]
    for aspect in ASPECTS:
        [own] = [one for one in found[aspect].systems if one.label == "one"]
        assert own.value == pytest.approx(
            combine(tuple(parts)).estimates[f"{aspect}_fisher"].value
        )
        assert found[aspect].compared.part == "all"
        assert not found[aspect].warnings()


def test_a_judge_compared_with_itself_is_no_better():
    for found in compared(
        run("one", noisy(0.3, 1)), run("the same", noisy(0.3, 1))
    ).values():
        [pair] = found.pairs
        difference = pair.result.difference
        ends = (difference.value, difference.low, difference.high)
        assert (*ends, pair.result.p) == (0, 0, 0, 1)
        assert pair.adjusted == 1
        assert [one.ranks for one in found.systems] == [(1, 2), (1, 2)]
        assert found.separated == ()


def test_ranks_are_ranges_and_a_line_stands_where_all_above_beat_all_below():
    noises = {"poor": 3.0, "good": 0.2, "as good": 0.2}
    found = compared(
        *(run(name, noisy(noise, n)) for n, (name, noise) in enumerate(noises.items()))
    )["SC"]
    assert sorted(labels(found)) == ["1-2 as good", "1-2 good", "3 poor"]
    assert found.separated == (2,)
    assert found.family == "Holm correction over 3 pairs"
    np.testing.assert_allclose(
        [pair.adjusted for pair in found.pairs],
        holm([pair.result.p for pair in found.pairs]),
    )
    assert found.beats("good", "poor")
    assert not found.beats("poor", "good")
    for pair in found.pairs:
        assert (
            pair.result.difference.low
            <= pair.result.difference.value
            <= pair.result.difference.high
        )
        assert pair.better_first().result.difference.value >= 0


def test_the_order_of_results_changes_nothing_and_a_seed_gives_the_same_again():
    runs = run("one", noisy(0.3, 1)), run("other", noisy(0.5, 2))
    [pair], [turned], [again] = (
        compared(*given)["PQ"].pairs for given in (runs, runs[::-1], runs)
    )
    assert pair == again == turned
    found = pair.better_first().result.difference.value
    assert found == (abs(pair.result.difference.value))
    [other] = compared(*runs, options=StatisticsOptions(draws=200, seed=1))["PQ"].pairs
    assert other.result.difference.low != pair.result.difference.low
    assert other.result.difference.value == pair.result.difference.value


def test_judges_that_do_not_cover_the_benchmark_are_not_ranked_but_compared():
    runs = [
        run("all", noisy(0.3, 1)),
        run("as many", noisy(0.4, 2)),
        run("one part", noisy(0.01, 3), parts=("tie",)),
        run("few", lacking(noisy(0.01, 4), *(f"u{n}" for n in range(16)))),
    ]
    found = compared(*runs)["SC"]
    assert labels(found)[2:] == [" one part", " few"] or labels(found)[2:] == [
        " few",
        " one part",
    ]
    unranked = {one.label: one.unranked for one in found.systems if not one.ranks}
    assert unranked == {
        "one part": "no value for tig",
        "few": "a score for 70 of 150 samples",
    }
    assert len(found.pairs) == 1
    assert len(found.other_pairs) == 5
    assert found.pair_of("one part", "few").n == 28
    assert found.beats("one part", "all")


def test_a_judge_that_alone_covers_the_benchmark_has_no_rank():
    found = compared(
        run("all", noisy(0.3, 1)), run("one part", noisy(0.01, 3), parts=("tie",))
    )["SC"]
    assert len(found.all_pairs) == 1
    assert not found.ranked


def test_failures_count_as_the_policy_has_it():
    runs = run("one", lacking(noisy(0.3, 1), "u3")), run("other", noisy(0.5, 2))
    assert compared(*runs)["O"].pairs[0].n == 145
    assert (
        compared(*runs, options=StatisticsOptions("worst", draws=20))["O"].pairs[0].n
        == 150
    )


def test_a_judge_of_one_aspect_is_compared_on_that():
    three, one = run("three", noisy(0.3, 1)), run("one", noisy(0.3, 2), aspects=("SC",))
    found = compared(three, one)
    assert found["SC"].pairs
    assert not found["PQ"].all_pairs
    assert found["PQ"].reason == "at least two judges are required, got one (three)"


def test_a_metric_whose_one_score_stands_for_all_is_compared_on_all():
    found = compared(
        run("three", noisy(0.3, 1)),
        run("metric", noisy(0.3, 2), aspects=("SC",), against_all=True),
    )
    assert all(found[aspect].pairs for aspect in ASPECTS)


def constant(score: Score, *models: str) -> Score:
    return lambda part, model, uid: 0.5 if model in models else score(part, model, uid)


def test_an_image_model_on_which_a_judge_is_constant_counts_as_0_for_it():
    runs = [
        run("one", noisy(0.3, 1)),
        run("flat on two", constant(noisy(0.3, 1), "A", "C")),
    ]
    found = compared(*runs)["SC"]
    assert found.pairs[0].n == 150
    values = {one.label: one.value for one in found.systems}
    of_parts = []
    for part, models in PARTS.items():
        z = []
        for model in models:
            uids = [f"u{n}" for n in range(30)]
            scores = [
                constant(noisy(0.3, 1), "A", "C")(part, model, uid) for uid in uids
            ]
            human = [np.mean(people(part, model, uid)) for uid in uids]
            z.append(
                0.0
                if model in "AC"
                else np.arctanh(stats.spearmanr(scores, np.round(human, 9)).statistic)
            )
        of_parts.append(np.mean(z))
    assert values["flat on two"] == pytest.approx(np.tanh(np.mean(of_parts)), abs=1e-6)
    got = found.pair_of("one", "flat on two").result.difference.value
    assert got == (pytest.approx(values["one"] - values["flat on two"]))


def test_a_judge_that_always_says_the_same_stands_below_with_0():
    found = compared(
        run("one", noisy(0.2, 1)), run("flat", constant(noisy(0.3, 2), *"ABCDE"))
    )["SC"]
    assert labels(found) == ["1 one", "2 flat"]
    assert found.systems[1].value == 0


def test_image_models_with_few_common_samples_are_left_out_and_said():
    def but_few_of_c(part: str, model: str, uid: str) -> float | None:
        return (
            None
            if model == "C" and uid not in ("u1", "u2", "u3")
            else noisy(0.3, 2)(part, model, uid)
        )

    found = compared(run("one", noisy(0.3, 1)), run("other", but_few_of_c))["SC"]
    assert found.pairs[0].n == 120
    assert found.pairs[0].notes == (
        "not used to compare one and other: needs 10 samples, got 3: tig/C",
    )


def test_judges_without_anything_in_common_are_told_in_one_line():
    halves = [{f"u{n}" for n in range(30) if n % 2 == odd} for odd in (0, 1)]
    found = compared(
        *(run(f"{n}", lacking(noisy(0.3, 1), *half)) for n, half in enumerate(halves))
    )["SC"]
    assert found.reason == "no two of these judges share samples that a test can use"
    nothing = run("nothing", lambda part, model, uid: None)
    found = compared(nothing, run("a", noisy(0.3, 1)), run("b", noisy(0.3, 2)))["SC"]
    assert found.pairs[0].n == 150
    assert found.systems[-1].undefined == "no sample has a score"


def test_over_benchmarks_each_counts_alike_and_a_judge_of_one_is_not_compared():
    first = compared_of(
        ByImageModel(),
        "b",
        ("tie",),
        [run(n, noisy(0.3, i), parts=("tie",)) for i, n in enumerate("xyz")],
        OPTIONS,
    )
    second = compared_of(
        ByImageModel(),
        "c",
        ("tig",),
        [run(n, noisy(0.3, i), parts=("tig",)) for i, n in enumerate("xy")],
        OPTIONS,
    )
    both = [
        next(one for one in several if one.aspect == "SC")
        for several in (first, second)
    ]
    found = compare_systems(
        average_benchmarks({"b": both[:1], "c": both[1:]}),
        "all",
        OPTIONS,
        intervals=False,
    )
    own = [
        {one.label: one.value for one in compare_systems(each, "b", OPTIONS).systems}
        for each in both
    ]
    values = {one.label: one.value for one in found.systems}
    assert values["x"] == pytest.approx((own[0]["x"] + own[1]["x"]) / 2)
    assert found.systems[-1].undefined == "not compared on c"
    assert len(found.pairs) == 1


def single(
    label: str,
    scores: Sequence[float],
    rated: Sequence[object],
    aspects: tuple[str, ...] = ("SC",),
    places: Sequence[tuple[int, ...]] = ((),),
) -> Run:
    """A judge's scores of examples, each with a sample a place."""
    rows = []
    for number, (score, rating) in enumerate(zip(scores, rated, strict=True)):
        example, place = divmod(number, len(places))
        given = {
            aspects[0]: tuple(np.atleast_1d(np.array(rating, dtype=float)).tolist())
        }
        more = {"group": f"g{example}", "place": places[place]}
        rows.append(
            ("t", "m", f"u{number}", dict.fromkeys(aspects, score), given, more)
        )
    return run_of(label, rows, aspects)


def of_labels(statistics: tuple[str, ...], *runs: Run) -> list[Comparison]:
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
    systems = {one.label: one for one in found.systems}
    for judged in runs:
        observed = tuple(map(observe, judged.records["t"]))
        summary = summary_of(
            WithLabels((statistic,)), observed, Rating(("SC",)), "b", "t", OPTIONS
        )
        got = systems[judged.label].value
        assert got == (pytest.approx(summary.estimates[f"{statistic}_value"].value))
    [pair] = found.pairs
    assert (
        pair.result.difference.low
        < pair.result.difference.value
        < pair.result.difference.high
    )
    assert 0 < pair.result.p <= 1


def test_a_judge_that_answered_under_half_of_what_any_was_asked_is_not_ranked_and_under_worst_it_is():
    rng = np.random.default_rng(3)
    rated = [float(n % 2) for n in range(60)]
    runs = [single(name, rng.random(60).tolist(), rated) for name in ("few", "fewer")]
    for judged, answers in zip(runs, (29, 20), strict=True):
        for number, (record,) in enumerate(judged.records["t"]):
            if number >= answers:
                judged.records["t"][number] = (
                    replace(record, verdict=Verdict({}, Status.REFUSAL)),
                )
    for statistic in ("pearson", "auroc"):
        [found] = of_labels((statistic,), *runs)
        unranked = {one.label: one.unranked for one in found.systems}
        assert unranked == {
            "few": "a score for 29 of 60 samples",
            "fewer": "a score for 20 of 60 samples",
        }
        worst = StatisticsOptions("worst", draws=10)
        [of_worst] = compared_of(WithLabels((statistic,)), "b", ("t",), runs, worst)
        assert not any(system.unranked for system in of_worst.systems)


def not_above(compared: ComparedStatistic) -> set[str]:
    """Systems that no test shows to be above their constant baseline."""
    p_values = above_constant_p(compared, "b", OPTIONS)
    return {label for label, p in p_values.items() if not p <= SIGNIFICANCE_LEVEL}


@pytest.mark.parametrize(("right", "above"), [(0.9, True), (0.5, False), (0.2, False)])
def test_an_accuracy_is_above_its_constant_where_the_paired_difference_is(right, above):
    """The constant that is best on a judge's own items counts, and wrong answers are no argument
    for a judge.
    """
    rng = np.random.default_rng(4)
    items = {
        f"i{n}": JudgedItem(f"g{n // 2}", float(rng.random() < right))
        for n in range(120)
    }
    constants = [
        {name: float(n % 2 == side) for n, name in enumerate(items)} for side in (0, 1)
    ]
    compared = compared_means(
        "all", "votes", "accuracy", {"judge": items}, constants=constants
    )
    assert (not not_above(compared)) is above
    without = compared_means("all", "votes", "accuracy", {"judge": items})
    assert not not_above(without)


def test_a_correlation_is_above_0_by_a_permutation_within_image_models():
    blind = noisy(1e6, 7)
    for judged, expected in (
        (run("one", noisy(0.3, 1)), frozenset()),
        (run("blind", blind), frozenset({"blind"})),
    ):
        for comparison in compared(judged, run("other", noisy(0.2, 2))).values():
            assert not_above(comparison.compared) == expected
    turned = run("turned", lambda part, model, uid: 1 - noisy(0.3, 1)(part, model, uid))
    comparison = compared(turned, run("other", noisy(0.2, 2)))["SC"]
    assert not_above(comparison.compared) == {"turned"}


def test_a_statistic_without_a_paired_test_says_so():
    runs = [single(name, [0.1, 0.9, 0.4], [0, 1, 1]) for name in ("one", "other")]
    [found] = of_labels(("auroc",), *runs)
    got = found.reason
    assert got == "judges cannot be compared by auroc, because it has no paired test"
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
    systems = {one.label: one for one in found.systems}
    for judged in runs:
        scores = [judged.records["t"][n][0].verdict.scores["O"] for n in known]
        expected = stats.spearmanr(scores, np.nanmean(rated[known], axis=1)).statistic
        assert systems[judged.label].value == pytest.approx(expected)


def test_no_loop_goes_through_the_samples(monkeypatch):
    monkeypatch.setitem(PARTS, "many", tuple("ABCDEFGH"))
    runs = [run(f"{n}", noisy(0.3, n), 179, parts=("many",)) for n in range(5)]
    with calls_at_most(5_000_000):  # for each sample it would be 700,000,000
        found = compared(*runs, options=StatisticsOptions(draws=1000))
    assert all(len(one.pairs) == 10 for one in found.values())
