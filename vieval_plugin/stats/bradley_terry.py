"""Bradley-Terry strengths of image models from contests with ties (Davidson)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.sparse import csgraph

from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.correlation import Floats

# Newton's method has ten digits after some ten steps
_STEPS = 100
_TOLERANCE = 1e-10


class Strengths(NamedTuple):
    """Fitted strengths: `log_strengths`, shape (models,), of sum 0, and `tie` (>= 0), how
    readily equals tie.
    """

    log_strengths: Floats
    tie: float


def strengths(wins: ArrayLike, ties: ArrayLike) -> Strengths:
    """Maximum likelihood estimate of the models' strengths.

    A model of strength a meets one of strength b: it wins with probability a / (a + b + v
    sqrt(ab)), and they tie with v sqrt(ab) / (a + b + v sqrt(ab)). Without ties this is the model
    of Bradley and Terry.

    Args:
        wins: how often the model of a row beat that of a column, shape (models, models); counts,
            which may be weighted.
        ties: how often the two tied, shape (models, models), symmetric.

    Returns:
        Natural logarithms of the strengths; all NaN where they have no finite estimate: where the
        models fall into two sets of which one never won or tied against the other. `tie` is NaN
        there too, and where every contest was a tie.

    Raises:
        ValueError: for counts below 0, other shapes, or ties that are not symmetric.

    Source: Davidson 1970, On extending the Bradley-Terry model to accommodate ties in
    paired comparison experiments; Ford 1957 for when a finite estimate exists.

    >>> strengths([[0, 3], [1, 0]], [[0, 0], [0, 0]]).log_strengths.round(4).tolist()
    [0.5493, -0.5493]
    """
    won = np.asarray(wins, dtype=float)
    tied = np.asarray(ties, dtype=float)
    if not _are_contest_tables(won, tied):
        raise ValueError(
            "wins and ties must be square tables over the same models "
            f"(ties symmetric), got shapes {won.shape} and {tied.shape}"
        )
    models = len(won)
    if _pieces(won + tied) > 1 or not won.any():
        equal = _pieces(tied) == 1
        undecided_logs = np.zeros(models)
        if not equal:
            undecided_logs = np.full(models, np.nan)
        return Strengths(
            log_strengths=undecided_logs,
            tie=math.nan,
        )
    first, second = np.triu_indices(models, 1)
    first_wins = won[first, second]
    second_wins = won[second, first]
    outcomes = np.stack([first_wins, second_wins, tied[first, second]], axis=1)
    design = _effects(first, models, second)
    tie = 0.0
    if tied.any():
        parameters = _likeliest(outcomes, design)
        tie = float(np.exp(parameters[models]))
    else:
        design_without_ties = design[:, :2, :models]
        parameters = _likeliest(outcomes[:, :2], design_without_ties)
    logs = parameters[:models]
    return Strengths(
        log_strengths=logs - logs.mean(),
        tie=tie,
    )


def _are_contest_tables(won: Floats, tied: Floats) -> bool:
    """True for square tables of counts over the same models, those of ties symmetric."""
    is_square = won.ndim == 2 and won.shape[0] == won.shape[1] == len(tied)
    if not is_square or tied.shape != won.shape:
        return False
    are_counts = (won >= 0).all() and (tied >= 0).all()
    return bool(are_counts and (tied == tied.T).all())


def _effects(
    first: Ints,
    models: int,
    second: Ints,
) -> Floats:
    # of each pair and outcome, its effect on each strength and on the tie parameter: the log
    # likelihood is linear in these
    design = np.zeros((len(first), 3, models + 1))
    rows = np.arange(len(first))
    design[rows, 0, first] = 0.5
    design[rows, 1, second] = 0.5
    design[rows, 0, second] = -0.5
    design[rows, 1, first] = -0.5
    design[:, 2, models] = 1.0
    return design


def resampled_strengths(
    wins: ArrayLike,
    ties: ArrayLike,
    counts: Ints,
) -> Floats:
    """The logarithms of strengths in each resample of a bootstrap over groups of contests, such as
    prompts.

    Args:
        wins: how often the model of a row beat that of a column in each group, shape (groups,
            models, models).
        ties: how often the two tied, shape (groups, models, models), symmetric.
        counts: number of occurrences of each group in each resample, shape (resamples, groups); see
            `bootstrap.cluster_counts`.

    Returns:
        Shape (resamples, models), each resample of sum 0; NaN for a resample in which there is no
        finite estimate.

    >>> won, tied = np.array([[[0, 1], [0, 0]], [[0, 0], [1, 0]]]), np.zeros((2, 2, 2))
    >>> resampled_strengths(won, tied, np.array([[1, 1], [3, 1]])).round(4)
    array([[ 0.    ,  0.    ],
           [ 0.5493, -0.5493]])
    """
    won = np.asarray(wins, dtype=float)
    tied = np.asarray(ties, dtype=float)
    weights = counts.astype(float)
    resampled_wins_and_ties = [
        np.tensordot(weights, group_counts, axes=1) for group_counts in (won, tied)
    ]
    log_strength_rows = [
        strengths(*wins_and_ties).log_strengths
        for wins_and_ties in zip(*resampled_wins_and_ties, strict=True)
    ]
    return np.array(log_strength_rows).reshape(len(counts), -1)


def win_shares(fitted: Strengths) -> Floats:
    """Expected share of wins of each model against every other model equally often; a
    tie is half a win.

    Args:
        fitted: as `strengths` gives them.

    Returns:
        In [0, 1], shape (models,), with mean 1/2; NaN where strengths are.

    >>> win_shares(Strengths(np.log([3.0, 1.0]) / 2, 0.0)).round(4).tolist()
    [0.634, 0.366]
    """
    power = np.exp(fitted.log_strengths)
    tie = 0.0
    if not np.isnan(fitted.tie):
        tie = fitted.tie
    tie_weight = tie * np.sqrt(np.outer(power, power))
    total_weight = power[:, None] + power + tie_weight
    share = (power[:, None] + tie_weight / 2) / total_weight
    opponent_count = max(len(power) - 1, 1)
    opponent_shares = share.sum(axis=1) - np.diag(share)
    return np.asarray(opponent_shares / opponent_count)


def _likeliest(outcomes: Floats, design: Floats) -> Floats:
    """The parameters of the multinomial models of shape (pairs, outcomes, parameters), by Newton's
    method.

    The logarithm of the likelihood is concave and smooth, so steps that are halved until they lead upwards
    end there.
    """
    points = outcomes.sum(axis=1)
    parameters = np.zeros(design.shape[2])
    likelihood = _log_likelihood(outcomes, design @ parameters)
    for _ in range(_STEPS):
        chances = special.softmax(design @ parameters, axis=1)
        expected = np.einsum("po,pok->pk", chances, design)
        slope = np.einsum("po,pok->k", outcomes, design) - points @ expected
        bend = np.einsum(
            "p,po,pok,pol->kl", points, chances, design, design, optimize=True
        )
        bend -= np.einsum(
            "p,pk,pl->kl",
            points,
            expected,
            expected,
            optimize=True,
        )
        step = np.linalg.lstsq(bend, slope, rcond=None)[0]
        while (
            higher := _log_likelihood(outcomes, design @ (parameters + step))
        ) < likelihood and np.abs(step).max() > _TOLERANCE:
            step = step / 2
        parameters = parameters + step
        likelihood = higher
        if np.abs(step).max() <= _TOLERANCE:
            break
    return parameters


def _log_likelihood(outcomes: Floats, exponents: Floats) -> float:
    return float((outcomes * special.log_softmax(exponents, axis=1)).sum())


def _pieces(beaten: Floats) -> int:
    """Number of sets into which the models fall. In a set, every model is reachable
    from every other through wins or ties.
    """
    return int(
        csgraph.connected_components(beaten > 0, directed=True, connection="strong")[0]
    )
