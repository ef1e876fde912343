"""The columns of a table -> what they say of a sample: by their own names, by those that are common, or as the user says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from vieval_plugin.errors import VievalError, docs_url
from vieval_plugin.images import format_of
from vieval_plugin.judges.protocol import CONDITION_ROLES
from vieval_plugin.readers.image_names import SUFFIXES
from vieval_plugin.readers.sample_rows import is_address
from vieval_plugin.readers.tables import BadLine, InputTable, StoredImage
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.suggestions import did_you_mean, listed
from vieval_plugin.text.untrusted import address_of

_SUBJECT = "subject"
_ROLES = tuple(role for role in ("output", *CONDITION_ROLES) if role != _SUBJECT)
_TEXTS = ("prompt", "instruction")
_PLAIN = ("uid", "image_model", "draw", "kind", "tags", "category")
KEYS = (*_PLAIN, *_ROLES, *_TEXTS, f"images.{_SUBJECT}", f"texts.{_SUBJECT}")
"""What a column may be, and the name of the column that is it. What else a sample may have is `images.ROLE` or
`texts.NAME`."""

_COMMON: Mapping[str, tuple[str, ...]] = {
    "output": (
        *("edited_image", "output_image", "generated_image", "target_image", "edited_img", "output_img", "target_img"),
        *("image", "img", "picture", "file_name", "filename", "image_path", "file_path", "file", "path"),
        *("jpg", "jpeg", "png", "webp"),
    ),
    "source": (
        *("source_image", "input_image", "original_image", "source_img", "input_img", "original_img"),
        *("input", "original", "before"),
    ),
    "mask": ("mask_image", "mask_img"),
    "control": ("control_image", "conditioning_image", "condition_image"),
    "instruction": ("edit_instruction", "editing_instruction", "edit_prompt", "edit"),
    "prompt": ("caption", "text", "description"),
    "uid": ("id", "image_id", "sample_id", "key"),
    "image_model": ("model", "model_name", "generator"),
}
"""Names that columns of published tables have, the surest first."""
_CONDITIONS = ("source", "mask", "control")
_FIRST = 100  # rows whose values say whether a column of such a name holds images
_FILE_NAME = "_file_name"


@dataclass(frozen=True)
class ColumnMap:
    """The column of each thing that a sample has (`images.output`, `texts.prompt`, `uid`, ...), and lines on guesses.

    None at all where rows are those of a samples file as they are. `no_text` says what to do where no column is a text.
    """

    columns: Mapping[str, str]
    notes: tuple[str, ...] = ()
    no_text: str = ""


def parse_columns(named: Sequence[str]) -> dict[str, str]:
    """The columns that a user names, from texts such as `output=image,prompt=caption`; a name may be empty.

    Raises:
        VievalError: a text is no such list, or no sample has what it names.
    """
    chosen: dict[str, str] = {}
    for pair in (pair for text in named for pair in text.split(",")):
        key, equals, column = (piece.strip() for piece in pair.partition("="))
        if not equals:
            raise VievalError(f"--columns {pair[:80]!r} names no column; write it as output=image,prompt=caption")
        chosen |= columns_by_field({key: column}, "--columns")
    return chosen


def columns_by_field(named: Mapping[str, str], where: str) -> dict[str, str]:
    """Columns by the field that each key means; VievalError, which `where` begins, for a key that means none."""
    for key in named:
        if not _field(key):
            hint = did_you_mean(key, KEYS, 0.6) or ";"
            raise VievalError(f"{where}: {key[:80]!r} is nothing that a sample has{hint} that is {', '.join(KEYS)}")
    return {_field(key): column for key, column in named.items()}


def require_columns(table: InputTable, columns: Iterable[str]) -> None:
    """VievalError for a column that a table has not (with the nearest name) or cannot be read; an empty name is none."""
    for column in filter(None, columns):
        if column in table.unreadable:
            raise VievalError(f"{table.name}: {_of_type(table, column)}")
        if column not in table.columns:
            hint = did_you_mean(column, table.columns) or ";"
            raise VievalError(f"{table.name}: no column {column[:80]!r}{hint} {_listed(table.columns)}")


def fields_of(table: InputTable, chosen: Mapping[str, str], outputs: bool = True) -> ColumnMap:
    """The columns of a table by what they are to a sample.

    A column that is called `source`, `mask`, `control` or a synonym, and that the user does not name, is read only where
    its first values look like images: names with a suffix of images, data addresses, bytes, or, beside instructions,
    addresses. Whether files exist does not matter.

    Args:
        table: whose columns are looked at.
        chosen: what the user says of them, by `parse_columns`.
        outputs: whether rows have images that were made; without them they are prompts.

    Raises:
        VievalError: a chosen column is not there, no column holds images where there should be some, or one that may
            hold conditions looks like images in some rows alone.
    """
    if table.nested and {"status", "scores"} <= set(table.columns):
        raise VievalError(f"{table.name}: verdicts, where samples are needed; give the table that was judged")
    if table.nested and not chosen and {"images", "texts"} & set(table.columns):
        return ColumnMap({})
    require_columns(table, chosen.values())
    named = {field: column for column in table.columns if column not in _CONDITIONS and (field := _field(column))}
    if _SUBJECT in table.columns and _SUBJECT not in chosen.values():
        raise VievalError(
            f"{table.name}: is the column {_SUBJECT!r} an image or a text? call it images.{_SUBJECT} or texts.{_SUBJECT}"
        )
    fields = {field: column for field, column in {**named, **chosen}.items() if column}
    guessed, words = _guessed(table, {**fields, **chosen}, outputs)
    fields |= guessed
    _require_texts(table, fields)
    if outputs and table.columns and not any(field.startswith("images") for field in fields):
        hints = (
            (f" {column!r}", did_you_mean(column, ("output", *_COMMON["output"]), 0.7)) for column in table.columns
        )
        column, hint = next((pair for pair in hints if pair[1]), (" of images", ";"))
        unreadable = "".join(f"; {_of_type(table, name)}" for name in list(table.unreadable)[:1])
        raise VievalError(
            f"{table.name}: no column{column}{hint} {_listed(table.columns)}; say which it is: --columns output=COLUMN"
            f"{unreadable}; see {docs_url('guides/scoring.md#columns-of-a-table')}"
        )
    no_text = "" if any(field.startswith("texts") for field in fields) else _no_text(table, fields)
    if no_text and not outputs and table.columns:
        raise VievalError(no_text)
    return ColumnMap(fields, _notes(table, fields, guessed, words), no_text)


def _require_texts(table: InputTable, fields: Mapping[str, str]) -> None:
    """VievalError for a text whose column holds something else."""
    for field, column in fields.items():
        part, _, name = field.partition(".")
        if part == "texts" and column in table.not_texts:
            raise VievalError(
                f"{table.name}: the column {column[:80]!r} ({table.not_texts[column][:80]}) is no text; --columns "
                f"{_column_name(name)}=COLUMN names another"
            )


def _column_name(text: str) -> str:
    """The key of a text in --columns."""
    return text if text in _TEXTS else f"texts.{text}"


def _of_type(table: InputTable, column: str) -> str:
    kind = table.unreadable[column]
    return f"the column {column[:80]!r} is {kind[:200]}, which cannot be read; save it as texts, numbers or images"


def _no_text(table: InputTable, fields: Mapping[str, str]) -> str:
    """The line on a table without a column of texts: which columns could be it."""
    left, text = _left_out(table, fields), "instruction" if "images.source" in fields else "prompt"
    if not left:
        return f"{table.name}: no {text} was found; add a column {text!r}"
    column = left[0] if len(left) == 1 else "COLUMN"
    return f"{table.name}: no {text} was found; say --columns {text}={column} (columns left out: {listed(left)})"


def sample_row(cells: Mapping[str, Any], fields: ColumnMap) -> dict[str, Any]:
    """A row of a table in the form of a line of a samples file; images may also be `StoredImage`."""
    if not fields.columns:
        return dict(cells)
    row: dict[str, Any] = {"images": {}, "texts": {}}
    for field, column in fields.columns.items():
        value = cells.get(column)
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        part, _, name = field.partition(".")
        if name and isinstance(row[part], dict):
            row[part][name] = value
        elif field in ("images", "texts") and isinstance(value, dict):
            row[field] = {**value, **row[field]}
        elif field == "tags" and isinstance(value, str):
            row[field] = [tag.strip() for tag in value.split(";") if tag.strip()]
        elif field == "draw" and isinstance(value, str):
            plain = value.isascii() and value.strip().isdecimal() and len(value) < 10
            row[field] = int(value) if plain else value
        else:
            row[field] = value.strip() if isinstance(value, str) else value
    return row


def _field(name: str) -> str:
    """The field that a column's own name says; empty for a name that says none."""
    part, _, rest = name.partition(".")
    if name in ("images", "texts") or (part in ("images", "texts") and rest):
        return name
    if name in _ROLES:
        return f"images.{name}"
    if name in _TEXTS:
        return f"texts.{name}"
    return "kind" if name == "task" else name if name in _PLAIN else ""


