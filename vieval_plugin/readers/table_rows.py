"""Any table of images or prompts -> rows in the form of a samples file, one at a time: by what a file is, not by its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.images import format_of
from vieval_plugin.judges.protocol import Image
from vieval_plugin.media.files import require_plain
from vieval_plugin.readers.arrow_tables import ARROW, arrow_table, is_saved, parquet_table, saved_table
from vieval_plugin.readers.columns import ColumnMap, sample_row
from vieval_plugin.readers.hub import hub_table, is_hub_name
from vieval_plugin.readers.image_names import image_model_of, natural
from vieval_plugin.readers.places import place_of
from vieval_plugin.readers.sample_rows import is_address, stem_of
from vieval_plugin.readers.tables import (
    BadLine,
    InputTable,
    NumberedRow,
    StoredImage,
    csv_table,
    json_table,
    jsonl_table,
    text_table,
)
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import exists, is_below, isdir, isfile, path_of
from vieval_plugin.text.yaml_json import read_json

METADATA = tuple(f"metadata.{suffix}" for suffix in ("csv", "jsonl", "parquet"))
"""The tables by which a folder of images is known, as the hub has it; their column `file_name` names its images."""

_HEAD = 4096
_ARROW_STREAM = b"\xff\xff\xff\xff"
_REFUSED = {
    b"PK\x03\x04": "a ZIP archive; unpack it, and pass the folder or table that was in it",
    b"\x1f\x8b": "a gzip file; unpack it, and pass what was in it",
    b"\xff\xfe": "UTF-16; save it as UTF-8",
    b"\xfe\xff": "UTF-16; save it as UTF-8",
    **{
        bytes([0x80, version]): "a pickle, which could run any code and is not read; save the table as parquet or CSV"
        for version in range(2, 6)
    },
}
_TABLES = "tables are CSV, JSONL, parquet, Arrow or a folder that `datasets` saved"


def open_table(named: str | Path) -> InputTable:
    """The table that a path or the name of a data set of the hub means.

    A folder is one that `datasets.save_to_disk` wrote, or has a `metadata.csv`, `.jsonl` or `.parquet`. Files are told
    apart by their first bytes, and those that hold text by what it begins with and then by their suffix.

    Raises:
        VievalError: there is none, it cannot be read, or it is something else, which the message says.
    """
    path = path_of(named)
    if isdir(path):
        return _folder_table(path)
    if not exists(path) and not path.suffix and is_hub_name(str(named)):
        return hub_table(str(named))
    require_plain(path)
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise VievalError(f"{path}: the samples cannot be read ({error.strerror})") from None
    if head.startswith(b"PAR1"):
        return parquet_table(place_of(path))
    if head.startswith((ARROW, _ARROW_STREAM)):
        return arrow_table([path])
    if refused := _refused(head):
        raise VievalError(f"{path}: {refused}")
    if image := format_of(head):
        raise VievalError(f"{path}: an image ({image}), where a table is needed; say what it was made of with --prompt")
    if b"\0" in head:
        raise VievalError(f"{path}: a binary file, and no table that can be read here; {_TABLES}")
    return _text_table(path, head.removeprefix(b"\xef\xbb\xbf").lstrip())


def _refused(head: bytes) -> str:
    return next((words for magic, words in _REFUSED.items() if head.startswith(magic)), "")


def other_than_table(path: Path) -> str:
    """The kind of a file that is no table, such as `a ZIP archive`; empty for a table and for what cannot be read.

    >>> other_than_table(Path("prompts.txt"))
    'a text file'
    """
    if path.suffix.lower() == ".txt":
        return "a text file"
    try:
        with path.open("rb") as file:
            return _refused(file.read(_HEAD)).partition(";")[0]
    except OSError:
        return ""


def _text_table(path: Path, head: bytes) -> InputTable:
    suffix = path.suffix.lower()
    if suffix == ".txt":
        return text_table(path)
    if head.startswith(b"["):
        return json_table(path)
    if suffix == ".json" and head.startswith(b"{") and not _is_object(head.splitlines()[0]):
        return json_table(path)
    if head.startswith(b"{") or suffix in (".jsonl", ".json"):
        return jsonl_table(path)
    return csv_table(path)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(read_json(line), dict)
    except ValueError:
        return False


def metadata_of(folder: Path) -> Path | None:
    """The table that says what the images of a folder are; None where there is none."""
    return next((folder / name for name in METADATA if isfile(folder / name)), None)


def parquet_files(folder: Path) -> list[Path]:
    """The parquet files below a folder; none where one table says what is in it, or it is no folder."""
    if not isdir(folder) or is_saved(folder) or metadata_of(folder):
        return []
    found = (file for file in folder.rglob("*.parquet") if isfile(file) and not file.name.startswith("."))
    return sorted(found, key=lambda file: natural(str(file)))


def _folder_table(folder: Path) -> InputTable:
    if is_saved(folder):
        return saved_table(folder)
    if path := metadata_of(folder):
        table = open_table(path)
        return replace(table, roots=(folder,), image_model=image_model_of(folder))
    raise VievalError(
        f"{folder}: no images, no {', '.join(METADATA)}, no other parquet files, no data set that `datasets` saved, and no run of lmms-eval in it"
    )


def rows_of(table: InputTable, fields: ColumnMap, uids: bool = False) -> Iterator[NumberedRow]:
    """The rows of a table in the form of a samples file's lines; images are texts or `Image`.

    Args:
        table: whose rows are read.
        fields: by `fields_of`.
        uids: whether a row without a uid is called by the file of its output, with a number where another was before.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    for number, cells in table.read(list(dict.fromkeys(fields.columns.values()))):
        if isinstance(cells, BadLine):
            yield number, BadLine(str(cells), sample_row(cells.row, fields))
            continue
        row = sample_row(cells, fields)
        if table.image_model:
            row.setdefault("image_model", table.image_model)
        if uids:
            _call(row, counts)
        try:
            yield number, located(row, table)
        except BadLine as bad:
            yield number, BadLine(str(bad), row)


