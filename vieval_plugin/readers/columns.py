"""Mapping of table columns to fields of samples: by name, by common names, or by the
user.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse, islice
from typing import Any

from vieval_plugin.images import format_of
from vieval_plugin.judges.protocol import (
    CONDITION_ROLES,
    REFERENCE,
    WANTED_OBJECTS,
    Image,
)
from vieval_plugin.judges.spec import INPUTS
from vieval_plugin.readers.image_names import SUFFIXES
from vieval_plugin.readers.sample_rows import (
    encoded_image,
    image_path,
    is_address,
    stem_of,
)
from vieval_plugin.readers.tables import (
    BadLine,
    Cells,
    Columns,
    InputTable,
    NumberedRow,
    StoredImage,
)
from vieval_plugin.text.errors import VievalError, docs_url
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.suggestions import abbreviated, did_you_mean
from vieval_plugin.text.untrusted import address_of, is_below

_SUBJECT = "subject"
_ROLES = tuple(
    role for role in ("output", *CONDITION_ROLES, REFERENCE) if role != _SUBJECT
)
_TEXTS = ("prompt", "instruction")
_PLAIN = (
    "uid",
    "image_model",
    "draw",
    "kind",
    "tags",
    "category",
    "group",
)
#: What a column may be, and the name of the column that is it. What else a sample may have is
#: `images.ROLE` or `texts.NAME`.
KEYS = (
    *_PLAIN,
    *_ROLES,
    *_TEXTS,
    f"images.{_SUBJECT}",
    f"texts.{_SUBJECT}",
)

#: Names that columns of published tables have, the surest first.
_COMMON = {
    names.split()[0]: names.split()[1:]
    for names in (
        "output edited_image output_image generated_image target_image edited_img output_img "
        "target_img image img picture file_name filename image_path file_path file path jpg jpeg "
        "png webp",
        "source source_image input_image original_image source_img input_img original_img input "
        "original before",
        "mask mask_image mask_img",
        "control control_image conditioning_image condition_image",
        "instruction edit_instruction editing_instruction edit_prompt edit",
        "prompt caption text description",
        "uid id image_id sample_id key",
        "image_model model model_name generator",
    )
}
_CONDITIONS = (
    "source",
    "mask",
    "control",
    REFERENCE,
)
_FIELDS = {
    **{name: name for name in (*_PLAIN, "images", "texts")},
    **{role: f"images.{role}" for role in _ROLES},
    **{text: f"texts.{text}" for text in _TEXTS},
    "task": "kind",
    WANTED_OBJECTS: f"texts.{WANTED_OBJECTS}",
}
# a comma before a key; any other is one in a column's name
_NEXT_KEY = re.compile(r",(?=[^,=]*=)")
# characters; a longer text in place of a path is an image in base64
_LONGEST_PATH = 4096
_FIRST = 100  # values that say whether a column of such a name holds images


@dataclass(frozen=True)
class ColumnMap:
    """The column of each field of a sample."""

    #: Columns by field (`images.output`, `texts.prompt`, `uid`, ...); none where rows are a samples
    #: file's as they are.
    columns: Columns
    #: Lines for the user on what was guessed or left out.
    notes: tuple[str, ...] = ()
    #: Advice where no column is a text.
    no_text: str = ""
    #: Columns that are left out without a line of their own.
    leftover: tuple[str, ...] = ()


def parse_columns(options: Sequence[str]) -> dict[str, str]:
    """Parse column options such as `output=image,prompt=caption`; a column may be
    empty.

    Raises:
        VievalError: a text is no such list, or no sample has what it names.
    """
    columns: dict[str, str] = {}
    pairs = [pair for text in options for pair in _NEXT_KEY.split(text)]
    for pair in pairs:
        key, equals, column = (piece.strip() for piece in pair.partition("="))
        if not equals:
            raise VievalError(
                "--columns must be KEY=COLUMN such as "
                f"output=image,prompt=caption, got {pair[:80]!r}"
            )
        columns |= columns_by_field({key: column}, "--columns")
    return columns


def columns_by_field(columns: Columns, where: str) -> dict[str, str]:
    """Columns by field; VievalError, prefixed with `where`, for an unknown key."""
    for key in columns:
        if not _field(key):
            hint = did_you_mean(key, KEYS, 0.6) or ";"
            raise VievalError(
                f"{where}: unknown field {key[:80]!r}{hint} "
                f"known fields: {', '.join(KEYS)}"
            )
    return {_field(key): column for key, column in columns.items()}


def require_columns(table: InputTable, columns: Iterable[str]) -> None:
    """Raise VievalError for a missing column (with the nearest name) or one that cannot
    be read.
    """
    for column in filter(None, columns):
        if column in table.unreadable:
            raise VievalError(f"{table.name}: {_column_type(table, column)}")
        if column not in table.columns:
            hint = did_you_mean(column, table.columns) or ";"
            raise VievalError(
                f"{table.name}: no column {column[:80]!r}{hint} "
                f"{_column_words(table.columns)}"
            )


def fields_of(
    table: InputTable,
    columns: Columns,
    outputs: bool = True,
) -> ColumnMap:
    """Columns of a table by the field of a sample that they hold.

    A column that is called `source`, `mask`, `control` or a synonym, and that the user does not
    name, is read only where its first values look like images: names with a suffix of images, data
    addresses, bytes, or, beside instructions, addresses. Whether files exist does not matter.

    Args:
        table: whose columns are looked at.
        columns: what the user says of them, by `parse_columns`.
        outputs: whether rows have images that were made; without them they are prompts.

    Raises:
        VievalError: a column of the user's is not there, no column holds images where there should
            be some, or one that may hold conditions looks like images in some rows alone.
    """
    names = set(table.columns)
    if table.nested and names >= {"status", "scores"}:
        raise VievalError(
            f"{table.name}: contains verdicts, "
            "but samples are required; "
            "pass the table that was judged"
        )
    if table.nested and not columns and names & {"images", "texts"}:
        return ColumnMap({})
    require_columns(table, columns.values())
    _require_clear_subject(table, columns)
    by_own_name = _columns_by_own_name(table, columns)
    foreign_kind = _foreign_kind(table, by_own_name.get("kind", ""))
    if foreign_kind:
        del by_own_name["kind"]
    explicit_columns = {**by_own_name, **columns}
    guessed, no_images = _guessed(table, explicit_columns, outputs)
    candidates = {**explicit_columns, **guessed}.items()
    fields = {field: column for field, column in candidates if column}
    _require_texts(table, fields)
    has_images = any(field.startswith("images") for field in fields)
    if outputs and table.columns and not has_images:
        raise _missing_output_error(table)
    unused = [
        column
        for column in (*table.columns, *table.unreadable)
        if column and column not in fields.values()
    ]
    no_text = ""
    if not any(field.startswith("texts") for field in fields):
        no_text = _missing_text_line(table, fields, unused)
    if no_text and not outputs and table.columns:
        raise VievalError(no_text)
    # columns that could be a text as well, which the user says nothing of
    unnamed_fields = guessed.keys() - columns.keys()
    guessed_texts = [text for text in _TEXTS if f"texts.{text}" in unnamed_fields]
    rivals = {
        column: text
        for text in guessed_texts
        for column in unused
        if _plain(column) in (text, *_COMMON[text])
    }
    notes = [*table.notes, *_guess_notes(guessed)]
    notes += _ignored_notes(no_images, foreign_kind)
    for column, text in rivals.items():
        notes.append(
            f"reading column {fields[_field(text)]!r} as {text}; "
            f"to read {column!r} instead, "
            f"use --columns {text}={column}"
        )
    noted = {*no_images, *rivals, *foreign_kind}
    return ColumnMap(
        fields,
        tuple(f"{table.name}: {note}" for note in notes),
        no_text,
        tuple(column for column in unused if column not in noted),
    )


def _columns_by_own_name(table: InputTable, columns: Columns) -> dict[str, str]:
    """Columns that are called like a field, and that the user has not given to another."""
    renamed = {column for field, column in columns.items() if field != "uid"}
    by_own_name = {}
    for column in table.columns:
        field = _field(column)
        is_open = field and column not in (*_CONDITIONS, *renamed)
        if is_open and _may_be(table, field, column):
            by_own_name[field] = column
    return by_own_name


def _ignored_notes(no_images: Columns, foreign_kind: Columns) -> Iterator[str]:
    """Lines on columns that do not hold what their names say, by one of their values."""
    for column, value in no_images.items():
        ignored = _ignored_words(column, value, "images")
        yield f"{ignored}, or image_model={column} if it holds generator names"
    for column, value in foreign_kind.items():
        yield _ignored_words(column, value, "sample kinds")


def _ignored_words(
    column: str,
    value: str,
    content: str,
) -> str:
    return (
        f"ignoring column {column[:80]!r}, "
        f"which does not hold {content} "
        f"(for example, {value}); "
        f"read it with --columns category={column}"
    )


def _guess_notes(guessed: Columns) -> Iterator[str]:
    synonyms = [
        f"{column} as {field.partition('.')[2] or field}"
        for field, column in guessed.items()
        if _field(column) != field
    ]
    if synonyms:
        yield (
            f"reading {', '.join(synonyms)}, based on column names; use --columns "
            "KEY=COLUMN to change this"
        )


def _require_clear_subject(table: InputTable, columns: Columns) -> None:
    if _SUBJECT in table.columns and _SUBJECT not in columns.values():
        raise VievalError(
            f"{table.name}: cannot tell whether column {_SUBJECT!r} holds "
            "images or text; "
            f"rename it to images.{_SUBJECT} or texts.{_SUBJECT}"
        )


def _require_texts(table: InputTable, fields: Columns) -> None:
    for field, column in fields.items():
        part, _, name = field.partition(".")
        if part == "texts" and column in table.not_texts:
            key = name if name in _TEXTS else field
            raise VievalError(
                f"{table.name}: column {column[:80]!r} must hold text, "
                f"got {table.not_texts[column][:80]}; "
                f"use --columns {key}=COLUMN to choose another"
            )


def _foreign_kind(table: InputTable, column: str) -> dict[str, str]:
    """A column that is called like the kind of samples and holds none in any row, with one of its
    values.
    """
    if not column:
        return {}
    values = _first_values(table, column)
    if not values or any(map(_is_kind, _values(table, column))):
        return {}
    return {column: _shortened(values[0])}


def _is_kind(value: Any) -> bool:
    return isinstance(value, str) and value.strip() in INPUTS


def leftover_notes(table_name: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The line on columns that are left out, if any."""
    if columns:
        return (f"{table_name}: ignored columns: {abbreviated(columns)}",)
    return ()


