"""A card's page in a browser: quiet, readable, the answer on the first screen."""

import pytest

from tests.card.judges import TYPES, card, judge, published
from vieval_plugin.card.writing import write_card

EVIL = '<img src=x onerror="document.title=1"><script>document.title=1</script>'


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    leads = {"GPT-4o zero-shot": -0.1, EVIL: 0.2, "GPT-4v one-shot": 0.3}
    others = [
        published(name, ahead, 0.01, dict.fromkeys(TYPES, (ahead, 0.01)))
        for name, ahead in leads.items()
    ]
    same = dict.fromkeys(TYPES, 0.4)
    judges = [judge(0.4, others, same, TYPES[:1], model=f"mine {EVIL}")]
    folder = tmp_path_factory.mktemp("card")
    write_card(card(*judges, left_out=(EVIL,)), judges, folder)
    return folder / "card.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_it_is_quiet_and_readable(browser, page, scheme, width):
    browser.require_quiet_and_readable(page, width, scheme)
    assert browser.evaluate("document.title").startswith("mine")


def test_the_first_screen_has_the_level_four_tiles_and_named_judges(browser, page):
    browser.open(page, width=1440, height=900)
    assert "GPT-4o zero-shot" in browser.text("h1")
    tiles = browser.evaluate(
        "[...document.querySelectorAll('.cards h3')].slice(0, 4).map(one => "
        "[one.innerText, one.getBoundingClientRect().bottom < 900])"
    )
    names = ("Agrees", "Answers", "Repeats", "Fooled")
    assert tiles == [[name, True] for name in names]
    assert "GPT-4v one-shot" in browser.text(".forest")
    assert "has rank 1" not in browser.text()  # folded
    browser.click("text=The numbers in words")
    assert "has rank 1" in browser.text()


def test_of_several_judges_the_given_order_holds_and_each_number_names_its_own(
    browser, tmp_path
):
    judges = [judge(on="vieval_demo"), judge(0.2)]
    write_card(card(*judges), judges, tmp_path)
    browser.open(tmp_path / "card.html", width=1440, height=900)
    names = ["viescore 0shot on vieval_demo", "viescore 0shot on ImagenHub"]
    assert browser.text("nav").split("\n")[0].startswith(names[0])
    for tile in ("Agrees", "Answers"):
        words = browser.text(f".card:has(h3:text-is('{tile}'))")
        assert words.index(names[0]) < words.index(names[1])
    agrees = browser.text(".card:has(h3:text-is('Agrees'))")
    assert "with the planted order, viescore 0shot on vieval_demo" in agrees
    assert agrees.count("people") == 1
