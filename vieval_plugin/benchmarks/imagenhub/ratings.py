"""ImagenHub's human ratings: three annotators a task, a table each."""

from __future__ import annotations

import json
import math
from pathlib import Path

from vieval_plugin.benchmarks.imagenhub.tasks import NAME, ratings_folder, task_info
from vieval_plugin.readers.rows import Row, read_table
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import natural

LEVELS = (0.0, 0.5, 1.0)
ADVICE = f"run `vieval prepare {NAME}`"


def read_ratings(
    root: Path, task: str
) -> dict[str, dict[str, tuple[tuple[float, float], ...]]]:
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


def aspects(ratings: tuple[tuple[float, float], ...]) -> dict[str, tuple[float, ...]]:
    """SC, PQ and O of each annotator from `(SC, PQ)` pairs; O is the root of their product, one
    by one (VIEScore).
    """
    return {
        "SC": tuple(sc for sc, _ in ratings),
        "PQ": tuple(pq for _, pq in ratings),
        "O": tuple(math.sqrt(sc * pq) for sc, pq in ratings),
    }


def _read(
    path: Path, image_models: tuple[str, ...]
) -> dict[str, dict[str, tuple[float, float]]]:
    table: dict[str, dict[str, tuple[float, float]]] = {}
    for row in read_table(path, ("uid", *image_models), ADVICE):
        uid = row.cells["uid"]
        if uid in table:
            raise VievalError(f"{row.where} repeats uid {uid}")
        table[uid] = {model: _rating(row, model) for model in image_models}
    return table


def _rating(row: Row, column: str) -> tuple[float, float]:
    cell = row.cells[column]
    try:
        sc, pq = json.loads(cell)
        if (
            sc in LEVELS
            and pq in LEVELS
            and not isinstance(sc, bool)
            and not isinstance(pq, bool)
        ):
            return abs(float(sc)), abs(float(pq))  # a zero may have a sign
    except (ValueError, TypeError, RecursionError):
        pass
    raise VievalError(
        f"{row.where}, column {column}: must be [SC, PQ] with values 0, 0.5 or 1, got {cell!r}; "
        "correct the cell"
    )
