"""Links of an HTML page that lead to nothing."""

import re

from tests.docs.pages import DOCS, GENERATED, ROOT, anchors
from tests.report.pages import Page
from vieval_plugin.text.errors import PROJECT

LOADING = {"href", "src", "xlink:href", "action"}


def dead_links(text, folder):
    """Links to no element of the page, no file below `folder`, and no page of the documentation."""
    attributes = Page(text).attributes()
    names = {value for _, name, value in attributes if name in ("id", "name")}
    links = {value for _, name, value in attributes if name in LOADING and value}
    return sorted(link for link in links if not _leads_somewhere(link, names, folder))


def _leads_somewhere(link, names, folder):
    path, _, anchor = link.partition("#")
    if not path:
        return anchor in names
    in_repository = re.fullmatch(f"{re.escape(PROJECT)}/(?:blob|tree)/main/(.*)", path)
    if in_repository:
        path, folder = in_repository[1], ROOT
        page = path.removeprefix("docs/")
        if (ROOT / path).is_relative_to(DOCS) and page.startswith(GENERATED):
            return True
    elif re.match(r"[a-z]+:", path):
        return path.startswith(("data:", "https://arxiv.org/abs/"))
    target = folder / path
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text(encoding="utf-8"))
