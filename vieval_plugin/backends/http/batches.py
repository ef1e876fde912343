"""Questions by batches: files of requests that a service answers within a day, at half the price.

`Batches.post` stands in for a server's. A request that a batch has answered has its answer at once;
any other is written into a file, and `Deferred` says so. Whoever asks lets go of what was deferred,
has all files answered, and asks again from the beginning, until all answers are there. What is kept
on disk is enough to resume after any end.
"""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard
from urllib.parse import quote

from vieval_plugin.backends.http.faults import (
    Again,
    Refused,
    fault_in,
    fault_of,
    json_object,
    parsed_json,
)
from vieval_plugin.backends.http.image_encoding import File, FormBody, request_json
from vieval_plugin.backends.http.request_form import LIMITS, QUESTION_FIELDS
from vieval_plugin.backends.http.responses import answer_of
from vieval_plugin.backends.http.server import CHAT, Check, Server, endpoint
from vieval_plugin.judges.protocol import Status
from vieval_plugin.media.files import require_plain
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.escaping import announce
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import is_encodable
from vieval_plugin.text.wording import enumeration, plural
from vieval_plugin.text.yaml_json import JsonObject

#: The largest file of requests: what services take, less a margin for those that count in other
#: units.
MOST_REQUESTS = 50_000
MOST_BYTES = 190_000_000
#: Times that a request is sent in all, where a batch expired or the service failed at it.
MOST_SENDS = 3
#: Price of a batch, as a share of the price of calls.
PRICE = 0.5
_MOST_OPEN = 100
_MOST_ANSWER_BYTES = 1 << 30
_POLL, _LONGEST_POLL = 0.2, 60.0  # seconds between two looks at a batch
_REQUESTED = "?"
_LONGEST_ERROR = 4000  # characters of what a service says that are searched for keys
_ANNOUNCED_POLLS, _SILENT_POLLS = (
    3,
    30,
)  # looks in a row that may fail until that is said, and in all
_NO_SUCH_PATH = (404, 405, 501)
_WITHOUT_BATCHES = "omit --batch, or use --batch-files"
_WAITED_FOR = ("validating", "in_progress", "finalizing", "cancelling")
_ENDED = ("completed", "expired", "cancelled")
_PROCESSING = (
    "notRunning",
    "pending",
    "running",
    "uploading",
)  # of Azure's files, before processed or error
_TABLES = """
CREATE TABLE IF NOT EXISTS batches (name TEXT PRIMARY KEY, file TEXT, batch TEXT, ended INTEGER);
CREATE TABLE IF NOT EXISTS answers (request TEXT PRIMARY KEY, sends INTEGER, line TEXT, usable INTEGER);
"""
_SPENT = (
    "SELECT COUNT(*) FROM answers WHERE NOT usable AND sends >= ? AND NOT EXISTS (SELECT 1 "
    "FROM batches WHERE NOT ended)"
)
_WRITTEN = "INSERT INTO batches VALUES (?, '', '', 0)"
_ANEW = "DELETE FROM answers WHERE NOT usable; UPDATE answers SET sends = 0;"
_KEEP = (
    "INSERT INTO answers VALUES (?, 1, ?, ?) ON CONFLICT (request) "
    "DO UPDATE SET sends = sends + 1, line = excluded.line, usable = excluded.usable"
)
_REQUEST = re.compile(rb'\{"custom_id": "([0-9a-f]{40})"')
#: Fields of a request that a service may refuse, after which the same question is asked otherwise.
_FORM = (*LIMITS, *QUESTION_FIELDS, "temperature", "logprobs", "top_logprobs")


class Deferred(Exception):
    """The answer comes with a batch."""


@dataclass(frozen=True)
class BatchOptions:
    """Way in which questions are asked by batches."""

    #: Folder of what was sent and answered.
    folder: Path
    #: Requests are sent; else only answers are taken.
    sends: bool = False
    #: A service takes files and batches; else the user has the files answered.
    has_service: bool = True


