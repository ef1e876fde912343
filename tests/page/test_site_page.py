"""The documentation's site in a browser: quiet, readable, and its search finds."""

import pytest

PAGES = (
    "index",
    "tutorials/compare",
    "guides/judges",
    "reference/commands",
    "reference/metrics",
    "reference/api/index",
    "dev/hosts",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("pydata_sphinx_theme", reason="the site needs the extra docs")
    from tests.docs.pages import build

    return build(tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1440])
@pytest.mark.parametrize("page", PAGES)
def test_it_is_quiet_and_readable(browser, site, page, width, scheme):
    browser.open(site / f"{page}.html", width=width, height=900, scheme=scheme)
    asked = browser.requested()
    assert all(address.startswith(site.as_uri()) for address in asked)
    # before axe, which asks for style sheets that a file may not have
    assert browser.complaints() == []
    assert browser.evaluate("document.documentElement.dataset.theme") == scheme
    browser.require_readable()


def test_the_search_finds_an_option(browser, site):
    browser.open(site / "search.html")
    browser.click("main input[name=q]")
    browser.type("num_concurrent")
    browser.press("Enter")
    browser.text("#search-results li")  # once there is one
    assert "Options" in browser.text("#search-results")


def test_code_has_a_button_that_copies_it(browser, site):
    browser.open(site / "reference" / "commands.html")
    assert browser.count("button.copybtn") > 20