def _may_be(
    table: InputTable,
    field: str,
    column: str,
) -> bool:
    """Return whether a column may be what its name says: `images` and `texts` map roles and
    names to values.
    """
    if field not in ("images", "texts"):
        return True
    if not table.nested:
        return False
    return all(isinstance(value, dict) for value in _first_values(table, column))


def _missing_output_error(table: InputTable) -> VievalError:
    names = "output", *_COMMON["output"]
    column = " of images"
    hint = ";"
    for name in reversed(table.columns):
        nearest = did_you_mean(name, names, 0.7)
        if nearest:
            column = f" {name!r}"
            hint = nearest
    unreadable = ""
    for name in list(table.unreadable)[:1]:
        unreadable = f"; {_column_type(table, name)}"
    return VievalError(
        f"{table.name}: no column{column}{hint} {_column_words(table.columns)}; pass "
        f"--columns output=COLUMN{unreadable}; see "
        f"{docs_url('guides/scoring.md#columns-of-a-table')}"
    )


def _column_type(table: InputTable, column: str) -> str:
    kind = table.unreadable[column]
    return (
        f"column {column[:80]!r} has the unsupported type {kind[:200]}; save it "
        "as text, numbers or images"
    )


def _missing_text_line(
    table: InputTable,
    fields: Columns,
    unused: Sequence[str],
) -> str:
    text = "instruction" if "images.source" in fields else "prompt"
    if not unused:
        return f"{table.name}: no {text} found; add a column {text!r}"
    column = unused[0] if len(unused) == 1 else "COLUMN"
    ignored = f"ignored columns: {abbreviated(unused)}"
    return f"{table.name}: no {text} found; pass --columns {text}={column} ({ignored})"


