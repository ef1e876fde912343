"""Answers of earlier runs in the host's files: those that it will take up, and those that it must not."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vlmeval.smp import load

from vieval_plugin.hosts.vlmevalkit.results import VerdictFiles, read_cell
from vieval_plugin.text.escaping import say

_SHEETS = (".xlsx", ".tsv", ".json")
_PICKLES = ("_PREV.pkl", "_checkpoint.pkl", "_supp.pkl")


def rows_answered(files: VerdictFiles, by: str, retry_failed: bool, rank: int, world_size: int) -> set[int]:
    """The rows to which the host has an answer by the same judge and model.

    A file with answers by another, or one that cannot be read, is deleted: the host takes up whatever it finds. Failed
    calls are no answers where they are tried again.
    """
    rows: set[int] = set()
    unusable: dict[Path, str] = {}
    for path in _files(files, rank, world_size):
        try:
            answers = _answers(path)
        except Exception:  # pickles written in place and cut short raise anything
            unusable[path] = "cannot be read"
            continue
        cells = {int(index): read_cell(text) for index, text in answers.items()}
        if any(cell is None or cell.by != by for cell in cells.values()):
            unusable[path] = "holds answers by another judge, model or wording"
        else:
            rows |= {index for index, cell in cells.items() if cell is not None and not (retry_failed and cell.failed)}
    _wait_for_others(world_size)  # all have looked before any deletes
    for path, why in unusable.items():
        path.unlink(missing_ok=True)
        say(f"vieval: {path} {why}: deleted, and asked again", file=sys.stderr)
    _wait_for_others(world_size)
    return rows


def _wait_for_others(world_size: int) -> None:
    if world_size > 1:
        import torch.distributed

        torch.distributed.barrier()


def _files(files: VerdictFiles, rank: int, world_size: int) -> Iterator[Path]:
    stem = f"{files.model}_{files.dataset}"
    names = [stem + end for end in (*_SHEETS, *_PICKLES)]
    names.append(f"{rank}{world_size}_{files.dataset}.pkl")
    yield from (path for name in names if (path := files.folder / name).exists())


def _answers(path: Path) -> Mapping[Any, Any]:
    loaded = load(str(path))
    return loaded if isinstance(loaded, dict) else dict(zip(loaded["index"], loaded["prediction"], strict=True))
