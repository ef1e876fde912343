"""Tables of columns: parquet and Arrow files, and folders that `datasets` saved.

They are read with pyarrow, a few rows at a time, and of the columns only those that are needed.
Cells are texts, numbers, lists of either and images; columns of anything else are left out, so that
no nested value is ever built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias

from vieval_plugin.images import image_in_grid, is_of_grid, is_there
from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.judges.protocol import Image, TableCell
from vieval_plugin.readers.places import Place, arrow, place_of, reason_of, size_of
from vieval_plugin.readers.tables import (
    BadLine,
    Cells,
    InputTable,
    NumberedRow,
    StoredImage,
    are_texts,
    require_once,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import abbreviated
from vieval_plugin.text.untrusted import is_below, isfile
from vieval_plugin.text.yaml_json import read_json

#: Files by which a folder of `datasets.save_to_disk` is known: of one split, and of several.
STATE = "state.json"
SPLITS = "dataset_dict.json"
#: What parquet and Arrow files begin with; a stream of Arrow begins otherwise.
PARQUET = b"PAR1"
ARROW = b"ARROW1"

_TEXTS = ("string", "large_string", "string_view")
_BYTES = ("binary", "large_binary", "binary_view")
_SIZED = (*_TEXTS[:2], *_BYTES[:2])
_BATCH = 16  # rows in memory at once, each of which may hold an image
_BUFFER, _REMOTE_BUFFER = (
    1 << 20,
    8 << 20,
)  # bytes of a column that are read at once, in one request
_LONGEST_FOOTER = 64 << 20
_MOST_NAMES = 1_000_000  # of columns and row groups in the footer of a parquet file
_LARGEST, _EXPANSION = (
    256 << 20,
    200,
)  # bytes of all columns, and how many of them a stored byte may stand for
_MOST_UNPACKED = 2 << 30  # bytes of all cells, a value counted as often as it is there

#: Record batches of the columns that are asked for, each with the number of rows before it in the
#: table, and with the file and the number of its first row there.
_NumberedBatches: TypeAlias = Iterator[tuple[int, TableCell, Any]]
_Batches: TypeAlias = Callable[[Sequence[str]], _NumberedBatches]


def parquet_table(
    file: Place,
    group: int | None = None,
    wanted: Sequence[range] | None = None,
) -> InputTable:
    """A parquet file, or rows of one of its row groups, in one pass over it.

    Args:
        file: the parquet file.
        group: the number of the row group (default: all).
        wanted: the rows that are read, by their numbers in the file from 0; nothing is read after
            the last (default: all).

    Raises:
        VievalError: it cannot be read or is damaged, the latter also while rows are read.
    """
    with reading_table(file):
        parquet = parquet_file(file)
        path = Path(str(file))
        batches = partial(
            _parquet_batches,
            file,
            parquet=None if group is None else parquet,
            group=group,
        )
        table = _table(
            str(file),
            [path],
            parquet.schema_arrow,
            batches,
            wanted,
        )
    # a path in a table of object storage is none of this machine's
    if file.scheme:
        return replace(table, roots=(path.parent,))
    return table


def arrow_table(paths: Sequence[Path]) -> InputTable:
    """Arrow files or streams of the same columns, one after another; VievalError as
    `parquet_table`.
    """
    with reading_table(paths[0]):
        schema = _arrow_reader(paths[0]).schema
        return _table(
            str(paths[0]),
            paths,
            schema,
            partial(_arrow_batches, paths),
        )


def is_saved(folder: Path) -> bool:
    """Return whether `datasets.save_to_disk` wrote a folder."""
    return isfile(folder / STATE) or isfile(folder / SPLITS)


def saved_table(folder: Path) -> InputTable:
    """A folder that `datasets.save_to_disk` wrote, of one split; VievalError where it holds
    several, or is damaged.
    """
    if isfile(folder / SPLITS):
        splits = _names_in(folder / SPLITS, "splits")
        if len(splits) != 1:
            raise VievalError(
                f"{folder}: contains several splits; pass the folder of one: "
                f"{abbreviated(splits)}"
            )
        folder = folder / splits[0]
    paths = [folder / name for name in _names_in(folder / STATE, "_data_files")]
    outside = [path for path in paths if not is_below(path, folder)]
    if outside:
        outside_path = str(outside[0])[:200]
        raise VievalError(
            f"{folder / STATE}: data files must be inside its folder, got {outside_path!r}"
        )
    return replace(
        arrow_table(paths),
        name=str(folder),
        folder=folder,
        roots=(folder,),
    )


def _names_in(path: Path, key: str) -> list[str]:
    try:
        names = read_json(path.read_bytes())[key]
        names = [name["filename"] if isinstance(name, dict) else name for name in names]
    except (OSError, ValueError, KeyError, TypeError):
        names = []
    if not names or not are_texts(names):
        raise VievalError(f"{path}: missing or invalid {key}; save the data set again")
    return names


def _table(
    name: str,
    paths: Sequence[Path],
    schema: Any,
    batches: _Batches,
    wanted: Sequence[range] | None = None,
) -> InputTable:
    require_once(name, schema.names)
    kinds = {field.name: field.type for field in schema}
    unreadable = {
        column: str(kind) for column, kind in kinds.items() if not _is_readable(kind)
    }
    not_texts = {
        column: str(kind) for column, kind in kinds.items() if not _holds_texts(kind)
    }

    def read(columns: Sequence[str]) -> Iterator[NumberedRow]:
        for start, first, batch in batches(columns):
            values = [(name, batch.column(name)) for name in columns]
            for row in range(batch.num_rows):
                if wanted is None or any(start + row in rows for rows in wanted):
                    yield start + row + 1, _cells(values, row, first)
            end = start + batch.num_rows
            if wanted is not None and all(rows.stop <= end for rows in wanted):
                return

    readable_columns = tuple(column for column in kinds if column not in unreadable)
    folder = paths[0].parent
    return InputTable(
        name,
        readable_columns,
        read,
        folder,
        tuple(paths),
        "row",
        unreadable=unreadable,
        not_texts=not_texts,
    )


def _cells(
    columns: Sequence[tuple[str, Any]],
    row: int,
    first: TableCell,
) -> Cells | BadLine:
    cells: Cells = {}
    for name, column in columns:
        try:
            value = column[row].as_py()
        except (ValueError, IndexError):
            return BadLine(f"{name} is not valid UTF-8", cells)
        cells[name] = _cell(
            value,
            TableCell(
                first.file,
                first.row + row,
                name,
            ),
        )
    return cells


def _cell(value: Any, cell: TableCell) -> Any:
    if isinstance(value, list):
        return [_cell(item, cell) for item in value]
    stored = {"bytes": value} if isinstance(value, bytes) else value
    if isinstance(stored, dict):
        return StoredImage(
            stored.get("path") or "",
            stored.get("bytes"),
            cell,
        )
    return value


def _is_readable(kind: Any) -> bool:
    """Return whether values of an Arrow type are texts, numbers, lists of either or images."""
    from pyarrow import types

    if types.is_dictionary(kind):
        # of others than these nobody could say what they take in each row
        is_sized = types.is_primitive(kind.value_type) or str(kind.value_type) in _SIZED
        return is_sized and _is_readable(kind.value_type)
    if types.is_boolean(kind) or types.is_null(kind):
        return True
    item = kind.value_type if _is_list(kind) else kind
    is_number = types.is_integer(item) or types.is_floating(item)
    return is_number or _is_text(item) or _is_image(item)


def _is_image(kind: Any) -> bool:
    """Return whether values of an Arrow type are bytes, or structs of bytes and a path."""
    import pyarrow
    from pyarrow import types

    if types.is_struct(kind):
        fields = {field.name: field.type for field in kind}
        # a field that is null in all rows has the type null where the table was made without a
        # schema
        typed = {
            name: field for name, field in fields.items() if not types.is_null(field)
        }
        if not typed or not fields.keys() <= {"bytes", "path"}:
            return False
        content = typed.get("bytes", pyarrow.binary())
        return _is_binary(content) and _is_text(typed.get("path", pyarrow.string()))
    return _is_binary(kind)


def _holds_texts(kind: Any) -> bool:
    """Return whether values of an Arrow type are texts or lists of texts, or none is there."""
    from pyarrow import types

    nested = types.is_dictionary(kind) or _is_list(kind)
    return bool(types.is_null(kind) or _is_text(kind.value_type if nested else kind))


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind))


def _is_text(kind: Any) -> bool:
    return str(kind) in _TEXTS


def _is_binary(kind: Any) -> bool:
    return str(kind) in _BYTES


def _parquet_batches(
    file: Place,
    columns: Sequence[str],
    parquet: Any = None,
    group: int | None = None,
) -> _NumberedBatches:
    with reading_table(file):
        parquet = parquet or parquet_file(file)
        earlier = map(parquet.metadata.row_group, range(group or 0))
        row = sum(group.num_rows for group in earlier)
        groups = None if group is None else [group]
        for batch in batches_of(file, parquet, columns, groups):
            yield (
                row,
                TableCell(
                    Path(str(file)),
                    row,
                    "",
                ),
                batch,
            )
            row += batch.num_rows


def batches_of(
    file: Place,
    parquet: Any,
    columns: Sequence[str],
    groups: Sequence[int] | None,
) -> Iterator[Any]:
    """Batches of a `parquet_file`, of all row groups or of some; ValueError where their cells are a
    bomb.

    A value that is stored once may be in every row, so batches are short where it could be large.
    """
    sizes = _row_group_sizes(parquet.metadata)
    largest_row = max([1, *sizes])
    rows = max(1, min(_BATCH, _LARGEST // largest_row))
    batches = parquet.iter_batches(
        batch_size=rows,
        row_groups=groups,
        columns=list(columns),
        use_threads=False,
    )
    return _within_bounds(size_of(file), batches)


def _row_groups(metadata: Any) -> Iterator[Any]:
    return map(metadata.row_group, range(metadata.num_row_groups))


def _row_group_sizes(metadata: Any) -> list[int]:
    return [group.total_byte_size for group in _row_groups(metadata)]


def _within_bounds(size: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Batches, until their cells take more than a file of this size may hold."""
    limit = max(_MOST_UNPACKED, _EXPANSION * size)
    unpacked = 0
    for batch in batches:
        unpacked += sum(map(_unpacked_bytes, batch.columns))
        if unpacked > limit:
            raise ValueError(
                f"its cells expand to more than {limit >> 20} MiB, which looks "
                "like a decompression bomb"
            )
        yield batch


