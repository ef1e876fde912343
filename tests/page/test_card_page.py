"""The page of a card in a browser: quiet, readable, the answer on the first screen, whatever a
model is called.
"""

import pytest

from tests.card.judges import TYPES, card, judge, published
from vieval_plugin.card.writing import write_card

EVIL = '<img src=x onerror="document.title=1"><script>document.title=1</script>'


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    others = [
        published(name, ahead, 0.01, dict.fromkeys(TYPES, (ahead, 0.01)))
        for name, ahead in (
            ("GPT-4o zero-shot", -0.1),
            (EVIL, 0.2),
            ("GPT-4v one-shot", 0.3),
        )
    ]
    judges = [
        judge(
            others=others,
            parts=dict.fromkeys(TYPES, 0.4),
            useless=TYPES[:1],
            model=f"mine {EVIL}",
        )
    ]
    folder = tmp_path_factory.mktemp("card")
    write_card(card(*judges, left_out=(EVIL,)), judges, folder)
    return folder / "card.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_it_is_quiet_and_readable(browser, page, scheme, width):
    browser.require_quiet_and_readable(page, width, scheme)
    assert browser.evaluate("document.title").startswith("mine")


def test_the_first_screen_says_who_is_better_and_where(browser, page):
    browser.open(page, width=1440, height=900)
    low = (
        "[...document.querySelectorAll('header .of')].map(one => "
        "one.getBoundingClientRect().bottom)"
    )
    assert max(browser.evaluate(low)) < 900
    assert "GPT-4o zero-shot" in browser.evaluate(
        "document.querySelector('h1').innerText"
    )
    assert (
        browser.evaluate("document.querySelector('header').innerText").count("Beside ")
        == 2
    )
