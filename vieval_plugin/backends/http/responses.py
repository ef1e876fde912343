"""What a response of an OpenAI-compatible server means for a request: an answer, another try, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vieval_plugin.judges.protocol import Status
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.retry_after import asked_wait
from vieval_plugin.text.untrusted import address_of

_FILTERED = ("content_filter", "content_policy", "content management policy", "responsible_ai", "safety system")
_TOO_LONG = ("context length", "maximum context", "too long")


class Refused(Exception):
    """The server refused this one request for good: retrying cannot help."""

    def __init__(self, status: Status, kind: str, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.status, self.kind, self.reason, self.code = status, kind, reason, code


class Denied(Refused):
    """A refusal that need not be about this request: of a key, a model, an address; `ending` says so of them all."""

    def __init__(self, code: int, reason: str, ending: str) -> None:
        super().__init__(Status.API_ERROR, f"HTTP {code}", f"HTTP {code}: {reason}", code)
        self.ending = ending


class Again(Exception):
    """This try went wrong in a way that another may not; `wait` is what the server asked for."""

    def __init__(self, kind: str, reason: str, wait: float | None = None, limited: bool = False) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.wait, self.limited = kind, reason, wait, limited

    @property
    def asks_to_wait(self) -> bool:
        return self.limited or self.wait is not None


def answer_of(body: bytes | bytearray) -> dict[str, Any]:
    """The JSON object of a response."""
    if not isinstance(answer := _parsed(body), dict):
        raise Again("malformed answer", "an answer that is not a JSON object")
    return answer


def failure_of(code: int, body: bytes | bytearray, headers: Mapping[str, str], url: str) -> Again | Refused:
    """What a response that is not 200 means; `url` is the base address that was called."""
    said, shown = redacted(_said(body))[:300], redacted(url)
    if 300 <= code < 400:
        where = _target(url, headers.get("Location", ""))
        remedy = "redirects are not followed: base_url should be the final address"
        reason = f"a redirect to {where}, which is not followed" if where else "a redirect, which is not followed"
        return Denied(code, reason, f"{shown} answers with HTTP {code} ({reason}); {remedy}")
    if code in (401, 403):
        remedy = "set the environment variable that holds it"
        return Denied(code, said or "refused", f"{shown} refuses the key (HTTP {code}); {remedy}")
    if code == 404:
        remedy = "check the name, and that the address ends in /v1"
        return Denied(code, said or "not found", f"{shown} knows no such model or address (HTTP 404: {said}); {remedy}")
    if code == 402 or (code == 429 and "insufficient_quota" in said):
        return Denied(
            code, said or "no credit", f"{shown}: the account of this key has no credit left (HTTP {code}: {said})"
        )
    wait = asked_wait(headers.get("Retry-After"))
    if code == 429:
        return Again("rate limit", "too many requests (HTTP 429)", wait, limited=True)
    if code >= 500 or code == 408:
        return Again("server error", f"HTTP {code}", wait)
    lowered = said.lower()
    if any(sign in lowered for sign in _FILTERED):
        return Refused(Status.REFUSAL, "content filter", f"the server's content filter declined: {said}", code)
    if code == 413 or any(sign in lowered for sign in _TOO_LONG):
        return Refused(Status.API_ERROR, "too long", f"too long for the server: {said}", code)
    return Refused(Status.API_ERROR, f"HTTP {code}", f"HTTP {code}: {said}", code)


def _parsed(body: bytes | bytearray) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _said(body: bytes | bytearray) -> str:
    """The error's own words and code, in one line."""
    document = _parsed(body)
    error = document.get("error", document) if isinstance(document, dict) else document
    if isinstance(error, dict):
        told = [error.get(name) for name in ("message", "code", "type")]
        text = " ".join(str(one)[:4000] for one in told if one and isinstance(one, (str, int)))
    else:
        text = error if isinstance(error, str) else body[:4000].decode(errors="replace")
    return " ".join(text[:12000].split())


def _target(url: str, location: str) -> str:
    """Where a redirect leads, less what may be a secret: user, query and fragment."""
    target = address_of(location, f"{url}/") if location else None
    place = f"{target.scheme}://{target.server}{target.path}" if target else ""
    return redacted(place)[:200] if place.isprintable() else ""
