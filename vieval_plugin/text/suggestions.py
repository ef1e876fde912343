"""The name that was meant, where there is none of that name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], least: float = 0.0) -> str:
    """The middle of a message about a name that there is not.

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
    closest = difflib.get_close_matches(name, known, n=1, cutoff=least)
    return f"; did you mean {closest[0]}?" if closest else ""
