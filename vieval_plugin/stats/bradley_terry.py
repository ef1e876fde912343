"""Strengths of image models from contests of two, with ties."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.sparse import csgraph

from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.correlation import Floats

# Newton's method has ten digits after some ten steps
_STEPS, _NEAR = 100, 1e-10


class Strengths(NamedTuple):
    """Fitted strengths: `log_strengths`, shape (models,), of sum 0, and `tie` (>= 0), how readily equals tie."""

    log_strengths: Floats
    tie: float


def strengths(wins: ArrayLike, ties: ArrayLike) -> Strengths:
    """The strengths under which what happened is likeliest.

    A model of strength a meets one of strength b: it wins with probability a / (a + b + v sqrt(ab)), and they tie with
    v sqrt(ab) / (a + b + v sqrt(ab)). Without ties this is the model of Bradley and Terry.

    Args:
        wins: how often the model of a row beat that of a column, shape (models, models); counts, which may be weighted.
        ties: how often the two tied, shape (models, models), symmetric.

    Returns:
        Natural logarithms of the strengths; all NaN where they have no finite estimate: where the models fall into two
        sets of which one never won or tied against the other. `tie` is NaN where every contest was one.

    Raises:
        ValueError: for counts below 0, other shapes, or ties that are not symmetric.

    Source: Davidson 1970, On extending the Bradley-Terry model to accommodate ties in paired comparison experiments;
    Ford 1957 for when an estimate is there.

    >>> strengths([[0, 3], [1, 0]], [[0, 0], [0, 0]]).log_strengths.round(4).tolist()
    [0.5493, -0.5493]
    """
    won, tied = np.asarray(wins, dtype=float), np.asarray(ties, dtype=float)
    square = won.ndim == 2 and won.shape[0] == won.shape[1] == len(tied) and tied.shape == won.shape
    if not square or not (won >= 0).all() or not (tied >= 0).all() or (tied != tied.T).any():
        raise ValueError("counts of wins and symmetric counts of ties, of all models with all, are needed")
    models = len(won)
    if _pieces(won + tied) > 1 or not won.any():
        equal = _pieces(tied) == 1
        return Strengths(np.zeros(models) if equal else np.full(models, np.nan), float("nan"))
    first, second = np.triu_indices(models, 1)
    happened = np.stack([won[first, second], won[second, first], tied[first, second]], axis=1)
    # of each pair and outcome, what it says for each strength and for the tie: the log likelihood is linear in these
    says = np.zeros((len(first), 3, models + 1))
    says[np.arange(len(first)), 0, first] = says[np.arange(len(first)), 1, second] = 0.5
    says[np.arange(len(first)), 0, second] = says[np.arange(len(first)), 1, first] = -0.5
    says[:, 2, models] = 1.0
    found = _likeliest(happened, says) if tied.any() else _likeliest(happened[:, :2], says[:, :2, :models])
    return Strengths(found[:models] - found[:models].mean(), float(np.exp(found[models])) if tied.any() else 0.0)


def resampled_strengths(wins: ArrayLike, ties: ArrayLike, counts: Ints) -> Floats:
    """The logarithms of strengths in each draw of a bootstrap over groups of contests, such as prompts.

    Args:
        wins: how often the model of a row beat that of a column in each group, shape (groups, models, models).
        ties: how often the two tied, shape (groups, models, models), symmetric.
        counts: how often each group occurs in each draw, shape (draws, groups); see `bootstrap.cluster_counts`.

    Returns:
        Shape (draws, models), each draw of sum 0; NaN for a draw in which there is no finite estimate.

    >>> won, tied = np.array([[[0, 1], [0, 0]], [[0, 0], [1, 0]]]), np.zeros((2, 2, 2))
    >>> resampled_strengths(won, tied, np.array([[1, 1], [3, 1]])).round(4)
    array([[ 0.    ,  0.    ],
           [ 0.5493, -0.5493]])
    """
    won, tied = np.asarray(wins, dtype=float), np.asarray(ties, dtype=float)
    drawn = [np.tensordot(counts.astype(float), one, axes=1) for one in (won, tied)]
    return np.array([strengths(*both).log_strengths for both in zip(*drawn, strict=True)]).reshape(len(counts), -1)


def win_shares(found: Strengths) -> Floats:
    """How often each model is to be expected to win against another, each of the others as often, a tie being half a win.

    Args:
        found: as `strengths` gives them.

    Returns:
        In [0, 1], shape (models,), with mean 1/2; NaN where strengths are.

    >>> win_shares(Strengths(np.log([3.0, 1.0]) / 2, 0.0)).round(4).tolist()
    [0.634, 0.366]
    """
    power = np.exp(found.log_strengths)
    drawn = (0.0 if np.isnan(found.tie) else found.tie) * np.sqrt(np.outer(power, power))
    share = (power[:, None] + drawn / 2) / (power[:, None] + power + drawn)
    others = max(len(power) - 1, 1)
    return np.asarray((share.sum(axis=1) - np.diag(share)) / others)


def _likeliest(happened: Floats, says: Floats) -> Floats:
    """The parameters of the multinomial models of shape (pairs, outcomes, parameters), by Newton's method.

    The likelihood has one summit and is smooth, so steps that are halved until they lead upwards end there.
    """
    points = happened.sum(axis=1)
    found = np.zeros(says.shape[2])
    height = _log_likelihood(happened, says @ found)
    for _ in range(_STEPS):
        chances = special.softmax(says @ found, axis=1)
        expected = np.einsum("po,pok->pk", chances, says)
        slope = np.einsum("po,pok->k", happened, says) - points @ expected
        bend = np.einsum("p,po,pok,pol->kl", points, chances, says, says, optimize=True)
        bend -= np.einsum("p,pk,pl->kl", points, expected, expected, optimize=True)
        step = np.linalg.lstsq(bend, slope, rcond=None)[0]
        while (higher := _log_likelihood(happened, says @ (found + step))) < height and np.abs(step).max() > _NEAR:
            step = step / 2
        found, height = found + step, higher
        if np.abs(step).max() <= _NEAR:
            break
    return found


def _log_likelihood(happened: Floats, exponents: Floats) -> float:
    return float((happened * special.log_softmax(exponents, axis=1)).sum())


def _pieces(beaten: Floats) -> int:
    """Into how many sets the models fall of which each can be reached from each other by steps of not losing."""
    return int(csgraph.connected_components(beaten > 0, directed=True, connection="strong")[0])
