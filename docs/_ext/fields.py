"""Options types in the API: their fields with default and meaning, in place of Pydantic's
signature.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from vieval_plugin.config import section
from vieval_plugin.config.section import Section


def setup(app: Sphinx) -> dict[str, bool]:
    """Have autodoc show fields."""
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-docstring", _docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _is_section(kind: str, value: Any) -> bool:
    return kind == "class" and issubclass(value, Section)


def _signature(
    app: Sphinx, kind: str, name: str, value: Any, *rest: Any
) -> tuple[str, str] | None:
    if not _is_section(kind, value):
        return None
    defaults = {
        field: section.default_of(value, field) for field in section.described(value)
    }
    fields = [
        field if default is section.REQUIRED else f"{field}={default!r}"
        for field, default in defaults.items()
    ]
    return f"(*, {', '.join(fields)})", ""


def _docstring(
    app: Sphinx, kind: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    if _is_section(kind, value):
        lines += [
            f"- ``{field}``: {meaning}"
            for field, meaning in section.described(value).items()
        ]
