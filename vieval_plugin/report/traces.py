"""Pages of traces: what the judge asked, saw, was told and scored, as HTML that opens without a server."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import PIL.Image
from jinja2 import Environment
from markupsafe import Markup, escape

from vieval_plugin import images
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image
from vieval_plugin.outline import Node

_TEMPLATE = Path(__file__).with_name("trace_page.html.jinja")
_SIDE = 512


def page(title: str, nodes: Sequence[Node], unfolded: int = 2) -> str:
    """A page of traces, the first `unfolded` levels of each open. Every word of a model is escaped."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    return template.render(title=title, nodes=nodes, unfolded=unfolded, picture=_pictures())


def _pictures() -> Callable[[Image], Markup]:
    """Images as part of the page, made small; one that cannot be read is named."""
    known: dict[Image, Markup] = {}

    def picture(image: Image) -> Markup:
        if image not in known:
            try:
                known[image] = _tag(images.decode(image))
            except VievalError as error:
                known[image] = Markup("<em>{}</em>").format(escape(str(error)))
        return known[image]

    return picture


def _tag(picture: PIL.Image.Image) -> Markup:
    picture.thumbnail((_SIDE, _SIDE))
    written = io.BytesIO()
    picture.save(written, "JPEG", quality=80)
    data = base64.b64encode(written.getvalue()).decode()
    return Markup('<img src="data:image/jpeg;base64,{}" alt="">').format(data)
