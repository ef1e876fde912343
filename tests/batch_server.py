"""A fake service of batches, in all eight states and with faults on demand."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from tests.fake_server import FakeServer, Rejected, completion, read_request

HELD = ("validating", "in_progress", "finalizing")
_Documents = dict[str, dict[str, Any]]


class BatchServer(FakeServer):
    """The service in a thread; each look moves a batch one state on, `paid` counts answers.

    Args:
        most_requests: requests that a file may have.
        room: requests that may be queued; a batch beyond fails with `token_limit_exceeded`.
        expires: by a batch's number from 1, whether it expires half answered.
        cancels: by a batch's number from 1, whether it is cancelled half answered.
        error: by a request's body and times sent, the status of its line's error, or None.
        on_call: the status to answer with, by method, path and "before" or "after" its effect.
        lists: whether files and batches are listed.
        posted: fields of an answer to a post that replace the true ones.
        processing: looks at an uploaded file until it may be used.
    """

    def __init__(
        self,
        *,
        most_requests: int = 50_000,
        room: int = 10**9,
        expires: Callable[[int], bool] = lambda number: False,
        cancels: Callable[[int], bool] = lambda number: False,
        error: Callable[[dict[str, Any], int], int | None] = lambda *_: None,
        on_call: Callable[[str, str, str], int | None] = lambda *_: None,
        lists: bool = True,
        posted: Mapping[str, Any] | None = None,
        processing: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.most_requests, self.room, self.error = most_requests, room, error
        self.expires, self.cancels = expires, cancels
        self.on_call, self.lists, self.posted = on_call, lists, posted or {}
        self.processing = processing
        self.files, self.batches = _Documents(), _Documents()
        self.contents: dict[str, bytes] = {}
        self.paid, self.sent = Counter[str](), Counter[str]()
        self.states, self.looks = Counter[str](), Counter[str]()

    def further_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/files", self._guarded(self._upload)),
            web.get("/v1/files", self._guarded(self._list)),
            web.get("/v1/files/{id}", self._guarded(self._file)),
            web.get("/v1/files/{id}/content", self._guarded(self._content)),
            web.post("/v1/batches", self._guarded(self._create)),
            web.get("/v1/batches", self._guarded(self._list)),
            web.get("/v1/batches/{id}", self._guarded(self._look)),
        ]

    def _guarded(
        self, handle: Callable[[web.Request], Any]
    ) -> Callable[[web.Request], Any]:
        async def answer(http: web.Request) -> web.Response:
            for moment in ("before", "after"):
                call = (http.method, http.path, moment)
                if status := await asyncio.to_thread(self.on_call, *call):
                    return _failed(f"a fault {moment}", status)
                if moment == "before":
                    response: web.Response = await handle(http)
            return response

        return answer

    async def _upload(self, http: web.Request) -> web.Response:
        filename = content = None
        async for part in await http.multipart():
            if part.name == "file":
                filename, content = part.filename, bytes(await part.read())
        assert content is not None
        identity = self._kept(content, filename)
        if content.count(b"\n") > self.most_requests:
            return _refused("too many requests in the file")
        return web.json_response({**self.files[identity], **self.posted})

    def _kept(self, content: bytes, filename: str | None = None) -> str:
        identity = f"file-{len(self.files)}"
        named = {"id": identity, "object": "file", "filename": filename or identity}
        self.files[identity] = named
        self.contents[identity] = content
        return identity

    async def _list(self, http: web.Request) -> web.Response:
        """Two of them a page, the last first."""
        if not self.lists:
            return _failed("no such path", 404)
        documents = self.files if http.path.endswith("files") else self.batches
        names = list(reversed(documents))
        after = http.query.get("after")
        start = names.index(after) + 1 if after else 0
        page = [documents[name] for name in names[start : start + 2]]
        return web.json_response({"data": page, "has_more": start + 2 < len(names)})

    async def _file(self, http: web.Request) -> web.Response:
        """A file, one look nearer to its end."""
        file = self.files[http.match_info["id"]]
        self.looks[file["id"]] += 1
        return web.json_response({**file, "status": self._status(file["id"])})

    def _status(self, identity: str) -> str:
        return "processed" if self.looks[identity] >= self.processing else "pending"

    async def _content(self, http: web.Request) -> web.Response:
        return web.Response(body=self.contents[http.match_info["id"]])

    async def _create(self, http: web.Request) -> web.Response:
        document = await http.json()
        asked = (document["endpoint"], document["completion_window"])
        if asked != ("/v1/chat/completions", "24h"):
            return _refused("unknown endpoint")
        file = document["input_file_id"]
        status = self._status(file)
        if status != "processed":
            return _refused(f"The input file '{file}' is in '{status}' state.")
        number, known = len(self.batches), self.batches.values()
        queued = sum(self._size(b) for b in known if b["status"] in HELD)
        state = {"id": f"batch-{number}", "status": "validating", "number": number + 1}
        self.batches[state["id"]] = batch = {**document, **state}
        batch["has_room"] = queued + self._size(batch) <= self.room
        return web.json_response({**batch, **self.posted})

    def _size(self, batch: dict[str, Any]) -> int:
        return self.contents[batch["input_file_id"]].count(b"\n")

    async def _look(self, http: web.Request) -> web.Response:
        batch = self.batches[http.match_info["id"]]
        self.states[batch["status"]] += 1
        shown = dict(batch)
        if batch["status"] == "validating" and not batch["has_room"]:
            batch["status"] = "failed"
            message = "Enqueued token limit reached."
            cause = {"code": "token_limit_exceeded", "message": message}
            batch["errors"] = {"object": "list", "data": [cause]}
        elif batch["status"] == "in_progress" and self.cancels(batch["number"]):
            batch["status"] = "cancelling"
        elif batch["status"] in ("finalizing", "cancelling"):
            self._answer_batch(batch)
        elif batch["status"] in HELD:
            batch["status"] = HELD[HELD.index(batch["status"]) + 1]
        return web.json_response(shown)

    def _answer_batch(self, batch: dict[str, Any]) -> None:
        """Answer a batch's requests in any order; half of them if it is cancelled or expires."""
        lines = self.contents[batch["input_file_id"]].splitlines()
        random.Random(batch["number"]).shuffle(lines)
        expired = self.expires(batch["number"])
        cancelled = batch["status"] == "cancelling"
        number = len(lines) // 2 if expired or cancelled else len(lines)
        answers, errors = [], []
        for line in lines[:number]:
            raw = line[line.index(b'"body": ') + 8 : -1]
            request, prompt = read_request(raw)
            name = json.loads(line)["custom_id"]
            self.sent[name] += 1
            status = self.error(request, self.sent[name])
            body = {"error": {"message": "a fault of this line"}}
            try:
                if not status:
                    body = completion(self.settings, request, prompt)
            except Rejected as rejected:
                status, body = 400, {"error": {"message": str(rejected)}}
            self.paid[name] += not status
            response = {"status_code": status or 200, "body": body}
            entry = {"id": f"line-{name}", "custom_id": name}
            entry |= {"response": response, "error": None}
            (errors if status else answers).append(entry)
        message = "This request could not be executed before the window expired."
        cause = {"code": "batch_expired", "message": message}
        for line in lines[number:] if expired else ():
            entry = {"id": "x", "custom_id": json.loads(line)["custom_id"]}
            errors.append({**entry, "response": None, "error": cause})
        for name, entries in (("output_file_id", answers), ("error_file_id", errors)):
            if entries:
                text = "".join(f"{json.dumps(entry)}\n" for entry in entries)
                batch[name] = self._kept(text.encode())
        ended = "expired" if expired else "completed"
        batch["status"] = "cancelled" if cancelled else ended


def _failed(message: str, status: int, **fields: str) -> web.Response:
    return web.json_response({"error": {"message": message, **fields}}, status=status)


def _refused(message: str) -> web.Response:
    return _failed(message, 400, type="invalid_request_error")
