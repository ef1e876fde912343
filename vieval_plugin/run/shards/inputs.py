"""The files of a data set: which they are, what tells one from another of the same name, and how many rows they have."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from vieval_plugin.errors import VievalError
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.arrow_tables import parquet_file, parquet_table, reading_table, row_group_table
from vieval_plugin.readers.image_names import natural
from vieval_plugin.readers.tables import InputTable
from vieval_plugin.readers.webdataset import COMPRESSED, PLAIN, TarMember, tar_index, webdataset_table
from vieval_plugin.run.shards.schema import arrow
from vieval_plugin.text.untrusted import isdir

PARQUET = (".parquet",)
_FOOTER = 8  # bytes at the end of a parquet file: the length of its footer, and a word that says what it is
_AT_ONCE = 8
READ_AT_ONCE = 16 << 10
"""Bytes at the end of a parquet file, which hold most footers."""


@dataclass(frozen=True)
class InputFile:
    """A file of a data set: its path from the plan's root, what it is known by, and the rows of each row group.

    The digest is of a parquet file's footer, or of the index of a tar, which is a row group as a whole.
    """

    path: str
    size: int
    digest: str
    groups: tuple[int, ...]

    @property
    def is_tar(self) -> bool:
        return self.path.lower().endswith((*PLAIN, *COMPRESSED))

    @property
    def is_compressed(self) -> bool:
        return self.path.lower().endswith(COMPRESSED)


def input_paths(named: Sequence[str]) -> list[Path]:
    """The parquet and tar files that a user names: files, folders with such below them, and patterns such as `a/*.tar`.

    Raises:
        VievalError: there is none, or one is another kind of file.
    """
    paths: dict[Path, None] = {}
    for name in named:
        path = Path(os.path.expanduser(name))
        if path.is_dir():
            found = [file for file in sorted(path.rglob("*"), key=lambda file: natural(str(file))) if _is_known(file)]
        elif path.exists():
            found = [path]
        else:
            found = [Path(file) for file in sorted(glob.glob(str(path), recursive=True), key=natural)]
        if not found:
            raise VievalError(
                f"{name}: no parquet or tar file there, of which a folder of shards is made; name such files, folders or "
                "patterns such as 'data/*.parquet', or end the name of --out in .jsonl, .csv or .parquet"
            )
        paths |= dict.fromkeys(file.absolute() for file in found)
    if other := [path for path in paths if not _is_known(path)]:
        raise VievalError(
            f"{other[0]}: neither parquet nor tar, of which a folder of shards is made; end the name of --out in .jsonl, "
            ".csv or .parquet"
        )
    return list(paths)


def is_data_set(name: str) -> bool:
    """Return whether a name is that of parquet or tar files: a file's, a pattern's, or a folder's with such below it."""
    path = Path(os.path.expanduser(name))
    return _is_known(path) or (isdir(path) and any(map(_is_known, path.rglob("*"))))


def root_of(paths: Sequence[Path]) -> Path:
    """The folder that all files lie in."""
    return Path(os.path.commonpath([path.parent for path in paths]))


def input_files(paths: Iterable[Path], root: Path, indexes: Path) -> list[InputFile]:
    """Files with their sizes, digests and rows; a tar is read through once, and its index kept in the folder `indexes`.

    Raises:
        VievalError: one cannot be read.
    """
    arrow()
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="footers") as pool:
        return list(pool.map(partial(_input_file, root=root, indexes=indexes), paths))


def _input_file(path: Path, root: Path, indexes: Path) -> InputFile:
    name = Path(os.path.relpath(path, root)).as_posix()
    if path.name.lower().endswith(PARQUET):
        with reading_table(path):
            metadata = parquet_file(path).metadata
            groups = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        return InputFile(name, _size(path), footer_digest(path), groups)
    members = list(tar_index(path))
    data = _encoded(members)
    digest = hashlib.sha256(data).hexdigest()[:32]
    write_whole(_index_file(indexes, digest), data, synced=True)
    return InputFile(name, _size(path), digest, (members[-1].sample + 1 if members else 0,))


def footer_digest(path: Path) -> str:
    """SHA-256 of a parquet file's footer, shortened; VievalError where the file cannot be read."""
    return hashlib.sha256(parquet_footer(path)).hexdigest()[:32]


def parquet_footer(path: Path) -> bytes:
    """The footer of a parquet file, with its length and the word at the end; VievalError where it cannot be read."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(size - READ_AT_ONCE, 0))
            end = file.read()
            length = footer_length(end)
            if length <= len(end):
                return end[-length:]
            file.seek(max(size - length, 0))
            return file.read()
    except OSError as error:
        raise _unreadable(path, error) from None


def footer_length(end: bytes) -> int:
    """The length of a parquet file's footer, by the end of the file."""
    return int.from_bytes(end[-_FOOTER:][:4], "little") + _FOOTER


def require_same(file: InputFile, root: Path) -> None:
    """VievalError where a planned file is not there any more, or is another.

    Of a tar only the size is compared here: each of its headers is looked at when it is read.
    """
    path = root / file.path
    try:
        same = _size(path) == file.size and (file.is_tar or footer_digest(path) == file.digest)
    except VievalError as error:
        raise VievalError(f"{error}; it is in the plan, and no shard of it can be judged without it") from None
    if not same:
        raise VievalError(
            f"{path}: another file than when the plan was made; restore it, or name another folder with --out"
        )


def table_of(file: InputFile, root: Path, indexes: Path) -> InputTable:
    """All rows of a file, for its columns; VievalError where it cannot be read."""
    path = root / file.path
    if not file.is_tar:
        return parquet_table(path)
    return webdataset_table(path, _members(_index_file(indexes, file.digest)))


def rows_in_group(file: InputFile, root: Path, indexes: Path, group: int, wanted: Sequence[range]) -> InputTable:
    """Some rows of a row group, or samples of a tar, in one pass; VievalError where it cannot be read."""
    path = root / file.path
    if not file.is_tar:
        return row_group_table(path, group, wanted)
    return webdataset_table(path, _members(_index_file(indexes, file.digest)), wanted)


def _index_file(indexes: Path, digest: str) -> Path:
    return indexes / f"{digest}.parquet"


def _encoded(members: Sequence[TarMember]) -> bytes:
    pyarrow = arrow()
    sink = pyarrow.BufferOutputStream()
    columns = {name: [getattr(member, name) for member in members] for name in TarMember.__annotations__}
    pyarrow.parquet.write_table(pyarrow.table(columns), sink, compression="zstd")
    return bytes(sink.getvalue())


def _members(index: Path) -> list[TarMember]:
    try:
        columns = arrow().parquet.read_table(index).to_pydict()
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise VievalError(f"{index}: the index of a tar file cannot be read ({reason}); name another --out") from None
    return [TarMember(*fields) for fields in zip(*(columns[name] for name in TarMember.__annotations__), strict=True)]


def _is_known(path: Path) -> bool:
    return path.name.lower().endswith((*PARQUET, *PLAIN, *COMPRESSED)) and not path.name.startswith(".")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> VievalError:
    return VievalError(f"{path}: cannot be read ({error.strerror})")


def rows_of_files(files: Iterable[InputFile]) -> int:
    """The number of rows in files."""
    return sum(sum(file.groups) for file in files)


def with_limit(files: Sequence[InputFile], most: int) -> Iterator[InputFile]:
    """Files up to the row `most`; what comes after it is left out."""
    for file in files:
        kept: list[int] = []
        for rows in file.groups:
            if not most:
                break
            kept.append(min(rows, most))
            most -= kept[-1]
        if kept:
            yield replace(file, groups=tuple(kept))