def _guessed(table: InputTable, known: Mapping[str, str], outputs: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Columns by the fields that their names are common for, of fields that are not known.

    Beside them, by their names, columns of conditions that hold no images, each with one of its values.
    """
    plain = {_plain(column): column for column in reversed(table.columns) if column not in known.values()}
    has_instructions = "texts.instruction" in known or not plain.keys().isdisjoint(_names("instruction"))
    guessed: dict[str, str] = {}
    words: dict[str, str] = {}
    is_edited = bool(known.get("images.source"))
    for key in _COMMON:
        field, names = _field(key), _names(key)
        if field in known or (key == "output" and not outputs):
            continue
        if key == "instruction" and is_edited:
            names = (*names, *_COMMON["prompt"])  # a text beside an image that is edited
        if key == "prompt" and "texts.instruction" in {*known, *guessed}:
            continue
        for column in (plain[name] for name in names if name in plain and plain[name] not in guessed.values()):
            values = _first_values(table, column) if key in _CONDITIONS else []
            looks = [_looks_like_image(value, has_instructions) for value in values]
            if any(looks) and not all(looks):
                raise VievalError(
                    f"{table.name}: is the column {column[:80]!r} an image? {_shown(values[looks.index(True)])} looks like "
                    f"one, and {_shown(values[looks.index(False)])} does not; say --columns {key}={column} to read it, or "
                    f"--columns {key}= to leave it out"
                )
            if all(looks):
                guessed[field] = column
                is_edited = is_edited or (key == "source" and bool(looks))
                break
            words[column] = _shown(values[0])
    return guessed, words


def _names(key: str) -> tuple[str, ...]:
    return (key, *_COMMON[key])


def _first_values(table: InputTable, column: str) -> list[Any]:
    """The values of a column in the first rows, less those that are empty."""
    cells = (row.get(column) for _, row in islice(table.read([column]), _FIRST) if not isinstance(row, BadLine))
    return [cell for cell in cells if not (cell is None or (isinstance(cell, str) and not cell.strip()))]


def _looks_like_image(value: Any, has_instructions: bool) -> bool:
    """Return whether a value has the form of an image: its bytes or pixels, or a text that names one."""
    if isinstance(value, list):
        return all(_looks_like_image(of, has_instructions) for of in value)
    if isinstance(value, StoredImage):
        if value.data is not None and format_of(value.data):
            return True
        value = value.name
    if isinstance(value, str):
        address = address_of(value) if is_address(value) else None
        path = address.path if address else value.strip()
        return path.lower().endswith(SUFFIXES) or path.startswith("data:image/") or (bool(address) and has_instructions)
    if isinstance(value, dict):
        return not value.keys().isdisjoint(("bytes", "path"))
    return not isinstance(value, (int, float))


def _shown(value: Any) -> str:
    return repr(redacted(value)[:60] if isinstance(value, str) else value)[:80]


def _plain(column: str) -> str:
    """A column's name as `_COMMON` has it: `Edited-Image` and `edited_image_file_name` are `edited_image`."""
    plain = column.strip().lower().replace(" ", "_").replace("-", "_")
    return plain.removesuffix(_FILE_NAME)


def _notes(
    table: InputTable, fields: Mapping[str, str], guessed: Mapping[str, str], words: Mapping[str, str]
) -> tuple[str, ...]:
    left = [column for column in _left_out(table, fields) if column not in words]
    by_synonym = {field: column for field, column in guessed.items() if _field(column) != field}
    read = ", ".join(f"{column} as {field.partition('.')[2] or field}" for field, column in by_synonym.items())
    lines = (
        [f"{table.name}: guessed by its columns' names: reading {read}; --columns KEY=COLUMN says otherwise"]
        if read
        else []
    )
    for column, value in words.items():
        lines.append(
            f"{table.name}: the column {column[:80]!r} holds no images (such as {value}) and is left out; --columns "
            f"category={column} reads it, or image_model={column} if it names the generator"
        )
    if left:
        lines.append(f"{table.name}: columns that are left out: {listed(left)}")
    return tuple(lines)


def _left_out(table: InputTable, fields: Mapping[str, str]) -> list[str]:
    return [column for column in (*table.columns, *table.unreadable) if column and column not in fields.values()]


def _listed(columns: Sequence[str]) -> str:
    return f"the columns are {listed(columns)}" if columns else "it has no columns"
