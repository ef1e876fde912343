"""Files of a data set, with their identity and number of rows."""

from __future__ import annotations

import glob
import hashlib
import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TypeVar

from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.arrow_tables import (
    parquet_file,
    parquet_table,
    reading_table,
)
from vieval_plugin.readers.image_names import SUFFIXES, is_system_file
from vieval_plugin.readers.places import (
    REMOTE,
    Place,
    arrow,
    location_of,
    parquet_footer,
    place_at,
    place_of,
    reading,
    size_of,
)
from vieval_plugin.readers.tables import InputTable
from vieval_plugin.readers.webdataset import (
    COMPRESSED,
    PLAIN,
    TarIndex,
    TarMember,
    tar_index,
    webdataset_table,
)
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.untrusted import exists, has_scheme, isdir, path_of
from vieval_plugin.text.wording import natural, plural

PARQUET = (".parquet",)
_TARS = (*PLAIN, *COMPRESSED)
# images and tables, of which a file of verdicts is made too
_NO_TAR_MEMBERS = (
    *SUFFIXES,
    *PARQUET,
    ".csv",
    ".jsonl",
    ".arrow",
)
_AT_ONCE = 8
_MOST_COLUMNS = 100  # of the images of a tar, in the plan
_MOST_NOTES = 20  # lines on tars
_OTHER_FILE = (
    "{}: changed since the plan was made; restore it, or judge it in a new folder"
)
_PATTERN = re.compile(r"[*[]")

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class InputFile:
    """A file of a data set."""

    #: Path from the plan's root.
    path: str
    #: Bytes.
    size: int
    #: Digest of a parquet file's footer, or of the index of a tar.
    digest: str
    #: Rows of each row group; a tar is one as a whole.
    groups: tuple[int, ...]
    #: The last dot of a member's name ends its key; of tars.
    last_dot: bool = False
    #: Samples with the key of another; of tars.
    repeated_keys: int = 0
    #: Number of images by column; of tars.
    images: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_tar(self) -> bool:
        return self.path.lower().endswith(_TARS)

    @property
    def is_compressed(self) -> bool:
        return self.path.lower().endswith(COMPRESSED)


def input_places(names: Sequence[str]) -> list[Place]:
    """Parquet and tar files from files, folders and patterns such as `a/*.tar`.

    Raises:
        VievalError: there is none, or one is another kind of file.
    """
    sources: dict[Place, None] = {}
    for name in names:
        files = _stored_objects(name) if has_scheme(name) else _local_files(name)
        if not files:
            label = name.partition("?")[0] if has_scheme(name) else name
            raise VievalError(
                f"{label}: no parquet or tar files, which --out FOLDER requires; pass "
                "files, folders or patterns such as 'data/*.parquet', or use an --out "
                "that ends in .jsonl, .csv or .parquet"
            )
        sources |= dict.fromkeys(files)
    for source in sources:
        if not _is_known(source.path):
            raise VievalError(
                f"{source}: --out FOLDER requires parquet or tar files; use an --out that "
                "ends in .jsonl, .csv or .parquet"
            )
    for source in sources:
        if source.scheme and not source.path.lower().endswith(PARQUET):
            raise VievalError(
                f"{source}: tar files must be on a file system; mount the bucket, "
                "copy the files, or pass a pattern of parquet files"
            )
    return list(sources)


def _local_files(name: str) -> list[Place]:
    path = path_of(name)
    files = [path]
    if path.is_dir():
        files = data_files(path)
    elif not path.exists():
        files = list(map(Path, glob.glob(str(path), recursive=True)))
    ordered = sorted(files, key=lambda file: natural(str(file)))
    return [place_of(file.absolute()) for file in ordered]


def data_files(folder: Path) -> list[Path]:
    """The parquet and tar files below a folder, less the tables that img2dataset writes beside
    its tars, `N.parquet`.
    """
    files = [
        file
        for file in folder.rglob("*")
        if _is_known(file.relative_to(folder).as_posix())
    ]
    tars = {file for file in files if file.suffix == ".tar"}
    return [
        file
        for file in files
        if file.with_suffix(".tar") not in tars or not _is_of_img2dataset(file)
    ]


