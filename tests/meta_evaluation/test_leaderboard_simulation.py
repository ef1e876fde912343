"""Leaderboards of three simulated judges, in 5 or 20 runs."""

import numpy as np
import pytest

LEVELS = (0.35, 0.35, 0.45)


@pytest.fixture(scope="module")
def simulation():
    pytest.importorskip("aiohttp", reason='the benchmarks need the extra "http"')
    from bench import leaderboard_simulation

    return leaderboard_simulation


@pytest.fixture(scope="module", params=[5, pytest.param(20, marks=pytest.mark.extras)])
def runs(simulation, request):
    return [simulation.leaderboards(seed, LEVELS) for seed in range(request.param)]


@pytest.mark.slow
def test_equal_judges_are_seldom_called_different(simulation, runs):
    boards = [run[simulation.COMPLETE] for run in runs]
    [equal] = simulation.detections(boards, 0.0, simulation.by_own_p)
    assert equal <= len(runs) / 5  # 16 of 200 and what chance may add in 20
    [adjusted] = simulation.detections(boards, 0.0, simulation.by_adjusted_p)
    assert adjusted <= equal
    found = simulation.detections(boards, 0.1, simulation.by_adjusted_p)
    assert min(found) >= 0.8 * len(runs)


@pytest.mark.slow
def test_missing_samples_move_a_judges_own_number_and_not_its_tests(simulation, runs):
    """Failing on hard samples raises a judge's number, but not its tests."""
    judge, complete = simulation.incomplete_judge(LEVELS), simulation.COMPLETE
    bounds = {simulation.AT_RANDOM: (-0.01, 0.01), simulation.HARDEST: (0.005, 0.05)}
    for scenario, (least, most) in bounds.items():
        shifts = [run[scenario].value - run[complete].value for run in runs]
        assert least < np.mean(shifts) < most
        boards = [run[scenario] for run in runs]
        found = simulation.detections(boards, 0.0, simulation.by_own_p, judge)
        assert max(found) <= len(runs) / 5
