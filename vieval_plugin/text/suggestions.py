"""The names that there are in a message, and the one that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import chain

_LISTED_NAMES, _LONGEST = 20, 60  # names, and characters of each


def did_you_mean(
    name: str,
    names: Iterable[str],
    cutoff: float = 0.0,
) -> str:
    """The middle of a message about a name that there is not: the nearest one, or the one that ends
    with it.

    Args:
        name: what was given.
        names: the names that there are.
        cutoff: how alike a name must be to be proposed, from 0 (any) to 1 (the same).

    Returns:
        A text to put behind the name; empty where nothing is proposed.

    >>> did_you_mean("modle", ["model", "setting"])
    '; did you mean model?'
    >>> did_you_mean("x", ["model"], cutoff=0.6)
    ''
    """
    closest = nearest(name, names, cutoff)
    if closest:
        return f"; did you mean {closest}?"
    return ""


def nearest(
    name: str,
    candidates: Iterable[str],
    cutoff: float = 0.0,
) -> str:
    """The name that was meant, as `did_you_mean` has it; empty where none is alike.

    >>> nearest("bench_judge_1shot", ["bench_judge", "variant_bench_judge_1shot"])
    'variant_bench_judge_1shot'
    """
    names = list(candidates)
    longer = (candidate for candidate in names if candidate.endswith(f"_{name}"))
    closest = difflib.get_close_matches(
        name,
        names,
        n=1,
        cutoff=cutoff,
    )
    return next(chain(longer, closest), "")


def abbreviated(names: Sequence[str]) -> str:
    """The first 20 names, each cut to 60 characters, and how many more there are.

    >>> abbreviated(["a", "b"])
    'a, b'
    >>> abbreviated([str(number) for number in range(10_000)])[-16:]
    '19 and 9980 more'
    """
    listed = names[:_LISTED_NAMES]
    first_names = ", ".join(name[:_LONGEST] for name in listed)
    unlisted_count = len(names) - len(listed)
    if unlisted_count:
        return f"{first_names} and {unlisted_count} more"
    return first_names
