"""HTML pages: a template that escapes every word of others, and a policy by which a page loads
nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from itertools import chain, zip_longest
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, Template
from markupsafe import Markup

from vieval_plugin.text.errors import PROJECT
from vieval_plugin.text.escaping import html
from vieval_plugin.text.wording import unbroken


def template(path: Path) -> Template:
    """A template of a page: Markup of ours is shown as it is, all else is made harmless."""
    environment = Environment(
        loader=FileSystemLoader(path.parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escaped,
    )
    environment.filters |= {"linked": linked, "titled": titled}
    return environment.get_template(path.name)


def linked(text: str) -> Markup:
    """A sentence of ours as HTML: commands in backticks as code, and an address of the
    documentation as a link.

    >>> linked("run `vieval rank`; a < b")
    Markup('run <code>vieval rank</code>; a &lt; b')
    >>> linked("`vieval rank --margin`")
    Markup('<code>vieval rank <span class="flag">--margin</span></code>')
    """
    parts = re.split(rf"`([^`]*)`|({re.escape(PROJECT)}/[\w./#-]+)", unbroken(text))
    escaped = [html(part or "") for part in parts]
    commands = map(_command, escaped[1::3])
    links = map(_link, escaped[2::3])
    empty = Markup("")
    pieces = zip_longest(
        escaped[::3],
        commands,
        links,
        fillvalue=empty,
    )
    return empty.join(chain(*pieces))


def _command(code: Markup) -> Markup:
    """A command in which no line ends within a flag; empty for an empty text."""
    if not code:
        return code
    span = r'<span class="flag">\g<0></span>'
    unbroken_flags = re.sub(
        r"(?<!\S)-[^\s&]+",
        span,
        str(code),
    )
    return Markup(f"<code>{unbroken_flags}</code>")


def _link(url: Markup) -> Markup:
    if url:
        return Markup('<a href="{}">the guide</a>').format(url)
    return url


def titled(text: str) -> Markup:
    """A title as HTML in which no line ends within a number or a name such as GPT-4o's.

    >>> titled("GPT-4o's images")
    Markup('<span class="whole">GPT-4o&#39;s</span> images')
    """
    escaped = str(html(unbroken(text)))
    name = r"[^\s;]+-[^\s&]+(?:&#39;s?)?"
    return Markup(
        re.sub(
            name,
            r'<span class="whole">\g<0></span>',
            escaped,
        )
    )


def style_sheet(path: Path) -> str:
    """Style of a page: the design that all pages share, then the page's own rules."""
    shared_rules = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return shared_rules + path.read_text(encoding="utf-8")


def policy(style: str, script: str, files: bool = False) -> str:
    """The content security policy of a page: show its own pictures, and use the style and the
    script whose digests are these.

    Args:
        style, script: texts.
        files: True for a page that enlarges pictures from files beside it.
    """
    images = "data:"
    if files:
        images = "data: 'self' file:"
    return (
        f"default-src 'none'; img-src {images}; "
        f"style-src {_source_hash(style)}; script-src {_source_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _source_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _escaped(value: object) -> Markup:
    if isinstance(value, Markup):
        return value
    return html(str(value))
