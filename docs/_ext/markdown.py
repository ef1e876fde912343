"""Markdown of generated pages: tables, code and text of the program's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from vieval_plugin.text import escaping

_CODE = re.compile(r"`([^`]+)`|(?<![\w`/-])(--[a-z][\w-]*|[A-Z]+_[A-Z_]+)")


def text(words: str | None) -> str:
    """Words of the program within a line; what stands in `backticks`, flags and variables are
    code.
    """
    words = " ".join((words or "").split())
    end, parts = 0, []
    for found in _CODE.finditer(words):
        parts += [_plain(words[end : found.start()]), code(found[1] or found[2])]
        end = found.end()
    return "".join([*parts, _plain(words[end:])])


def _plain(words: str) -> str:
    return re.sub(r"([*_$])", r"\\\1", escaping.markdown(words))


def code(words: str) -> str:
    """Words as code, also in a cell of a table."""
    return f"`{words}`".replace("|", r"\|") if words else ""


def codes(names: Iterable[str]) -> str:
    """Names as code with commas between them."""
    return ", ".join(map(code, names))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of Markdown cells under a head."""
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def page(title: str, *parts: str) -> str:
    """A generated page; empty parts are left out."""
    return "\n\n".join(filter(None, (f"# {title}", *parts))) + "\n"