def _column_words(columns: Sequence[str]) -> str:
    if columns:
        return f"known columns: {abbreviated(columns)}"
    return "the table has no columns"


def _field(column: str) -> str:
    """The field that a column's own name says; empty for a name that says none."""
    part, _, name = column.partition(".")
    if part in ("images", "texts") and name:
        return column
    return _FIELDS.get(column, "")


def is_column_name(name: str) -> bool:
    """Return whether a column of this name is known, by our names or by those of published tables.

    >>> is_column_name("mask"), is_column_name("Edited-Image"), is_column_name("5_000")
    (True, True, False)
    """
    plain = _plain(name)
    return bool(_field(plain)) or any(plain in names for names in _COMMON.values())


def _guessed(
    table: InputTable,
    fields: Columns,
    outputs: bool,
) -> tuple[dict[str, str], dict[str, str]]:
    """Columns by the fields that their names are common for, beside fields whose columns are there.

    Beside them, by their names, columns of conditions that hold no images, each with one of its
    values.
    """
    plain = {
        _plain(column): column
        for column in reversed(table.columns)
        if column not in fields.values()
    }
    instructions = {"instruction", *_COMMON["instruction"]}
    has_instructions = "texts.instruction" in fields or bool(instructions & {*plain})
    guessed: dict[str, str] = {}
    no_images = {}
    is_edited = bool(fields.get("images.source"))
    for key, synonyms in _COMMON.items():
        field = _field(key)
        names = [key, *synonyms]
        if field in fields or (key in ("output", "uid") and not outputs):
            continue
        if key == "instruction" and is_edited:
            names += _COMMON["prompt"]  # a text beside an image that is edited
        if key == "prompt" and "texts.instruction" in {*fields, *guessed}:
            continue
        named_columns = [plain[name] for name in names if name in plain]
        for column in named_columns:
            if column in guessed.values():
                continue
            values = _first_values(table, column) if key in _CONDITIONS else []
            looks = [_looks_like_image(value, has_instructions) for value in values]
            if all(looks):
                guessed[field] = column
                is_edited = is_edited or (key == "source" and bool(looks))
                break
            other = _shortened(values[looks.index(False)])
            if any(looks):
                image = _shortened(values[looks.index(True)])
                raise _mixed_images_error(
                    table,
                    column,
                    key,
                    image,
                    other,
                )
            no_images[column] = other
    return guessed, no_images


