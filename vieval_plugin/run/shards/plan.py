"""Plan of a folder of shards: the rows of each shard and everything that verdicts
depend on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import TypeAdapter, ValidationError

from vieval_plugin import judges
from vieval_plugin.readers.places import Place
from vieval_plugin.records import SCHEMA, Provenance
from vieval_plugin.run.shards.inputs import InputFile, limit_rows, rows_of_files
from vieval_plugin.run.shards.schema import VerdictSchema
from vieval_plugin.run.verdict_lines import differing_runs, identity_of
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.versions import VERSION
from vieval_plugin.text.wording import plural

ROWS_PER_SHARD = 512
_MOST_SHARDS = 1_000_000  # a plan of more is damaged
_READERS = (
    "backends/reply_checks.py",
    "backends/token_probabilities.py",
    "backends/http/faults.py",
    "backends/http/responses.py",
)


@dataclass(frozen=True)
class Shard:
    """Rows of a row group of a file."""

    #: Name of its file of verdicts.
    name: str
    #: Path of the file, from the plan's root.
    path: str
    #: Number of the row group.
    group: int
    #: Number of the first row in the file.
    first: int
    rows: int

    @property
    def numbers(self) -> range:
        """The numbers of its rows in their file."""
        return range(self.first, self.first + self.rows)


@dataclass(frozen=True)
class Plan:
    """A data set cut into shards, and all that a verdict on it depends on."""

    #: Folder that paths start at.
    root: str
    #: The files, in order.
    files: tuple[InputFile, ...]
    #: Rows of a shard, less at the end of a row group.
    rows_per_shard: int
    #: Columns of the files by what they are to a sample.
    columns: Mapping[str, str]
    #: Kind of rows that name none.
    kind: str
    #: Provenance of verdicts.
    provenance: Provenance
    #: Columns of verdicts.
    schema: VerdictSchema
    #: Version of VIEval.
    version: str
    #: Hash of the code that reads replies.
    readers: str
    #: Rows after which the files end; None for all.
    limit: int | None = None

    @cached_property
    def run(self) -> str:
        """A hash of all but the rows that a verdict depends on."""
        reading = {
            "columns": dict(self.columns),
            "kind": self.kind,
            "trace": self.schema.trace,
        }
        return _short([identity_of(self.provenance), reading], 12)

    @cached_property
    def by_path(self) -> Mapping[str, InputFile]:
        """The files by their paths."""
        return {file.path: file for file in self.files}

    @property
    def rows(self) -> int:
        """The number of rows of all files."""
        return rows_of_files(self.files)

    def shards(self, files: Iterable[InputFile] | None = None) -> Iterator[Shard]:
        """The shards of all files or of some, in order; a compressed tar is one."""
        for file in self.files if files is None else files:
            start = 0
            for group, rows in enumerate(file.groups):
                step = rows if file.is_compressed else self.rows_per_shard
                for first in range(start, start + rows, max(step, 1)):
                    length = min(step, start + rows - first)
                    key = [
                        file.path,
                        file.size,
                        file.digest,
                        group,
                        first,
                        length,
                    ]
                    yield Shard(
                        _short([self.run, key], 24),
                        file.path,
                        group,
                        first,
                        length,
                    )
                start += rows


def new_plan(
    root: Place,
    files: Sequence[InputFile],
    rows_per_shard: int,
    columns: Mapping[str, str],
    kind: str | None,
    provenance: Provenance,
    schema: VerdictSchema,
    limit: int | None = None,
) -> Plan:
    """The plan of a run that begins."""
    planned = tuple(files if limit is None else limit_rows(files, limit))
    return Plan(
        root.address,
        planned,
        rows_per_shard,
        dict(columns),
        kind or "",
        provenance,
        schema,
        VERSION,
        readers_hash(),
        limit,
    )


def to_json(plan: Plan) -> bytes:
    """A plan as the file that it is kept in."""
    return (json.dumps({"vieval": SCHEMA, **asdict(plan)}, indent=1) + "\n").encode()


def from_json(text: bytes, where: str) -> Plan:
    """The plan in a file; VievalError, beginning with `where`, for anything else."""
    with suppress(ValidationError):
        plan = TypeAdapter(Plan).validate_json(text, strict=True)
        if _is_sound(plan):
            return plan
    raise VievalError(f"{where}: not a readable shard plan; choose another --out")


def _is_sound(plan: Plan) -> bool:
    """Return whether a plan, which may have been changed by hand, leads nowhere but below its
    root, and ends.
    """
    paths = (PurePosixPath(file.path) for file in plan.files)
    rows_of_groups = (rows for file in plan.files for rows in file.groups)
    is_finite = plan.rows_per_shard > 0 and all(rows >= 0 for rows in rows_of_groups)
    return (is_finite and plan.rows / plan.rows_per_shard < _MOST_SHARDS) and all(
        map(_is_inside, paths)
    )


def _is_inside(path: PurePosixPath) -> bool:
    return not (path.is_absolute() or ".." in path.parts or "\0" in str(path))


def require_same_run(
    earlier: Plan,
    now: Plan,
    where: str,
) -> None:
    """VievalError, beginning with `where`, where another judge or other options than the plan's
    would give the verdicts.
    """
    difference = differing_runs(
        identity_of(earlier.provenance), identity_of(now.provenance)
    )
    if not difference and earlier.limit != now.limit:
        difference = f"{_limit_in_words(earlier)}, now {_limit_in_words(now)}"
    for name in ("columns", "kind", "rows_per_shard", "schema"):
        planned = getattr(earlier, name)
        asked_for = getattr(now, name)
        if not difference and planned != asked_for:
            difference = (
                f"with {name} {_value_words(planned)}, now {_value_words(asked_for)}"
            )
    is_newer = earlier.version != now.version and earlier.readers != now.readers
    if is_newer and not difference:
        difference = (
            f"by VIEval {earlier.version}, which reads replies differently from "
            f"{now.version}"
        )
    if difference:
        raise VievalError(
            f"{where}: contains a run started {difference}; use the command that "
            "started it, or another --out"
        )


def extended(
    earlier: Plan,
    now: Plan,
    where: str,
    extend: bool,
) -> Plan:
    """The plan with the files that are new, where it may be extended.

    Raises:
        VievalError: in one line that begins with `where`: files are new and it may not, or a
            planned one is another or not there.
    """
    named_files = now.by_path
    for file in earlier.files:
        if file.path not in named_files:
            raise VievalError(
                f"{where}: the plan includes {file.path}, which was not passed; "
                "pass all files of the plan"
            )
        if _known_by(named_files[file.path]) != _known_by(file):
            raise VievalError(
                f"{where}: {file.path} has changed since the plan was made; "
                "restore it or choose another --out"
            )
    new_files = [file for file in now.files if file.path not in earlier.by_path]
    if new_files and not extend:
        planned = len(earlier.files)
        raise VievalError(
            f"{where}: the plan has {plural(planned, 'file')}, got {len(now.files)} "
            f"(new: {new_files[0].path}); use --extend to add new files"
        )
    return replace(earlier, files=(*earlier.files, *new_files))


def readers_hash() -> str:
    """A hash of the code that reads replies: that of the judges, and of servers' answers."""
    package = Path(__file__).parents[2]
    folders = map(Path, judges.__path__)
    candidates = (file for folder in folders for file in folder.rglob("*"))
    files = sorted(file for file in candidates if file.suffix in (".py", ".txt"))
    files += [package / name for name in _READERS]
    hashed = hashlib.sha256()
    for file in files:
        hashed.update(file.read_bytes())
    return hashed.hexdigest()[:16]


def _known_by(file: InputFile) -> tuple[int, str]:
    return file.size, file.digest


def _limit_in_words(plan: Plan) -> str:
    return "without --limit" if plan.limit is None else f"with --limit {plan.limit}"


def _value_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={column}" for name, column in value.items())
    return str(value) or "none"


def _short(document: Any, length: int) -> str:
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:length]
