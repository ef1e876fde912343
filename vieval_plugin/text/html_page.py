"""HTML pages: a template that escapes every word of others, and a policy by which a page loads nothing."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, Template
from markupsafe import Markup

from vieval_plugin.text.escaping import html


def template(path: Path) -> Template:
    """A template of a page: Markup of ours is shown as it is, all else is made harmless."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_escaped)
    return environment.from_string(path.read_text(encoding="utf-8"))


def style_sheet(path: Path) -> str:
    """Style of a page: the design that all pages share, then the page's own rules."""
    return "".join(file.read_text(encoding="utf-8") for file in (Path(__file__).with_name("page.css"), path))


def policy(style: str, script: str) -> str:
    """The content security policy of a page: show its own pictures, and use the style and the script whose digests are these."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _escaped(value: object) -> Markup:
    return value if isinstance(value, Markup) else html(str(value))
