"""Types of the server's border: what a request asks for, what the answer says, and how a
protocol describes itself.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiohttp import web

from vieval_plugin import images
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Image
from vieval_plugin.rewards.reward import RewardValue
from vieval_plugin.rewards.samples import Conditions
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import JsonObject, read_json

#: The one number of a reward, where a protocol names it.
VALUE = "value"
_MOST_VALUES = 1_000_000
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class RequestRefused(Exception):
    """A request that is not judged: the HTTP status that says so, and the reason in one line.

    `retry_after` are seconds after which it may come again, None for never.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


@dataclass(frozen=True)
class Body:
    """Body of a request."""

    #: Its bytes; of several parts those of the part `request`.
    content: bytes
    #: The files that came beside it as parts, by name.
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """Rules by which bodies are read."""

    #: Meaning of images beside the output.
    conditions: Conditions
    #: Most samples of a request.
    samples: int
    #: Most pixels of an image.
    pixels: int

    def image(self, data: bytes) -> Image:
        """An image from the bytes of its file; VievalError where they are none or it is too
        large.
        """
        image = Image(data)
        images.size(image, most_pixels=self.pixels)
        return image

    def base64_image(self, text: Any) -> Image:
        """An image from base64, with or without `data:image/png;base64,` before it; VievalError
        as `image`.
        """
        if not isinstance(text, str):
            raise VievalError("each image must be a base64 string")
        encoded = text.partition(",")[2] if text.startswith("data:") else text
        try:
            return self.image(base64.b64decode(encoded, validate=True))
        except (binascii.Error, ValueError):
            raise VievalError("an image is not valid base64") from None

    def require_number(self, number: int) -> None:
        """Raise VievalError for more samples than a request may hold."""
        if number > self.samples:
            raise VievalError(
                f"a request may contain at most {self.samples} samples, got {number}; send "
                "several requests"
            )


@dataclass(frozen=True)
class RequestEntry:
    """A sample of a request."""

    #: Sample or contest, None where nothing can be judged.
    judged: Judged | None
    #: Reason why nothing can be judged.
    fault: str = ""
    #: Names of the rewards that it asks for, None for all of the route.
    rewards: tuple[str, ...] | None = None
    #: Group that it belongs to, empty for none.
    group: str = ""
    #: Further facts of the request that the answer needs.
    fields: JsonObject = field(default_factory=dict)


def entry_of(make: Callable[[], Judged], **fields: Any) -> RequestEntry:
    """An entry of a sample that may turn out to be none."""
    try:
        return RequestEntry(make(), **fields)
    except VievalError as error:
        return RequestEntry(None, str(error), **fields)


#: For each entry of a request, in order, its reward values by name.
Values: TypeAlias = Sequence[Mapping[str, RewardValue]]


@dataclass(frozen=True)
class Protocol:
    """Description of a protocol."""

    #: Name in metrics.
    name: str
    #: Path that it is posted to, below the address of a reward or at the root.
    path: str
    #: Seconds until it must be answered, less than its client waits.
    deadline: float
    #: Makes entries of a body, and runs beside the event loop; VievalError for one that is none.
    read: Callable[[Body, Reading], list[RequestEntry]]
    #: Makes the answer of the values, in which no failure is a number.
    write: Callable[[Sequence[RequestEntry], Values], web.Response]
    #: Key of the reason why a request is not judged.
    reason_key: str = "error"
    #: True where the client heeds a reason with status 200 alone.
    refuses_as_ok: bool = False
    #: True where it serves all rewards at one address, and its body names them.
    all_rewards: bool = False

    def refuse(self, reason: str, status: int) -> web.Response:
        """The answer to a request that is not judged; a caller without the token hears of that
        in any case.
        """
        return json_answer(
            {self.reason_key: reason},
            200 if self.refuses_as_ok and status != 401 else status,
        )


def json_answer(document: Any, status: int = 200) -> web.Response:
    """An answer in JSON, which has no NaN."""
    return web.Response(
        body=json.dumps(document, allow_nan=False).encode(errors="replace"),
        status=status,
        content_type="application/json",
        headers=_HEADERS,
    )


def json_object(content: bytes) -> JsonObject:
    """The JSON object that a body is.

    Raises:
        VievalError: it is none, holds NaN or a number without end, which no answer could repeat, or
            would fill the memory when it is read.
    """
    if (
        sum(map(content.count, (b",", b"{", b"["))) > _MOST_VALUES
    ):  # base64 has none of these
        raise VievalError(f"the body contains more than {_MOST_VALUES} values")
    try:
        document = read_json(content, parse_constant=_finite, parse_float=_finite)
    except ValueError as error:
        raise VievalError(f"the body is not valid JSON ({error})") from None
    if not isinstance(document, dict):
        raise VievalError("the body must be a JSON object")
    return document


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):  # 1e999 is one as well
        raise ValueError(f"{text[:20]} is not a finite number")
    return number


def list_of(document: JsonObject, name: str, kind: type, description: str) -> list[Any]:
    """A list of a body whose members are all of a type; VievalError, with the type's
    description, where it is none.
    """
    members = document.get(name)
    if not isinstance(members, list) or not all(
        isinstance(member, kind) for member in members
    ):
        raise VievalError(f"`{name}` must be a list of {description}")
    return members