def _is_of_img2dataset(file: Path) -> bool:
    return (
        file.suffix == ".parquet" and file.with_name(f"{file.stem}_stats.json").exists()
    )


def _stored_objects(name: str) -> list[Place]:
    """The files at an address, below it, or that match it; a pattern is listed from the last
    folder before it.
    """
    address, _, query = location_of(name).partition("?")
    folder = address
    pattern = ""
    if sign := _PATTERN.search(address):
        folder = address[: sign.start()].rpartition("/")[0]
        pattern = address[len(folder) + 1 :]
    source = place_at(f"{folder}?{query}" if query else folder)
    from pyarrow import fs

    with reading(source):
        if not pattern and source.system.get_file_info(source.path).is_file:
            return [source]
        everywhere = not pattern or "/" in pattern or "**" in pattern
        selected = fs.FileSelector(
            source.path,
            recursive=everywhere,
            allow_not_found=True,
        )
        entries = source.system.get_file_info(selected)
        bucket = source.path.partition("/")[0]
        if (
            not entries
            and source.system.get_file_info(bucket).type == fs.FileType.NotFound
        ):
            raise VievalError(
                f"{source.scheme}{bucket}: no such bucket; check its name, region "
                "and endpoint"
            )
        start = len(source.path) + 1
        names = [entry.path[start:] for entry in entries if entry.is_file]
    matches = partial(_matches, pattern.split("/")) if pattern else _is_known
    return [source.below(path) for path in sorted(filter(matches, names), key=natural)]


def _matches(pattern: Sequence[str], name: str) -> bool:
    """Return whether a name matches a pattern, part by part; `**` is any number of folders."""
    first, *remaining = pattern
    part, slash, tail = name.partition("/")
    if first == "**":
        is_here = _matches(remaining or ["*"], name)
        return is_here or (bool(slash) and _matches(pattern, tail))
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
    """Return whether a name is that of parquet or tar files: a file's, a pattern's, or a
    folder's with such below it.
    """
    path = path_of(name)
    if is_object_storage(name) or _is_known(str(path)):
        return True
    return isdir(path) and bool(data_files(path))


def is_for_shards_alone(name: str) -> bool:
    """Return whether only a folder of shards takes what a name means: object storage, a pattern,
    or nothing but tar files.
    """
    path = path_of(name)
    if is_object_storage(name) or path.name.lower().endswith(_TARS):
        return True
    if not isdir(path):
        return not exists(path) and bool(_PATTERN.search(name)) and _is_known(str(path))
    data = [file.name.lower() for file in data_files(path)]
    has_tar = any(name.endswith(_TARS) for name in data)
    if not has_tar or any(name.endswith(PARQUET) for name in data):
        return False
    untarred_files = (
        file for file in path.rglob("*") if file.name.lower().endswith(_NO_TAR_MEMBERS)
    )
    return all(map(_is_of_img2dataset, untarred_files))


def root_of(sources: Sequence[Place]) -> Place:
    """The folder that all files lie in; VievalError if missing."""
    path = ""
    if len({(source.scheme, source.query) for source in sources}) == 1:
        path = os.path.commonpath(
            [posixpath.dirname(source.path) for source in sources]
        )
    if not path:
        raise VievalError(
            f"{sources[0]} and {sources[-1]} have no common folder or bucket; use a "
            "separate --out for each"
        )
    return replace(sources[0], path=path)