def _mixed_images_error(
    table: InputTable,
    column: str,
    key: str,
    image: str,
    other: str,
) -> VievalError:
    return VievalError(
        f"{table.name}: only some values of column {column[:80]!r} look like images: "
        f"{image} does, {other} does not; "
        f"use --columns {key}={column} to read the column, "
        f"or --columns {key}= to ignore it"
    )


def _plain(column: str) -> str:
    """A column's name as `_COMMON` has it: `Edited-Image` and `edited_image_file_name` are
    `edited_image`.
    """
    name = re.sub("[ -]", "_", column.strip().lower())
    return name.removesuffix("_file_name")


def _values(table: InputTable, column: str) -> Iterator[Any]:
    for _, row in table.read([column]):
        if not isinstance(row, BadLine):
            yield row.get(column)


def _first_values(table: InputTable, column: str) -> list[Any]:
    return list(islice(filterfalse(_is_empty, _values(table, column)), _FIRST))


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _looks_like_image(value: Any, has_instructions: bool) -> bool:
    """Return whether a value has the form of an image: its bytes or pixels, or a text that names
    one.
    """
    if isinstance(value, list):
        return all(_looks_like_image(item, has_instructions) for item in value)
    if isinstance(value, StoredImage):
        if value.data is not None and format_of(value.data):
            return True
        value = value.name
    if isinstance(value, str):
        address = address_of(value) if is_address(value) else None
        path = address.path if address else value.strip()
        if path.lower().endswith(SUFFIXES) or (address and has_instructions):
            return True
        is_data = path.lower().startswith("data:image/")
        return is_data or encoded_image(path) is not None
    if isinstance(value, dict):
        return not value.keys().isdisjoint(("bytes", "path"))
    return not isinstance(value, (int, float))


def _shortened(value: Any) -> str:
    if isinstance(value, str):
        value = redacted(value)[:60]
    return repr(value)[:80]


