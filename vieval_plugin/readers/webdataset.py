"""Webdataset tar files as tables: a sample is the members that share a name up to the first dot.

`key.output.png` is the column `output`, `key.png` the column `image`, `key.prompt.txt` the column
`prompt`, `key.txt` the column `text`, and of `key.json` each entry that is a text, a number or a
list of texts; the column `key` has the name. Where names have further dots that are no columns, as
`cfg3.5_000.png` has, the last dot ends the key.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Self

from vieval_plugin.images import MAX_BYTES
from vieval_plugin.judges.protocol import TableCell
from vieval_plugin.readers.columns import is_column_name
from vieval_plugin.readers.image_names import SUFFIXES, is_system_file
from vieval_plugin.readers.tables import (
    BadLine,
    Cells,
    InputTable,
    NumberedRow,
    StoredImage,
    are_texts,
    json_value,
    row_of_value,
)
from vieval_plugin.text.errors import VievalError, line_of

#: The suffixes of tar files, whose members can be found by their place, and of those that are read
#: from the beginning.
PLAIN = (".tar",)
COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
#: The end of a member that `vieval filter` adds to each sample, after its prefix.
ADDED = "vieval.json"
_COMPRESSIONS = {"tgz": "gz"}
_HEADER = 512
_CHECKSUM = slice(148, 156)
_LAST_DOT = re.compile(rf"(.*?)\.(\w*{re.escape(ADDED)}|[^.]*)")


@dataclass(frozen=True)
class TarMember:
    """A file in a tar."""

    sample: int
    #: Key of its sample.
    key: str
    #: Its name after the key.
    name: str
    #: Where its content begins.
    offset: int
    #: Bytes of its content.
    size: int
    #: Checksum of its header.
    checksum: int

    @property
    def is_image(self) -> bool:
        return f".{self.name.rpartition('.')[2]}" in SUFFIXES

    @property
    def is_json(self) -> bool:
        return self.name == "json"

    @property
    def column(self) -> str:
        """Column of an image or a text; empty for any other member."""
        column, _, suffix = self.name.rpartition(".")
        default = "image" if self.is_image else "text" if suffix == "txt" else ""
        return column or default if default else ""


@dataclass(frozen=True)
class TarIndex:
    """The files in a tar by samples."""

    #: The files, those of a sample one after another.
    members: tuple[TarMember, ...]
    #: The last dot of a name ends the key, and not the first.
    last_dot: bool = False

    @property
    def samples(self) -> int:
        """The number of samples."""
        if self.members:
            return self.members[-1].sample + 1
        return 0

    @property
    def repeated_keys(self) -> int:
        """The number of samples whose key another sample has before them."""
        return self.samples - len({member.key for member in self.members})

    @property
    def images(self) -> Counter[str]:
        """The number of images by column."""
        return Counter(member.column for member in self.members if member.is_image)


def tar_index(
    path: Path,
    last_dot: bool | None = None,
    columns: Iterable[str] = (),
) -> TarIndex:
    """The files in a tar by samples.

    Members of a key are one sample wherever they stand; a member that the sample has already begins
    another of this key.

    Args:
        path: the file.
        last_dot: whether the last dot of a name ends the key (default: where all names allow it).
        columns: names of columns beside the known ones.

    Raises:
        VievalError: it cannot be read, two images are one column of a sample, or it is compressed
            and members of a sample are not together.
    """
    entries = _located_files(path)
    if last_dot is None:
        names = [name for name, *_ in entries]
        last_dot = _last_dot_ends_keys(names, set(columns))
    is_seekable = path.name.lower().endswith(PLAIN)
    samples_by_key: dict[str, int] = {}
    names_by_sample: list[set[str]] = []
    images: dict[tuple[int, str], str] = {}
    members = []
    for full_name, *location in entries:
        key, name = _key_and_name(full_name, last_dot)
        sample = samples_by_key.get(key, -1)
        if sample < 0 or name in names_by_sample[sample]:
            sample = samples_by_key[key] = len(names_by_sample)
            names_by_sample.append(set())
        elif sample < len(names_by_sample) - 1 and not is_seekable:
            raise _separate_member_error(path, full_name)
        names_by_sample[sample].add(name)
        member = TarMember(
            sample,
            key,
            name,
            *location,
        )
        if member.is_image:
            first_name = images.setdefault((sample, member.column), full_name)
            if first_name != full_name:
                raise _same_column_error(
                    path,
                    member,
                    first_name,
                    full_name,
                )
        members.append(member)
    members.sort(key=attrgetter("sample"))
    return TarIndex(tuple(members), last_dot)


def _located_files(path: Path) -> list[tuple[str, int, int, int]]:
    """The name of each file in a tar, where its content begins, its size and checksum."""
    return [
        (name, entry.offset_data, entry.size, entry.chksum)
        for name, entry, _ in _tar_entries(path)
    ]


def _separate_member_error(path: Path, full_name: str) -> VievalError:
    return VievalError(
        f"{path}: {full_name} is separate from the other members of its sample; "
        "recreate the archive with tar --sort=name, or without compression"
    )


def _same_column_error(
    path: Path,
    member: TarMember,
    first_name: str,
    full_name: str,
) -> VievalError:
    return VievalError(
        f"{path}: {first_name} and {full_name} are both column {member.column!r} of "
        "one sample; remove one, or rename it to KEY.NAME.SUFFIX"
    )


def _key_and_name(full_name: str, last_dot: bool) -> tuple[str, str]:
    """The key of a member's sample, and the member's name in it.

    >>> _key_and_name("a.b/cfg3.5_0.png", False), _key_and_name("a.b/cfg3.5_0.png", True)
    (('a.b/cfg3', '5_0.png'), ('a.b/cfg3.5_0', 'png'))
    """
    folder, slash, file = full_name.rpartition("/")
    stem, _, name = file.partition(".")
    match = _LAST_DOT.fullmatch(file) if last_dot else None
    if match:
        stem, name = match.groups()
    return f"{folder}{slash}{stem}", name.lower()


def _last_dot_ends_keys(full_names: Sequence[str], columns: set[str]) -> bool:
    """Return whether some names have dots within, no part between dots is a column, and no key is
    the start of another.

    >>> _last_dot_ends_keys(["cfg3.5_0.png", "cfg3.5_0.txt"], set()), _last_dot_ends_keys(["0.jpg", "0.seg.png"], set())
    (True, False)
    """
    keys = {_key_and_name(name, last_dot=True)[0] for name in full_names}
    has_dots = False
    for key in keys:
        start, *middle_parts = key.rpartition("/")[2].split(".")
        has_dots = has_dots or bool(middle_parts)
        if any(part in columns or is_column_name(part) for part in middle_parts):
            return False
        prefix = start
        if "/" in key:
            prefix = f"{key.rpartition('/')[0]}/{start}"
        for part in middle_parts:
            if prefix in keys:
                return False
            prefix = f"{prefix}.{part}"
    return has_dots


def webdataset_table(
    path: Path,
    index: Sequence[TarMember],
    samples: Sequence[range] | None = None,
) -> InputTable:
    """The samples of a tar; VievalError, also while rows are read, where it cannot be read or is
    not that of the index.

    Args:
        path: the file.
        index: the members by `tar_index`.
        samples: those that are read, by their numbers from 0 (default: all).
    """

    def read(columns: Sequence[str]) -> Iterator[NumberedRow]:
        for number, members in _read(path, index, samples):
            try:
                cells = _cells(path, members).items()
            except BadLine as bad:
                yield number + 1, bad
                continue
            row = {name: value for name, value in cells if name in columns}
            yield number + 1, row

    # JSON columns need a full pass over the tar; a shard's reader is given those of the whole file
    entries = [] if samples else _json_columns(path, index)
    columns = ["key", *entries, *(member.column for member in index)]
    column_names = tuple(dict.fromkeys(filter(None, columns)))
    return InputTable(
        str(path),
        column_names,
        read,
        path.parent,
        (path,),
        "sample",
    )


def _json_columns(path: Path, index: Sequence[TarMember]) -> Iterator[str]:
    """The names of the entries of all JSON members that can be read."""
    members = [member for member in index if member.is_json]
    for _, [pair] in _read(path, members, None):
        with suppress(BadLine):
            yield from _entries(*pair)


def _read(
    path: Path,
    index: Sequence[TarMember],
    samples: Sequence[range] | None,
) -> Iterator[tuple[int, list[tuple[TarMember, bytes]]]]:
    members = [
        member
        for member in index
        if samples is None or any(member.sample in numbers for numbers in samples)
    ]
    if path.name.lower().endswith(PLAIN):
        contents = _read_at_offsets(path, members)
    else:
        contents = _read_through(path, members)
    for number, pairs in groupby(contents, key=lambda pair: pair[0].sample):
        yield number, list(pairs)


def _read_at_offsets(
    path: Path, members: Iterable[TarMember]
) -> Iterator[tuple[TarMember, bytes]]:
    try:
        with path.open("rb") as file:
            for member in members:
                file.seek(member.offset - _HEADER)
                checksum = file.read(_HEADER)[_CHECKSUM].strip(b"\0 ")
                if checksum.lstrip(b"0") != b"%o" % member.checksum:
                    raise VievalError(
                        f"{path}: changed since it was indexed; restore the file, "
                        "or use another folder"
                    )
                is_read = member.size <= MAX_BYTES
                yield member, file.read(member.size) if is_read else b""
    except OSError as error:
        raise VievalError(
            f"cannot read {path}: {error.strerror}; restore the file"
        ) from None


def _read_through(
    path: Path, members: Sequence[TarMember]
) -> Iterator[tuple[TarMember, bytes]]:
    """The content of members of a compressed tar, which is read from its beginning as far as the
    last of them.
    """
    by_offset = {member.offset: member for member in members}
    for _, entry, open_entry in _tar_entries(path):
        member = by_offset.get(entry.offset_data)
        if member:
            file = open_entry() if entry.size <= MAX_BYTES else None
            yield member, file.read() if file else b""
        if members and entry.offset_data >= members[-1].offset:
            return


def copy_samples(
    path: Path,
    target: Path,
    index: Sequence[TarMember],
    further: Mapping[int, bytes],
    name: str,
) -> None:
    """Write some samples of a tar, as they are, to another, compressed alike.

    Args:
        path: the tar.
        target: the file that is written.
        index: the members by `tar_index`.
        further: by the number of each sample that is copied, the content of a further member, which
            comes first.
        name: of the further member, after the sample's key.

    Raises:
        VievalError: the tar cannot be read, or a sample that is copied has a member of that name.
        OSError: the target cannot be written.
    """
    suffix = target.name.lower().rpartition(".")[2]
    mode: Any = "w" if suffix == "tar" else f"w:{_COMPRESSIONS.get(suffix, suffix)}"
    by_offset = {member.offset: member for member in index if member.sample in further}
    begun_samples: set[int] = set()
    with tarfile.open(target, mode) as copy:
        for _, entry, open_entry in _tar_entries(path):
            member = by_offset.get(entry.offset_data)
            if member is None:
                continue
            if member.name == name.lower():
                raise VievalError(
                    f"{path}: already has a member {member.key}.{name}; use "
                    "--prefix to rename the added one"
                )
            if member.sample not in begun_samples:
                begun_samples.add(member.sample)
                # readers group members by their whole names, of which ./ is a part
                folder = "./" if entry.name.startswith("./") else ""
                content = further[member.sample]
                added = tarfile.TarInfo(f"{folder}{member.key}.{name}")
                added.size = len(content)
                copy.addfile(added, io.BytesIO(content))
            copy.addfile(entry, open_entry())


def _tar_entries(
    path: Path,
) -> Iterator[tuple[str, tarfile.TarInfo, Callable[[], IO[bytes] | None]]]:
    """The files in a tar that are data, each with its name, its entry and a function that opens
    it.
    """
    mode: Any = "r:" if path.name.lower().endswith(PLAIN) else "r|*"
    try:
        with tarfile.open(path, mode, tarinfo=_Entry) as tar:
            for entry in tar:
                # a name that is not UTF-8 comes with halves of characters, which no file of texts
                # can hold
                name = entry.name.encode(errors="replace").decode().removeprefix("./")
                if entry.isreg() and not is_system_file(name):
                    yield name, entry, partial(tar.extractfile, entry)
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        reason = getattr(error, "strerror", None) or line_of(error)
        raise VievalError(
            f"{path}: not a readable tar file ({reason}); restore the file"
        ) from None


class _Entry(tarfile.TarInfo):
    """A tar header that raises ReadError where it is damaged, which Python would take for the end of
    the archive, silently dropping the rest.
    """

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tar)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # the end mark, which every whole tar has
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(
                f"found {error} instead of an entry or the end of the archive"
            ) from None


def _cells(path: Path, members: Sequence[tuple[TarMember, bytes]]) -> Cells:
    """A sample's members by column; BadLine for JSON and text that cannot be read."""
    cells: Cells = {"key": members[0][0].key}
    for member, content in members:
        name = member.column
        if member.is_image:
            cell = TableCell(path, member.sample, name)
            cells[name] = StoredImage(member.name, content, cell)
        elif name or member.is_json:
            cells |= _entries(member, content)
    return cells


def _entries(member: TarMember, content: bytes) -> Cells:
    """The text of a member by its column, or its JSON entries by theirs; BadLine where it cannot
    be read.
    """
    full_name = f"{member.key}.{member.name}"
    try:
        if not member.is_json:
            return {member.column: content.decode()}
        row = row_of_value(json_value(content))
    except ValueError:
        raise BadLine(f"{full_name} is not valid UTF-8 or JSON") from None
    if isinstance(row, BadLine):
        raise BadLine(f"{full_name}: {row}")
    return {name: value for name, value in row.items() if _is_cell(value)}


def _is_cell(value: Any) -> bool:
    return isinstance(value, (str, int, float)) or bool(value and are_texts(value))
