"""The names that there are in a message, and the one that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_MOST, _LONGEST = 20, 60  # names, and characters of each


def did_you_mean(name: str, known: Iterable[str], least: float = 0.0) -> str:
    """The middle of a message about a name that there is not: the nearest one, or the one that ends with it.

    Args:
        name: what was given.
        known: the names that there are.
        least: how alike a name must be to be proposed, from 0 (any) to 1 (the same).

    Returns:
        A text to put behind the name; empty where nothing is proposed.

    >>> did_you_mean("modle", ["model", "setting"])
    '; did you mean model?'
    >>> did_you_mean("x", ["model"], least=0.6)
    ''
    """
    closest = nearest(name, known, least)
    return f"; did you mean {closest}?" if closest else ""


def nearest(name: str, known: Iterable[str], least: float = 0.0) -> str:
    """The name that was meant, as `did_you_mean` has it; empty where none is alike.

    >>> nearest("bench_judge_1shot", ["bench_judge", "variant_bench_judge_1shot"])
    'variant_bench_judge_1shot'
    """
    names = list(known)
    longer = (other for other in names if other.endswith(f"_{name}"))
    return next(longer, "") or next(iter(difflib.get_close_matches(name, names, n=1, cutoff=least)), "")


def listed(names: Sequence[str]) -> str:
    """The first 20 names, each cut to 60 characters, and how many more there are.

    >>> listed(["a", "b"])
    'a, b'
    >>> listed([str(number) for number in range(10_000)])[-16:]
    '19 and 9980 more'
    """
    shown = ", ".join(name[:_LONGEST] for name in names[:_MOST])
    return f"{shown} and {len(names) - _MOST} more" if len(names) > _MOST else shown
