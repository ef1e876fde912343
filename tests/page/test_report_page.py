"""A report's page in a browser: quiet, readable, filtered by keyboard."""

import re

import pytest

from tests.report.pages import BENCHMARK, generators, row
from tests.stored_results import write_results
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.judges.objects import DetectedObject, to_result
from vieval_plugin.judges.protocol import Status, Step
from vieval_plugin.judges.tools import to_json
from vieval_plugin.report.sections import sections_of
from vieval_plugin.report.writing import write_page, write_report
from vieval_plugin.results.runs import load_results
from vieval_plugin.stats.options import StatisticsOptions

EVIL = '<img src=x onerror="document.title=1"><script>document.title=1</script>'


OPTIONS = StatisticsOptions(draws=100)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two judges on the drawn edits, one of which refuses some and says hostile things."""
    folder = tmp_path_factory.mktemp("report")
    rows = []
    for number, sample in enumerate(benchmark(BENCHMARK).load(folder, "tie")):
        known = {"model": sample.id.image_model, "rationale": EVIL}
        people = sample.ratings["O"]
        uid = sample.id.uid
        rows.append(row(uid, {"O": people[0]}, people, judge="good", **known))
        scores = {"O": number % 7 / 7} if number % 3 else {}
        status = Status.OK if scores else Status.REFUSAL
        known |= {"judge": f"bad {EVIL}", "status": status}
        rows.append(row(uid, scores, people, **known))
    results = load_results([write_results(folder / "run", rows)])
    write_report(results, folder, OPTIONS)
    return folder / "report.html"


def all_of(selector):
    """A JavaScript array of the elements that fit."""
    return f"[...document.querySelectorAll({selector!r})]"


def test_the_first_screen_has_the_answer_pictures_and_links_to_their_cards(
    browser, page
):
    browser.open(page, width=1440, height=900)
    assert browser.box("h1")["bottom"] < browser.box(".strip")["bottom"] < 900
    assert browser.count(".strip use") == 6
    assert browser.box(".forest")["width"] > 1200
    browser.click(".strip a")
    assert browser.count(".card:target") == 1
    browser.open(page, width=360, height=780)
    assert browser.box(".strip svg")["top"] < 780
    assert browser.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("width", [360, 800, 1920])
def test_cards_of_a_row_have_one_height(browser, page, width):
    browser.open(page, width=width, height=900)
    rows = f"Object.values(Object.groupBy({all_of('.card')}.slice(0, 12), one => one.offsetTop))"
    heights = "new Set(row.map(one => one.offsetHeight)).size"
    assert {*browser.evaluate(f"{rows}.map(row => {heights})")} == {1}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_quiet_and_readable(browser, page, scheme):
    browser.require_quiet_and_readable(page, 1280, scheme)
    assert browser.evaluate("document.title") != "1"
    found = browser.evaluate("[document.scripts.length, document.images.length]")
    assert found == [1, 0]


def test_print_has_answer_chart_table_and_cards_and_nothing_folded(
    browser, page, tmp_path
):
    browser.open(page, width=688, height=972)
    folded = (
        f"{all_of('details:not(.clamped)')}.filter(one => one.getClientRects().length)"
    )
    low = "one.offsetHeight === one.firstElementChild.offsetHeight"
    closed = f"{folded}.filter(one => {low}).length"
    assert browser.evaluate(closed) > 0
    browser.media("print")
    assert browser.evaluate(closed) == 0
    assert browser.evaluate("document.documentElement.scrollWidth") <= 688
    for left_out in ("#filters", "#glossary", "#appendix", ".verdict details"):
        assert not browser.visible(left_out)
    right = "Math.round(one.getBoundingClientRect().right)"
    assert max(browser.evaluate(f"{all_of('table')}.map(one => {right})")) <= 688
    browser.print(tmp_path / "page.pdf")
    pages = re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes())
    assert 2 <= len(pages) <= 3
    browser.media("screen")


def test_cards_show_pictures_and_are_filtered_by_keyboard(browser, page):
    browser.open(page)
    assert browser.text("#count") == "48 of 48 cards"
    assert browser.evaluate("document.querySelector('.card use').getBBox().width") > 90
    browser.focus("select[data-filter=status]")
    browser.press("r")  # the option that begins so
    assert browser.text("#count") == "16 of 48 cards"
    shown = f"{all_of('.card')}.filter(one => !one.hidden)"
    refused = "one => one.textContent.includes('refusal')"
    assert browser.evaluate(f"{shown}.every({refused})")
    browser.focus("#filters button")
    browser.press("Enter")
    browser.evaluate("new Promise(done => setTimeout(done, 50))")
    assert browser.text("#count") == "48 of 48 cards"


def test_outputs_of_one_prompt_stand_side_by_side(browser, page):
    browser.open(page)
    browser.focus("select[data-order]")
    browser.press("ArrowDown")
    prompts = browser.evaluate(f"{all_of('.card')}.map(one => one.dataset.prompt)")
    assert len(prompts) == 48
    assert all(len({*prompts[n : n + 3]}) == 1 for n in range(0, 48, 3))


def test_one_judge_alone_is_shown_and_decides_the_order(browser, page):
    browser.open(page)
    browser.focus("select[data-filter=judge]")
    browser.press("g")
    assert browser.text("#count") == "48 of 48 cards"
    assert browser.count(".card .verdict:not([hidden])") == 48


@pytest.fixture
def ranking(tmp_path):
    """Writes the page of a ranking of generators by their scores."""

    def write(**scores):
        report = sections_of(generators(tmp_path, scores), "generators", OPTIONS)
        write_page(report, tmp_path / "rank.html", OPTIONS)
        return tmp_path / "rank.html"

    return write


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_ranking_is_quiet_and_readable(browser, ranking, scheme):
    page = ranking(**{f"mine {EVIL}": [0.9] * 9, "theirs": [0.1] * 8 + [None]})
    for width in (360, 1440):
        browser.require_quiet_and_readable(page, width, scheme)
    assert browser.evaluate("document.title.includes('mine <img')")


SHOWN = ".prompt-place h3"
BAR = ".columns button:nth-child({})"


def test_bars_show_their_pictures_by_mouse_and_keys(browser, ranking):
    page = ranking(mine=[n / 10 for n in range(10)], theirs=[0.1] * 10)
    browser.open(page, width=1440, height=900)
    assert browser.text(SHOWN).startswith("p9")
    browser.click(BAR.format(3))
    assert browser.text(SHOWN).startswith("p7")
    browser.press("ArrowRight", "ArrowRight")
    assert browser.text(SHOWN).startswith("p5")
    assert browser.text("output") == "prompt 5 of 10"
    browser.click("button[data-step='-1']")
    assert browser.text(SHOWN).startswith("p6")
    box = browser.box(BAR.format(9))
    x = box["x"] + box["width"] / 2
    y = box["y"] + box["height"] / 2
    moved = f"new PointerEvent('pointermove', {{clientX: {x}, clientY: {y}, bubbles: true}})"
    browser.evaluate(f"document.querySelector('.columns').dispatchEvent({moved})")
    assert browser.text(SHOWN).startswith("p1")
    assert browser.count(".columns [aria-pressed=true][tabindex='0']") == 1
    browser.require_quiet()
    assert browser.violations() == []


def test_a_tap_on_a_phone_shows_a_prompt_and_stays(browser, ranking):
    levels = [n / 10 for n in range(10)]
    browser.open_on_phone(ranking(a=levels, b=[0.2] * 10, c=[0.1] * 10))
    boxes = f"{all_of('.columns button, .columns i')}.map(one => one.getBoundingClientRect())"
    cells = browser.evaluate(f"{boxes}.map(box => Math.min(box.width, box.height))")
    assert min(cells) >= 24
    names = browser.evaluate(f"{all_of('.names span')}.map(one => one.textContent)")
    assert names == ["a", "b", "c"]
    browser.click(BAR.format(4))
    assert browser.text(SHOWN).startswith("p6")
    assert browser.evaluate("location.hash") == ""
    assert browser.evaluate("document.documentElement.scrollWidth") == 390
    assert browser.violations() == []


def test_pictures_open_as_large_as_the_window_and_cards_come_a_few_at_a_time(
    browser, page
):
    browser.open(page, width=1440, height=900)
    cards = ".card:not([hidden])"
    assert browser.count(cards) == 6
    browser.click("button.more")
    assert browser.count(cards) == 12
    browser.focus("button.zoom")
    browser.press("Enter")
    shown = "document.querySelector('#viewer .large use').getAttribute('href')"
    first = browser.evaluate(shown)
    assert browser.box("#viewer .large svg")["height"] > 600
    assert browser.text("#viewer .words").strip()
    assert browser.violations() == []
    browser.press("ArrowRight")
    assert browser.evaluate(shown) != first
    browser.press("ArrowLeft")
    assert browser.evaluate(shown) == first
    browser.press("Escape")
    assert not browser.evaluate("document.querySelector('#viewer').open")
    assert browser.evaluate("document.activeElement.classList.contains('zoom')")


def test_objects_of_a_trace_are_drawn_on_an_opened_picture_alone(browser, tmp_path):
    found = [DetectedObject(EVIL, (8, 8, 40, 30), 0.93, "red")]
    trace = (Step(("objects",), Status.OK, answer=to_json(to_result(found))),)
    rows = []
    for number, sample in enumerate(benchmark(BENCHMARK).load(tmp_path, "tie")[:4]):
        about = {"model": sample.id.image_model, "trace": trace}
        scores = {"O": number / 4}
        rows.append(row(sample.id.uid, scores, sample.ratings["O"], **about))
    results = load_results([write_results(tmp_path / "run", rows)])
    write_report(results, tmp_path, OPTIONS)
    browser.open(tmp_path / "report.html", width=1440, height=900)
    assert browser.box("button.zoom .boxes")["width"] == 0
    browser.click("button.zoom:has(.boxes)")
    assert browser.box("#viewer .boxes")["width"] > 300
    drawn = "document.querySelector('#viewer .boxes text').textContent"
    assert EVIL in browser.evaluate(drawn)
    assert browser.evaluate("document.title") != "1"
    assert browser.violations() == []


def test_prompts_are_searched_and_ordered_by_score(browser, page):
    browser.open(page, width=1440, height=900)
    cards = all_of(".card:not([hidden])")
    for order, reverse in (("best", True), ("worst", False)):
        browser.evaluate(
            "(() => { const one = document.querySelector('select[data-order]'); "
            f"one.value = '{order}'; "
            "one.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )
        values = browser.evaluate(f"{cards}.map(card => Number(card.dataset.score))")
        assert values == sorted(values, reverse=reverse)
    browser.focus("input[data-search]")
    browser.type("no prompt has these words")
    count = browser.evaluate("document.querySelector('#count').textContent")
    assert count.startswith("0 of ")
