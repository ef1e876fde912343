"""JSON schemas as servers take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def without_lengths(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema less the bounds on the lengths of texts, which not every API takes."""
    return {name: _loose(value) for name, value in schema.items() if name not in ("minLength", "maxLength")}


def _loose(value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_lengths(value)
    return [_loose(one) for one in value] if isinstance(value, (list, tuple)) else value


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as a field of a request."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