def input_files(
    sources: Sequence[Place],
    root: Place,
    indexes: Path,
    planned: Mapping[str, InputFile],
    columns: Iterable[str] = (),
) -> list[InputFile]:
    """Files with their sizes, digests and rows; a tar is read through once, and its index kept in
    the folder `indexes`.

    Args:
        sources: the files.
        root: the folder that they lie in.
        indexes: the folder of the indexes of tar files.
        planned: files of a plan by their paths; one that is as the plan has it is not read again.
        columns: those that a user names.

    Raises:
        VievalError: one cannot be read.
    """
    arrow()
    # keys of a plan that is fixed end where they ended
    is_fixed = bool(planned) and not any(file.last_dot for file in planned.values())
    read = partial(
        _input_file,
        root=root,
        indexes=indexes,
        planned=planned,
        last_dot=False if is_fixed else None,
        columns=columns,
    )
    return map_in_threads(read, sources)


def map_in_threads(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The results of a function that waits for a disk or a service, of all items in order."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="footers") as pool:
        return list(pool.map(function, items))


def _most_common(images: Counter[str]) -> dict[str, int]:
    """The numbers of images of the commonest columns, and those of all others under an empty
    name.
    """
    counts = dict(images.most_common(_MOST_COLUMNS))
    others = images.total() - sum(counts.values())
    return {**counts, "": others} if others else counts


def tar_notes(files: Iterable[InputFile], columns: Collection[str]) -> list[str]:
    """Lines on tars whose keys end at the last dot or come again, and on images that no column
    reads.

    Args:
        files: of a plan.
        columns: those that are read.
    """
    notes = []
    for file in files:
        if file.last_dot:
            notes.append(
                f"{file.path}: sample keys end at the last dot of each name, because "
                "all names allow it"
            )
        if file.repeated_keys:
            keys = plural(file.repeated_keys, "repeated key")
            notes.append(f"{file.path}: {keys}; each occurrence is a separate sample")
    notes += hidden_images(files, columns)
    if len(notes) > _MOST_NOTES:
        notes[_MOST_NOTES:] = [
            f"{plural(len(notes) - _MOST_NOTES, 'more note')} like these"
        ]
    return notes


def hidden_images(files: Iterable[InputFile], columns: Collection[str]) -> list[str]:
    """A line for each tar with images that no column reads, with cause and remedy."""
    lines = []
    for file in files:
        hidden = {
            name: count for name, count in file.images.items() if name not in columns
        }
        if hidden:
            column = (next(iter(hidden)) or "...")[:80]
            count = plural(sum(hidden.values()), "image")
            lines.append(
                f"{file.path}: {count} not judged (first: column {column!r}), because "
                "sample keys end at the first dot of a name; rename the members and "
                "use another --out, or read the column with --columns "
                f"images.NAME={column}"
            )
    return lines


def _input_file(
    source: Place,
    root: Place,
    indexes: Path,
    planned: Mapping[str, InputFile],
    last_dot: bool | None,
    columns: Iterable[str],
) -> InputFile:
    is_elsewhere = source.scheme != root.scheme
    name = "" if is_elsewhere else posixpath.relpath(source.path, root.path)
    if is_elsewhere or name.startswith("../"):
        raise VievalError(
            f"{source} must be below {root}, like the other files of the plan; "
            "choose another --out"
        )
    size = size_of(source)
    if name in planned and _is_same(source, size, planned[name]):
        return planned[name]
    if source.path.lower().endswith(PARQUET):
        with reading_table(source):
            metadata = parquet_file(source).metadata
            groups = map(metadata.row_group, range(metadata.num_row_groups))
            rows = tuple(group.num_rows for group in groups)
        return InputFile(name, size, footer_digest(source), rows)
    digest, index = _index_tar(source, indexes, last_dot, columns)
    return InputFile(
        name,
        size,
        digest,
        (index.samples,),
        index.last_dot,
        index.repeated_keys,
        _most_common(index.images),
    )


def _is_same(
    source: Place,
    size: int,
    file: InputFile,
) -> bool:
    """Return whether a file is as the plan has it: of a tar, whose headers are looked at when it
    is read, by its size.
    """
    return size == file.size and (file.is_tar or footer_digest(source) == file.digest)


def footer_digest(source: Place) -> str:
    """SHA-256 of a parquet file's footer, shortened; VievalError where the file cannot be read."""
    return hashlib.sha256(parquet_footer(source)).hexdigest()[:32]


def require_same(file: InputFile, root: Place) -> None:
    """Raise VievalError if a planned file is not there any more, or is another."""
    source = root.below(file.path)
    try:
        is_same = _is_same(source, size_of(source), file)
    except VievalError as error:
        raise VievalError(
            f"{error}; the plan includes this file, so restore it"
        ) from None
    if not is_same:
        raise VievalError(_OTHER_FILE.format(source))


def table_of(
    file: InputFile,
    root: Place,
    indexes: Path,
) -> InputTable:
    """The rows of a file, for its columns; VievalError if it cannot be read."""
    source = root.below(file.path)
    if not file.is_tar:
        return parquet_table(source)
    return webdataset_table(Path(source.path), tar_members(file, root, indexes))


def rows_in_group(
    file: InputFile,
    root: Place,
    indexes: Path,
    group: int,
    ranges: Sequence[range],
) -> InputTable:
    """Some rows of a row group, or samples of a tar, in one pass; VievalError if it
    cannot be read.
    """
    source = root.below(file.path)
    if not file.is_tar:
        return parquet_table(source, group, ranges)
    return webdataset_table(Path(source.path), tar_members(file, root, indexes), ranges)


def _index_file(indexes: Path, digest: str) -> Path:
    return indexes / f"{digest}.parquet"


def _index_tar(
    source: Place,
    indexes: Path,
    last_dot: bool | None,
    columns: Iterable[str] = (),
) -> tuple[str, TarIndex]:
    """The digest of a tar's index, which is kept in the folder `indexes`, and the index."""
    index = tar_index(Path(source.path), last_dot, columns)
    # of the members, not of the file: another pyarrow writes other bytes
    listing = "\n".join(map(str, index.members))
    digest = hashlib.sha256(listing.encode()).hexdigest()[:32]
    write_whole(_index_file(indexes, digest), _encoded(index.members), synced=True)
    return digest, index


def _encoded(members: Sequence[TarMember]) -> bytes:
    pyarrow = arrow()
    sink = pyarrow.BufferOutputStream()
    columns = {
        name: [getattr(member, name) for member in members]
        for name in TarMember.__annotations__
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), sink, compression="zstd")
    return bytes(sink.getvalue())


