"""Formulas as MathML, which browsers show by themselves: MathJax would be loaded from another
host.
"""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the renderer, which Sphinx takes where it is the one that is named."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def _display(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(
        '<div class="formula" '
        f'tabindex="0">{latex2mathml.tex2mathml(node.astext(), as_block=True)}</div>'
    )
    raise nodes.SkipNode
