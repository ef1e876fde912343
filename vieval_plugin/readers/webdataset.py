"""Webdataset tar files as tables: a sample is the members that follow each other and share a name up to the first dot.

`key.output.png` is the column `output`, `key.png` the column `image`, `key.prompt.txt` the column `prompt`, `key.txt`
the column `text`, and of `key.json` each entry that is a text, a number or a list of texts; the column `key` has the
name.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Self

from vieval_plugin.images import MAX_BYTES
from vieval_plugin.judges.protocol import TableCell
from vieval_plugin.readers.image_names import SUFFIXES
from vieval_plugin.readers.tables import BadLine, InputTable, NumberedRow, StoredImage
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import read_json

#: The suffixes of tar files, whose members can be found by their place, and of those that are read from the beginning.
PLAIN, COMPRESSED = (".tar",), (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_COMPRESSIONS = {"tgz": "gz"}
_FIRST = 100  # samples whose members are the columns
_HEADER, _CHECKSUM = 512, slice(148, 156)


@dataclass(frozen=True)
class TarMember:
    """A file in a tar."""

    #: Number of its sample.
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


def tar_index(path: Path) -> Iterator[TarMember]:
    """The files in a tar, in order; VievalError where it cannot be read."""
    for member, _, _ in _tar_entries(path):
        yield member


def webdataset_table(path: Path, index: Sequence[TarMember], samples: Sequence[range] | None = None) -> InputTable:
    """The samples of a tar; VievalError, also while rows are read, where it cannot be read or is not that of the index.

    Args:
        path: the file.
        index: by `tar_index`.
        samples: those that are read, by their numbers from 0 (default: all).
    """

    def read(columns: Sequence[str]) -> Iterator[NumberedRow]:
        for number, members in _read(path, index, samples):
            try:
                cells = _cells(path, members)
            except ValueError as error:
                yield number + 1, BadLine(str(error))
                continue
            yield number + 1, {name: value for name, value in cells.items() if name in columns}

    first = (members for _, members in _read(path, index, [range(_FIRST)]))
    columns = dict.fromkeys(name for members in first for name in _cells(path, members, broken={}))
    return InputTable(str(path), tuple(columns), read, path.parent, (path,), "sample")


def _read(
    path: Path, index: Sequence[TarMember], samples: Sequence[range] | None
) -> Iterator[tuple[int, list[tuple[TarMember, bytes]]]]:
    """Samples with their members and what is in them."""
    members = [member for member in index if samples is None or any(member.sample in numbers for numbers in samples)]
    contents = _read_at_offsets(path, members) if path.name.lower().endswith(PLAIN) else _read_through(path, members)
    for number, pairs in groupby(contents, key=lambda pair: pair[0].sample):
        yield number, list(pairs)


def _read_at_offsets(path: Path, members: Iterable[TarMember]) -> Iterator[tuple[TarMember, bytes]]:
    try:
        with path.open("rb") as file:
            for member in members:
                file.seek(member.offset - _HEADER)
                header = file.read(_HEADER)
                if header[_CHECKSUM].strip(b"\0 ").lstrip(b"0") != b"%o" % member.checksum:
                    raise VievalError(
                        f"{path}: it has changed since it was indexed; restore the file, or begin in another folder"
                    )
                yield member, file.read(member.size) if member.size <= MAX_BYTES else b""
    except OSError as error:
        raise VievalError(f"{path}: cannot be read ({error.strerror}); restore the file") from None


def _read_through(path: Path, members: Sequence[TarMember]) -> Iterator[tuple[TarMember, bytes]]:
    """The content of members of a compressed tar, which is read from its beginning as far as the last of them."""
    names = {(member.sample, member.name) for member in members}
    for member, entry, open_entry in _tar_entries(path):
        if (member.sample, member.name) in names:
            file = open_entry() if entry.size <= MAX_BYTES else None
            yield member, file.read() if file else b""
        if members and member.offset >= members[-1].offset:
            return


def copy_samples(path: Path, target: Path, further: Mapping[int, bytes], name: str) -> None:
    """Write some samples of a tar, as they are, to another, compressed alike.

    Args:
        path: the tar.
        target: the file that is written.
        further: by the number of each sample that is copied, the content of a further member.
        name: of the further member, after the sample's key.

    Raises:
        VievalError: the tar cannot be read, or a sample that is copied has a member of that name.
        OSError: the target cannot be written.
    """
    suffix = target.name.lower().rpartition(".")[2]
    mode: Any = "w" if suffix == "tar" else f"w:{_COMPRESSIONS.get(suffix, suffix)}"
    with tarfile.open(target, mode) as copy:
        key, number = "", -1
        for member, entry, open_entry in _tar_entries(path):
            if member.sample != number:
                _add(copy, f"{key}.{name}", further.get(number))
                key, number = member.key, member.sample
            if number in further:
                if member.name == name.lower():
                    raise VievalError(f"{path}: it has a member {key}.{name}; name the one that is added with --prefix")
                copy.addfile(entry, open_entry())
        _add(copy, f"{key}.{name}", further.get(number))


def _add(tar: tarfile.TarFile, name: str, content: bytes | None) -> None:
    if content is not None:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))


def _tar_entries(path: Path) -> Iterator[tuple[TarMember, tarfile.TarInfo, Callable[[], IO[bytes] | None]]]:
    """The files in a tar, each with its entry and a function that opens it."""
    sample, key = -1, None
    try:
        with tarfile.open(path, "r:" if path.name.lower().endswith(PLAIN) else "r|*", tarinfo=_Entry) as tar:
            for entry in tar:
                if not entry.isreg():
                    continue
                # a name that is not UTF-8 comes with halves of characters, which no file of texts can hold
                folder, _, name = entry.name.encode(errors="replace").decode().rpartition("/")
                stem, _, name = name.partition(".")
                entry_key = f"{folder}/{stem}" if folder else stem
                if entry_key != key:
                    sample, key = sample + 1, entry_key
                member = TarMember(sample, entry_key, name.lower(), entry.offset_data, entry.size, entry.chksum)
                yield member, entry, partial(tar.extractfile, entry)
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200] or type(error).__name__
        raise VievalError(f"{path}: not readable as a tar file ({reason}); restore the file") from None


class _Entry(tarfile.TarInfo):
    """An entry of a tar that is damaged where a header is: Python takes that for the end, and what follows would be lost."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tar)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # the end mark, which every whole tar has
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"{error} in place of an entry or the end") from None


def _cells(
    path: Path, members: Sequence[tuple[TarMember, bytes]], broken: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A sample's members by column; ValueError for JSON and text that cannot be read, unless `broken` stands for it."""
    cells: dict[str, Any] = {"key": members[0][0].key}
    for member, content in members:
        column, _, suffix = member.name.rpartition(".")
        try:
            if f".{suffix}" in SUFFIXES:
                name = column or "image"
                cells[name] = StoredImage(member.name, content, TableCell(path, member.sample, name))
            elif suffix == "txt":
                cells[column or "text"] = content.decode()
            elif suffix == "json" and not column:
                document = read_json(content)
                if not isinstance(document, dict):
                    raise ValueError("not a JSON object")
                cells |= {name: value for name, value in document.items() if _is_cell(value)}
        except ValueError:
            if broken is None:
                raise ValueError(f"{member.key}.{member.name} is not readable as UTF-8 or JSON") from None
            cells |= broken
    return cells


def _is_cell(value: Any) -> bool:
    is_texts = isinstance(value, list) and value and all(isinstance(text, str) for text in value)
    return isinstance(value, (str, int, float)) or bool(is_texts)