def _unpacked_bytes(column: Any) -> int:
    """Bytes of a column's values, those of a dictionary counted in each row."""
    from pyarrow import compute, types

    if not types.is_dictionary(column.type) or types.is_primitive(
        column.type.value_type
    ):
        return int(column.nbytes)
    lengths = compute.binary_length(column.dictionary)
    cell_lengths = compute.take(lengths, column.indices)
    return int(compute.sum(cell_lengths).as_py() or 0)


def parquet_file(file: Place) -> Any:
    """A parquet file within limits; a decompression bomb is refused."""
    stream = file.system.open_input_file(file.path)
    size = stream.size()
    length_offset = max(size - 8, 0)
    footer = int.from_bytes(stream.read_at(4, length_offset), "little")
    if footer > _LONGEST_FOOTER:
        raise ValueError(
            f"its footer is too large ({footer >> 20} MiB, limit {_LONGEST_FOOTER >> 20} MiB)"
        )
    # without a buffer of so many bytes all of a row group would be in memory
    opened = arrow().parquet.ParquetFile(
        stream,
        buffer_size=_REMOTE_BUFFER if file.scheme else _BUFFER,
        pre_buffer=False,
        thrift_string_size_limit=_LONGEST_FOOTER,
        thrift_container_size_limit=_MOST_NAMES,
    )
    # of groups and not of their columns, at which pyarrow ends the process where a footer is
    # damaged
    unpacked = sum(_row_group_sizes(opened.metadata))
    if unpacked > max(_LARGEST, _EXPANSION * size):
        raise ValueError(
            f"it would expand to {unpacked >> 20} MiB, which looks like a "
            "decompression bomb"
        )
    return opened