class Batches:
    """Requests to one model that are answered by batches; one process sends those of a folder at
    a time.
    """

    # States of a batch of ours, a row of `batches` each:
    # - written: its file of requests is whole, and nothing was sent;
    # - uploaded: the service's name of the file is known; submitted: that of the batch. Before each
    # the name is `_REQUESTED`:
    #   the service may have it, and is looked through for it before it is sent again;
    # - ended: its answers are in `answers`, and its file of requests is gone.
    # Of the service's eight states, validating, in_progress, finalizing and cancelling are waited
    # for; completed, expired and cancelled end a batch with the answers that there are; of one that
    # failed nothing was asked. One that failed for want of room in the service's queue is uploaded
    # again, or cut in two where it is alone there.

    def __init__(self, server: Server, options: BatchOptions, model: str) -> None:
        self._server = server
        self._options = options
        self._model = model
        self._url = server.options.urls[0]
        self._where = redacted(self._url)
        self._waiting: set[str] = set()  # requests that are written, or under way
        self._lines = self._size = 0  # of the file that is being written
        self._most_requests = MOST_REQUESTS  # a file
        self._most_open = _MOST_OPEN  # in the service's queue
        self._silent_polls = 0
        self._has_list = True
        self._has_uploaded = False
        self._processing: set[str] = (
            set()
        )  # the service's names of files that it is not done with
        self._turn = asyncio.Lock()
        try:
            options.folder.mkdir(
                mode=0o700,
                parents=True,
                exist_ok=True,
            )
            self._database = sqlite3.connect(
                options.folder / "batches.sqlite",
                timeout=1,
                isolation_level=None,
            )
            if options.sends:
                self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
                self._database.executescript(f"BEGIN EXCLUSIVE; {_TABLES} COMMIT;")
                self._forgive()
        except (OSError, sqlite3.Error) as error:
            raise VievalError(
                f"{options.folder}: cannot store batches here ({error}); wait for the "
                "command that is using this folder, or choose another folder"
            ) from None

    def close(self) -> None:
        """Close the database of batches."""
        self._database.close()

    def _forgive(self) -> None:
        """Forget failed answers and how often requests were sent.

        Without a service a command begins for each round, so only a run whose files were all
        answered is forgiven.
        """
        [(spent,)] = self._database.execute(_SPENT, (MOST_SENDS,))
        if spent:
            requests = plural(spent, "request")
            announce(f"no response to {requests} after {MOST_SENDS} rounds; resending")
        if self._options.has_service or spent:
            self._database.executescript(f"BEGIN; {_ANEW} COMMIT;")

    async def post(
        self,
        path: str,
        body: JsonObject,
        check: Check = lambda answer: None,
        asked: Mapping[str, Any] = MappingProxyType({}),
    ) -> JsonObject:
        """The answer to a request, or to another form of the same question, as `Server.post`.

        `asked` has what tells the same messages apart: the sampling that was wanted, and which of
        several answers.

        Raises:
            Deferred: it comes with a batch.
        """
        question, request = _names(body, asked)
        self._server.usage.calls += 1
        problem: Again | Refused = Again("batch", "the batch returned no response")
        sends = 0
        for form, times, line in self._database.execute(
            (
                "SELECT request, sends, line FROM answers WHERE request BETWEEN ? AND ? ORDER BY "
                "request = ?"
            ),
            (question, f"{question}g", request),
        ):
            try:
                return _answer(
                    parsed_json(line),
                    check,
                    self._url,
                )
            except (Again, Refused) as failure:
                if form == request or not self._options.sends:
                    problem = failure
                    sends = times
        if isinstance(problem, Refused):
            raise problem
        if not self._options.sends or sends >= MOST_SENDS:
            raise Refused(
                Status.API_ERROR,
                problem.kind,
                problem.after(sends),
            )
        async with self._turn:
            if request not in self._waiting:
                await self._write(request, request_json(body))
        raise Deferred

    async def settle(self, remaining: int = 0) -> None:
        """Have all that is written answered, but for so many batches that may be `remaining`.

        Raises:
            VievalError: the service takes no batches or refuses one, or the user is to have files
                answered.
        """
        self._end_file()
        delay = _POLL
        unended = "SELECT name, file, batch FROM batches WHERE NOT ended ORDER BY rowid"
        while len(rows := self._database.execute(unended).fetchall()) > remaining:
            has_moved = False
            problem = None
            for row in rows:
                try:
                    has_moved |= await self._advance(*row)
                except Again as again:  # which holds no other batch up
                    problem = again
            if problem and not has_moved:
                self._note_silence(problem.reason)
            else:
                self._silent_polls = 0
            if not (has_moved or self._options.has_service):
                raise VievalError(self._to_be_answered([name for name, *_ in rows]))
            delay = _POLL if has_moved else min(1.5 * delay, _LONGEST_POLL)
            await asyncio.sleep(0 if has_moved else delay)
        if not remaining:
            self._waiting.clear()

    def _note_silence(self, reason: str) -> None:
        self._silent_polls += 1
        is_announced = self._silent_polls >= _ANNOUNCED_POLLS
        if is_announced and not (self._has_list or self._has_uploaded):
            raise VievalError(
                f"{self._where} does not accept files ({reason}); {_WITHOUT_BATCHES}"
            )
        if self._silent_polls > _SILENT_POLLS:
            raise VievalError(
                f"{self._where}: {reason}; run the same command to resume"
            )
        if self._silent_polls == _ANNOUNCED_POLLS:
            announce(f"{self._where}: {reason}; still trying")

    def _to_be_answered(self, names: Sequence[str]) -> str:
        """The line on files that the user is to have answered."""
        file, *queued = map(self._requests_of, names)
        answers = file.with_suffix(".answers.jsonl")
        further = ""
        if queued:
            further = f" (likewise for {enumeration([path.name for path in queued])})"
        files = plural(len(names), "file")
        return (
            f"process {files} of requests, for example with `vllm run-batch -i {file} -o "
            f"{answers} --model {self._model}`{further}; then run the same command again"
        )

    def _requests_of(self, name: str) -> Path:
        return self._options.folder / f"{name}.jsonl"

    async def _write(self, request: str, data: bytes) -> None:
        """Add a request to the file that is being written, or to the next where it is full."""
        line = (
            f'{{"custom_id": "{request}", "method": "POST", "url": "/v1/{CHAT}", "body": '.encode()
            + data
            + b"}\n"
        )
        if self._lines >= self._most_requests or self._size + len(line) > MOST_BYTES:
            await self.settle(_MOST_OPEN)
        with self._requests_of("unsent").open("ab" if self._size else "wb") as file:
            file.write(line)
        self._lines += 1
        self._size += len(line)
        self._waiting.add(request)

    def _end_file(self) -> None:
        """Name the file that is being written by its content and the number of earlier ones."""
        if not self._size:
            return
        with (unsent := self._requests_of("unsent")).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        [(earlier,)] = self._database.execute("SELECT COUNT(*) FROM batches")
        name = _digest(f"{digest} {earlier}".encode())
        os.replace(unsent, self._requests_of(name))
        self._database.execute(_WRITTEN, (name,))
        self._lines = self._size = 0

    def _cut(self, name: str, lines: Sequence[bytes]) -> None:
        """Split a file of requests into two halves."""
        self._most_requests = half = (len(lines) + 1) // 2
        names = []
        for start in (0, half):
            names.append(_digest(f"{name} {start}".encode()))
            requests = b"".join(lines[start : start + half])
            self._requests_of(names[-1]).write_bytes(requests)
        self._end(
            name,
            _WRITTEN,
            [(name_of_half,) for name_of_half in names],
        )

    def _end(self, name: str, note: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """End a batch with what it leaves, all at once."""
        self._database.execute("BEGIN")
        self._database.executemany(note, rows)
        self._database.execute("UPDATE batches SET ended = 1 WHERE name = ?", (name,))
        self._database.execute("COMMIT")
        self._requests_of(name).unlink(missing_ok=True)

    async def _advance(self, name: str, file: str, batch: str) -> bool:
        """Advance a batch by one state; returns whether it advanced."""
        if not self._options.has_service:
            answers = self._options.folder / f"{name}.answers.jsonl"
            require_plain(answers)
            if answers.is_file():
                self._keep(name, self._answers(name, answers.read_bytes().splitlines()))
            return answers.is_file()
        if not batch and self._queued_count() >= self._most_open:
            return False
        if file in ("", _REQUESTED):
            if not (
                self._requests_of(name).is_file()
                or (file and await self._find("files", name))
            ):
                self._end(name, _KEEP, ())  # its requests are written again
                return True
            content = File(
                f"vieval-{name}.jsonl",
                self._requests_of(name),
                "application/jsonl",
            )
            return await self._create(
                "file",
                file,
                name,
                FormBody(purpose="batch", file=[content]),
            )
        if batch in ("", _REQUESTED):
            if file in self._processing and await self._is_processing(file):
                return False
            request = {
                "input_file_id": file,
                "endpoint": f"/v1/{CHAT}",
                "completion_window": "24h",
                "metadata": {"vieval": name},
            }
            return await self._create("batch", batch, name, request)
        return await self._look(name, batch)

    async def _look(self, name: str, batch: str) -> bool:
        """Ask for the status of a batch, and keep its answers if it has ended."""
        document = answer_of(await self._download(f"batches/{quote(batch, safe='')}"))
        said = str(document.get("status"))
        status = said.casefold()
        if status == "failed":
            self._refuse(
                name,
                f"the batch {batch}",
                str(document.get("errors")),
            )
            return True
        if status in _WAITED_FOR:
            return False
        if status not in _ENDED:
            raise Again(
                "batch", f"{batch} has the unknown status {redacted(said)[:60]!r}"
            )
        completed = json_object(document.get("request_counts")).get("completed")
        by_request = self._answers(name, await self._output_lines(document))
        if completed and not any(by_request.values()):
            raise VievalError(
                f"{self._where}: {batch} completed {completed} requests, but its output "
                "does not contain their ids; run the same command to read the output again "
                "before sending more requests"
            )
        self._keep(name, by_request)
        self._most_open += 1  # what else fills the queue may have ended too
        if status == "cancelled":
            raise VievalError(
                f"{self._where}: {batch} was cancelled; run the same command to send the "
                "unanswered requests"
            )
        return True

    async def _output_lines(self, document: JsonObject) -> list[bytes]:
        """The lines of a batch's files of outputs and errors."""
        lines = []
        for file in (document.get("output_file_id"), document.get("error_file_id")):
            if _is_id(file):
                content = await self._download(f"files/{quote(file, safe='')}/content")
                lines += content.splitlines()
        return lines

    def _queued_count(self) -> int:
        """The number of our batches that were submitted and have not ended."""
        [(number,)] = self._database.execute(
            "SELECT COUNT(*) FROM batches WHERE batch <> '' AND NOT ended"
        )
        return int(number)

    def _refuse(self, name: str, refused: str, reason: str) -> None:
        """Take back what the service has no room for, to be submitted when another has ended;
        VievalError for other causes.

        A file that finds no room although nothing of ours is in the queue is cut in two.
        """
        self._database.execute("UPDATE batches SET batch = '' WHERE name = ?", (name,))
        if "token_limit_exceeded" in reason:
            queued = self._queued_count()
            lines = self._request_lines(name)
            if queued and len(lines) <= self._most_requests:
                self._most_open = queued
                return
            if len(lines) > 1:
                self._cut(name, lines)
                return
        self._database.execute("UPDATE batches SET file = '' WHERE name = ?", (name,))
        raise VievalError(
            f"{self._where}: the service refuses {refused} ({redacted(reason)[:300]}); "
            "fix the cause, then run the same command to resume"
        )

    def _request_lines(self, name: str) -> list[bytes]:
        """The lines of a file of requests; empty where it is gone."""
        file = self._requests_of(name)
        return file.read_bytes().splitlines(keepends=True) if file.is_file() else []

    def _answers(self, name: str, lines: Iterable[bytes]) -> dict[str, bytes]:
        """The line of answer of each request of a batch, empty if missing.

        The lines come in whatever order. Of several lines of a request the first that is usable
        counts. Where the file of requests is gone, every id in our form is one of its requests.
        """
        matches = list(filter(None, map(_REQUEST.match, self._request_lines(name))))
        by_request = {match[1].decode(): b"" for match in matches}
        for line in lines:
            document = parsed_json(line := line.removeprefix(codecs.BOM_UTF8))
            request = json_object(document).get("custom_id")
            if not isinstance(request, str):
                continue
            is_known = request in by_request
            is_ours = is_known if matches else re.fullmatch("[0-9a-f]{40}", request)
            earlier = by_request.get(request)
            is_better = not earlier or (not _is_usable(earlier) and _is_usable(line))
            if is_ours and is_better:
                by_request[request] = line
        return by_request

    def _keep(self, name: str, by_request: Mapping[str, bytes]) -> None:
        """Keep the answers to a batch's requests; one without any was sent in vain."""
        if not self._options.has_service and not any(by_request.values()):
            requests = self._requests_of(name)
            raise VievalError(
                f"{requests.with_suffix('.answers.jsonl')} has no responses to the "
                f"requests in {requests.name}; replace it with the output of `vllm "
                "run-batch`"
            )
        answers = (
            (request, line.decode(errors="replace"), _is_usable(line))
            for request, line in by_request.items()
        )
        self._end(name, _KEEP, answers)

    async def _create(self, kind: str, state: str, name: str, body: JsonObject) -> bool:
        """Have the service make a file or batch, unless it did and its answer never came; note
        its name of it.
        """
        path = {"file": "files", "batch": "batches"}[kind]
        note = f"UPDATE batches SET {kind} = ? WHERE name = ?"
        identity = await self._find(path, name) if state == _REQUESTED else ""
        if not identity:
            self._database.execute(note, (_REQUESTED, name))
            try:
                identity = (await self._server.post_once(path, body, _has_no_id))["id"]
            except Refused as refused:
                file = str(body.get("input_file_id", ""))
                if file and await self._is_processing(file):
                    return False
                if refused.code in _NO_SUCH_PATH:
                    raise VievalError(
                        f"{self._where} does not accept {path} ({refused.reason}); "
                        f"{_WITHOUT_BATCHES}"
                    ) from None
                self._refuse(name, f"a {kind}", refused.reason)
                return True
        self._has_uploaded = True
        self._database.execute(note, (identity, name))
        return True

    async def _is_processing(self, file: str) -> bool:
        """Return whether the service is still processing a file, and accepts no batch of it yet, as
        Azure.
        """
        try:
            document = await self._download(f"files/{quote(file, safe='')}")
            status = answer_of(document).get("status")
        except (Again, VievalError):  # a service that does not tell
            status = None
        if status in _PROCESSING and file not in self._processing:
            self._processing.add(file)
            announce(f"{self._where}: waiting for the service to process {file}")
        return status in _PROCESSING

    async def _find(self, kind: str, name: str) -> str:
        """The service's name of a file or batch of ours that it lists; empty where it lists
        none.
        """
        query = f"{kind}?limit=100"
        while self._has_list:
            try:
                page = answer_of(await self._download(query))
            except VievalError as error:
                self._has_list = False
                announce(
                    f"{error}; the service may charge twice for requests that "
                    "it accepted without replying"
                )
                break
            data = page.get("data")
            entries = [
                entry
                for entry in (data if isinstance(data, list) else [])
                if isinstance(entry, dict) and _is_id(entry.get("id"))
            ]
            for entry in entries:
                if _is_entry_of(entry, name):
                    return str(entry["id"])
            if not page.get("has_more") or not entries:
                break
            last = query
            query = f"{kind}?limit=100&after={quote(entries[-1]['id'], safe='')}"
            if query == last:
                break
        return ""

    async def _download(self, path: str) -> bytes:
        """Download a path of the service; `Again` if it fails for now, VievalError if it always
        will.
        """
        try:
            return await self._server.fetch(
                endpoint(self._url, path),
                _MOST_ANSWER_BYTES,
                allow_empty=True,
            )
        except Refused as refused:
            if not 400 <= refused.code < 500:
                raise Again(refused.kind, refused.reason) from None
            raise VievalError(f"{self._where}/{path}: {refused.reason}") from None


def _is_entry_of(entry: JsonObject, name: str) -> bool:
    """Return whether an entry of a service's list is our file or batch of that name."""
    if entry.get("filename") == f"vieval-{name}.jsonl":
        return True
    is_ours = json_object(entry.get("metadata")).get("vieval") == name
    return is_ours and entry.get("status") != "failed"


def _has_no_id(answer: JsonObject) -> str | None:
    return None if _is_id(answer.get("id")) else "the response has no id"


def _is_id(value: Any) -> TypeGuard[str]:
    """Return whether a service's name of a file or a batch is one that it can be asked for by."""
    return (
        isinstance(value, str) and value not in ("", _REQUESTED) and is_encodable(value)
    )


def _names(body: JsonObject, asked: Mapping[str, Any]) -> tuple[str, str]:
    """The names of the question that a request asks, and of the request, which begins with it.

    A request is another form of the same question where a service refused some of its fields.
    """
    fields = {*_FORM, *asked.get("extra", {})}
    form = {name: value for name, value in body.items() if name in fields}
    messages = {name: value for name, value in body.items() if name not in form}
    question = _digest(
        request_json(
            {
                **messages,
                "limit": [form[name] for name in LIMITS if name in form],
                "asked": dict(asked),
            }
        )
    )
    return question, question + _digest(json.dumps(form).encode())[:8]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _is_usable(line: bytes) -> bool:
    try:
        _answer(
            parsed_json(line),
            lambda answer: None,
            "",
        )
    except (Again, Refused):
        return False
    return True


def _answer(document: Any, check: Check, url: str) -> JsonObject:
    """The answer in a line of a batch; the exception that a server's own would be for any other."""
    line = json_object(document)
    fields = json_object(line.get("response"))
    body = fields.get("body")
    code = fields.get("status_code")
    if isinstance(code, int) and code != 200:
        raise fault_of(
            code,
            json.dumps(body).encode(),
            {},
            url,
        )
    if isinstance(body, dict) and (fault := fault_in(body, url)):
        raise fault
    if not isinstance(body, dict):
        error = redacted(str(line.get("error"))[:_LONGEST_ERROR])
        raise Again("batch", f"the batch returned no response: {error[:200]}")
    if problem := check(body):
        raise Again("malformed answer", problem)
    return body
