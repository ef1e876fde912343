"""Images in cells of tables, read again when somebody wants to look at them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.images import is_there
from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.judges.protocol import Image, TableCell
from vieval_plugin.readers.arrow_tables import arrow_batches, batches_of, parquet_file, reading_table
from vieval_plugin.readers.places import place_of

_PARQUET = b"PAR1"


def with_cells(judged: Judged) -> Judged:
    """A sample or contest whose images in cells of tables are read; one whose table is not there stays as it is.

    Raises:
        VievalError: a table cannot be read, or has no image in that cell.
    """
    if isinstance(judged, Contest):
        return replace(judged, candidates=tuple(with_cells(of) for of in judged.candidates))  # type: ignore[misc]
    return replace(judged, images={role: _read(image) for role, image in judged.images.items()})


def _read(image: Image) -> Image:
    if isinstance(image.source, bytes) or not isinstance(image.origin, TableCell) or not is_there(image):
        return image
    return replace(image, source=read_cell(image.origin))


def read_cell(cell: TableCell) -> bytes:
    """The bytes of the image in a cell of a parquet or Arrow file; VievalError where there is none."""
    with reading_table(cell.file):
        for start, batch in _batches(cell):
            if start <= cell.row < start + batch.num_rows:
                value = batch.column(cell.column)[cell.row - start].as_py()
                data = value.get("bytes") if isinstance(value, dict) else value
                if isinstance(data, bytes):
                    return data
    raise VievalError(f"{cell.file}: no image in row {cell.row} of {cell.column}; restore the file")


def _batches(cell: TableCell) -> Iterator[tuple[int, Any]]:
    """Batches of the cell's column with the number of their first row: of parquet, those of its row group alone."""
    with cell.file.open("rb") as file:
        is_parquet = file.read(len(_PARQUET)) == _PARQUET
    if not is_parquet:
        yield from ((first.row, batch) for first, batch in arrow_batches([cell.file], [cell.column]))
        return
    place = place_of(cell.file)
    table = parquet_file(place)
    sizes = [table.metadata.row_group(group).num_rows for group in range(table.metadata.num_row_groups)]
    for group, end in enumerate(accumulate(sizes)):
        if cell.row < end:
            start = end - sizes[group]
            for batch in batches_of(place, table, [cell.column], [group]):
                yield start, batch
                start += batch.num_rows
            return
