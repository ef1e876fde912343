"""Judges two by two on what all of them judged: against every swap enumerated, draws materialised, and the report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.work import calls_at_most
from vieval_plugin.judges.protocol import SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.annotators import WithAnnotators
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.judge_comparison import JudgeComparison, compare_judges
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.metrics import combine
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.reports import Rating, Report
from vieval_plugin.records import Provenance, Record, Run
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
        own = np.random.default_rng([seed, ord(part[-1]), ord(model), int(uid[1:])]).normal()
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
    records: dict[str, list[tuple[Record, ...]]] = {}
    for part in parts:
        for model, number in itertools.product(PARTS[part], range(uids)):
            uid = f"u{number}"
            value = score(part, model, uid)
            verdict = (
                Verdict({}, Status.REFUSAL) if value is None else Verdict(dict.fromkeys(aspects, value), Status.OK)
            )
            rated = dict.fromkeys(ASPECTS, people(part, model, uid))
            source = Provenance("mine", (), aspects, label)
            record = Record(SampleId("b", part, model, uid), verdict, source, rated, group=uid)
            records.setdefault(part, []).append((record,))
    return Run(label, "b", "mine", aspects, records, **described)


def compared(
    *runs: Run, report: Report | None = None, options: StatisticsOptions = OPTIONS
) -> dict[str, JudgeComparison]:
    found = (report or ByImageModel()).compared("b", tuple(PARTS), runs, options)
    return {one.aspect: compare_judges(one, "b", options) for one in found}


def naive(first: Score, second: Score, uids: Sequence[str]) -> tuple[list[list[list[NDArray[np.float64]]]], float]:
    """Ranks by part and image model of the first, the second and people; and the difference of averages by their definition."""
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
            np.mean([np.arctanh(stats.pearsonr(of_model[judge], of_model[2]).statistic) for of_model in of_part])
            for of_part in ranks
        ]
        return float(np.tanh(np.mean(z)))

    return average(0) - average(1)


def test_difference_and_p_are_those_of_their_definitions_on_a_small_example() -> None:
    first, second = noisy(0.2, 1), noisy(0.9, 2)
    uids = [f"u{n}" for n in range(1, 6)]
    options = StatisticsOptions(draws=20_000)
    runs = (run("first", lacking(first, "u0"), 7), run("second", lacking(second, "u6"), 7))
    found = compared(*runs, options=options)["SC"]
    ranks, observed = naive(first, second, uids)
    [pair] = found.pairs
    assert pair.found.difference == pytest.approx(observed, abs=1e-9)
    assert found.compared.used == 5 * len(uids)
    assert [one.judge.own for one in found.standings] == [30, 30]
    hits, swaps = 0, list(itertools.product([False, True], repeat=2 * len(uids)))
    for swap in swaps:
        swapped = []
        for number, of_part in enumerate(ranks):
            side = np.array(swap[number * len(uids) : (number + 1) * len(uids)])
            swapped.append([[np.where(side, b, a), np.where(side, a, b), h] for a, b, h in of_part])
        hits += abs(difference(swapped)) >= abs(observed) - 1e-9
    assert 0.01 < hits / len(swaps) < 0.99
    assert pair.found.p == pytest.approx(hits / len(swaps), abs=0.012)


def test_a_judges_value_on_samples_that_all_scored_is_that_of_its_report() -> None:
    judged = run("one", noisy(0.3, 1))
    found = compared(judged, run("other", noisy(0.4, 2)))
    report = ByImageModel()
    parts = [
        report.summarise(tuple(map(observe, judged.records[part])), Rating(ASPECTS), "b", part, OPTIONS)
        for part in PARTS
    ]
    for aspect in ASPECTS:
        assert found[aspect].standings[0].estimate == pytest.approx(combine(tuple(parts)).aspects[aspect].fisher)
        assert found[aspect].compared.part == "all"
        assert not found[aspect].warnings


def test_a_judge_compared_with_itself_is_no_better() -> None:
    for found in compared(run("one", noisy(0.3, 1)), run("the same", noisy(0.3, 1))).values():
        [pair] = found.pairs
        assert pair.found[2:] == (0, 0, 0, 1)
        assert pair.adjusted == 1
        assert [one.rank for one in found.standings] == [1, 1]


def test_judges_that_cannot_be_told_apart_share_a_rank() -> None:
    runs = [
        run(name, noisy(noise, n)) for n, (name, noise) in enumerate({"poor": 3.0, "good": 0.2, "as good": 0.2}.items())
    ]
    found = compared(*runs)["SC"]
    assert [one.rank for one in found.standings] == [3, 1, 1]
    assert [(pair.first, pair.second) for pair in found.pairs] == [
        ("poor", "good"),
        ("poor", "as good"),
        ("good", "as good"),
    ]
    np.testing.assert_allclose([pair.adjusted for pair in found.pairs], holm([pair.found.p for pair in found.pairs]))
    assert [pair.different for pair in found.pairs] == [True, True, False]
    for pair in found.pairs:
        values = {one.judge.label: one.estimate for one in found.standings}
        assert pair.found.difference == pytest.approx(values[pair.first] - values[pair.second])
        assert pair.found.low <= pair.found.difference <= pair.found.high


def test_the_order_of_results_changes_signs_alone_and_a_seed_gives_the_same_again() -> None:
    runs = run("one", noisy(0.3, 1)), run("other", noisy(0.5, 2))
    [pair], [turned], [again] = (compared(*given)["PQ"].pairs for given in (runs, runs[::-1], runs))
    assert pair == again
    assert (turned.found.difference, turned.found.p) == (-pair.found.difference, pair.found.p)
    assert (turned.found.low, turned.found.high) == pytest.approx((-pair.found.high, -pair.found.low))
    [other] = compared(*runs, options=StatisticsOptions(draws=200, seed=1))["PQ"].pairs
    assert (other.found.low, other.found.high) != (pair.found.low, pair.found.high)
    assert other.found.difference == pair.found.difference


def test_numbers_that_differ_by_more_than_a_twentieth_are_a_warning() -> None:
    def found(number: int) -> JudgeComparison:
        fewer = lacking(noisy(0.3, 1), *(f"u{n}" for n in range(number)))
        return compared(run("all of them", noisy(0.3, 1), 20), run("fewer", fewer, 20))["SC"]

    assert not found(1).warnings
    [warning] = found(2).warnings
    assert warning.startswith("the judges' own numbers of samples differ by more than 5% (all of them 100, fewer 90)")
    assert found(2).compared.used == 90


def test_too_few_draws_for_so_many_pairs_are_a_warning() -> None:
    runs = [run(f"judge {n}", noisy(0.3, n), 20) for n in range(3)]

    def warnings(draws: int) -> tuple[str, ...]:
        return compared(*runs, options=StatisticsOptions(draws=draws))["SC"].warnings

    assert warnings(58) == (
        "58 draws cannot tell any two of 3 pairs apart: repeat with 60 or more (--draws, or the option statistics.draws)",
    )
    assert not warnings(59)


def test_failures_count_as_the_policy_has_it() -> None:
    runs = run("one", lacking(noisy(0.3, 1), "u3")), run("other", noisy(0.5, 2))
    assert compared(*runs)["O"].compared.used == 145
    assert compared(*runs, options=StatisticsOptions("worst", draws=20))["O"].compared.used == 150


def test_a_judge_of_one_aspect_is_compared_on_that() -> None:
    three, one = run("three", noisy(0.3, 1)), run("one", noisy(0.3, 2), aspects=("SC",))
    found = compared(three, one)
    assert found["SC"].pairs
    assert not found["PQ"].pairs
    assert found["PQ"].why == "two judges are needed, and there is three"


def test_a_metric_whose_one_score_stands_for_all_is_compared_on_all() -> None:
    found = compared(run("three", noisy(0.3, 1)), run("metric", noisy(0.3, 2), aspects=("SC",), against_all=True))
    assert all(found[aspect].pairs for aspect in ASPECTS)


def test_only_parts_that_all_were_run_on_count() -> None:
    found = compared(run("both", noisy(0.3, 1)), run("one", noisy(0.3, 2), parts=("tie",)))["SC"]
    assert (found.compared.part, found.compared.used) == ("tie", 60)
    assert "parts" not in found.compared.statistic


def constant(score: Score, *models: str) -> Score:
    return lambda part, model, uid: 0.5 if model in models else score(part, model, uid)


def test_an_image_model_on_which_a_judge_is_constant_counts_for_no_judge() -> None:
    runs = [run("one", noisy(0.3, 1)), run("other", constant(noisy(0.3, 2), "A", "C")), run("third", noisy(0.3, 3))]
    found = compared(*runs)["SC"]
    assert found.compared.notes == ("left out of all averages, because other is constant: tie/A, tig/C",)
    assert found.compared.used == 90
    values = [one.estimate for one in found.standings]
    assert [p.found.difference for p in found.pairs] == pytest.approx(
        [a - b for a, b in itertools.combinations(values, 2)]
    )


def test_a_judge_that_always_says_the_same_has_no_rank_and_spoils_no_other() -> None:
    runs = [run("one", noisy(0.2, 1)), run("flat", constant(noisy(0.3, 2), *"ABCDE")), run("third", noisy(2, 3))]
    found = compared(*runs)["SC"]
    assert [one.rank for one in found.standings] == [1, None, 2]
    assert found.standings[1].judge.reason == "undefined for every image model (flat is constant)"
    assert [(pair.first, pair.second) for pair in found.pairs] == [("one", "third")]
    alone = compared(*runs[:2])["SC"]
    assert (
        alone.why == "two judges are needed, and there is one; flat: undefined for every image model (flat is constant)"
    )


def test_where_no_image_model_is_left_it_is_said() -> None:
    runs = [run("one", constant(noisy(0.3, 1), *"ABC")), run("other", constant(noisy(0.3, 2), *"DE"))]
    found = compared(*runs)["SC"]
    assert found.why.startswith("no image model is left for which every judge's correlation is defined (")
    assert (found.pairs, [one.rank for one in found.standings]) == ((), [None, None])


def test_judges_without_anything_in_common_are_told_in_one_line() -> None:
    halves = [{f"u{n}" for n in range(30) if n % 2 == odd} for odd in (0, 1)]
    found = compared(*(run(f"{n}", lacking(noisy(0.3, 1), *half)) for n, half in enumerate(halves)))["SC"]
    assert found.why == "no samples that all of these judges scored: 0, 1"
    nothing = run("nothing", lambda part, model, uid: None)
    found = compared(nothing, run("a", noisy(0.3, 1)), run("b", noisy(0.3, 2)))["SC"]
    assert found.compared.used == 150
    assert found.standings[0].judge.reason == "no sample with a score"


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
        identity = SampleId("b", "t", "m", f"u{number}")
        verdict, source = Verdict(dict.fromkeys(aspects, score), Status.OK), Provenance("mine", (), aspects, label)
        given = {aspects[0]: tuple(np.atleast_1d(np.array(rating, dtype=float)).tolist())}
        rows.append((Record(identity, verdict, source, given, group=f"g{example}", place=places[place]),))
    return Run(label, "b", "mine", aspects, {"t": rows})


def of_labels(statistics: tuple[str, ...], *runs: Run) -> list[JudgeComparison]:
    return [compare_judges(one, "b", OPTIONS) for one in WithLabels(statistics).compared("b", ("t",), runs, OPTIONS)]


@pytest.mark.parametrize(
    ("statistic", "places"),
    [
        ("pearson", ((),)),
        ("preference_accuracy", ((0,), (1,))),
        ("text_score", ((0, 0), (0, 1), (1, 0), (1, 1))),
        ("group_score", ((0, 0), (0, 1), (1, 0), (1, 1))),
    ],
)
def test_values_on_labels_are_those_of_the_report(statistic: str, places: Sequence[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(5)
    rated = rng.choice([0.0, 0.5, 1.0], 80)
    runs = [single(name, rng.random(80).tolist(), rated.tolist(), places=places) for name in ("one", "other")]
    [found] = of_labels((statistic, "kendall"), *runs)
    assert found.compared.used == 80 // len(places)
    for judged, standing in zip(runs, found.standings, strict=True):
        observed = tuple(map(observe, judged.records["t"]))
        summary = WithLabels((statistic,)).summarise(observed, Rating(("SC",)), "b", "t", OPTIONS)
        assert standing.estimate == pytest.approx(summary.estimates[statistic].value)
    [pair] = found.pairs
    assert pair.found.low < pair.found.difference < pair.found.high
    assert 0 < pair.found.p <= 1


def test_a_statistic_without_a_paired_test_says_so() -> None:
    runs = [single(name, [0.1, 0.9, 0.4], [0, 1, 1]) for name in ("one", "other")]
    [found] = of_labels(("auroc",), *runs)
    assert found.why == "judges cannot be compared yet by auroc, which has no paired test here"
    assert not found.pairs


def test_annotators_mean_is_what_judges_are_compared_with() -> None:
    rng = np.random.default_rng(1)
    rated = rng.integers(0, 11, (40, 3)).astype(float)
    rated[3] = math.nan
    rated[4, 0] = math.nan
    runs = [single(name, rng.random(40).tolist(), rated.tolist(), ("O",)) for name in ("one", "other")]
    [one] = WithAnnotators((), "O", 3).compared("b", ("t",), runs, OPTIONS)
    found = compare_judges(one, "b", OPTIONS)
    assert found.compared.used == 39
    known = [n for n in range(40) if n != 3]
    for judged, standing in zip(runs, found.standings, strict=True):
        scores = [judged.records["t"][n][0].verdict.scores["O"] for n in known]
        expected = stats.spearmanr(scores, np.nanmean(rated[known], axis=1)).statistic
        assert standing.estimate == pytest.approx(expected)


def test_a_report_that_hands_over_an_undefined_statistic_is_answered_in_words() -> None:
    flat = [single(name, [0.5] * 9, list(range(9))) for name in ("one", "other")]
    [found] = of_labels(("pearson",), *flat)
    assert found.why.startswith("two judges are needed, and there is none; one: undefined on the 9 common samples")


def test_no_loop_goes_through_the_samples_for_each_resampling_of_five_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PARTS, "many", tuple("ABCDEFGH"))
    runs = [run(f"{n}", noisy(0.3, n), 179, parts=("many",)) for n in range(5)]
    with calls_at_most(5_000_000):  # some 1,300,000; for each sample it would be 70,000,000
        found = compared(*runs, options=StatisticsOptions(draws=1000))
    assert all(len(one.pairs) == 10 for one in found.values())
