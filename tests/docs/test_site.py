"""The site, built strictly: any warning of Sphinx fails."""

import inspect
import re
import sys

import pytest

import vieval_plugin
from tests.docs import pages
from tests.docs.pages import build
from tests.html_links import dead_links

pytest.importorskip("pydata_sphinx_theme", reason="the site needs the extra docs")
pytest.importorskip("sphinx_copybutton")
pytest.importorskip("myst_parser")
LOADED = re.compile(
    r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=["']((?:https?:)?//[^"']+)"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build(tmp_path_factory.mktemp("site"))


def test_every_generated_page_is_there_and_none_in_the_source_tree(site):
    for page in (page for page in pages.GENERATED if not page.endswith("/")):
        assert (site / f"{page}.html").is_file()
        assert not (pages.DOCS / f"{page}.md").exists()
    assert (site / "demo.html").is_file()
    assert (site / "leaderboard" / "index.html").is_file()


def test_the_leaderboard_links_to_what_is_there(site):
    page = site / "leaderboard" / "index.html"
    assert dead_links(page.read_text(encoding="utf-8"), page.parent) == []


def test_nothing_is_loaded_from_another_host_and_no_path_of_this_machine_is_shown(site):
    for file in (*site.rglob("*.html"), *site.rglob("*.css"), *site.rglob("*.js")):
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".html":
            assert LOADED.findall(text) == [], file
        assert not re.search(r"@import[^;]*//|url\(['\"]?(https?:)?//", text), file
        assert str(pages.ROOT) not in text, file


def test_every_public_name_is_documented(site):
    shown = (site / "reference" / "api" / "index.html").read_text(encoding="utf-8")
    documented = lambda name: inspect.getdoc(getattr(vieval_plugin, name))
    for name in vieval_plugin.__all__:
        assert f'id="vieval_plugin.{name}"' in shown, name
        assert documented(name), name


def test_every_option_of_a_command_is_on_the_page(site):
    shown = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    names = [name for name in every_option(pages.parser()) if name.startswith("--")]
    assert [name for name in names if f">{name}" not in shown] == []


def every_option(parser):
    for action in parser._actions:
        yield from {*action.option_strings} - {"--help", "--version"}
        below = (action.choices or {}).values() if action.nargs == "A..." else ()
        for command in below:
            yield from every_option(command)


def test_environment_variables_of_the_code_are_on_the_page(site):
    rooms = ("vieval_plugin", "judges")
    files = [file for room in rooms for file in (pages.ROOT / room).rglob("*.py")]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    shown = (site / "reference" / "options.html").read_text(encoding="utf-8")
    names = sorted(set(re.findall(r'"(VIEVAL_[A-Z_]+)"', code)))
    assert [name for name in names if name not in shown] == []


def test_links_out_of_the_documentation_lead_to_the_repository(tmp_path):
    from types import SimpleNamespace

    sys.path.insert(0, str(pages.DOCS))
    from _ext.links import _to_repository

    written = "See [how]({}), [a page](../index.md) and [nothing](../../nothing.md)."
    text = [written.format("../../CONTRIBUTING.md#prose")]
    _to_repository(SimpleNamespace(confdir=pages.DOCS), "guides/mine", text)
    address = "https://github.com/vieval/vieval/blob/main/CONTRIBUTING.md#prose"
    assert text == [written.format(address)]
