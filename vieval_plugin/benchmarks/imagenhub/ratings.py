"""ImagenHub's human ratings: three annotators a task, a table each."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from operator import mul
from pathlib import Path
from typing import TypeAlias

from vieval_plugin.benchmarks.imagenhub.tasks import NAME, ratings_folder, task_info
from vieval_plugin.readers.rows import Row, read_table
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import natural

#: SC and PQ of an annotator.
Rating: TypeAlias = tuple[float, float]
LEVELS = (0.0, 0.5, 1.0)
ADVICE = f"run `vieval prepare {NAME}`"


def read_ratings(root: Path, task: str) -> dict[str, dict[str, tuple[Rating, ...]]]:
    """Human ratings of a task: uid -> image model -> one `(SC, PQ)` an annotator, each 0, 0.5 or 1.

    `root` is the data folder. Only the image models of the papers are kept.
    Raises VievalError naming file, row and column of what is wrong.
    """
    info = task_info(task)
    folder = ratings_folder(root, task)
    tables = [_read(folder / name, info.image_models) for name in info.ratings_files]
    first = tables[0]
    for number, table in enumerate(tables[1:], start=2):
        differing = sorted(set(first) ^ set(table))
        if differing:
            raise VievalError(
                f"{folder}: raters 1 and {number} must rate the same uids (first difference: "
                f"{differing[0]}); {ADVICE} again"
            )
    return {
        uid: {m: tuple(t[uid][m] for t in tables) for m in info.image_models}
        for uid in sorted(first, key=natural)
    }


def aspects(ratings: tuple[Rating, ...]) -> dict[str, tuple[float, ...]]:
    """SC, PQ and O of each annotator from `(SC, PQ)` pairs; O is the root of their product, one
    by one (VIEScore).
    """
    sc, pq = zip(*ratings, strict=True)
    overall = tuple(map(math.sqrt, map(mul, sc, pq)))
    return {"SC": sc, "PQ": pq, "O": overall}


def _read(path: Path, image_models: tuple[str, ...]) -> dict[str, dict[str, Rating]]:
    table: dict[str, dict[str, Rating]] = {}
    for row in read_table(path, ("uid", *image_models), ADVICE):
        uid = row.cells["uid"]
        if uid in table:
            raise VievalError(
                f"{row.where}: {uid} is already in an earlier line; {ADVICE} again"
            )
        table[uid] = {model: _rating(row, model) for model in image_models}
    return table


def _rating(row: Row, column: str) -> Rating:
    cell = row.cells[column]
    with suppress(ValueError, TypeError, RecursionError):
        sc, pq = json.loads(cell)
        if sc in LEVELS and pq in LEVELS and bool not in (type(sc), type(pq)):
            return abs(float(sc)), abs(float(pq))  # a zero may have a sign
    raise VievalError(
        f"{row.where}, column {column}: must be [SC, PQ] with values 0, 0.5 or 1, got {cell!r}; "
        "correct the cell"
    )
