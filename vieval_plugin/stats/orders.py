"""Votes on the same candidates shown in two orders: consistency, and accuracy over both."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.bootstrap import Ints
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.votes import NONE, TIE, VoteScheme, codes, merged_ties, points


def overall_votes(forward: ArrayLike, reverse: ArrayLike) -> Ints:
    """Vote over two orders: what they agree on, a `TIE` where they differ, `NONE` where either has
    no answer.

    Args:
        forward: the judge's codes where the first candidate is shown first, shape (contests,).
        reverse: its codes where the first is shown second, already turned round: `FIRST` is the
            same candidate.

    Returns:
        Codes of `votes`, shape (contests,).

    >>> from vieval_plugin.stats.votes import FIRST, SECOND
    >>> overall_votes([FIRST, FIRST, FIRST], [FIRST, SECOND, NONE]).tolist()
    [0, 4, -1]
    """
    forward_votes = codes(forward)
    reverse_votes = codes(reverse)
    agreed = np.where(forward_votes == reverse_votes, forward_votes, TIE)
    return np.where(
        (forward_votes == NONE) | (reverse_votes == NONE),
        NONE,
        agreed,
    )


def both_orders_points(
    forward: ArrayLike,
    reverse: ArrayLike,
    human: ArrayLike,
    scheme: VoteScheme = "decisive",
) -> Floats:
    """Points of a judge that has to be right in both orders.

    Args:
        forward: as for `overall_votes`.
        reverse: as for `overall_votes`.
        human: as for `votes.points`.
        scheme: as for `votes.points`.

    Returns:
        As `votes.points` does.

    >>> from vieval_plugin.stats.votes import FIRST, SECOND
    >>> both_orders_points([FIRST, FIRST], [FIRST, SECOND], [FIRST, FIRST]).tolist()
    [1.0, 0.0]
    """
    return np.minimum(points(forward, human, scheme), points(reverse, human, scheme))


def each_order_points(
    forward: ArrayLike,
    reverse: ArrayLike,
    human: ArrayLike,
    scheme: VoteScheme = "decisive",
) -> Floats:
    """MMRB2's form: each order that has an answer counts once. A judge of the first position has
    exactly one half.

    Args:
        forward: as for `overall_votes`.
        reverse: as for `overall_votes`.
        human: as for `votes.points`.
        scheme: as for `votes.points`.

    Returns:
        Shape (2, contests), by order; NaN also where that order has no answer.

    Source: the code of Hu et al. 2025 (Multimodal RewardBench 2), read in its judgement files.

    >>> from vieval_plugin.stats.votes import FIRST, SECOND, mean
    >>> mean(each_order_points([FIRST, FIRST], [SECOND, NONE], [FIRST, FIRST])).__round__(3)
    0.667
    """
    orders = np.stack([codes(forward), codes(reverse)])
    points_by_order = []
    for order in orders:
        right = points(order, human, scheme)
        points_by_order.append(np.where(order == NONE, np.nan, right))
    return np.array(points_by_order)


def consistent_points(
    forward: ArrayLike,
    reverse: ArrayLike,
    scheme: VoteScheme = "decisive",
) -> Floats:
    """Points for contests in which both orders have the same answer; in `three_way` both ties are
    the same.

    Args:
        forward: as for `overall_votes`.
        reverse: as for `overall_votes`.
        scheme: as for `votes.points`.

    Returns:
        Shape (contests,), 1 or 0: what people voted is not asked, so every contest counts.

    >>> from vieval_plugin.stats.votes import FIRST, SECOND
    >>> consistent_points([FIRST, FIRST, NONE], [FIRST, SECOND, NONE]).tolist()
    [1.0, 0.0, 0.0]
    """
    forward_votes = merged_ties(codes(forward), scheme)
    reverse_votes = merged_ties(codes(reverse), scheme)
    return np.asarray(
        (forward_votes == reverse_votes) & (forward_votes != NONE), dtype=float
    )
