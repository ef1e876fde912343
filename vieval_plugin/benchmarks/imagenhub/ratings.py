"""ImagenHub's human ratings: three raters a task, a table each."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import TypeAlias

from vieval_plugin.benchmarks.imagenhub.tasks import NAME, ratings_folder, task_info
from vieval_plugin.errors import VievalError
from vieval_plugin.readers.rows import require_once

LEVELS = (0.0, 0.5, 1.0)

Ratings: TypeAlias = dict[str, dict[str, tuple[tuple[float, float], ...]]]


def read_ratings(root: Path, task: str) -> Ratings:
    """Human ratings of a task: uid -> image model -> one `(SC, PQ)` a rater, each 0, 0.5 or 1.

    `root` is the data folder. Only the image models of the papers are kept.
    Raises VievalError naming file, row and column of what is wrong.
    """
    info, folder = task_info(task), ratings_folder(root, task)
    tables = [_read_table(folder / name, info.image_models) for name in info.ratings_files]
    first = tables[0]
    for number, table in enumerate(tables[1:], start=2):
        if differing := sorted(set(first) ^ set(table)):
            raise VievalError(
                f"{folder}: raters 1 and {number} do not rate the same uids (first: {differing[0]}); "
                f"fetch the ratings again with `vieval prepare {NAME}`"
            )
    return {
        uid: {m: tuple(t[uid][m] for t in tables) for m in info.image_models} for uid in sorted(first, key=_uid_order)
    }


def aspects(ratings: tuple[tuple[float, float], ...]) -> dict[str, tuple[float, ...]]:
    """SC, PQ and O of each rater from `(SC, PQ)` pairs; O is the root of their product, rater by rater (VIEScore)."""
    return {
        "SC": tuple(sc for sc, _ in ratings),
        "PQ": tuple(pq for _, pq in ratings),
        "O": tuple(math.sqrt(sc * pq) for sc, pq in ratings),
    }


def _read_table(path: Path, image_models: tuple[str, ...]) -> dict[str, dict[str, tuple[float, float]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise VievalError(
            f"{path}: no such ratings file; set VIEVAL_DATA to the folder that holds {NAME}/human_ratings, "
            f"or run `vieval prepare {NAME}`"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(f"{path}: cannot be read ({error})") from None
    rows = list(csv.reader(text.splitlines(), delimiter="\t"))
    header = rows[0] if rows else []
    for column in ("uid", *image_models):
        if column not in header:
            raise VievalError(
                f"{path}: column {column!r} is missing (found: {', '.join(header) or 'none'}); "
                "the file must have `uid` and one column an image model, separated by tabs"
            )
    require_once(path, header, ("uid", *image_models))
    table: dict[str, dict[str, tuple[float, float]]] = {}
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        if len(row) != len(header):
            raise VievalError(f"{path}: line {line} has {len(row)} cells where the header has {len(header)}")
        cells = dict(zip(header, row, strict=True))
        if cells["uid"] in table:
            raise VievalError(f"{path}: line {line} repeats uid {cells['uid']}")
        table[cells["uid"]] = {m: _read_cell(cells[m], path, line, m) for m in image_models}
    return table


def _read_cell(cell: str, path: Path, line: int, column: str) -> tuple[float, float]:
    try:
        sc, pq = json.loads(cell)
        if sc in LEVELS and pq in LEVELS and not isinstance(sc, bool) and not isinstance(pq, bool):
            return abs(float(sc)), abs(float(pq))  # a zero may have a sign
    except (ValueError, TypeError, RecursionError):
        pass
    raise VievalError(
        f"{path}: line {line}, column {column}: {cell!r} is not [SC, PQ] with values 0, 0.5 or 1; correct the cell"
    )


def _uid_order(uid: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", uid)]
