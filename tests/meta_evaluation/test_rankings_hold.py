"""Leaderboards of generators of known quality."""

import numpy as np
import pytest

from tests.leaderboards import headlines_of
from tests.runs import run_of
from vieval_plugin.meta_evaluation.contest_ranking import _interval
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=99)
PROMPTS = 80


def generators(means, rng):
    """Generators whose scores follow the prompt, each with luck of its own."""
    prompt, rows = rng.normal(0, 0.15, PROMPTS), []
    for name, mean in means.items():
        scores = np.clip(mean + prompt + rng.normal(0, 0.15, PROMPTS), 0, 1).tolist()
        rows += [
            ("tig", name, str(n), {"O": score}, {}) for n, score in enumerate(scores)
        ]
    return run_of("m", rows, benchmark="own")


@pytest.mark.parametrize(
    ("runs", "least_ordered", "least_equal"),
    [(10, 9, 8), pytest.param(300, 285, 279, marks=pytest.mark.extras)],
)
def test_the_best_of_three_is_found_and_the_others_are_equal(
    runs, least_ordered, least_equal
):
    ordered, equal = 0, 0
    for number in range(runs):
        rng = np.random.default_rng([18, number])
        run = generators({"one": 0.45, "best": 0.6, "other": 0.45}, rng)
        [board] = headlines_of(OfGenerators(), "own", (), [run], OPTIONS)
        found = board.comparison
        ordered += found.beats("best", "one") and found.beats("best", "other")
        equal += not found.pair_of("one", "other").significant
    assert ordered >= least_ordered
    assert equal >= least_equal


def test_an_interval_is_undefined_where_its_ends_may_be_among_draws_without_a_value():
    draws = np.linspace(-1, 1, 1000)
    assert _interval(draws)[0] < -0.9
    few, many = draws.copy(), draws.copy()
    few[:10], many[:600] = np.nan, np.nan
    assert not np.isnan(_interval(few)).any()
    assert np.isnan(_interval(many)).all()
