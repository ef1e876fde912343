"""Leaderboards of generators of known truth: who is better is told to be, and who is as good is
not told apart.
"""

import numpy as np
import pytest

from tests.leaderboards import headlines_of
from tests.runs import run_of
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=99)
PROMPTS = 80


def generators(means, rng):
    """Generators whose scores follow the prompt, each with luck of its own."""
    prompt, rows = rng.normal(0, 0.15, PROMPTS), []
    for name, mean in means.items():
        scores = np.clip(mean + prompt + rng.normal(0, 0.15, PROMPTS), 0, 1)
        rows += [
            ("tig", name, str(number), {"O": float(score)}, {})
            for number, score in enumerate(scores)
        ]
    return run_of("m", rows, benchmark="own")


def told(found):
    """Whether the best is told from both others, and whether these two are not told apart."""
    ordered = found.beats("best", "one") and found.beats("best", "other")
    return ordered, not found.pair_of("one", "other").significant


def shares(runs):
    found = []
    for number in range(runs):
        run = generators(
            {"one": 0.45, "best": 0.6, "other": 0.45},
            np.random.default_rng([18, number]),
        )
        [board] = headlines_of(OfGenerators(), "own", (), [run], OPTIONS)
        found.append(told(board.comparison))
    ordered, equal = np.sum(found, axis=0)
    return int(ordered), int(equal)


def test_the_best_of_three_is_found():
    ordered, equal = shares(10)
    assert ordered >= 9
    assert equal >= 8


@pytest.mark.extras
def test_two_of_equal_quality_are_called_equal():
    ordered, equal = shares(300)
    print(
        f"the best told from both others in {ordered} of 300, the two equal ones not told apart in "
        f"{equal}"
    )
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
