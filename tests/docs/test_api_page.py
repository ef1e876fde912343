"""The API page that docs/make_api.py builds from the docstrings."""

import importlib.util
import inspect
from pathlib import Path

import pytest

import vieval_plugin

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def make_api():
    spec = importlib.util.spec_from_file_location("make_api", DOCS / "make_api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", vieval_plugin.__all__)
def test_every_public_name_is_on_the_page_and_says_what_it_is(name, make_api):
    assert f"\n### {name}\n" in make_api.page()
    assert inspect.getdoc(getattr(vieval_plugin, name))


def test_sections_lists_and_examples_of_a_docstring_become_markdown(make_api):
    docstring = inspect.cleandoc(
        """One line
        that goes on.

        - `a` is one thing;
        - `b` is another,
          over two lines.

        Args:
            x: shape (n,),
                in [0, 1].
            y: a word.

        Returns:
            A number.

        >>> 1 + 1
        2
        """
    )
    assert "".join(make_api._markdown(docstring)).splitlines() == [
        "One line that goes on.",
        "- `a` is one thing;",
        "- `b` is another, over two lines.",
        "**Args**",
        "",
        "- `x`: shape (n,), in [0, 1].",
        "- `y`: a word.",
        "**Returns** A number.",
        "```python",
        ">>> 1 + 1",
        "2",
        "```",
    ]
