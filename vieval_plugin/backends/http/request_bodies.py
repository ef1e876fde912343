"""Bodies of requests: JSON, or a form with files where a server takes images only so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vieval_plugin.backends.http.image_encoding import as_json


@dataclass(frozen=True)
class File:
    """A file of a form."""

    name: str
    content: bytes
    kind: str = "image/png"


class FormBody(dict[str, Any]):
    """A body that is sent as `multipart/form-data`: texts, numbers, and lists of `File`."""


def encoded(body: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """What is sent for a body, made anew for each try, and its headers."""
    if not isinstance(body, FormBody):
        return as_json(dict(body)), {"Content-Type": "application/json"}
    import aiohttp

    form = aiohttp.FormData(quote_fields=False)
    for name, value in body.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, File):
                form.add_field(name, one.content, filename=one.name, content_type=one.kind)
            else:
                form.add_field(name, str(one))
    return form, {}
