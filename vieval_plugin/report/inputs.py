"""Ratings and rankings that a user gives in files, beside results."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

from vieval_plugin.meta_evaluation.ratings import HumanRatings, rated
from vieval_plugin.records import Run
from vieval_plugin.results.runs import Results
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural


def rated_runs(
    results: Results, ratings: HumanRatings | None
) -> tuple[list[Run], list[str]]:
    """The runs of results, with these ratings in the place of their own where there are any, and
    lines to be read beside them.

    Raises:
        VievalError: no rating is of a sample among the results.
    """
    unreadable = (
        f"skipped, because it cannot be read: {line}" for line in results.unreadable
    )
    runs = list(results.runs)
    notes = [*results.notes, *unreadable]
    runs, unknown = rated(runs, ratings) if ratings else (runs, [])
    if not (ratings and unknown):
        return runs, notes
    first_unknown = unknown[0]
    first = f"{ratings.where[first_unknown]}: {first_unknown}"
    if len(unknown) == len(ratings.where):
        verdicts = shlex.join(map(str, results.paths)) or "verdicts.jsonl"
        are_contests = (
            rows[0].votes is not None for run in runs for rows in run.records_by_sample
        )
        if not any(are_contests) and ratings.votes.keys() >= set(unknown):
            raise VievalError(
                f"{first} is a vote on a pair, but these verdicts are on single images; rate them "
                f"on a page from `vieval label {verdicts} --out label.html`"
            )
        raise VievalError(
            f"none of the rated samples has a verdict (first: {first}); pass ratings "
            "of the samples in these verdicts"
        )
    samples = plural(len(unknown), "sample")
    note = f"ratings of {samples} without a verdict are left out (first: {first})"
    return runs, [*notes, note]


_MOST_BYTES = 1 << 20


def read_order(path: Path) -> tuple[str, ...]:
    """Image models, the best first, from a file with one a line; empty lines do not count.

    Raises:
        VievalError: the file cannot be read, names one twice, or fewer than two.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(f"cannot read {path}: {error}") from None
    if len(text) > _MOST_BYTES:
        raise VievalError(
            f"{path}: too large for a list of image models (limit {_MOST_BYTES} bytes)"
        )
    names = tuple(filter(None, map(str.strip, text.splitlines())))
    counts = Counter(names)
    repeated = [name for name, times in counts.items() if times > 1]
    if repeated:
        raise VievalError(
            f"{path}: lists {repeated[0]!r} twice; list each image model once"
        )
    if len(names) < 2:
        raise VievalError(
            f"{path}: must list at least two image models, one per line, best first"
        )
    return names
