"""The first page of each part of the site, from the links under its heading in index.md."""

from __future__ import annotations

import re

from _ext import markdown

PART = re.compile(r"^## ([^\n]+)\n(.+?)(?=^## |^```|\Z)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([\w/]+)\.md\)")


def pages(index: str) -> dict[str, str]:
    """A page a part by name; its pages are those that the part links, in their order.

    >>> list(pages("## Guides\\n\\n- [Judges](guides/judges.md)\\n"))
    ['guides/index']
    """
    return {
        f"{title.lower()}/index": _page(title, LINK.findall(links))
        for title, links in PART.findall(index)
    }


def _page(title: str, names: list[str]) -> str:
    return markdown.page(
        title,
        "\n".join(
            ["```{toctree}", ":maxdepth: 2", "", *(f"/{name}" for name in names), "```"]
        ),
    )
