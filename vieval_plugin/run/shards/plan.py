"""The plan of a folder of shards, fixed once: which rows of which files are a shard, and what their verdicts depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import vieval_plugin
from vieval_plugin import judges
from vieval_plugin.errors import VievalError
from vieval_plugin.records import SCHEMA, Provenance
from vieval_plugin.run.shards.inputs import InputFile, rows_of_files
from vieval_plugin.run.shards.schema import VerdictSchema, version
from vieval_plugin.run.verdict_lines import differing_runs, identity_of
from vieval_plugin.text.yaml_json import read_json

ROWS_PER_SHARD = 512
_READERS = ("backends/reply_checks.py", "backends/token_probabilities.py", "backends/http/responses.py")


@dataclass(frozen=True)
class Shard:
    """Rows of a row group of a file: `first` is the number of the first in the file; `name` is that of its verdicts."""

    name: str
    path: str
    group: int
    first: int
    rows: int

    @property
    def numbers(self) -> range:
        """The numbers of its rows in their file."""
        return range(self.first, self.first + self.rows)


@dataclass(frozen=True)
class Plan:
    """A data set cut into shards, and all that a verdict on it depends on.

    `columns` are those of the files by what they are to a sample, `kind` is that of rows which name none. `version` is
    VIEval's, and `readers` a hash of what reads replies.
    """

    root: str
    files: tuple[InputFile, ...]
    rows_per_shard: int
    columns: Mapping[str, str]
    kind: str
    provenance: Provenance
    schema: VerdictSchema
    version: str
    readers: str

    @cached_property
    def run(self) -> str:
        """A hash of all but the rows that a verdict depends on."""
        reading = {"columns": dict(self.columns), "kind": self.kind, "trace": self.schema.trace}
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
                    place = [file.path, file.size, file.digest, group, first, length]
                    yield Shard(_short([self.run, place], 24), file.path, group, first, length)
                start += rows


def new_plan(
    root: Path,
    files: Sequence[InputFile],
    rows_per_shard: int,
    columns: Mapping[str, str],
    kind: str | None,
    provenance: Provenance,
    schema: VerdictSchema,
) -> Plan:
    """The plan of a run that begins."""
    return Plan(
        *(str(root), tuple(files), rows_per_shard, dict(columns), kind or ""),
        *(provenance, schema, version(), readers_hash()),
    )


def to_json(plan: Plan) -> bytes:
    """A plan as the file that it is kept in."""
    return (json.dumps({"vieval": SCHEMA, **asdict(plan)}, indent=1) + "\n").encode()


def from_json(text: bytes, where: str) -> Plan:
    """The plan in a file; VievalError, beginning with `where`, for what is none."""
    try:
        document = read_json(text)
        fields = {name: document[name] for name in Plan.__annotations__}
        provenance = {name: _frozen(value) for name, value in fields["provenance"].items()}
        files = tuple(InputFile(**{**file, "groups": tuple(file["groups"])}) for file in fields["files"])
        schema = VerdictSchema(**{**fields["schema"], "scores": tuple(fields["schema"]["scores"])})
        return Plan(**{**fields, "files": files, "provenance": Provenance(**provenance), "schema": schema})
    except (ValueError, KeyError, TypeError, AttributeError):
        raise VievalError(f"{where}: no plan of shards that can be read; name another folder with --out") from None


def require_same_run(earlier: Plan, now: Plan, where: str) -> None:
    """VievalError, beginning with `where`, where another judge or other options than the plan's would give the verdicts."""
    difference = differing_runs(identity_of(earlier.provenance), identity_of(now.provenance))
    for name in ("columns", "kind", "rows_per_shard", "schema"):
        before, after = getattr(earlier, name), getattr(now, name)
        if not difference and before != after:
            difference = f"with {name} {_in_words(before)}, now {_in_words(after)}"
    if not difference and earlier.version != now.version and earlier.readers != now.readers:
        difference = f"by VIEval {earlier.version}, whose judges read replies otherwise than those of {now.version}"
    if difference:
        raise VievalError(
            f"{where}: a run was begun there {difference}; give the command that began it, or another --out"
        )


def extended(earlier: Plan, now: Plan, where: str, extend: bool) -> Plan:
    """The plan with the files that are new, where it may be extended.

    Raises:
        VievalError: in one line that begins with `where`: files are new and it may not, or a planned one is another or
            not there.
    """
    given = now.by_path
    for file in earlier.files:
        if file.path not in given:
            raise VievalError(f"{where}: the plan has {file.path}, which is not named now; name all files of the plan")
        if _known_by(given[file.path]) != _known_by(file):
            raise VievalError(
                f"{where}: {file.path} is another file than when the plan was made; restore it, or name another --out"
            )
    new = [file for file in now.files if file.path not in earlier.by_path]
    if new and not extend:
        raise VievalError(
            f"{where}: the plan has {len(earlier.files)} files, now {len(now.files)} are named, such as {new[0].path}; "
            "--extend adds new files"
        )
    return replace(earlier, files=(*earlier.files, *new))


def readers_hash() -> str:
    """A hash of the code that reads replies: that of the judges, and of servers' answers."""
    package = Path(vieval_plugin.__file__).parent
    files = [*(file for folder in judges.__path__ for file in sorted(Path(folder).rglob("*.py")))]
    files += [package / name for name in _READERS]
    hashed = hashlib.sha256()
    for file in files:
        hashed.update(file.read_bytes())
    return hashed.hexdigest()[:16]


def _known_by(file: InputFile) -> tuple[int, str]:
    return file.size, file.digest


def _in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={column}" for name, column in value.items())
    return str(value) or "none"


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _short(document: Any, length: int) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:length]
