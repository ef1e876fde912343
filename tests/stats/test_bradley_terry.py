"""Strengths of image models satisfy the equations of the likeliest ones."""

import numpy as np
import pytest

from vieval_plugin.stats.bradley_terry import strengths


def played(models, contests, tie, seed):
    """Wins and ties of drawn strengths, and the logarithms of these, of sum 0."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1, models)
    wins, ties = np.zeros((models, models)), np.zeros((models, models))
    for _ in range(contests):
        a, b = rng.choice(models, 2, replace=False)
        draw = tie * np.exp((truth[a] + truth[b]) / 2)
        chances = np.array([np.exp(truth[a]), np.exp(truth[b]), draw])
        outcome = rng.choice(3, p=chances / chances.sum())
        if outcome == 2:
            ties[a, b] += 1
            ties[b, a] += 1
        else:
            wins[(a, b) if outcome == 0 else (b, a)] += 1
    return wins, ties, truth - truth.mean()


@pytest.mark.parametrize("tie", [0.0, 0.7, 3.0])
def test_expected_points_and_ties_are_the_observed_ones(tie):
    wins, ties, _ = played(6, 800, tie, seed=1)
    found = strengths(wins, ties)
    power = np.exp(found.log_strengths)
    draws = found.tie * np.sqrt(np.outer(power, power))
    contests, chances = wins + wins.T + ties, power[:, None] + power + draws
    points = (contests * (power[:, None] + draws / 2) / chances).sum(axis=1)
    np.testing.assert_allclose(points, (wins + ties / 2).sum(axis=1), rtol=1e-9)
    upper = np.triu_indices(6, 1)
    assert (contests * draws / chances)[upper].sum() == pytest.approx(ties[upper].sum())


def test_many_contests_give_the_strengths_they_were_drawn_from():
    wins, ties, truth = played(5, 20_000, 0.7, seed=0)
    found = strengths(wins, ties)
    assert np.abs(found.log_strengths - truth).max() < 0.1
    assert found.tie == pytest.approx(0.7, abs=0.05)


CIRCLE = [[0, 1000, 0, 0], [0, 0, 1000, 0], [0, 0, 0, 1000], [1, 0, 0, 0]]
LADDER = [[0, 3, 0], [0, 0, 1], [0, 0, 0]]


def test_lopsided_wins_are_far_apart_and_what_never_lost_has_no_finite_strength():
    found = strengths(CIRCLE, np.zeros((4, 4))).log_strengths
    assert (np.diff(found) < -6).all()
    assert np.isnan(strengths(LADDER, np.zeros((3, 3))).log_strengths).all()
    one_tie = [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert np.isfinite(strengths(LADDER, one_tie).log_strengths).all()
    only_ties = strengths(np.zeros((2, 2)), [[0, 2], [2, 0]])
    assert only_ties.log_strengths.tolist() == [0, 0]


NEGATIVE, ONE_SIDED = [[0, -1], [0, 0]], [[0, 1], [0, 0]]
SQUARE, WIDE = np.zeros((2, 2)), np.zeros((2, 3))


@pytest.mark.parametrize(
    ("wins", "ties"), [(NEGATIVE, SQUARE), (WIDE, WIDE), (SQUARE, ONE_SIDED)]
)
def test_counts_that_are_none_are_an_error(wins, ties):
    with pytest.raises(ValueError, match="wins and ties must be"):
        strengths(wins, ties)
