"""Leaderboards in simulations of known truth: who is better is told to be, and who is as good is not told apart."""

from __future__ import annotations

import numpy as np
import pytest

from tests.leaderboards import headlines_of
from vieval_plugin.judges.protocol import SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.comparison import (
    CommonSamplesStatistic,
    ComparedStatistic,
    Comparison,
    System,
    compare_systems,
)
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.paired_correlations import CorrelationDifference

OPTIONS = StatisticsOptions(draws=99)
PROMPTS, MODELS = 80, 4


def judges(noises: dict[str, float], rng: np.random.Generator) -> ComparedStatistic:
    """Judges that give what people say and noise of their own, half of it shared by the images of a prompt."""
    people = rng.normal(size=(PROMPTS, 1)) * 0.5 + rng.normal(size=(PROMPTS, MODELS))

    def scores(noise: float) -> np.ndarray:
        own = rng.normal(size=(PROMPTS, 1)) + rng.normal(size=(PROMPTS, MODELS))
        return people + noise * own / np.sqrt(2)

    groups = tuple(("tie", str(n)) for n in range(PROMPTS))
    tables = [scores(noise) for noise in noises.values()]

    def pair(first: int, second: int) -> CommonSamplesStatistic:
        return CommonSamplesStatistic(people.size, CorrelationDifference(tables[first], tables[second], people, groups))

    systems = tuple(System(name, people.size) for name in noises)
    return ComparedStatistic("tie", "O", "Spearman's correlation with people", systems, pair)


def generators(means: dict[str, float], rng: np.random.Generator) -> Run:
    """Generators whose scores follow the prompt, each with luck of its own."""
    source, prompt = Provenance("mine", (), ("O",), "m"), rng.normal(0, 0.15, PROMPTS)
    rows = []
    for name, mean in means.items():
        for number, score in enumerate(np.clip(mean + prompt + rng.normal(0, 0.15, PROMPTS), 0, 1)):
            identity = SampleId("own", "tig", name, str(number))
            rows.append(
                (Record(identity, Verdict({"O": float(score)}, Status.OK), source, {}, kind="tig", group=str(number)),)
            )
    return Run("m", "own", "mine", ("O",), {"tig": rows})


def told(found: Comparison) -> tuple[bool, bool]:
    """Whether the best is told from both others, and whether these two are not told apart."""
    ordered = found.beats("best", "one") and found.beats("best", "other")
    return ordered, not found.pair_of("one", "other").significant


def shares(runs: int, what: str) -> tuple[int, int]:
    found = []
    for number in range(runs):
        rng = np.random.default_rng([18, number])
        if what == "judges":
            compared = judges({"one": 1.5, "best": 0.7, "other": 1.5}, rng)
            one = compare_systems(compared, "b", OPTIONS, intervals=False)
        else:
            run = generators({"one": 0.45, "best": 0.6, "other": 0.45}, rng)
            [board] = headlines_of(OfGenerators(), "own", (), [run], OPTIONS)
            one = board.comparison
        found.append(told(one))
    ordered, equal = np.sum(found, axis=0)
    return int(ordered), int(equal)


@pytest.mark.parametrize("what", ["judges", "generators"])
def test_the_best_of_three_is_found(what: str) -> None:
    ordered, equal = shares(10, what)
    assert ordered >= 9
    assert equal >= 8


@pytest.mark.extras
@pytest.mark.parametrize("what", ["judges", "generators"])
def test_two_of_equal_quality_are_called_equal(what: str) -> None:
    ordered, equal = shares(300, what)
    print(f"{what}: the best told from both others in {ordered} of 300, the two equal ones not told apart in {equal}")
    assert ordered >= 285
    assert equal >= 279


def test_an_interval_is_undefined_where_its_ends_may_be_among_draws_without_a_value():
    from vieval_plugin.meta_evaluation.contest_ranking import _interval

    draws = np.linspace(-1, 1, 1000)
    assert _interval(draws)[0] < -0.9
    few, many = draws.copy(), draws.copy()
    few[:10], many[:600] = np.nan, np.nan
    assert not np.isnan(_interval(few)).any()
    assert np.isnan(_interval(many)).all()
