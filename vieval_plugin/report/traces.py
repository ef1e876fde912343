"""Pages of traces: what the judge asked, saw, was told and scored, as HTML that opens without a
server.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from markupsafe import Markup
from tqdm import tqdm

from vieval_plugin import images
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.protocol import Image
from vieval_plugin.media.files import write_whole
from vieval_plugin.media.thumbnails import encoded
from vieval_plugin.records import Record
from vieval_plugin.results.lookup import Lookup
from vieval_plugin.results.tree import Node, outline
from vieval_plugin.stats.bootstrap import grouped
from vieval_plugin.text import escaping
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.html_page import policy, style_sheet, template

_TEMPLATE = Path(__file__).with_name("trace_page.html.jinja")
_STYLE = Path(__file__).with_name("trace_page.css")
_SIDE = 512
_LONGEST_NAME = 200


def page(
    title: str,
    nodes: Sequence[Node],
    unfolded: int,
    images_to: Path | None = None,
) -> str:
    """A page of traces, the first `unfolded` levels of each open. Every word of a model is escaped.

    Images become part of the page or, with `images_to`, files in that folder beside it.
    """
    style = style_sheet(_STYLE)
    return template(_TEMPLATE).render(
        title=title,
        nodes=nodes,
        unfolded=unfolded,
        picture=_pictures(images_to),
        style=Markup(style),
        policy=policy(style, "", files=images_to is not None),
    )


def write_pages(lookup: Lookup, report_folder: Path) -> list[Path]:
    """A page of traces for each part of each stepwise judge's run, in the folder `traces` of a
    report.

    VievalError if it is missing, or if the samples cannot be found.
    """
    specs = judge_registry.judges().items()
    stepwise = [name for name, spec in specs if spec.stepwise]
    by_run = grouped(
        (_run_title(record), record)
        for record in lookup.records
        if record.provenance.judge in stepwise
    )
    if not by_run:
        raise VievalError(
            f"traces require verdicts from {' or '.join(stepwise)}; these results contain none"
        )
    folder = report_folder / "traces"
    pictures = folder / "images"
    written = []
    for title, records in by_run.items():
        nodes = [
            outline(r, lookup.conversation(r), lookup.sample(r))
            for r in tqdm(
                records, desc=escaping.console(title), unit="sample", disable=None
            )
        ]
        name = re.sub(r"[^A-Za-z0-9.-]+", "_", title).strip("._")
        path = folder / f"{name[:_LONGEST_NAME]}.html"
        written.append(path)
        write_whole(path, [page(title, nodes, 0, pictures)])
    return written


def _run_title(record: Record) -> str:
    source = record.provenance
    judge = (source.backbone, source.judge, *source.settings)
    return " ".join((*judge, record.id.benchmark, record.id.part))


def _pictures(images_to: Path | None) -> Callable[[Image], Markup]:
    """Thumbnail tags of images; one that cannot be read is named."""
    tags: dict[Image, Markup] = {}

    def picture(image: Image) -> Markup:
        if image not in tags:
            try:
                jpeg = encoded(
                    images.decode(image),
                    _SIDE,
                    "JPEG",
                    quality=80,
                )
                address = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
                if images_to is not None:
                    name = images.digest(image)[:32]
                    address = f"{images_to.name}/{name}.jpg"
                    write_whole(images_to.parent / address, jpeg)
                tags[image] = Markup('<img src="{}" alt="" loading="lazy">').format(
                    address
                )
            except VievalError as error:
                reason = escaping.html(str(error))
                tags[image] = Markup("<em>{}</em>").format(reason)
        return tags[image]

    return picture
