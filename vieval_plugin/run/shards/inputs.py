"""The files of a data set: which they are, what tells one from another of the same name, and how many rows they have."""

from __future__ import annotations

import glob
import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TypeVar

from vieval_plugin.errors import VievalError
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.arrow_tables import parquet_file, parquet_table, reading_table, row_group_table
from vieval_plugin.readers.image_names import SUFFIXES, natural
from vieval_plugin.readers.places import (
    REMOTE,
    Place,
    location_of,
    parquet_footer,
    place_at,
    place_of,
    reading,
    size_of,
)
from vieval_plugin.readers.tables import InputTable
from vieval_plugin.readers.webdataset import COMPRESSED, PLAIN, TarMember, tar_index, webdataset_table
from vieval_plugin.run.shards.schema import arrow
from vieval_plugin.text.untrusted import exists, isdir, path_of

PARQUET = (".parquet",)
_TARS = (*PLAIN, *COMPRESSED)
# images and tables, of which a file of verdicts is made too
_OTHERS = (*SUFFIXES, *PARQUET, ".csv", ".jsonl", ".arrow")
_AT_ONCE = 8
_OTHER_FILE = "{}: another file than when the plan was made; restore it, or judge it again into another folder"
_PATTERN = re.compile(r"[*[]")

T = TypeVar("T")
R = TypeVar("R")


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
        return self.path.lower().endswith(_TARS)

    @property
    def is_compressed(self) -> bool:
        return self.path.lower().endswith(COMPRESSED)


def input_places(named: Sequence[str]) -> list[Place]:
    """The parquet and tar files that a user names: files, folders with such below them, and patterns such as `a/*.tar`.

    Raises:
        VievalError: there is none, or one is another kind of file.
    """
    places: dict[Place, None] = {}
    for name in named:
        files = _in_object_storage(name) if is_object_storage(name) else _on_disk(name)
        if not files:
            shown = name.partition("?")[0] if is_object_storage(name) else name
            raise VievalError(
                f"{shown}: no parquet or tar file there, of which a folder of shards is made; name such "
                "files, folders or patterns such as 'data/*.parquet', or end the name of --out in .jsonl, .csv or .parquet"
            )
        places |= dict.fromkeys(files)
    if unknown := [place for place in places if not _is_known(place.path)]:
        raise VievalError(
            f"{unknown[0]}: neither parquet nor tar, of which a folder of shards is made; end the name of --out in .jsonl, "
            ".csv or .parquet"
        )
    if tars := [place for place in places if place.scheme and not place.path.lower().endswith(PARQUET)]:
        raise VievalError(
            f"{tars[0]}: tar files are read from a file system alone; mount the bucket, copy them, or name parquet files "
            "by a pattern"
        )
    return list(places)


def _on_disk(name: str) -> list[Place]:
    path = path_of(name)
    if path.is_dir():
        files = [file for file in path.rglob("*") if _is_known(str(file))]
    else:
        files = [path] if path.exists() else [Path(file) for file in glob.glob(str(path), recursive=True)]
    return [place_of(file.absolute()) for file in sorted(files, key=lambda file: natural(str(file)))]


def _in_object_storage(name: str) -> list[Place]:
    """The files at an address, below it, or that match it; a pattern is listed from the last folder before it."""
    address, _, query = location_of(name).partition("?")
    folder, pattern = address, ""
    if sign := _PATTERN.search(address):
        folder = address[: sign.start()].rpartition("/")[0]
        pattern = address[len(folder) + 1 :]
    place = place_at(f"{folder}?{query}" if query else folder)
    from pyarrow import fs

    with reading(place):
        if not pattern and place.system.get_file_info(place.path).is_file:
            return [place]
        everywhere = not pattern or "/" in pattern or "**" in pattern
        selected = fs.FileSelector(place.path, recursive=everywhere, allow_not_found=True)
        names = [of.path[len(place.path) + 1 :] for of in place.system.get_file_info(selected) if of.is_file]
    matches = partial(_matches, pattern.split("/")) if pattern else _is_known
    return [place.below(path) for path in sorted(filter(matches, names), key=natural)]


def _matches(pattern: Sequence[str], name: str) -> bool:
    """Return whether a name matches a pattern, part by part; `**` is any number of folders."""
    first, *remaining = pattern
    part, slash, tail = name.partition("/")
    if first == "**":
        return _matches(remaining or ["*"], name) or (bool(slash) and _matches(pattern, tail))
    if not fnmatchcase(part, first) or bool(remaining) != bool(slash):
        return False
    return not remaining or _matches(remaining, tail)


def is_object_storage(name: str) -> bool:
    """Return whether a name is an address of object storage.

    >>> is_object_storage("s3://bucket/data"), is_object_storage("data/s3")
    (True, False)
    """
    return bool(REMOTE.match(name))


def is_data_set(name: str) -> bool:
    """Return whether a name is that of parquet or tar files: a file's, a pattern's, or a folder's with such below it."""
    path = path_of(name)
    if is_object_storage(name) or _is_known(str(path)):
        return True
    return isdir(path) and any(_is_known(str(file)) for file in path.rglob("*"))


def is_for_shards_alone(name: str) -> bool:
    """Return whether only a folder of shards takes what a name means: object storage, a pattern, or nothing but tar files."""
    path = path_of(name)
    if is_object_storage(name) or path.name.lower().endswith(_TARS):
        return True
    if not isdir(path):
        return not exists(path) and bool(_PATTERN.search(name)) and _is_known(str(path))
    has_tar = False
    for name_below in (file.name.lower() for file in path.rglob("*")):
        if name_below.endswith(_OTHERS):
            return False
        has_tar = has_tar or name_below.endswith(_TARS)
    return has_tar


