"""The page of a report in a browser: quiet, readable, filtered by keyboard, whatever others
wrote.
"""

import re

import pytest

from tests.report.pages import BENCHMARK, generators, row
from tests.stored_results import write_results
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.judges.objects import DetectedObject, to_result
from vieval_plugin.judges.protocol import Status, Step
from vieval_plugin.judges.tools import to_json
from vieval_plugin.report.sections import sections_of
from vieval_plugin.report.writing import write_page, write_report
from vieval_plugin.results.runs import load_results
from vieval_plugin.stats.options import StatisticsOptions

EVIL = '<img src=x onerror="document.title=1"><script>document.title=1</script>'


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two judges on the drawn edits, one of which refuses some and says hostile things."""
    folder = tmp_path_factory.mktemp("report")
    samples = benchmark_registry.benchmark(BENCHMARK).load(folder, "tie")
    rows = []
    for number, sample in enumerate(samples):
        known = {"model": sample.id.image_model, "rationale": EVIL}
        people = sample.ratings["O"]
        rows.append(row(sample.id.uid, {"O": people[0]}, people, judge="good", **known))
        refused = {"status": Status.REFUSAL} if number % 3 == 0 else {}
        scores = {} if refused else {"O": number % 7 / 7}
        rows.append(
            row(sample.id.uid, scores, people, judge=f"bad {EVIL}", **known, **refused)
        )
    write_report(
        load_results([write_results(folder / "run", rows)]),
        folder,
        StatisticsOptions(draws=100),
    )
    return folder / "report.html"


def test_the_first_screen_has_the_answer_pictures_and_links_to_their_cards(
    browser, page
):
    browser.open(page, width=1440, height=900)
    low = (
        "Math.max(...[...document.querySelectorAll('{}')].map(one => "
        "one.getBoundingClientRect().bottom))"
    )
    assert (
        browser.evaluate(low.format("h1"))
        < browser.evaluate(low.format(".strip"))
        < 900
    )
    assert browser.evaluate("document.querySelectorAll('.strip use').length") == 6
    assert (
        browser.evaluate(
            "document.querySelector('.forest').getBoundingClientRect().width"
        )
        > 1200
    )
    browser.click(".strip a")
    assert browser.evaluate("document.querySelector('.card:target') !== null")
    browser.open(page, width=360, height=780)
    assert (
        browser.evaluate(
            "document.querySelector('.strip svg').getBoundingClientRect().top"
        )
        < 780
    )
    assert browser.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("width", [360, 800, 1920])
def test_cards_of_a_row_have_one_height(browser, page, width):
    browser.open(page, width=width, height=900)
    rows = browser.evaluate(
        "Object.values(Object.groupBy([...document.querySelectorAll('.card')].slice(0, 12), one "
        "=> one.offsetTop)).map(row => new Set(row.map(one => one.offsetHeight)).size)"
    )
    assert {*rows} == {1}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_quiet_and_readable(browser, page, scheme):
    browser.require_quiet_and_readable(page, 1280, scheme)
    assert browser.evaluate("document.title") != "1"
    assert browser.evaluate("[document.scripts.length, document.images.length]") == [
        1,
        0,
    ]


def test_print_has_answer_chart_table_and_cards_and_nothing_folded(
    browser, page, tmp_path
):
    browser.open(page, width=688, height=972)
    folded = (
        "[...document.querySelectorAll('details:not(.clamped)')].filter(one => "
        "one.getClientRects().length)"
    )
    closed = f"{folded}.filter(one => one.offsetHeight === one.firstElementChild.offsetHeight).length"
    assert browser.evaluate(closed) > 0
    browser.media("print")
    assert browser.evaluate(closed) == 0
    assert browser.evaluate("document.documentElement.scrollWidth") <= 688
    for left_out in ("#filters", "#glossary", "#appendix", ".verdict details"):
        assert not browser.visible(left_out)
    tables = (
        "[...document.querySelectorAll('table')].map(one => "
        "Math.round(one.getBoundingClientRect().right))"
    )
    assert max(browser.evaluate(tables)) <= 688
    browser.print(tmp_path / "page.pdf")
    assert (
        2
        <= len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes()))
        <= 3
    )
    browser.media("screen")


def test_cards_show_pictures_and_are_filtered_by_keyboard(browser, page):
    browser.open(page)
    assert browser.text("#count") == "48 of 48 cards"
    drawn = browser.evaluate("document.querySelector('.card use').getBBox().width")
    assert drawn > 90
    browser.evaluate("document.querySelector('select[data-filter=status]').focus()")
    browser.press("r")  # the option that begins so
    assert browser.text("#count") == "16 of 48 cards"
    shown = "[...document.querySelectorAll('.card')].filter(one => !one.hidden)"
    assert browser.evaluate(
        f"{shown}.every(one => one.textContent.includes('refusal'))"
    )
    browser.evaluate("document.querySelector('#filters button').focus()")
    browser.press("Enter")
    browser.evaluate("new Promise(done => setTimeout(done, 50))")
    assert browser.text("#count") == "48 of 48 cards"


def test_outputs_of_one_prompt_stand_side_by_side(browser, page):
    browser.open(page)
    browser.evaluate("document.querySelector('select[data-order]').focus()")
    browser.press("ArrowDown")
    prompts = browser.evaluate(
        "[...document.querySelectorAll('.card')].map(one => one.dataset.prompt)"
    )
    assert [
        prompts[n] == prompts[n + 1] == prompts[n + 2] for n in range(0, 48, 3)
    ] == [True] * 16


def test_one_judge_alone_is_shown_and_decides_the_order(browser, page):
    browser.open(page)
    browser.evaluate("document.querySelector('select[data-filter=judge]').focus()")
    browser.press("g")
    assert browser.text("#count") == "48 of 48 cards"
    seen = browser.evaluate(
        "[...document.querySelectorAll('.card .verdict')].filter(one => !one.hidden).length"
    )
    assert seen == 48


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_ranking_is_quiet_and_readable(browser, tmp_path, scheme):
    results = generators(
        tmp_path, {f"mine {EVIL}": [0.9] * 9, "theirs": [0.1] * 8 + [None]}
    )
    options = StatisticsOptions(draws=100)
    write_page(
        sections_of(results, "generators", options), tmp_path / "rank.html", options
    )
    for width in (360, 1440):
        browser.require_quiet_and_readable(tmp_path / "rank.html", width, scheme)
    assert browser.evaluate("document.title.includes('mine <img')")


@pytest.fixture
def ranking(tmp_path):
    """Writes the page of a ranking of generators by their scores."""

    def write(**scores):
        options = StatisticsOptions(draws=100)
        report = sections_of(generators(tmp_path, scores), "generators", options)
        write_page(report, tmp_path / "rank.html", options)
        return tmp_path / "rank.html"

    return write


SHOWN = ".prompt-place h3"
BAR = ".columns button:nth-child({})"


def middle(browser, selector):
    """The middle of an element in the window."""
    return browser.evaluate(
        f"(box => [box.x + box.width / 2, box.y + box.height / 2])"
        f"(document.querySelector('{selector}').getBoundingClientRect())"
    )


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
    x, y = middle(browser, BAR.format(9))
    browser.evaluate(
        "document.querySelector('.columns').dispatchEvent(new PointerEvent("
        f"'pointermove', {{clientX: {x}, clientY: {y}, bubbles: true}}))"
    )
    assert browser.text(SHOWN).startswith("p1")
    assert (
        browser.evaluate(
            "document.querySelectorAll('.columns [aria-pressed=true][tabindex=\"0\"]').length"
        )
        == 1
    )
    assert (browser.requested(), browser.complaints()) == ([], [])
    assert browser.violations() == []


def test_a_tap_on_a_phone_shows_a_prompt_and_stays(browser, ranking):
    levels = [n / 10 for n in range(10)]
    browser.open_on_phone(ranking(a=levels, b=[0.2] * 10, c=[0.1] * 10))
    cells = browser.evaluate(
        "[...document.querySelectorAll('.columns button, .columns i')].map(one => "
        "one.getBoundingClientRect()).map(box => Math.min(box.width, box.height))"
    )
    assert min(cells) >= 24
    assert browser.evaluate(
        "[...document.querySelectorAll('.names span')].map(one => one.textContent)"
    ) == ["a", "b", "c"]
    browser.click(BAR.format(4))
    assert browser.text(SHOWN).startswith("p6")
    assert browser.evaluate("location.hash") == ""
    assert browser.evaluate("document.documentElement.scrollWidth") == 390
    assert browser.violations() == []


def test_pictures_open_as_large_as_the_window_and_cards_come_a_few_at_a_time(
    browser, page
):
    browser.open(page, width=1440, height=900)
    visible = (
        "[...document.querySelectorAll('.card')].filter(card => !card.hidden).length"
    )
    assert browser.evaluate(visible) == 6
    browser.click("button.more")
    assert browser.evaluate(visible) == 12
    browser.evaluate("document.querySelector('button.zoom').focus()")
    browser.press("Enter")
    shown = "document.querySelector('#viewer .large use').getAttribute('href')"
    first = browser.evaluate(shown)
    assert (
        browser.evaluate(
            "document.querySelector('#viewer .large svg').getBoundingClientRect().height"
        )
        > 600
    )
    assert browser.evaluate(
        "document.querySelector('#viewer .words').innerText"
    ).strip()
    assert browser.violations() == []
    browser.press("ArrowRight")
    assert browser.evaluate(shown) != first
    browser.press("ArrowLeft")
    assert browser.evaluate(shown) == first
    browser.press("Escape")
    assert not browser.evaluate("document.querySelector('#viewer').open")
    assert browser.evaluate("document.activeElement.classList.contains('zoom')")


def test_objects_of_a_trace_are_drawn_on_an_opened_picture_alone(browser, tmp_path):
    samples = benchmark_registry.benchmark(BENCHMARK).load(tmp_path, "tie")[:4]
    found = [DetectedObject(EVIL, (8, 8, 40, 30), 0.93, "red")]
    trace = (Step(("objects",), Status.OK, answer=to_json(to_result(found))),)
    rows = [
        row(
            *(sample.id.uid, {"O": number / 4}, sample.ratings["O"]),
            model=sample.id.image_model,
            trace=trace,
        )
        for number, sample in enumerate(samples)
    ]
    results = load_results([write_results(tmp_path / "run", rows)])
    write_report(results, tmp_path, StatisticsOptions(draws=100))
    browser.open(tmp_path / "report.html", width=1440, height=900)
    width = "document.querySelector('{} .boxes').getBoundingClientRect().width"
    assert browser.evaluate(width.format("button.zoom")) == 0
    browser.click("button.zoom:has(.boxes)")
    assert browser.evaluate(width.format("#viewer")) > 300
    assert EVIL in browser.evaluate(
        "document.querySelector('#viewer .boxes text').textContent"
    )
    assert browser.evaluate("document.title") != "1"
    assert browser.violations() == []


def test_prompts_are_searched_and_ordered_by_score(browser, page):
    browser.open(page, width=1440, height=900)
    scores = (
        "[...document.querySelectorAll('.card')].filter(card => !card.hidden).map(card => "
        "Number(card.dataset.score))"
    )
    for order, reverse in (("best", True), ("worst", False)):
        browser.evaluate(
            f"(() => {{ const one = document.querySelector('select[data-order]'); one.value = "
            f"'{order}';"
            "one.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )
        values = browser.evaluate(scores)
        assert values == sorted(values, reverse=reverse)
    browser.evaluate("document.querySelector('input[data-search]').focus()")
    browser.type("no prompt has these words")
    assert browser.evaluate("document.querySelector('#count').textContent").startswith(
        "0 of "
    )
