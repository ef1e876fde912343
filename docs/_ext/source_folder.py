"""The folder that Sphinx reads: the hand-written pages, and the pages that are generated from the
code beside them.

Sphinx is given an empty folder as its sources, so that nothing generated comes into the source
tree.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from _ext import api, benchmarks, commands, judges, metrics, options, parts
from sphinx.application import Sphinx

NOT_SOURCES = shutil.ignore_patterns("_ext", "_static", "__pycache__", "*.py", "space")


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill the folder before Sphinx looks for pages there."""
    source = Path(app.srcdir)
    if source == Path(app.confdir):
        raise SystemExit(
            f"docs: give sphinx-build an empty folder as its sources, and -c {app.confdir}, as "
            "`make docs` does"
        )
    shutil.copytree(app.confdir, source, ignore=NOT_SOURCES, dirs_exist_ok=True)
    for name, text in generated(
        (source / "index.md").read_text(encoding="utf-8")
    ).items():
        page = source / f"{name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def generated(index: str) -> dict[str, str]:
    """The generated pages by name; `index` is the landing page."""
    reference = {
        "commands": commands.page(),
        "options": options.page(),
        "judges": judges.page(),
        "metrics": metrics.page(),
        "benchmarks_table": benchmarks.page(),
        **{f"api/{name}": text for name, text in api.pages().items()},
    }
    return {
        **{f"reference/{name}": text for name, text in reference.items()},
        **parts.pages(index),
    }
