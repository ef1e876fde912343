"""Markdown -> the few things the published layout is made of: items `key: value` under headings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

_LONGEST = 60_000
_LONGEST_KEY = 3


@dataclass(frozen=True)
class Item:
    """A line of text under headings: `key` is what stands before its first colon, lower case, empty where there is none."""

    headings: tuple[str, ...]
    key: str
    value: str


def items(text: str) -> list[Item]:
    """The list items and lines of paragraphs of a Markdown text, in order; marks of emphasis are dropped.

    >>> items("# Answer\\n## cat\\n- **question**: Is it red?\\n- answer: no")[1]
    Item(headings=('Answer', 'cat'), key='answer', value='no')
    """
    return [_item(headings, line) for headings, line in _lines(text[:_LONGEST])]


def _lines(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    # A line of dashes is a divider in these replies, and an indented line an item: neither heading nor code.
    parser = MarkdownIt("commonmark").disable(["lheading", "code"])
    stack: list[tuple[int, str]] = []
    level = 0
    for token in parser.parse(text):
        if token.type == "heading_open":
            level = int(token.tag[1])
        elif token.type == "fence":
            yield from _lines(token.content)
        elif token.type == "inline":
            words = _words(token)
            if level:
                stack = [*((depth, title) for depth, title in stack if depth < level), (level, words.strip(" :"))]
                level = 0
                continue
            for line in filter(None, map(str.strip, words.split("\n"))):
                yield tuple(title for _, title in stack), line


def _words(inline: Token) -> str:
    breaks = ("softbreak", "hardbreak")
    return "".join("\n" if child.type in breaks else child.content for child in inline.children or [])


def _item(headings: tuple[str, ...], line: str) -> Item:
    key, colon, value = line.partition(":")
    # A question may have a colon of its own: a key is a word or two.
    if colon and len(key.split()) <= _LONGEST_KEY:
        return Item(headings, key.strip().lower(), value.strip())
    return Item(headings, "", line)
