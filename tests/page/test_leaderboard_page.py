"""The leaderboard's page in a browser: quiet, readable, and its tables chosen by keyboard."""

import pytest

from tests import bounds
from tests.leaderboard.logs import few_logs
from vieval_plugin.leaderboard.making import Sources, make_boards
from vieval_plugin.leaderboard.writing import PAGE, write_boards
from vieval_plugin.stats.options import StatisticsOptions


@pytest.fixture(scope="module")
def page(shared_data, tmp_path_factory):
    logs = few_logs(shared_data, tmp_path_factory.mktemp("logs"))
    folder = tmp_path_factory.mktemp("leaderboard")
    options = StatisticsOptions(draws=20)
    write_boards(make_boards(Sources(logs, logs), [], options), folder, options)
    return folder / PAGE


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_it_is_quiet_and_readable(browser, page, scheme, width):
    browser.require_quiet_and_readable(page, width, scheme)
    assert page.stat().st_size < bounds.LEADERBOARD_BYTES


def shown(board):
    """The choices of the tables of a leaderboard that are seen."""
    views = f"[...document.querySelectorAll('{board} .view')]"
    return f"{views}.filter(view => !view.hidden).map(view => view.dataset.choice)"


def test_a_table_is_chosen_and_alone_is_seen(browser, page):
    browser.open(page)
    assert len(browser.evaluate(shown("#b1"))) == 1
    assert browser.visible("#b1 form")
    assert not browser.visible("#b1 .view summary")
    browser.focus("#b1 input[value=SC]")
    browser.press(" ")
    assert browser.evaluate(shown("#b1")) == ["SC drop all"]
    assert len(browser.evaluate(shown("#b2"))) == 1


def test_a_column_is_sorted_and_a_row_opens(browser, page):
    browser.open(page)
    browser.click("#b1 .view:not([hidden]) .rows > summary")
    table = "document.querySelector('#b1 .view:not([hidden]) table')"
    cells = f"[...{table}.tBodies[0].rows].map(row => row.cells[2].innerText)"
    for direction in ("descending", "ascending"):
        browser.evaluate(f"{table}.tHead.querySelectorAll('button')[2].click()")
        sort = f"{table}.tHead.rows[0].cells[2].getAttribute('aria-sort')"
        assert browser.evaluate(sort) == direction
        values = browser.evaluate(f"{cells}.map(parseFloat)")
        numbers = [number for number in values if number is not None]
        assert numbers
        assert numbers == sorted(numbers, reverse=direction == "descending")
    row = f"{table}.querySelector('th details')"
    browser.evaluate(f"{row}.querySelector('summary').click()")
    assert "control-guided generation" in browser.evaluate(f"{row}.innerText")
