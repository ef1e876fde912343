"""Identity of a model of the host: its class, and the arguments that it was made with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# where and how often a server is called changes no answer, and keys are nobody's business
_TRANSPORT = re.compile(
    r"(^|_)(api_?key|key|secret|password|authorization|credentials?|base|base_url|url|retry|wait|verbose|timeout|proxy|org|logger)$",
    re.IGNORECASE,
)
_ATTRIBUTE = "vieval_identity"


def identity_of(model: Any, name: str, supported: Mapping[str, Any]) -> Mapping[str, Any]:
    """Identity on which the answers of a model depend, the same whether it is built already or only named.

    `supported` maps the host's names to what builds them: a class, or a partial of one.
    """
    if not isinstance(model, str):
        known: Mapping[str, Any] | None = getattr(model, _ATTRIBUTE, None)
        return known if known is not None else _identity(type(model).__name__, name, vars(model))
    maker = supported.get(name)
    return _identity(getattr(getattr(maker, "func", maker), "__name__", ""), name, getattr(maker, "keywords", {}))


def keep_identity(model: Any, identity: Mapping[str, Any]) -> None:
    """Let a model that was built for one dataset have the same identity for the next."""
    setattr(model, _ATTRIBUTE, identity)


def _identity(kind: str, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    public = {key: value for key, value in arguments.items() if not _TRANSPORT.search(key) and _is_plain(value)}
    return {"class": kind, "name": name, "arguments": public}


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(nested) for key, nested in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float, bool))
