"""JSONL, JSON and text tables, read one row at a time."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from vieval_plugin.judges.protocol import TableCell
from vieval_plugin.media.files import require_plain
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import abbreviated
from vieval_plugin.text.untrusted import is_encodable
from vieval_plugin.text.yaml_json import JsonObject, read_json

_LONGEST_LINE = 64 << 20
_LONGEST_LIST = 256 << 20
_ROW_KEY = re.compile(
    r"\d|\.(png|jpe?g|webp)$", re.IGNORECASE
)  # what the number or the file name of a row has
_PROMPTS = (
    "prompt",
    "text",
    "caption",
    "instruction",
)


#: The cells of a row by column.
Cells: TypeAlias = dict[str, Any]


#: Columns by what they hold.
Columns: TypeAlias = Mapping[str, str]


def are_texts(value: Any) -> TypeGuard[list[str]]:
    """Return whether a value is a list of texts, which may be empty."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def are_objects(value: Any) -> TypeGuard[list[Cells]]:
    """Return whether a value is a list of objects, which may be empty."""
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


class BadLine(Exception):
    """Fault of a row; `row` is as much of it as could be read."""

    def __init__(self, reason: str, row: Cells | None = None) -> None:
        super().__init__(reason)
        self.row = row or {}


#: The cells of a row by column, or what is wrong with it, and its number from 1: of the line where
#: it ends, or its own.
NumberedRow: TypeAlias = "tuple[int, Cells | BadLine]"


@dataclass(frozen=True)
class StoredImage:
    """A cell of a table that holds an image."""

    #: Its file's name, which may be an address; empty where only bytes are there.
    name: str
    #: Its bytes; None where only a name is there.
    data: bytes | None
    cell: TableCell


@dataclass(frozen=True)
class InputTable:
    """A table whose rows are read as often as they are asked for."""

    #: Its name in messages.
    name: str
    #: Columns that rows may have, as far as that can be said before all are read.
    columns: tuple[str, ...]
    #: Function that reads the rows, given the columns that are needed.
    read: Callable[[Sequence[str]], Iterator[NumberedRow]]
    #: Folder where relative paths begin.
    folder: Path
    #: Files that hold the rows.
    files: tuple[Path, ...]
    #: Name of a row in messages.
    unit: str = "line"
    #: Folders that images must lie in where others wrote the table; empty where paths are the
    #: user's own.
    roots: tuple[Path, ...] = ()
    #: Image model of rows which name none.
    image_model: str = ""
    #: Types of the columns with values that no sample field can hold.
    unreadable: Mapping[str, str] = field(default_factory=dict)
    #: True where rows may have the columns `images` and `texts`, which map roles and names to
    #: values.
    nested: bool = False
    #: Types of the columns whose values are no texts.
    not_texts: Mapping[str, str] = field(default_factory=dict)
    #: Lines for the user on how it was read.
    notes: tuple[str, ...] = ()


def encoding_of(head: bytes) -> str:
    """The encoding of a text file that begins so: UTF-8, or UTF-16 where its first bytes say so.

    >>> encoding_of("uid".encode("utf-16")), encoding_of(b"uid,prompt")
    ('utf-16', 'utf-8-sig')
    """
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8-sig"


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """A text file while it is read; VievalError where it cannot be, or is not text."""
    try:
        yield
    except UnicodeError:
        raise VievalError(
            f"{path}: must be UTF-8; save the table as CSV UTF-8"
        ) from None
    except OSError as error:
        raise VievalError(f"cannot read {path}: {error.strerror}") from None


def require_once(path: Path | str, header: Sequence[str]) -> None:
    """Raise VievalError for a duplicate column, which would be ambiguous."""
    for column in header:
        if header.count(column) > 1:
            raise VievalError(
                f"{path}: two columns are named {column!r}; rename or remove one"
            )


def jsonl_table(path: Path) -> InputTable:
    """A file with one JSON object per line; VievalError if it cannot be read."""
    return _table_of_values(path, partial(values_of_lines, path), "line")


def json_table(path: Path) -> InputTable:
    """A JSON file of at most 256 MiB, with rows in any of the forms of `rows_of_document`;
    VievalError where it has none.
    """
    with readable(path):
        if path.stat().st_size > _LONGEST_LIST:
            raise VievalError(
                f"{path}: larger than {_LONGEST_LIST >> 20} MiB; save it as "
                "JSONL, with one object per line"
            )
        content = path.read_bytes()
        text = content.decode(encoding_of(content))
    try:
        values = rows_of_document(json_value(text))
    except ValueError as error:
        raise VievalError(
            f"{path}: invalid JSON ({error}); use a list of objects, or one object "
            "per line"
        ) from None
    return _table_of_values(
        path,
        lambda: enumerate(values, start=1),
        "row",
    )


def _object(pairs: Sequence[tuple[str, Any]]) -> Cells | BadLine:
    document = dict(pairs)
    if len(document) == len(pairs):
        return document
    names = [name for name, _ in pairs]
    return BadLine(f"duplicate key {max(names, key=names.count)[:80]!r}")


