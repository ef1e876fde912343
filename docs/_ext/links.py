"""Links that work on GitHub and on the site: to files of the repository, and to HTML pages and
their data, copied as they are.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from vieval_plugin.text.errors import PROJECT

LINK = re.compile(r"(?<=\]\()(\.\.?/[^)#\s]*)")


def setup(app: Sphinx) -> dict[str, bool]:
    """Have links changed as pages are read, and HTML pages copied at the end with their data."""
    app.connect("source-read", _to_repository)
    app.connect(
        "doctree-read", _to_html, priority=400
    )  # before Sphinx collects what is to be downloaded
    app.connect("build-finished", _copy_html)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _to_repository(app: Sphinx, page: str, source: list[str]) -> None:
    """Links that leave the documentation lead to the repository; those to nothing stay, so that
    Sphinx reports them.
    """
    root, docs = Path(app.confdir).parent, Path(app.confdir)

    def address(link: re.Match[str]) -> str:
        path = Path(os.path.normpath(docs / Path(page).parent / link[1]))
        if docs in (path, *path.parents) or not path.exists():
            return link[1]
        return f"{PROJECT}/{'tree' if path.is_dir() else 'blob'}/main/{path.relative_to(root).as_posix()}"

    source[0] = LINK.sub(address, source[0])


def _to_html(app: Sphinx, doctree: nodes.document) -> None:
    """An HTML page is opened, and not downloaded."""
    for link in list(doctree.findall(addnodes.download_reference)):
        if link["reftarget"].endswith(".html"):
            link.replace_self(
                nodes.reference("", "", *link.children, refuri=link["reftarget"])
            )


def _copy_html(app: Sphinx, failure: Exception | None) -> None:
    source, site = Path(app.srcdir), Path(app.outdir)
    for file in () if failure else source.rglob("*"):
        if file.suffix in (".html", ".csv", ".json"):
            target = site / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
