"""Answers that never look: how often each fixed answer would be right, and whether a judge is above the best of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.stats.bootstrap import DRAWS, Seed
from vieval_plugin.stats.comparison import require_same_items
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.votes import ANSWERS, FIRST, VoteScheme, VoteShare, codes, counting, mean, share


class AboveConstant(NamedTuple):
    """The best constant answer, its accuracy, and how far a judge is above it, in [-1, 1]."""

    answer: str
    accuracy: float
    difference: VoteShare


def constants(
    human: ArrayLike, scheme: VoteScheme = "four_way", answers: Mapping[str, Collection[int]] | None = None
) -> dict[str, float]:
    """The accuracy that each fixed answer reaches without looking: what a judge has to be above.

    Args:
        human: as for `votes.points`.
        scheme: which contests count.
        answers: the codes that each answer is right for; by default those of the scheme (`ANSWERS`). A reading that
            accepts more has them here.

    Returns:
        An accuracy in [0, 1] an answer, in their order; NaN where no contest counts.

    >>> from vieval_plugin.stats.votes import BOTH_BAD, BOTH_GOOD
    >>> constants([FIRST, BOTH_GOOD, BOTH_BAD, BOTH_BAD], answers={"A=B": {BOTH_GOOD, BOTH_BAD}, "A>B": {FIRST}})
    {'A=B': 0.75, 'A>B': 0.25}
    """
    accepted = ANSWERS[scheme] if answers is None else answers
    return {answer: mean(_constant(human, right_for, scheme)) for answer, right_for in accepted.items()}


def above_constant(
    right: ArrayLike,
    human: ArrayLike,
    groups: Sequence[Hashable],
    scheme: VoteScheme = "four_way",
    answers: Mapping[str, Collection[int]] | None = None,
    draws: int = DRAWS,
    seed: Seed = 0,
) -> AboveConstant:
    """Whether a judge is significantly above the best constant answer.

    It is where the lower end of the 95% interval of accuracy(judge) - accuracy(constant) is above 0, by a bootstrap over
    groups that draws the same groups for both. The best constant is that of these very contests, the first of several
    that are equal, and stays the same in all draws: so the bar is, if anything, a little high.

    Args:
        right: the judge's points, shape (contests,), read in whichever way; NaN just where the scheme does not count.
        human: as for `votes.points`.
        groups: what each contest is drawn together with, shape (contests,).
        scheme: as for `constants`.
        answers: as for `constants`.
        draws: how many draws.
        seed: as for `votes.share`.

    Returns:
        NaN where no contest counts.

    Raises:
        ValueError: for points of other contests than those that count.

    >>> from vieval_plugin.stats.votes import SECOND, points
    >>> human = [FIRST, SECOND] * 20
    >>> above_constant(points(human, human), human, range(40), draws=100).difference.low > 0
    True
    """
    accepted = ANSWERS[scheme] if answers is None else answers
    reached = constants(human, scheme, accepted)
    answer = max(reached, key=lambda one: reached[one])
    judge, constant = np.asarray(right, dtype=float), _constant(human, accepted[answer], scheme)
    require_same_items(judge, constant)
    return AboveConstant(answer, reached[answer], share(judge - constant, groups, draws, seed))


def _constant(human: ArrayLike, right_for: Collection[int], scheme: VoteScheme) -> Floats:
    said = codes(human, FIRST)
    return np.where(counting(said, scheme), np.isin(said, list(right_for)).astype(float), np.nan)