def rows_of_document(document: Any) -> Sequence[Any]:
    """The rows of a JSON document: objects, texts that are prompts, or values that are
    not rows.

    It is a list; an object with one list under any key; an object of columns, each a list, or an
    object by row as pandas writes it; an object of rows or prompts by number or file name, which is
    their `key`; or a row itself.

    Raises:
        ValueError: it has several lists of unequal length.

    >>> rows_of_document({"data": [{"prompt": "a"}]}), rows_of_document({"prompt": ["a"], "id": [7]})
    ([{'prompt': 'a'}], [{'prompt': 'a', 'id': 7}])
    >>> rows_of_document({"0": "a cat"}), rows_of_document({"prompt": {"7": "a cat"}})
    ([{'key': '0', 'prompt': 'a cat'}], [{'key': '7', 'prompt': 'a cat'}])
    """
    if not isinstance(document, dict) or not document.keys().isdisjoint(
        ("images", "texts", "candidates")
    ):
        if isinstance(document, list):
            return document
        return [document]
    lists = {name: value for name, value in document.items() if isinstance(value, list)}
    is_all_lists = len(lists) == len(document)
    if len(lists) == 1:
        [values] = lists.values()
        # a list in an object that is no row itself
        is_table = document.keys().isdisjoint(_PROMPTS) and are_objects(values)
        if is_all_lists or is_table:
            return values
    if lists and is_all_lists:
        if len(set(map(len, lists.values()))) > 1:
            raise ValueError(
                f"the lists {abbreviated(list(lists))} have different lengths"
            )
        rows = zip(*lists.values(), strict=True)
        return [dict(zip(lists, row, strict=True)) for row in rows]
    return _rows_by_key(document) or [document]


def _rows_by_key(document: JsonObject) -> list[Any]:
    """The rows of an object that has a row or a prompt by key, or a column by name; none where
    it has neither.
    """
    values = document.values()
    is_keyed = bool(document) and all(map(_ROW_KEY.search, document))
    if is_keyed and are_texts([*values]):
        return [{"key": key, "prompt": value} for key, value in document.items()]
    if not are_objects([*values]):
        return []
    inner = dict.fromkeys(name for value in values for name in value)
    if not is_keyed and all(map(str.isdecimal, inner)):
        columns = document.items()
        return [
            {"key": key}
            | {column: cells[key] for column, cells in columns if key in cells}
            for key in inner
        ]
    if is_keyed or not any(value.keys().isdisjoint(_PROMPTS) for value in values):
        return [{"key": key, **row} for key, row in document.items()]
    return []


def text_table(path: Path) -> InputTable:
    """A text file with one prompt per line, in the column `prompt`; VievalError if it
    cannot be read.
    """

    def read(columns: Sequence[str]) -> Iterator[NumberedRow]:
        for number, line in lines_of_file(path):
            try:
                yield number, {"prompt": line.decode()}
            except UnicodeDecodeError:
                yield number, BadLine("not UTF-8")

    return InputTable(
        str(path),
        ("prompt",),
        read,
        path.parent,
        (path,),
    )


def lines_of_file(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, as UTF-8 with numbers from 1; VievalError if it
    cannot be read.
    """
    require_plain(path)
    with readable(path), path.open("rb") as file:
        encoding = encoding_of(file.read(2))
        file.seek(0)
        stream: Any = file
        if encoding == "utf-16":
            stream = codecs.EncodedFile(file, "utf-8", encoding)
        lines = iter(partial(stream.readline, _LONGEST_LINE), b"")
        for number, line in enumerate(lines, start=1):
            if len(line) >= _LONGEST_LINE:
                raise VievalError(
                    f"{path}: line {number} is longer than {_LONGEST_LINE >> 20} MiB; shorten it"
                )
            text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
            if text:
                yield number, text


def values_of_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file's lines with their numbers from 1, a `BadLine` for one that is
    not JSON.
    """
    for number, line in lines_of_file(path):
        try:
            yield number, json_value(line.decode())
        except UnicodeDecodeError:
            yield number, BadLine("not UTF-8")
        except ValueError as error:
            is_deep = "deeply" in str(error)
            fault = "nested too deeply" if is_deep else "not a JSON object"
            yield number, BadLine(fault)


def json_value(text: str | bytes) -> Any:
    """The value of a JSON text, a `BadLine` in the place of an object that has a key twice;
    ValueError for a text that is not JSON.
    """
    return read_json(text, object_pairs_hook=_object)


def row_of_value(value: Any, texts_are_prompts: bool = False) -> Cells | BadLine:
    """The row that a JSON value is, or what is wrong with it."""
    row = value
    if texts_are_prompts and isinstance(value, str):
        row = {"prompt": value}
    if isinstance(row, BadLine):
        return row
    if not isinstance(row, dict):
        return BadLine("not a JSON object")
    for cell in row.values():
        if isinstance(cell, BadLine):
            return cell
    if not is_encodable(row):
        return BadLine("a text contains a lone surrogate, which is not valid Unicode")
    return row


def _table_of_values(
    path: Path,
    values: Callable[[], Iterable[tuple[int, Any]]],
    unit: str,
) -> InputTable:
    """The table of JSON values: objects, or texts that are prompts where none is an object."""

    def rows(texts_are_prompts: bool) -> Iterator[NumberedRow]:
        for number, value in values():
            yield number, row_of_value(value, texts_are_prompts)

    objects = (row for _, row in rows(False) if not isinstance(row, BadLine))
    columns = tuple(dict.fromkeys(name for row in objects for name in row))
    has_prompts = not columns and any(isinstance(value, str) for _, value in values())
    return InputTable(
        str(path),
        ("prompt",) if has_prompts else columns,
        lambda _: rows(has_prompts),
        path.parent,
        (path,),
        unit,
        nested=True,
    )
