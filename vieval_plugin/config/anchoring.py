"""Relative paths in a file of options start at its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from vieval_plugin.text.untrusted import exists, path_of


def anchored(value: Any, folder: Path) -> Any:
    """The same options with every relative path starting at the file's folder."""
    if isinstance(value, Path):
        return path_of(value, folder)
    if isinstance(value, BaseModel):
        names = type(value).model_fields
        return value.model_copy(update={name: anchored(getattr(value, name), folder) for name in names})
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value,
            **{one.name: _anchored_field(one, getattr(value, one.name), folder) for one in dataclass_fields(value)},
        )
    if isinstance(value, Mapping):
        return {name: anchored(one, folder) for name, one in value.items()}
    return tuple(anchored(one, folder) for one in value) if isinstance(value, tuple) else value


def _anchored_field(field: Any, value: Any, folder: Path) -> Any:
    """A text that may name a folder or a file names one if it is there."""
    if not field.metadata.get("folder"):
        return anchored(value, folder)
    named = path_of(value, folder)
    return str(named) if value and exists(named) else value
