"""Sphinx's configuration: `make docs` builds the site from this folder, with the pages that
`_ext` generates.
"""

import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

import vieval_plugin
from vieval_plugin.text.errors import PROJECT

sys.path.insert(0, str(Path(__file__).parent))

project = "VIEval"
author = "VIEval contributors"
copyright = author
version = release = vieval_plugin.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "_ext.source_folder",
    "_ext.fields",
    "_ext.links",
    "_ext.mathml",
]
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", ".*")
]  # types in signatures are also those of other packages

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "code"
smartquotes_action = "qe"  # a flag has two dashes
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "VIEval"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"index": []}
html_theme_options = {
    "github_url": PROJECT,
    "navbar_persistent": [
        "search-button"
    ],  # the theme's field has a label that is not its text
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_depth": 1,  # deeper ones have buttons without a name
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}


def setup(app: Sphinx) -> None:
    app.add_lexer("csv", TextLexer)  # which GitHub knows, and Pygments does not
