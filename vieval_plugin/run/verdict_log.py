"""Append-only file of verdicts, from which an interrupted run resumes.

`OUT.partial` begins with a line that says who judges what; then come verdicts in the order in which
they came, and now and then what was spent. When all are there they are written to `OUT` in the
samples' order, and it is removed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from vieval_plugin.judges.protocol import FAILED_CALLS, Status
from vieval_plugin.records import Provenance
from vieval_plugin.run.verdict_lines import Inputs, differing, runs_document
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import JsonObject, read_json

if TYPE_CHECKING:
    from vieval_plugin.backends.http.server import Usage

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: The ending of a file of verdicts that is not complete.
PARTIAL = ".partial"
_NO_OFFSET = -1
_USAGE_EVERY = 10  # verdicts: so much of what was spent goes uncounted after kill -9


def partial_file(path: Path) -> Path:
    """The file beside another that holds verdicts until all are there."""
    return path.with_name(path.name + PARTIAL)


@contextlib.contextmanager
def log_file(path: Path | None) -> Iterator[Path]:
    """The file that verdicts are appended to: beside the one that is asked for, or for a while
    in a folder of its own.
    """
    if path:
        yield partial_file(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / f"verdicts{PARTIAL}"


class VerdictLog:
    """Append-only file of verdicts, indexed by run and row; use as `with`.

    In memory is a number a verdict. The file is removed in the end where it is `complete`, or holds
    no verdict.
    """

    def __init__(
        self,
        path: Path,
        inputs: Inputs,
        runs: Mapping[str, Provenance],
    ) -> None:
        self.path = path
        self._inputs = inputs
        self._runs = runs
        self.complete = False
        total = inputs.total or 0
        self._offsets = {run: array("q", [_NO_OFFSET]) * total for run in runs}
        self._usage: dict[str, dict[int, Usage]] = {run: {} for run in runs}
        self._attempt = 0
        self._end = 0
        self._file: BinaryIO

    def __enter__(self) -> VerdictLog:
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):
            raise VievalError(
                f"{self.path}: not a regular file; remove it or choose another --out"
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("ab+", buffering=0)
        except OSError as error:
            raise VievalError(
                f"cannot write {self.path}: {error.strerror}; choose another --out"
            ) from None
        try:
            self._lock()
            self._read()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self.complete or not self.total:
            self.path.unlink(missing_ok=True)

    @property
    def total(self) -> int:
        """The number of verdicts, of all runs."""
        return sum(map(self.count, self._runs))

    def count(self, run: str) -> int:
        """The number of a run's verdicts."""
        return len(self._offsets[run]) - self._offsets[run].count(_NO_OFFSET)

    def holds(self, run: str, row: int) -> bool:
        """Return whether a run's verdict on a row is there."""
        return row < len(self._offsets[run]) and self._offsets[run][row] != _NO_OFFSET

    def append(
        self,
        run: str,
        row: int,
        line: str,
        usage: Usage,
    ) -> None:
        """Write a verdict at once; `usage` is what the run has cost in this attempt, which is
        noted now and then.
        """
        self._set_offset(run, row, self._write(line))
        if row % _USAGE_EVERY == 0:
            self.note_usage(run, usage)

    def _set_offset(self, run: str, row: int, offset: int) -> None:
        offsets = self._offsets[run]
        offsets.extend([_NO_OFFSET] * (row + 1 - len(offsets)))
        offsets[row] = offset

    def note_usage(self, run: str, usage: Usage) -> None:
        """Record the cost of a run in this attempt."""
        self._usage[run][self._attempt] = usage
        self._write(
            json.dumps(
                {
                    "run": run,
                    "attempt": self._attempt,
                    "usage": usage.json_values(),
                }
            )
        )

    def usage(self, *runs: str) -> Usage:
        """The cost of runs in all attempts."""
        from vieval_plugin.backends.http.server import Usage

        return sum(
            (usage for run in runs for usage in self._usage[run].values()), Usage()
        )

    def lines(self, run: str) -> Iterator[str]:
        """The lines of a run in the samples' order."""
        with self.path.open("rb") as file:
            for offset in self._offsets[run]:
                if offset != _NO_OFFSET:
                    file.seek(offset)
                    yield file.readline().decode()

    def _lock(self) -> None:
        """Raise VievalError if another run appends to the file, or has just completed
        it.
        """
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            opened = os.fstat(self._file.fileno())
            is_ours = os.path.samestat(opened, self.path.stat())
        except OSError:
            is_ours = False
        if not is_ours:
            raise VievalError(
                f"{self.path}: another run is writing to it; wait until it ends, "
                "or choose another --out"
            )

    def _write(self, line: str) -> int:
        """Append a line; the place where it begins."""
        data = f"{line}\n".encode(errors="replace")
        try:
            if self._file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise VievalError(
                f"cannot write {self.path}: {error.strerror}; free disk space, "
                "then run the same command to resume"
            ) from None
        self._end += len(data)
        return self._end - len(data)

    def _read(self) -> None:
        """Find what an earlier attempt left, less a last line that is torn; VievalError where it
        was another run's.
        """
        header = json.dumps(runs_document(self._inputs, self._runs, {}))
        self._file.seek(0)
        for number, line in enumerate(self._file, start=1):
            is_torn = not line.endswith(b"\n")
            if number == 1 and not (
                is_torn and header.encode(errors="replace").startswith(line)
            ):
                self._require_same(line)
            if is_torn:
                self._file.truncate(self._end)
                break
            if number > 1 and line.strip(b"\0 \r\n"):
                self._note(number, line)
            self._end += len(line)
        if not self._end:
            self._write(header)

    def _require_same(self, line: bytes) -> None:
        header: Any = None
        try:
            header = read_json(line.decode())
            runs = {name: run["provenance"] for name, run in header["runs"].items()}
            difference = differing(header["inputs"], runs, self._inputs, self._runs)
        except (ValueError, KeyError, TypeError, AttributeError):
            difference = "by another program"
        if difference:
            raise VievalError(
                f"{self.path}: contains a run started {difference}; use the "
                "command that started it, or remove the file"
            )

    def _note(self, number: int, line: bytes) -> None:
        try:
            document = read_json(line.decode())
            run = document["run"]
            if "usage" in document:
                self._attempt = max(self._attempt, document["attempt"] + 1)
                self._usage[run][document["attempt"]] = usage_of(document["usage"])
                return
            is_failed = document["status"] in (*FAILED_CALLS, Status.NO_IMAGE)
            self._set_offset(
                run,
                document["row"],
                _NO_OFFSET if is_failed else self._end,
            )
        except (
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            AttributeError,
        ):
            raise VievalError(
                f"{self.path}: line {number} is not a verdict of this run; remove "
                "the line to judge it again"
            ) from None


def usage_of(document: JsonObject) -> Usage:
    """The inverse of `Usage.as_json`."""
    from vieval_plugin.backends.http.server import Usage

    counts: JsonObject = {
        name: Counter(count) if isinstance(count, dict) else count
        for name, count in document.items()
    }
    return Usage(**counts)


#: Fields of the first line of a file of verdicts which is not complete.
HEADER = frozenset({"inputs", "runs"})


def read_header(line: str) -> JsonObject | None:
    """The document that a file of verdicts which is not complete begins with; None for another
    line.
    """
    with contextlib.suppress(ValueError):
        document = read_json(line)
        if isinstance(document, dict) and document.keys() >= HEADER:
            return document
    return None