def rows_of(
    table: InputTable,
    fields: ColumnMap,
    file_uids: bool = False,
    prefix: str = "",
) -> Iterator[NumberedRow]:
    """The rows of a table in the form of a samples file's lines; images are texts or `Image`.

    Args:
        table: whose rows are read.
        fields: by `fields_of`.
        file_uids: whether a row without a uid is called by the file of its output, with a number
            where another was before, else by its own number.
        prefix: begins the uid of a row that is called by its number, which counts from 0 then.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    columns = list(dict.fromkeys(fields.columns.values()))
    for number, cells in table.read(columns):
        row = sample_row(cells.row if isinstance(cells, BadLine) else cells, fields)
        if isinstance(cells, BadLine):
            yield number, BadLine(str(cells), row)
            continue
        if table.image_model:
            row.setdefault("image_model", table.image_model)
        if file_uids or prefix:
            stem = _output_stem(row.get("images")) if file_uids else ""
            image_model = str(row.get("image_model", ""))
            owner = (image_model, str(row.get("draw", 0)))
            number_uid = f"{prefix}{number - 1}" if prefix else str(number)
            row_name = f"{table.unit} {number}"
            free_uid = _free_uid(
                stem,
                number_uid,
                row_name,
                owner,
                counts,
            )
            uid = row.setdefault("uid", free_uid)
            counts[*owner, str(uid)] += 1
        try:
            if "images" in row:
                row["images"] = located_images(row["images"], table)
        except BadLine as bad:
            yield number, BadLine(str(bad), row)
            continue
        yield number, row


def sample_row(cells: Mapping[str, Any], fields: ColumnMap) -> Cells:
    """A row of a table in the form of a line of a samples file; images may also be
    `StoredImage`.
    """
    if not fields.columns:
        return dict(cells)
    row: Cells = {"images": {}, "texts": {}}
    for field, column in fields.columns.items():
        value = cells.get(column)
        if _is_empty(value):
            continue
        part, _, name = field.partition(".")
        if name == WANTED_OBJECTS and isinstance(value, (dict, list)):
            value = json.dumps(value)
        if name and isinstance(row[part], dict):
            row[part][name] = value
        elif field in ("images", "texts") and isinstance(value, dict):
            row[field] = {**value, **row[field]}
        elif not isinstance(value, str):
            row[field] = value
        elif field == "tags":
            tags = map(str.strip, value.split(";"))
            row[field] = list(filter(None, tags))
        elif field == "draw":
            plain = value.isascii() and value.strip().isdecimal() and len(value) < 10
            row[field] = int(value) if plain else value
        else:
            row[field] = value.strip()
    return row


def _output_stem(images: Any) -> str:
    """The name without suffix of the file of a row's output; empty where it has none,
    or is not a single file.
    """
    output = images.get("output") if isinstance(images, dict) else None
    name = output.name if isinstance(output, StoredImage) else output
    if not isinstance(name, str) or len(name) > _LONGEST_PATH:
        return ""
    if name.startswith("data:"):
        return ""
    return stem_of(name)


def _free_uid(
    stem: str,
    number_uid: str,
    row_name: str,
    owner: tuple[str, str],
    counts: Counter[tuple[str, str, str]],
) -> str:
    """A uid that no row before has under the same image model and draw, `owner`."""
    if not stem:
        if counts[*owner, number_uid]:
            return row_name
        return number_uid
    uid = stem
    while count := counts[*owner, uid]:
        counts[*owner, uid] += 1
        uid = f"{stem}_{count + 1}"
    return uid


def located_images(images: Any, table: InputTable) -> Any:
    """The images of a row by role, as `Image` where the table holds one or others wrote it;
    anything else as it is.

    Raises:
        BadLine: others wrote the table and a path leads out of its folder, or a data address holds
            no base64.
    """
    if not isinstance(images, dict):
        return images
    return {role: _located(image, role, table) for role, image in images.items()}


def _located(
    value: Any,
    role: str,
    table: InputTable,
) -> Any:
    if isinstance(value, list):
        return [_located(item, role, table) for item in value]
    roots = table.roots
    if isinstance(value, StoredImage):
        if value.data is not None:
            return Image(value.data, value.cell)
        value = value.name
        roots = roots or (table.folder,)
    if not isinstance(value, str):
        return value
    data = encoded_image(value)
    if data is not None:
        return Image(data)
    if not roots or is_address(value):
        return value
    path = image_path(value, table.folder)
    if not any(is_below(path, root) for root in roots):
        raise BadLine(
            f"the {role} image must be inside the folder of the table, "
            f"got {redacted(value)[:200]!r}"
        )
    return Image(path)
