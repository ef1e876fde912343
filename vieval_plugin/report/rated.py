"""Results with the ratings that people gave in files of their own, and what a reader must be told of both."""

from __future__ import annotations

from vieval_plugin.errors import VievalError
from vieval_plugin.meta_evaluation.ratings import HumanRatings, rated
from vieval_plugin.records import Run
from vieval_plugin.results.runs import Results


def rated_runs(results: Results, ratings: HumanRatings | None) -> tuple[list[Run], list[str]]:
    """The runs of results, with these ratings in the place of their own where there are any, and lines to be read beside them.

    Raises:
        VievalError: no rating is of a sample among the results.
    """
    runs, notes = list(results.runs), [f"not read, and left out: {line}" for line in results.unreadable]
    if ratings is None:
        return runs, notes
    runs, unknown = rated(runs, ratings)
    if not unknown:
        return runs, notes
    first = f"{ratings.where[unknown[0]]}: {unknown[0]}"
    if len(unknown) == len(ratings.where):
        raise VievalError(
            f"{first} is not among these verdicts, nor is any other that was rated; give the ratings of these samples"
        )
    told = f"ratings of {len(unknown)} samples are left out, because no verdict is about them, the first in {first}"
    return runs, [*notes, told]
