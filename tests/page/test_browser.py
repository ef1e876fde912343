"""The browser of these tests sees what is wrong with a page."""

import pytest

PAGE = """<!doctype html><html lang="en"><title>t</title><meta name="viewport" content="width=device-width">
<main><h1>Kept</h1><p id="kept">none</p><button id="keep">Keep</button> <button id="save">Save</button>{more}</main>
<script>
kept.textContent = localStorage.kept ?? 'none'
keep.onclick = () => {{ localStorage.kept = 'yes' }}
save.onclick = () => Object.assign(document.createElement('a'), {{
  href: URL.createObjectURL(new Blob(['\\u00e9,1\\n'])), download: 'a.csv' }}).click()
</script></html>"""


@pytest.fixture
def page(tmp_path):
    def write(more=""):
        file = tmp_path / "page.html"
        file.write_text(PAGE.format(more=more))
        return file

    return write


LOUD = (
    '<img src="https://example.invalid/a.png"><img src="beside.png" alt="">'
    "<script>oops()</script>"
)


def test_a_quiet_page_asks_for_nothing_and_a_loud_one_is_heard(browser, page):
    browser.require_quiet_and_readable(page(), 1280)
    browser.open(page(LOUD))
    names = [address.rsplit("/", 1)[-1] for address in browser.requested()]
    assert names == ["a.png", "beside.png"]
    assert any("oops" in complaint for complaint in browser.complaints())
    [violation] = browser.violations()
    assert violation.startswith("critical image-alt:")


def test_what_a_page_keeps_is_there_when_it_is_reopened_and_gone_when_opened_anew(
    browser, page
):
    file = page()
    browser.open(file)
    browser.press("Tab", "Enter")
    browser.reopen()
    assert browser.text("#kept") == "yes"
    browser.open(file)
    assert browser.text("#kept") == "none"
