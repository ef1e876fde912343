"""The prompts that images were made of, from any table or a text file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vieval_plugin.readers.columns import fields_of, rows_of
from vieval_plugin.readers.open_table import open_table
from vieval_plugin.readers.tables import (
    BadLine,
    Cells,
    Columns,
    InputTable,
    NumberedRow,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import LONGEST_NAME, isfile

#: The files in which a folder of images may have its own prompts.
NAMES = tuple(
    f"prompts.{suffix}"
    for suffix in (
        "jsonl",
        "csv",
        "tsv",
        "json",
        "parquet",
        "txt",
    )
)

#: Names of columns that are the uid even where the images could be in the order of the rows.
_UID_COLUMNS = (
    "uid",
    "id",
    "image_id",
    "sample_id",
    "key",
)
_ID_NAME = re.compile(
    r"(\w+_)?(uid|id|key|index|idx|ids|uuid|guid|number|num|nr)|no|unnamed"
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True)
class KeyColumn:
    """Column of a table of prompts whose values images may be called by."""

    name: str
    #: Its value in each row; empty where it has none.
    uids: tuple[str, ...]
    #: True for a name that columns of ids have.
    is_id: bool
    #: True for the column `uid`.
    is_own: bool = False

    @cached_property
    def is_unique(self) -> bool:
        """True where all rows have different values."""
        has_repeated = len(set(self.uids)) < len(self.uids)
        return all(self.uids) and not has_repeated

    @property
    def is_uid(self) -> bool:
        """True for a name that only a uid has."""
        return self.is_own or _plain(self.name) in _UID_COLUMNS


@dataclass(frozen=True)
class PromptRow:
    """Conditions of one image."""

    #: Number of its row in the file.
    number: int
    #: The row in the form of a samples file's line.
    row: Cells
    #: Its uid, or its number among the prompts.
    uid: str


@dataclass(frozen=True)
class Prompts:
    """Prompts of a file, in order."""

    #: Name of the file in messages.
    name: str
    #: The prompts, each called by its uid, else by the first column of ids, else by its number.
    rows: tuple[PromptRow, ...]
    #: Columns that images may be called by, the surest first.
    keys: tuple[KeyColumn, ...]
    #: True where the user says which column is the uid.
    uid_is_named: bool
    #: Folder where paths of their images begin.
    folder: Path
    #: Name of a row in messages.
    unit: str
    #: Lines for the user on what was guessed.
    notes: tuple[str, ...]
    #: Columns that are left out, unless one of them names the images.
    leftover: tuple[str, ...]


def find_prompts(folder: Path) -> Path | None:
    """The prompts that a folder of images has beside them; None where it has none."""
    return next((folder / name for name in NAMES if isfile(folder / name)), None)


def prompts_of(path: Path, columns: Columns | None = None) -> Prompts:
    """The prompts of a table (see `open_table`), or each line of a `.txt`.

    A prompt without a uid and without a column of ids is called by its number among the prompts,
    which is the same in a `.txt` and in a CSV.

    Raises:
        VievalError: the table cannot be read or is empty, and for the first row that is no prompt,
            names an image model, a draw or an output, or has the uid of another.
    """
    table = open_table(path)
    fields = fields_of(table, columns or {}, outputs=False)
    rows_by_uid = _rows_by_uid(f"{path}: {table.unit}", rows_of(table, fields))
    rows = rows_by_uid.values()
    own_uids = tuple(rows_by_uid)
    if not rows:
        raise VievalError(f"{path}: contains no prompts")
    uid_column = (columns or {}).get("uid")
    keys = []
    if uid_column or any("uid" in row for _, row in rows):
        name = uid_column or "uid"
        keys.append(
            KeyColumn(
                name,
                own_uids,
                is_id=True,
                is_own=True,
            )
        )
    if uid_column is None:
        keys += _key_columns(table, fields.columns.get("uid", "uid"))
    ids = (key.uids for key in keys if key.is_own or (key.is_id and key.is_unique))
    uids = next(ids, own_uids)
    prompts = [PromptRow(*row, uid) for row, uid in zip(rows, uids, strict=True)]
    return Prompts(
        str(path),
        tuple(prompts),
        tuple(keys),
        bool(uid_column),
        table.folder,
        table.unit,
        fields.notes,
        fields.leftover,
    )


def _rows_by_uid(
    where: str, rows: Iterable[NumberedRow]
) -> dict[str, tuple[int, Cells]]:
    """Rows with their numbers by uid, which is the number among the prompts of a row without
    one.
    """
    rows_by_uid: dict[str, tuple[int, Cells]] = {}
    for number, row in rows:
        if isinstance(row, BadLine):
            raise VievalError(f"{where} {number}: {row}")
        problem = _problem(row)
        if problem:
            raise VievalError(f"{where} {number}: {problem}")
        uid = str(row.get("uid"))
        if row.get("uid") is None:
            uid = str(len(rows_by_uid) + 1)
        if uid in rows_by_uid:
            earlier, _ = rows_by_uid[uid]
            raise VievalError(
                f"{where}s {earlier} and {number} both have uid {uid!r}; "
                "use a different uid for each"
            )
        rows_by_uid[uid] = (number, dict(row))
    return rows_by_uid


def _key_columns(table: InputTable, uid_column: str) -> list[KeyColumn]:
    """The columns of texts and whole numbers whose name is that of an id, or whose values
    differ.
    """
    names = [name for name in table.columns if name != uid_column]
    columns: dict[str, list[str | None]] = {name: [] for name in names}
    for _, cells in table.read(names):
        for name, values in columns.items():
            values.append(
                None if isinstance(cells, BadLine) else _key_of(cells.get(name))
            )
    keys = []
    for name, values in columns.items():
        uids = tuple(uid for uid in values if uid is not None)
        key = KeyColumn(
            name,
            uids,
            _ID_NAME.fullmatch(_plain(name)) is not None,
        )
        if len(uids) == len(values) and (key.is_id or key.is_unique):
            keys.append(key)
    return keys


def _key_of(value: Any) -> str | None:
    """A cell as what an image may be called by; empty for an empty cell, None where it
    is neither a text nor a whole number.
    """
    is_whole = isinstance(value, int) or (
        isinstance(value, float) and value.is_integer()
    )
    if isinstance(value, bool) or not (
        value is None or is_whole or isinstance(value, str)
    ):
        return None
    text = re.sub(
        r"(?<=\d)\.0+$",
        "",
        "" if value is None else str(value).strip(),
    )
    if len(text) <= LONGEST_NAME:
        return text
    return None


def _plain(name: str) -> str:
    return "_".join(_WORD.findall(name)).lower()


def _problem(row: Cells) -> str:
    """Reason that a row is not a prompt, in words; empty if it is one."""
    images = row.get("images", {})
    if isinstance(images, dict) and "output" in images:
        return (
            "it has an output, but outputs come from the folder; to judge a "
            "samples file, omit --prompts"
        )
    if row.get("image_model") or row.get("draw"):
        return (
            "prompts must not have an image_model or a draw; "
            "folders are image models, "
            "and UID_1.png is the second image of UID"
        )
    uid = row.get("uid", "")
    if isinstance(uid, (str, int)) and not isinstance(uid, bool):
        return ""
    return "`uid` must be a string"
