"""Columns that a table has not itself: parts of the text of one, such as a file's name, and templates filled from others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.readers.columns import require_columns
from vieval_plugin.readers.tables import BadLine, InputTable, NumberedRow, StoredImage

_IN_BRACES = re.compile(r"\{([^{}]+)\}")


def with_derived_columns(table: InputTable, split: Mapping[str, str], columns: Iterable[str]) -> InputTable:
    """A table with the columns that are derived from its own.

    Args:
        table: whose rows are read.
        split: by column, a template such as `{image_model}_{uid}.png` that its texts have: each name is a column.
        columns: names of columns, and templates such as `images/{file}`; each template is a column, filled from those
            that it names.

    Raises:
        VievalError: a column is absent or there already, or nothing stands between two names of a template. Rows whose
            text has not the form of its template are `BadLine`.
    """
    require_columns(table, split)
    parts = [name for template in split.values() for name in _IN_BRACES.findall(template)]
    for number, name in enumerate(parts):
        if name in table.columns or name in parts[:number]:
            raise VievalError(f"{table.name}: split: there is a column {name!r} already; choose another name")
    for template in split.values():
        if not all(_IN_BRACES.split(template)[2:-1:2]) or not _IN_BRACES.search(template):
            raise VievalError(f"{table.name}: split: {template!r} is not names in braces with text between each two")
    sources = {template: _IN_BRACES.findall(template) for template in columns if _IN_BRACES.search(template)}
    wider = replace(table, columns=(*table.columns, *parts))
    require_columns(wider, [name for names in sources.values() for name in names])

    def read(requested: Sequence[str]) -> Iterator[NumberedRow]:
        needed = dict.fromkeys([*requested, *split, *(name for names in sources.values() for name in names)])
        for number, cells in table.read([column for column in needed if column in table.columns]):
            yield number, cells if isinstance(cells, BadLine) else _derived(cells, split, sources)

    return replace(wider, columns=(*wider.columns, *sources), read=read)


def text_of(cell: Any) -> str:
    """A cell as a text, that of an image being its file's name; empty where there is nothing.

    >>> text_of(1), text_of(" a "), text_of(None)
    ('1', 'a', '')
    """
    if isinstance(cell, StoredImage):
        return cell.name
    return "" if cell is None else str(cell).strip()


def _derived(
    cells: Mapping[str, Any], split: Mapping[str, str], sources: Mapping[str, Sequence[str]]
) -> Mapping[str, Any] | BadLine:
    row = dict(cells)
    for column, template in split.items():
        text = text_of(cells.get(column))
        parts = _parts(text, template)
        if parts is None:
            return BadLine(f"{column} is {text[:80]!r}, which has not the form {template}", cells)
        row |= parts
    for template, names in sources.items():
        texts = {name: text_of(row.get(name)) for name in names}
        if all(texts.values()):
            row[template] = _IN_BRACES.sub(lambda match: texts[match[1]], template)  # noqa: B023  called at once
    return row


def _parts(text: str, template: str) -> dict[str, str] | None:
    """The texts that stand for the names of a template, read from the right; None where one would be empty.

    >>> _parts("sd_1.5_low_007.jpg", "{image_model}_{uid}.{suffix}")
    {'suffix': 'jpg', 'uid': '007', 'image_model': 'sd_1.5_low'}
    """
    prefix, first_name, *pieces, suffix = _IN_BRACES.split(template)
    remainder, parts = text.removeprefix(prefix).removesuffix(suffix), dict[str, str]()
    if remainder != text[len(prefix) : len(text) - len(suffix)]:
        return None
    for separator, name in zip(pieces[-2::-2], pieces[::-2], strict=True):
        remainder, _, parts[name] = remainder.rpartition(separator)
    parts[first_name] = remainder
    return parts if all(parts.values()) else None
