"""The prompts that images were made of, from any table or a text file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vieval_plugin.readers.columns import fields_of, rows_of
from vieval_plugin.readers.open_table import open_table
from vieval_plugin.readers.tables import BadLine
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import isfile

#: The files in which a folder of images may have its own prompts.
NAMES = tuple(f"prompts.{suffix}" for suffix in ("jsonl", "csv", "parquet", "txt"))


@dataclass(frozen=True)
class PromptRow:
    """Conditions of one image."""

    #: Number of its row in the file.
    number: int
    #: The row in the form of a samples file's line.
    row: dict[str, Any]
    #: Its uid, or its number among the prompts.
    uid: str
    #: True where the file gives it a uid.
    has_uid: bool


@dataclass(frozen=True)
class Prompts:
    """Prompts of a file, in order."""

    #: The prompts.
    rows: tuple[PromptRow, ...]
    #: Folder where paths of their images begin.
    folder: Path
    #: Name of a row in messages.
    unit: str
    #: Lines for the user on what was guessed.
    notes: tuple[str, ...]


def own_prompts(folder: Path) -> Path | None:
    """The prompts that a folder of images has beside them; None where it has none."""
    return next((folder / name for name in NAMES if isfile(folder / name)), None)


def prompts_of(path: Path, columns: Mapping[str, str] | None = None) -> Prompts:
    """The prompts of a table (see `open_table`), or each line of a `.txt`.

    A prompt without a uid is called by its number among the prompts, which is the same in a `.txt` and in a CSV.

    Raises:
        VievalError: the table cannot be read or is empty, and for the first row that is no prompt, names an image model,
            a draw or an output, or has the uid of another.
    """
    table = open_table(path)
    fields = fields_of(table, columns or {}, outputs=False)
    prompts: dict[str, PromptRow] = {}
    for number, row in rows_of(table, fields):
        if isinstance(row, BadLine) or (problem := _problem(row)):
            raise VievalError(f"{path}: {table.unit} {number}: {row if isinstance(row, BadLine) else problem}")
        has_uid = row.get("uid") is not None
        uid = str(row["uid"] if has_uid else len(prompts) + 1)
        if uid in prompts:
            raise VievalError(
                f"{path}: {table.unit}s {prompts[uid].number} and {number} are both {uid!r}; give each a uid of its own"
            )
        prompts[uid] = PromptRow(number, dict(row), uid, has_uid)
    if not prompts:
        raise VievalError(f"{path}: no prompts in it")
    return Prompts(tuple(prompts.values()), table.folder, table.unit, fields.notes)


def _problem(row: Mapping[str, Any]) -> str:
    """Reason that a row is no prompt, in words; empty where it is one."""
    images = row.get("images", {})
    if isinstance(images, dict) and "output" in images:
        return "it names an output, and the outputs are the folder's; leave --prompts out to judge a samples file"
    if row.get("image_model") or row.get("draw"):
        return "a prompt has no image_model and no draw: folders are image models, and UID_1.png is its second image"
    uid = row.get("uid", "")
    return "" if isinstance(uid, (str, int)) and not isinstance(uid, bool) else "uid must be a text"
