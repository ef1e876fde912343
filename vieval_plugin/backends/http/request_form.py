"""Form in which a model of a server takes requests: the fields that it refuses, and the bounds that
it sets.

What a model refuses as unsupported is not sent again. One question finds it out while the others
wait, and the store remembers it.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.faults import (
    CONTEXT,
    UNSUPPORTED,
    ErrorReport,
    Refused,
    names_unsupported,
)
from vieval_plugin.backends.http.responses import STREAMED, is_starved, thinking_of
from vieval_plugin.judges.protocol import Status
from vieval_plugin.text.escaping import announce
from vieval_plugin.text.wording import enumeration
from vieval_plugin.text.yaml_json import JsonObject

Send: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]

#: Names of the limit of an answer's tokens.
LIMITS = ("max_tokens", "max_completion_tokens")
#: Fields whose refusal is about one question, which is asked otherwise.
QUESTION_FIELDS = ("response_format", "repetition_detection")
#: Times the room of an answer that a model is given which thinks until its token limit cuts it.
MORE_ROOM = 4
#: Reason and remedy of a judge of probabilities that gets none.
NO_PROBABILITIES = (
    "the model returns no log-probabilities, which this judge requires; serve a model "
    "with vLLM, SGLang or llama.cpp, use an OpenAI model without reasoning, or use a "
    "judge that reads answers, such as viescore"
)
#: Reason why one reply has no probabilities where others of its server have them, as llama.cpp
#: lists none of a token that ends within a character.
HALF_CHARACTER = (
    "the reply begins with a partial character, for which the server lists no "
    "log-probabilities; use a larger model, or a judge that reads answers, such as "
    "viescore"
)
#: Kind of a second try with more room.
NO_ROOM = "cut before its first word"

_REQUIRED = ("model", "messages", "stream")
_BOUNDED = (*LIMITS, "top_logprobs")
_ONLY_STREAMS = re.compile(
    r"\b(only|must|require[sd]?|need)\b.{0,40}\bstream|\bstream(ing)?\b.{0,40}\b(only|must|require[sd]?|true)\b",
    re.IGNORECASE,
)
_FEWER = 5  # log-probabilities that most services list
_SYNONYMS = {
    "response_format": r"response.?format|json.?schema|structured.?output|output_config|\bschema\b|grammar|guided",
    "max_tokens": r"max_(completion_|output_)?tokens",
    "max_completion_tokens": r"max_(completion_|output_)?tokens",
    "logprobs": r"(?<!top_)\blogprobs|log.?probabilities",
}


@dataclass(frozen=True)
class RequestForm:
    """Form of the requests that a model accepts."""

    #: Fields that it refuses.
    refused: tuple[str, ...] = ()
    #: Highest value of a field.
    highest: Mapping[str, int] = field(default_factory=dict)
    #: Lowest value of a field.
    lowest: Mapping[str, int] = field(default_factory=dict)
    #: Its name of the limit of an answer's tokens; empty where it takes the one sent.
    limit: str = ""
    #: Times the room that judges give an answer.
    room: int = 1
    #: True where it answers in a stream only.
    streams: bool = False

    def applied(self, body: JsonObject) -> JsonObject:
        """A request in this form."""
        renamed = dict.fromkeys(LIMITS, self.limit) if self.limit else {}
        fields = {renamed.get(name, name): value for name, value in body.items()}
        for name in self.refused:
            fields.pop(name, None)
        for name in fields.keys() & {*self.highest, *self.lowest}:
            if isinstance(value := fields[name], (int, float)):
                capped = min(value, self.highest.get(name, value))
                fields[name] = max(capped, self.lowest.get(name, capped))
        return fields | STREAMED if self.streams else fields

    def taught_by(self, refused: Refused, sent: JsonObject) -> RequestForm:
        """The form that a refusal of a request teaches; the same where it names no field as
        unsupported.
        """
        form = self
        message = refused.report.message if refused.report else ""
        if "stream" not in sent and _ONLY_STREAMS.search(message):
            return replace(form, streams=True)
        for name in named_fields(refused, sent):
            bounded = "top_logprobs" if name == "logprobs" else name
            value = sent.get(bounded)
            is_bounded = bounded in _BOUNDED and isinstance(value, (int, float))
            number: Any = value if is_bounded else math.inf
            allowed = _bound(message, number) if is_bounded else 0
            other_limit = next(
                (limit for limit in LIMITS if name in LIMITS and limit != name), ""
            )
            if other_limit and other_limit in message:
                form = replace(form, limit=other_limit)
            elif allowed and allowed > number:
                form = replace(form, lowest={**form.lowest, bounded: allowed})
            elif allowed:
                form = replace(form, highest={**form.highest, bounded: allowed})
            elif name == "top_logprobs" and "logprobs" in form.refused:
                continue
            elif name == "top_logprobs" and is_bounded and number > _FEWER:
                form = replace(form, highest={**form.highest, name: _FEWER})
            elif name not in QUESTION_FIELDS:
                form = replace(
                    form, refused=tuple(dict.fromkeys((*form.refused, name)))
                )
        return form

    def differences(self, earlier: RequestForm) -> str:
        """The changes from an earlier form, in words."""
        parts = [
            f"{name} is not sent"
            for name in self.refused
            if name not in earlier.refused
        ]
        for name, number in self.highest.items():
            if earlier.highest.get(name) != number:
                parts.append(f"{name} is at most {number}")
        for name, number in self.lowest.items():
            if earlier.lowest.get(name) != number:
                parts.append(f"{name} is at least {number}")
        if self.limit != earlier.limit:
            parts.append(f"the token limit is sent as {self.limit}")
        if self.streams and not earlier.streams:
            parts.append("answers are streamed")
        if self.room != earlier.room:
            parts.append(f"answers get {self.room} times as many tokens")
        return enumeration(parts) if parts else ""


def named_fields(refused: Refused, sent: JsonObject) -> list[str]:
    """The fields of a request that its refusal names as unsupported; none for a limit that was
    reached.
    """
    report = refused.report
    if report is None or report.code not in (400, 403, 422, 500, 501):
        return []
    if refused.kind == "cut" or CONTEXT.search(report.message):
        return []
    if parameter := re.split(r"[.\[]", report.parameter)[0]:
        names = [
            name
            for name in sent
            if name == parameter or (name in LIMITS and parameter.startswith("max_"))
        ]
        return names if names_unsupported(report) else []
    if not UNSUPPORTED.search(report.message):
        return []
    return [name for name in sent if name not in _REQUIRED and _is_named(name, report)]


def _is_named(name: str, report: ErrorReport) -> bool:
    pattern = _SYNONYMS.get(name, rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    return bool(re.search(pattern, report.message, re.IGNORECASE))


def _bound(message: str, sent: Any) -> int:
    """The bound of a value that a message names: the highest number below the value sent, else
    the lowest above; or 0.
    """
    numerals = re.findall(r"(?<![\w.])\d[\d,]{0,8}(?![\w.]*\w)", message)
    numbers = [int(numeral.replace(",", "")) for numeral in numerals]
    larger = [number for number in numbers if sent < number < 400]
    return max(
        (number for number in numbers if 0 < number < sent),
        default=min(larger, default=0),
    )


class Negotiation:
    """The form of requests to one model, learnt from its refusals, and remembered under a name."""

    def __init__(self, name: str, store: Store | None, where: str) -> None:
        self._name = name
        self._store = store
        self._where = where
        self._going_first: asyncio.Event | None = None
        self._tried: set[str] = set()
        self._denial = ""  # of log-probabilities, in the server's words
        self.form = RequestForm()
        if store and (document := store.remembered(name)):
            remembered = json.loads(document)
            self._tried = set(remembered.pop("tried"))
            remembered["refused"] = tuple(remembered["refused"])
            self.form = RequestForm(**remembered)

    async def post(
        self,
        body: JsonObject,
        send: Send,
        waits: bool = True,
    ) -> JsonObject:
        """Send a request in the form that the model takes; of requests with fields that none had,
        one goes first.

        `waits` is false for a question that is to go at once.
        """
        while waits and not body.keys() <= self._tried:
            if self._going_first is not None:
                await self._going_first.wait()
                continue
            self._going_first = asyncio.Event()
            try:
                return await self._send(body, send)
            finally:
                self._tried |= body.keys()
                self.release()
        return await self._send(body, send)

    def release(self) -> None:
        """Let another question go first: the one that did was answered, or is tried again, which
        may take long.
        """
        if self._going_first is not None:
            self._going_first.set()
            self._going_first = None

    def learn(self, form: RequestForm) -> None:
        """Keep to a form from now on, and say what it leaves out."""
        if differences := form.differences(self.form):
            announce(f"{self._where}: {differences}, as the model requires")
        self.form = form
        self._remember()

    async def _send(self, body: JsonObject, send: Send) -> JsonObject:
        is_new = not body.keys() <= self._tried
        while True:
            form = self.form
            if "logprobs" in body and "logprobs" in form.refused:
                raise Refused(
                    Status.API_ERROR,
                    "no probabilities",
                    NO_PROBABILITIES + self._denial,
                )
            request = form.applied(body)
            try:
                answer = await send(request)
                break
            except Refused as refused:
                if refused.kind == "cut":
                    self._give_room(body)
                    raise
                learnt = self.form.taught_by(refused, request)
                if learnt != self.form:
                    self.learn(learnt)
                if "logprobs" in request and "logprobs" in learnt.refused:
                    self._denial = self._denial or f" ({refused.reason})"
                    continue
                # another question may have taught the same meanwhile
                if self.form == form or self.form.applied(body) == request:
                    raise
        if is_starved(answer) or thinking_of(answer):
            self._give_room(body)
        if is_new:
            self._tried |= body.keys()
            self._remember()
        return answer

    def _give_room(self, body: JsonObject) -> None:
        """Give a model that thinks more room from now on."""
        if self.form.room == 1 and "logprobs" not in body:
            self.learn(replace(self.form, room=MORE_ROOM))

    def _remember(self) -> None:
        if self._store:
            self._store.remember(
                self._name,
                json.dumps({"tried": sorted(self._tried), **asdict(self.form)}),
            )