def _call(row: dict[str, Any], counts: Counter[tuple[str, str, str]]) -> None:
    """Give a row a uid by its file where it has none; `counts` say which of each image model are taken."""
    model, draw = str(row.get("image_model", "")), str(row.get("draw", 0))
    uid = row.get("uid")
    if uid is None and (stem := _stem(row.get("images"))):
        uid = stem
        while taken := counts[model, draw, uid]:
            counts[model, draw, uid] += 1
            uid = f"{stem}_{taken + 1}"
        row["uid"] = uid
    counts[model, draw, str(uid)] += 1


def _stem(images: Any) -> str:
    """The name without suffix of the file that an output is in; empty where it has none."""
    output = images.get("output") if isinstance(images, dict) else None
    name = output.name if isinstance(output, StoredImage) else output if isinstance(output, str) else ""
    return stem_of(name)


def located(row: dict[str, Any], table: InputTable) -> dict[str, Any]:
    """A row whose stored images are images; BadLine where others wrote the table and a path leads out of its folder."""
    images = row.get("images")
    if not isinstance(images, dict):
        return row
    located = {
        role: [_located(of, role, table) for of in value] if isinstance(value, list) else _located(value, role, table)
        for role, value in images.items()
    }
    return {**row, "images": located}


def _located(value: Any, role: str, table: InputTable) -> Any:
    roots = table.roots
    if isinstance(value, StoredImage):
        if value.data is not None:
            return Image(value.data, value.cell)
        value, roots = value.name, roots or (table.folder,)
    if isinstance(value, str) and roots and not is_address(value):
        if not any(is_below(table.folder / value, root) for root in roots):
            raise BadLine(
                f"the image {role} is {redacted(value)[:200]!r}, outside the folder of the table, and is not read"
            )
        return Image(table.folder / value)
    return value
