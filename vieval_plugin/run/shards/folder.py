"""The folder of a run of shards: its plan, and a file of verdicts a shard that is there whole or
not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from vieval_plugin.readers.places import PLAN, arrow, location_of
from vieval_plugin.run.shards.plan import Plan, from_json, to_json
from vieval_plugin.run.shards.schema import METADATA, metadata_in
from vieval_plugin.run.shards.storage import Storage, storage_at
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.yaml_json import JsonObject, read_json

VERDICTS = "verdicts"
INDEXES = "index"
UNDER_WAY = "under_way"
SUFFIX = ".parquet"
#: The beginning of the name of a file that holds the verdicts of several shards.
JOINED = "joined-"


@dataclass(frozen=True)
class ShardFolder:
    """A folder of shards.

    Files of verdicts go by their names without the suffix: that of a shard, or one that begins with
    `joined-`.
    """

    #: Its path or address.
    location: str
    #: The storage of its files.
    storage: Storage
    #: Folder of notes and of indexes of tar files: on a disk the folder itself.
    local_folder: Path

    @property
    def name(self) -> str:
        """The name of the folder in messages."""
        return self.storage.name

    @property
    def indexes(self) -> Path:
        """The folder of the indexes of tar files."""
        return self.local_folder / INDEXES

    @property
    def under_way(self) -> Path:
        """The folder of notes on rows under way."""
        return self.local_folder / UNDER_WAY

    def prepare(self) -> None:
        """Make the folder of notes; VievalError where it cannot be made."""
        try:
            self.under_way.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise VievalError(
                f"cannot write {self.local_folder}: {error.strerror}; choose "
                "another --out"
            ) from None

    def plan(self) -> Plan | None:
        """The plan; None if missing, VievalError if it cannot be read."""
        text = self.storage.read(PLAN)
        return None if text is None else from_json(text, f"{self.name}/{PLAN}")

    def create_plan(self, plan: Plan) -> Plan:
        """Keep a plan if there is no plan yet; the plan that is there then, as another
        driver may have been first.
        """
        self.storage.create(PLAN, to_json(plan))
        plan_there = self.plan()
        assert plan_there is not None
        return plan_there

    def holds(self, name: str) -> bool:
        """Return whether a shard's own file is there."""
        return self.storage.holds(_file(name))

    def write(self, name: str, content: bytes) -> None:
        """Write a file of verdicts; VievalError where it cannot be."""
        self.storage.write(_file(name), content)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files of verdicts."""
        for name in names:
            self.storage.remove(_file(name))

    def sizes(self) -> Mapping[str, int]:
        """The files of verdicts in the order of their names, with their sizes in bytes."""
        return {
            name.removesuffix(SUFFIX): size
            for name, size in sorted(self.storage.sizes(VERDICTS).items())
            if name.endswith(SUFFIX)
        }

    def names(self) -> set[str]:
        """The names of all shards that are done, those in joined files too."""
        return {name for file in self.sizes() for name in self._names_in(file)}

    def joined(self, file: str) -> set[str]:
        """The names of the shards in a file that holds several."""
        return set(self._names_in(file))

    def _file_label(self, file: str) -> str:
        return f"{self.name}/{_file(file)}"

    def _names_in(self, file: str) -> list[str]:
        if not file.startswith(JOINED):
            return [file]
        return [document["shard"]["name"] for document in self.metadata(file)]

    def metadata(self, file: str) -> list[JsonObject]:
        """The metadata of a file of verdicts, one for each shard in it in their order;
        VievalError if it is invalid.

        Only the end of the file is read.
        """
        document = metadata_in(self.storage.footer(_file(file)))
        if document is None or not ({"shard", "shards"} & document.keys()):
            raise VievalError(
                f"{self._file_label(file)}: not a verdict file, or damaged; "
                "remove it to judge its rows again"
            )
        common = {name: value for name, value in document.items() if name != "shards"}
        return [{**common, **shard} for shard in document.get("shards", [{}])]

    def require_own(self, file: str, table: Any) -> None:
        """Raise VievalError if a shard's file, of which this is the table, holds the
        verdicts of another.
        """
        document = read_json((table.schema.metadata or {}).get(METADATA, b"{}"))
        is_own = document.get("shard", {}).get("name") == file
        if not (is_own or file.startswith(JOINED)):
            raise VievalError(
                f"{self._file_label(file)}: contains the verdicts from a different "
                "shard; remove it to judge its rows again"
            )

    def tables(
        self, file: str, columns: Sequence[str] | None = None
    ) -> Iterator[tuple[JsonObject, Any]]:
        """The metadata and the table of each shard in a file, in their order;
        VievalError if it cannot be read.
        """
        read = self.reader()
        for number, document in enumerate(self.metadata(file)):
            yield document, read(file, number, columns)

    def reader(self) -> Callable[[str, int, Sequence[str] | None], Any]:
        """A function that reads the table of the n-th shard of a file; VievalError where it cannot.

        The last file is kept, as a joined one has many shards.
        """

        @lru_cache(maxsize=1)
        def opened(file: str) -> Any:
            pyarrow = arrow()
            return pyarrow.parquet.ParquetFile(
                pyarrow.BufferReader(self.storage.read(_file(file)) or b"")
            )

        def read(
            file: str,
            number: int,
            columns: Sequence[str] | None,
        ) -> Any:
            try:
                return opened(file).read_row_group(number, columns=columns)
            except (OSError, ValueError, IndexError) as error:
                raise VievalError(
                    f"cannot read {self._file_label(file)}: {line_of(error)}; remove it "
                    "to judge its rows again"
                ) from None

        return read

    def entries(self) -> dict[str, tuple[str, int]]:
        """The file of each shard that is done, and the shard's number in that file."""
        entries = {}
        for file, counted_names in self.counted():
            for number, name in enumerate(self._names_in(file)):
                if name in counted_names:
                    entries[name] = file, number
        return entries

    def counted(self) -> Iterator[tuple[str, set[str]]]:
        """Each file of verdicts with the shards whose verdicts count in it.

        A shard that is in a joined file and has its own file as well counts where it was judged
        last: in the first where a compaction was ended between the two, in the second where it was
        judged again.
        """
        files = self.sizes()
        joined_files = [file for file in files if file.startswith(JOINED)]
        single = set(files).difference(joined_files)
        joined = set()
        for file in joined_files:
            names = set()
            for document in self.metadata(file):
                name = document["shard"]["name"]
                is_outdated = (
                    name in single
                    and self.metadata(name)[0]["ended"] > document["ended"]
                )
                if name not in joined and not is_outdated:
                    names.add(name)
                    single.discard(name)
            joined |= names
            yield file, names
        for file in sorted(single):
            yield file, {file}


def open_folder(path_or_address: str | Path) -> ShardFolder:
    """The folder at a path, or at an address of object storage; VievalError for an address that
    leads nowhere.
    """
    location = location_of(path_or_address)
    return ShardFolder(location, *storage_at(location))


def kept_verdicts(
    folder: ShardFolder,
    name: str,
    statuses: Collection[str],
) -> Mapping[tuple[int, int], JsonObject]:
    """The verdicts of a shard that stay where those of some statuses are judged again, by row
    and prompt.
    """
    files = [name]
    if not folder.holds(name):
        files = [file for file, names in folder.counted() if name in names]
    return {
        (verdict["row"], verdict["prompt"]): verdict
        for file in files
        for document, table in folder.tables(file)
        if document["shard"]["name"] == name
        for verdict in table.to_pylist()
        if verdict["status"] not in statuses
    }


def _file(name: str) -> str:
    return f"{VERDICTS}/{name}{SUFFIX}"
