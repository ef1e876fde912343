"""The folder of a run of shards: its plan, and a file of verdicts a shard that is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.media.files import create_whole, require_writable, write_whole
from vieval_plugin.run.shards.plan import Plan, from_json, to_json
from vieval_plugin.run.shards.schema import arrow, metadata_of

PLAN, VERDICTS, INDEXES, UNDER_WAY = "plan.json", "verdicts", "index", "under_way"
SUFFIX = ".parquet"
JOINED = "joined-"
"""The beginning of the name of a file that holds the verdicts of several shards."""
_STALE = 3600.0  # seconds after which an unfinished file is nobody's any more


@dataclass(frozen=True)
class ShardFolder:
    """A folder on a file system that all workers see."""

    path: Path

    @property
    def indexes(self) -> Path:
        """The folder of the indexes of tar files."""
        return self.path / INDEXES

    @property
    def under_way(self) -> Path:
        """The folder of notes on rows under way."""
        return self.path / UNDER_WAY

    def prepare(self) -> None:
        """Make the folder; VievalError where nothing can be written there. Unfinished files of long ago are removed."""
        require_writable(self.path / PLAN)
        try:
            for folder in (self.path / VERDICTS, self.under_way):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise VievalError(f"{self.path}: cannot be written ({error.strerror}); choose another --out") from None
        for left in (self.path / VERDICTS).glob("*.part"):
            with contextlib.suppress(OSError):
                if left.stat().st_mtime < time.time() - _STALE:
                    left.unlink()

    def plan(self) -> Plan | None:
        """The plan; None where there is none yet, VievalError where it cannot be read."""
        try:
            return from_json((self.path / PLAN).read_bytes(), str(self.path / PLAN))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise VievalError(f"{self.path / PLAN}: cannot be read ({error.strerror})") from None

    def create_plan(self, plan: Plan) -> Plan:
        """Keep a plan where there is none; the plan that is there then, as another driver may have been first."""
        create_whole(self.path / PLAN, to_json(plan))
        kept = self.plan()
        assert kept is not None
        return kept

    def replace_plan(self, plan: Plan) -> None:
        """Keep an extended plan."""
        write_whole(self.path / PLAN, to_json(plan), synced=True)

    def file_of(self, name: str) -> Path:
        """The file of a shard's verdicts."""
        return self.path / VERDICTS / f"{name}{SUFFIX}"

    def holds(self, name: str) -> bool:
        """Return whether a shard's own file is there."""
        return self.file_of(name).exists()

    def write(self, name: str, content: bytes) -> None:
        """Write a file of verdicts: under another name, to the disk, and then to its place; VievalError where it cannot be."""
        path = self.file_of(name)
        write_whole(path, content, synced=True)
        with contextlib.suppress(OSError, AttributeError):  # the name too is to be on the disk; not every system can
            descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def remove(self, names: Iterable[str]) -> None:
        """Remove the files of shards."""
        for name in names:
            self.file_of(name).unlink(missing_ok=True)

    def names(self) -> set[str]:
        """The names of all shards that are done, those in joined files too."""
        done: set[str] = set()
        for file in self.files():
            done |= {file.stem} if not file.name.startswith(JOINED) else joined_shards(file)
        return done

    def files(self) -> list[Path]:
        """The files of verdicts, in the order of their names."""
        try:
            with os.scandir(self.path / VERDICTS) as entries:
                return sorted(Path(entry.path) for entry in entries if entry.name.endswith(SUFFIX))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise VievalError(f"{self.path / VERDICTS}: cannot be read ({error.strerror})") from None


def read_metadata(file: Path) -> list[dict[str, Any]]:
    """The metadata of a file of verdicts, one for each shard in it in their order; VievalError where it is none.

    Only the end of the file is read.
    """
    try:
        document = metadata_of(arrow().parquet.read_schema(file))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise VievalError(f"{file}: no file of verdicts ({reason}); remove it, and its rows are judged again") from None
    if document is None or not ({"shard", "shards"} & document.keys()):
        raise VievalError(f"{file}: no file of verdicts; remove it")
    common = {name: value for name, value in document.items() if name != "shards"}
    return [{**common, **shard} for shard in document.get("shards", [{}])]


def joined_shards(file: Path) -> set[str]:
    """The names of the shards in a file that holds several."""
    return set(_names_in(file))


def _names_in(file: Path) -> list[str]:
    return [document["shard"]["name"] for document in read_metadata(file)]


def shard_files(folder: ShardFolder) -> Iterator[tuple[Path, set[str]]]:
    """Each file of verdicts with the shards whose verdicts count in it.

    A shard that is in a joined file and has its own file as well counts where it was judged last: in the first where a
    compaction was ended between the two, in the second where it was judged again.
    """
    files = folder.files()
    own = {file.stem: file for file in files if not file.name.startswith(JOINED)}
    joined: set[str] = set()
    for file in files:
        if file.name.startswith(JOINED):
            counted = set()
            for document in read_metadata(file):
                name = document["shard"]["name"]
                is_outdated = name in own and read_metadata(own[name])[0]["ended"] > document["ended"]
                if name not in joined and not is_outdated:
                    counted.add(name)
                    own.pop(name, None)
            joined |= counted
            yield file, counted
    for name, file in own.items():
        yield file, {name}


def read_shards(file: Path, columns: Sequence[str] | None = None) -> Iterator[tuple[dict[str, Any], Any]]:
    """The metadata and the table of each shard in a file, in their order; VievalError where it cannot be read."""
    read = shard_reader()
    for number, document in enumerate(read_metadata(file)):
        yield document, read(file, number, columns)


def shard_reader() -> Callable[[Path, int, Sequence[str] | None], Any]:
    """A function that reads the table of the n-th shard of a file; VievalError where it cannot.

    The last file stays open, as a joined one has many shards.
    """
    opened = lru_cache(maxsize=1)(arrow().parquet.ParquetFile)

    def read(file: Path, number: int, columns: Sequence[str] | None) -> Any:
        try:
            return opened(file).read_row_group(number, columns=columns)
        except (OSError, ValueError, IndexError) as error:
            reason = " ".join(str(error).split())[:200]
            raise VievalError(f"{file}: cannot be read ({reason}); remove it, and its rows are judged again") from None

    return read


def shard_places(folder: ShardFolder) -> dict[str, tuple[Path, int]]:
    """The file of each shard that is done, and its number in that file."""
    return {
        name: (file, number)
        for file, counted in shard_files(folder)
        for number, name in enumerate(_names_in(file) if file.name.startswith(JOINED) else [file.stem])
        if name in counted
    }


def kept_verdicts(
    folder: ShardFolder, name: str, statuses: Collection[str]
) -> Mapping[tuple[int, int], dict[str, Any]]:
    """The verdicts of a shard that stay as they are, by row and prompt."""
    files = (
        [folder.file_of(name)] if folder.holds(name) else [file for file, names in shard_files(folder) if name in names]
    )
    return {
        (verdict["row"], verdict["prompt"]): verdict
        for file in files
        for document, table in read_shards(file)
        if document["shard"]["name"] == name
        for verdict in table.to_pylist()
        if verdict["status"] not in statuses
    }