def _arrow_batches(paths: Sequence[Path], columns: Sequence[str]) -> _NumberedBatches:
    start = 0
    for path in paths:
        row = 0
        with reading_table(path):
            batches = _arrow_reader(path, columns)
            if _begins_with(path, ARROW):
                batches = map(batches.get_batch, range(batches.num_record_batches))
            for batch in _within_bounds(path.stat().st_size, batches):
                # offsets that lie would be read from memory that is not the file's
                batch.validate(full=True)
                yield start + row, TableCell(path, row, ""), batch
                row += batch.num_rows
        start += row


def _arrow_reader(path: Path, columns: Sequence[str] | None = None) -> Any:
    pyarrow = arrow(f"reading {path}")
    ipc = pyarrow.ipc
    options = ipc.IpcReadOptions(use_threads=False)
    if columns is not None:
        names = _arrow_reader(path).schema.names
        options.included_fields = [names.index(name) for name in columns]
    open_reader = ipc.open_file if _begins_with(path, ARROW) else ipc.open_stream
    return open_reader(pyarrow.memory_map(str(path)), options=options)


def _begins_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


@contextmanager
def reading_table(file: Place | Path) -> Iterator[None]:
    """A file while pyarrow reads it, which raises many types on one that is damaged."""
    try:
        yield
    except VievalError:
        raise
    except Exception as error:
        reason = reason_of(error)
        is_remote = isinstance(file, Place) and file.scheme
        if is_remote and not isinstance(error, ValueError):  # the service's, or damage
            raise VievalError(f"cannot read {file}: {reason}") from None
        raise VievalError(
            f"{file}: not a readable parquet or Arrow file ({reason}); save it again"
        ) from None