def root_of(places: Sequence[Place]) -> Place:
    """The folder that all files lie in; VievalError where there is none."""
    services = {(place.scheme, place.query) for place in places}
    path = os.path.commonpath([posixpath.dirname(place.path) for place in places]) if len(services) == 1 else ""
    if not path:
        raise VievalError(
            f"{places[0]} and {places[-1]}: they lie in no folder or bucket together; judge each into an --out of its own"
        )
    return replace(places[0], path=path)


def input_files(
    places: Sequence[Place], root: Place, indexes: Path, planned: Mapping[str, InputFile]
) -> list[InputFile]:
    """Files with their sizes, digests and rows; a tar is read through once, and its index kept in the folder `indexes`.

    Args:
        places: the files.
        root: the folder that they lie in.
        indexes: the folder of the indexes of tar files.
        planned: files of a plan by their paths; one that is as the plan has it is not read again.

    Raises:
        VievalError: one cannot be read.
    """
    arrow()
    return in_threads(partial(_input_file, root=root, indexes=indexes, planned=planned), places)


def in_threads(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The results of a function that waits for a disk or a service, of all items in order."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="footers") as pool:
        return list(pool.map(function, items))


def _input_file(place: Place, root: Place, indexes: Path, planned: Mapping[str, InputFile]) -> InputFile:
    name = Path(os.path.relpath(str(place), str(root))).as_posix()
    if name.startswith("../"):
        raise VievalError(
            f"{place}: it does not lie below {root}, as the files of the plan do; judge it into another --out"
        )
    size = size_of(place)
    if name in planned and _is_same(place, size, planned[name]):
        return planned[name]
    if place.path.lower().endswith(PARQUET):
        with reading_table(place):
            metadata = parquet_file(place).metadata
            groups = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        return InputFile(name, size, footer_digest(place), groups)
    digest, members = _index_tar(place, indexes)
    return InputFile(name, size, digest, (members[-1].sample + 1 if members else 0,))


def _is_same(place: Place, size: int, file: InputFile) -> bool:
    """Return whether a file is as the plan has it: of a tar, whose headers are looked at when it is read, by its size."""
    return size == file.size and (file.is_tar or footer_digest(place) == file.digest)


def footer_digest(place: Place) -> str:
    """SHA-256 of a parquet file's footer, shortened; VievalError where the file cannot be read."""
    return hashlib.sha256(parquet_footer(place)).hexdigest()[:32]


def require_same(file: InputFile, root: Place) -> None:
    """VievalError where a planned file is not there any more, or is another."""
    place = root.below(file.path)
    try:
        same = _is_same(place, size_of(place), file)
    except VievalError as error:
        raise VievalError(f"{error}; it is in the plan, and no shard of it can be judged without it") from None
    if not same:
        raise VievalError(_OTHER_FILE.format(place))


def table_of(file: InputFile, root: Place, indexes: Path) -> InputTable:
    """All rows of a file, for its columns; VievalError where it cannot be read."""
    place = root.below(file.path)
    if not file.is_tar:
        return parquet_table(place)
    return webdataset_table(Path(place.path), _members(file, place, indexes))


def rows_in_group(file: InputFile, root: Place, indexes: Path, group: int, wanted: Sequence[range]) -> InputTable:
    """Some rows of a row group, or samples of a tar, in one pass; VievalError where it cannot be read."""
    place = root.below(file.path)
    if not file.is_tar:
        return row_group_table(place, group, wanted)
    return webdataset_table(Path(place.path), _members(file, place, indexes), wanted)


def _index_file(indexes: Path, digest: str) -> Path:
    return indexes / f"{digest}.parquet"


def _index_tar(place: Place, indexes: Path) -> tuple[str, list[TarMember]]:
    """The digest of a tar's index, which is kept in the folder `indexes`, and the index."""
    members = list(tar_index(Path(place.path)))
    # of the members, not of the file: another pyarrow writes other bytes
    digest = hashlib.sha256("\n".join(map(str, members)).encode()).hexdigest()[:32]
    write_whole(_index_file(indexes, digest), _encoded(members), synced=True)
    return digest, members


def _encoded(members: Sequence[TarMember]) -> bytes:
    pyarrow = arrow()
    sink = pyarrow.BufferOutputStream()
    columns = {name: [getattr(member, name) for member in members] for name in TarMember.__annotations__}
    pyarrow.parquet.write_table(pyarrow.table(columns), sink, compression="zstd")
    return bytes(sink.getvalue())


def _members(file: InputFile, place: Place, indexes: Path) -> list[TarMember]:
    index = _index_file(indexes, file.digest)
    if not index.exists():  # a run whose verdicts lie in object storage keeps its indexes on each machine
        digest, members = _index_tar(place, indexes)
        if digest != file.digest:
            raise VievalError(_OTHER_FILE.format(place))
        return members
    try:
        columns = arrow().parquet.read_table(index).to_pydict()
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise VievalError(
            f"{index}: the index of a tar file cannot be read ({reason}); judge it again into another folder"
        ) from None
    return [TarMember(*fields) for fields in zip(*(columns[name] for name in TarMember.__annotations__), strict=True)]


def _is_known(path: str) -> bool:
    name = posixpath.basename(path)
    return name.lower().endswith((*PARQUET, *_TARS)) and not name.startswith(".")


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
