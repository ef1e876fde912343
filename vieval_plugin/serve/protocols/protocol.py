"""Types of the server's border: what a request asks for, what the answer says, and how a protocol describes itself."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from vieval_plugin import images
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Image, Status
from vieval_plugin.rewards.reward import RewardValue
from vieval_plugin.rewards.samples import PLAIN, Conditions
from vieval_plugin.text.yaml_json import read_json

JSON_TYPE = "application/json"
VALUE = "value"
"""The one number of a reward, where a protocol names it."""
_MOST_VALUES = 1_000_000


@dataclass(frozen=True)
class Body:
    """Body of a request: its bytes, and the files that came beside it as parts, by name."""

    content: bytes
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """Rules by which bodies are read: what further images mean, and how much a request may hold."""

    conditions: Conditions = PLAIN
    samples: int = 1024
    pixels: int = 33_000_000

    def image(self, data: bytes) -> Image:
        """An image from the bytes of its file; VievalError where they are none or it is too large."""
        image = Image(data)
        images.size(image, most_pixels=self.pixels)
        return image

    def base64_image(self, text: Any) -> Image:
        """An image from base64, with or without `data:image/png;base64,` before it; VievalError as `image`."""
        if not isinstance(text, str):
            raise VievalError("an image is no text of base64")
        encoded = text.partition(",")[2] if text.startswith("data:") else text
        try:
            return self.image(base64.b64decode(encoded, validate=True))
        except (binascii.Error, ValueError):
            raise VievalError("an image is not valid base64") from None

    def require_number(self, number: int) -> None:
        """VievalError for more samples than a request may hold."""
        if number > self.samples:
            raise VievalError(f"{number} samples in one request, and {self.samples} are allowed; send several requests")


@dataclass(frozen=True)
class RequestEntry:
    """One sample of a request: what is judged, or why nothing can be.

    `rewards` are those that it asks for, None for all of the route; `group` names the group that it belongs to, empty
    for none. `fields` are further facts of the request that the answer needs.
    """

    judged: Judged | None
    fault: str = ""
    rewards: tuple[str, ...] | None = None
    group: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failure(self) -> RewardValue:
        """The reward of an entry that cannot be judged."""
        return RewardValue(None, Status.TOOL_ERROR, self.fault)


def entry_of(make: Callable[[], Judged], **fields: Any) -> RequestEntry:
    """An entry of a sample that may turn out to be none."""
    try:
        return RequestEntry(make(), **fields)
    except VievalError as error:
        return RequestEntry(None, str(error), **fields)


@dataclass(frozen=True)
class HttpAnswer:
    """An answer over HTTP."""

    body: bytes
    status: int = 200
    content_type: str = JSON_TYPE


Values: TypeAlias = Sequence[Mapping[str, RewardValue]]
"""For each entry of a request, in order, its reward values by name."""


@dataclass(frozen=True)
class Protocol:
    """Description of a protocol.

    - `name` is what metrics call it, `path` where it is posted to, below the address of a reward or at the root;
    - `deadline` are the seconds until it must be answered, less than its client waits;
    - `read` makes entries of a body, and runs beside the event loop; VievalError for one that is none;
    - `write` makes the answer of the values, in which no failure is a number;
    - `refuse` makes the answer to a request that is not judged at all, of a reason and the HTTP status that says so
      where the client heeds it;
    - `all_rewards`: it serves all rewards at one address, and its body names them.
    """

    name: str
    path: str
    deadline: float
    read: Callable[[Body, Reading], list[RequestEntry]]
    write: Callable[[Sequence[RequestEntry], Values], HttpAnswer]
    refuse: Callable[[str, int], HttpAnswer]
    all_rewards: bool = False


def json_answer(document: Any, status: int = 200) -> HttpAnswer:
    """An answer in JSON, which has no NaN."""
    return HttpAnswer(json.dumps(document, allow_nan=False).encode(errors="replace"), status)


def json_object(content: bytes) -> dict[str, Any]:
    """The JSON object that a body is.

    Raises:
        VievalError: it is none, holds NaN or a number without end, which no answer could repeat, or would fill the
            memory when it is read.
    """
    if sum(map(content.count, (b",", b"{", b"["))) > _MOST_VALUES:  # base64 has none of these
        raise VievalError(f"the body holds more than {_MOST_VALUES} values")
    try:
        document = read_json(content, parse_constant=_finite, parse_float=_finite)
    except ValueError as error:
        raise VievalError(f"the body is not readable as JSON ({error})") from None
    if not isinstance(document, dict):
        raise VievalError("the body is no JSON object")
    return document


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):  # 1e999 is one as well
        raise ValueError(f"{text[:20]} is no number of JSON")
    return number


def listed(document: Mapping[str, Any], name: str, kind: type | tuple[type, ...], words: str) -> list[Any]:
    """A list of a body whose members are all of a type; VievalError, with `words` for it, where it is none."""
    members = document.get(name)
    if not isinstance(members, list) or not all(isinstance(member, kind) for member in members):
        raise VievalError(f"{name} is no list of {words}")
    return members