def reread_cells(judged: Judged) -> Judged:
    """A sample or contest whose images in cells of tables are read again; one whose table is not
    there stays as it is.

    Raises:
        VievalError: a table cannot be read, or has no image in that cell.
    """
    if isinstance(judged, Contest):
        return replace(judged, candidates=tuple(map(reread_cells, judged.candidates)))  # type: ignore[arg-type]
    images = {role: _reread_cell(image) for role, image in judged.images.items()}
    return replace(judged, images=images)


def _reread_cell(image: Image) -> Image:
    cell = image.origin
    if (
        isinstance(image.source, bytes)
        or not isinstance(cell, TableCell)
        or not is_there(image)
    ):
        return image
    if is_of_grid(cell):
        return replace(image, source=image_in_grid(cell))
    with reading_table(cell.file):
        for _, first, batch in _batches_with(cell):
            if first.row <= cell.row < first.row + batch.num_rows:
                column = batch.column(cell.column)
                value = column[cell.row - first.row].as_py()
                data = value.get("bytes") if isinstance(value, dict) else value
                if isinstance(data, bytes):
                    return replace(image, source=data)
    raise VievalError(
        f"{cell.file}: no image in column {cell.column}, row {cell.row}; restore "
        "the file"
    )


def _batches_with(cell: TableCell) -> _NumberedBatches:
    """Batches of a cell's column: of parquet, those of its row group alone."""
    if not _begins_with(cell.file, PARQUET):
        return _arrow_batches([cell.file], [cell.column])
    file = place_of(cell.file)
    parquet = parquet_file(file)
    ends = accumulate(group.num_rows for group in _row_groups(parquet.metadata))
    group = next((group for group, end in enumerate(ends) if cell.row < end), None)
    return _parquet_batches(file, [cell.column], parquet, group)
