"""A fake service of batches: files, batches in all eight states, and faults on demand; `paid`
counts what it answered.
"""

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


class BatchServer(FakeServer):
    """The service in a thread of its own; a batch goes one state further each time that it is
    looked at.

    Args:
        most_requests: requests that a file may have; another is refused.
        room: requests that may be queued; a batch beyond fails with `token_limit_exceeded`.
        expires: by a batch's number from 1, whether it expires half answered.
        cancels: by a batch's number from 1, whether somebody cancels it, which leaves it half
            answered.
        error: by a request's body and how often it came, the error of its line: an HTTP status, or
            None.
        on_call: called with method, path and "before" or "after" it took effect; it may return the
            status to answer with.
        lists: whether files and batches are listed.
        posted: what an answer to a post says in place of the truth.
        processing: times that an uploaded file is looked at until a batch may be made of it.
    """

    def __init__(
        self,
        *,
        most_requests: int = 50_000,
        room: int = 10**9,
        expires: Callable[[int], bool] = lambda number: False,
        cancels: Callable[[int], bool] = lambda number: False,
        error: Callable[[dict[str, Any], int], int | None] = lambda body, times: None,
        on_call: Callable[[str, str, str], int | None] = lambda method, path, moment: (
            None
        ),
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
        self.files: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.paid: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.states: Counter[str] = Counter()
        self.looks: Counter[str] = Counter()

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
                if status := await asyncio.to_thread(
                    self.on_call, http.method, http.path, moment
                ):
                    return web.json_response(
                        {"error": {"message": f"a fault {moment}"}}, status=status
                    )
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
        self.files[identity] = {
            "id": identity,
            "object": "file",
            "filename": filename or identity,
        }
        self.contents[identity] = content
        return identity

    async def _list(self, http: web.Request) -> web.Response:
        """Two of them a page, the last first."""
        if not self.lists:
            return web.json_response({"error": {"message": "no such path"}}, status=404)
        entries = list(
            reversed(
                (self.files if http.path.endswith("files") else self.batches).values()
            )
        )
        after = http.query.get("after")
        start = (
            1 + next(i for i, entry in enumerate(entries) if entry["id"] == after)
            if after
            else 0
        )
        return web.json_response(
            {"data": entries[start : start + 2], "has_more": start + 2 < len(entries)}
        )

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
        if (
            document["endpoint"] != "/v1/chat/completions"
            or document["completion_window"] != "24h"
        ):
            return _refused("unknown endpoint")
        if (status := self._status(file := document["input_file_id"])) != "processed":
            return _refused(f"The input file '{file}' is in '{status}' state.")
        identity = f"batch-{len(self.batches)}"
        queued = sum(
            self._size(b) for b in self.batches.values() if b["status"] in HELD
        )
        self.batches[identity] = batch = {
            **document,
            "id": identity,
            "status": "validating",
            "number": len(self.batches) + 1,
        }
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
            cause = {
                "code": "token_limit_exceeded",
                "message": "Enqueued token limit reached.",
            }
            batch["errors"] = {"object": "list", "data": [cause]}
        elif batch["status"] == "in_progress" and self.cancels(batch["number"]):
            batch["status"] = "cancelling"
        elif batch["status"] in ("finalizing", "cancelling"):
            self._answer_batch(batch)
        elif batch["status"] in HELD:
            batch["status"] = HELD[HELD.index(batch["status"]) + 1]
        return web.json_response(shown)

    def _answer_batch(self, batch: dict[str, Any]) -> None:
        """Answer a batch's requests in any order, and end it; half of them where it is cancelled
        or expires.
        """
        lines = self.contents[batch["input_file_id"]].splitlines()
        random.Random(batch["number"]).shuffle(lines)
        expired, cancelled = (
            self.expires(batch["number"]),
            batch["status"] == "cancelling",
        )
        number = len(lines) // 2 if expired or cancelled else len(lines)
        answers, errors = [], []
        for line in lines[:number]:
            raw = line[line.index(b'"body": ') + 8 : -1]
            request, prompt = read_request(raw)
            name = json.loads(line)["custom_id"]
            self.sent[name] += 1
            status = self.error(request, self.sent[name])
            try:
                body = (
                    {"error": {"message": "a fault of this line"}}
                    if status
                    else completion(self.settings, request, prompt)
                )
            except Rejected as rejected:
                status, body = 400, {"error": {"message": str(rejected)}}
            self.paid[name] += not status
            kept = {
                "id": f"line-{name}",
                "custom_id": name,
                "response": {"status_code": status or 200, "body": body},
                "error": None,
            }
            (errors if status else answers).append(kept)
        for line in lines[number:] if expired else ():
            cause = {
                "code": "batch_expired",
                "message": "This request could not be executed before the window expired.",
            }
            errors.append(
                {
                    "id": "x",
                    "custom_id": json.loads(line)["custom_id"],
                    "response": None,
                    "error": cause,
                }
            )
        for name, entries in (("output_file_id", answers), ("error_file_id", errors)):
            if entries:
                batch[name] = self._kept(
                    "".join(f"{json.dumps(entry)}\n" for entry in entries).encode()
                )
        batch["status"] = (
            "cancelled" if cancelled else "expired" if expired else "completed"
        )


def _refused(message: str) -> web.Response:
    return web.json_response(
        {"error": {"message": message, "type": "invalid_request_error"}}, status=400
    )