def tar_members(
    file: InputFile,
    root: Place,
    indexes: Path,
) -> Sequence[TarMember]:
    """The members of a tar by its kept index; VievalError where it is another tar than when the
    plan was made.
    """
    index = _index_file(indexes, file.digest)
    # a run whose verdicts lie in object storage keeps its indexes on each machine
    if not index.exists():
        source = root.below(file.path)
        digest, tar = _index_tar(source, indexes, file.last_dot)
        if digest != file.digest:
            raise VievalError(_OTHER_FILE.format(source))
        return tar.members
    try:
        columns = arrow().parquet.read_table(index).to_pydict()
    except (OSError, ValueError) as error:
        raise VievalError(
            f"cannot read the tar index {index}: {line_of(error)}; choose another --out"
        ) from None
    fields = [columns[name] for name in TarMember.__annotations__]
    return [TarMember(*values) for values in zip(*fields, strict=True)]


def _is_known(path: str) -> bool:
    name = posixpath.basename(path)
    is_data = name.lower().endswith((*PARQUET, *_TARS))
    return is_data and not name.startswith(".") and not is_system_file(path)


def rows_of_files(files: Iterable[InputFile]) -> int:
    """The number of rows in files."""
    return sum(sum(file.groups) for file in files)


def limit_rows(files: Sequence[InputFile], limit: int) -> Iterator[InputFile]:
    """Files up to the row `limit`; what comes after it is left out."""
    for file in files:
        groups = []
        for rows in file.groups:
            if not limit:
                break
            groups.append(min(rows, limit))
            limit -= groups[-1]
        if groups:
            yield replace(file, groups=tuple(groups))
