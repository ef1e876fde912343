"""What counts as flagged: intervals, Holm's adjustment and what was expected together."""

import numpy as np
import pytest

from vieval_plugin.audit.effects import adjusted, effect
from vieval_plugin.stats.options import StatisticsOptions

N = 60
GROUPS = [str(number) for number in range(N)]


def effect_on_border(expected, before, after):
    groups = GROUPS[: len(before)]
    measured = ("border", "SC", expected, before, after, groups)
    return effect(*measured, StatisticsOptions(), 0)


def found(expected, shift, spread=0.05):
    noise = np.random.default_rng(1).normal(0, spread, N)
    before = np.full(N, 0.5)
    after = before + shift + noise - noise.mean()
    return adjusted([effect_on_border(expected, before, after)])[0]


@pytest.mark.parametrize(
    ("expected", "shift", "spread", "finding"),
    [
        ("same", 0.0, 0.05, "as expected"),
        ("same", 0.2, 0.05, "FLAGGED: rises"),
        ("same", -0.2, 0.05, "FLAGGED: falls"),
        ("same", 0.03, 0.01, "as expected"),  # significant, and too little to count
        ("same", 0.06, 1.0, "undecided"),
        ("not higher", -0.2, 0.05, "as expected"),
        ("not higher", 0.2, 0.05, "FLAGGED: rises"),
        ("lower", -0.2, 0.05, "as expected"),
        ("lower", 0.0, 0.05, "FLAGGED: does not fall"),
        ("lower", 0.2, 0.05, "FLAGGED: does not fall"),
        ("lower", -0.1, 1.0, "undecided"),
    ],
)
def test_a_finding_follows_from_its_interval(expected, shift, spread, finding):
    one = found(expected, shift, spread)
    assert one.finding == finding
    assert one.difference.value == pytest.approx(shift)
    assert one.difference.low <= one.difference.value <= one.difference.high


def test_p_is_adjusted_for_all_effects_of_a_judge():
    one = found("same", 0.2)
    many = adjusted([one, *[found("same", 0.0)] * 99])
    assert many[0].adjusted == pytest.approx(100 * one.p)


def test_samples_that_lack_a_score_do_not_enter_and_are_counted():
    before, after = [0.5, 0.5, np.nan, 0.5], [0.9, np.nan, 0.9, 0.7]
    one = effect_on_border("same", before, after)
    assert (one.n, one.failed, one.mean_before, one.mean_after) == (2, 1, 0.5, 0.8)
    nothing = effect_on_border("same", [0.5], [np.nan])
    assert (nothing.n, nothing.finding) == (0, "nothing to compare")
