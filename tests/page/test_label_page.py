"""The labelling page in a browser: its file holds what was pressed."""

import base64
import csv
import io
import json
import re
from pathlib import Path

import pytest

from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.benchmarks.vieval_demo.contests import contests
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.labelling.page import label_page
from vieval_plugin.labelling.sources import ToLabel

COLUMNS = ["benchmark", "part", "uid", "generator", "draw", "rater", "aspect", "value"]
TAKEN = "document.title = 'taken'"
HOSTILE = f'</script><script>{TAKEN}</script><img src=x onerror="{TAKEN}">,"\n=1+1'


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    def write(judged):
        file = tmp_path_factory.mktemp("page") / "label.html"
        asked = [ToLabel(one, str(one.id)) for one in judged]
        file.write_bytes(label_page(asked, seed=3))
        return file

    return write


@pytest.fixture(scope="module")
def samples():
    return vieval_demo.load(Path(), "tie")[:4]


@pytest.fixture(scope="module")
def page(page_of, samples):
    return page_of(samples)


def begin(browser, page, name="Ann"):
    browser.open(page)
    sign_in(browser, name)


def sign_in(browser, name):
    browser.type(name)
    browser.press("Enter")


def rows_of(download):
    header, *rows = csv.reader(io.StringIO(download.text, newline=""))
    assert header == COLUMNS
    return rows


def rated(sample, aspect, value, rater="Ann"):
    one = sample.id
    identity = [one.benchmark, one.part, one.uid, one.image_model, "0"]
    return [*identity, rater, aspect, value]


def test_ratings_by_keyboard_with_the_page_closed_in_between(browser, page, samples):
    begin(browser, page)
    browser.press("4", "3", "0", "1")
    assert "3 of 4" in browser.text("header")
    browser.press("2")
    browser.reopen()
    assert browser.evaluate("document.getElementById('rater').value") == "Ann"
    browser.press("Enter")
    assert "3 of 4 2 answered" in browser.text("header")
    unfinished = rows_of(browser.download(keys=["d"]))
    assert "2 of 4 are unanswered" in browser.text("[role=status]")
    answers = [("SC", "1"), ("PQ", "0.75"), ("SC", "0"), ("PQ", "0.25"), ("SC", "0.5")]
    assert [tuple(row[-2:]) for row in unfinished] == answers
    browser.press("2", "4", "4")  # the quality of the third, both of the fourth
    assert "Everything is answered" in browser.text("[role=status]")
    browser.press("ArrowLeft", "ArrowLeft", "s", "1", "p", "0")  # the second once more
    expected = [("1", "0.75"), ("0.25", "0"), ("0.5", "0.5"), ("1", "1")]
    assert rows_of(browser.download("#download")) == [
        rated(sample, aspect, value)
        for sample, values in zip(samples, expected, strict=True)
        for aspect, value in zip(("SC", "PQ"), values, strict=True)
    ]
    assert "all 4 are answered" in browser.text("[role=status]")
    browser.require_quiet()


def test_votes_are_on_the_candidates_whichever_side_they_were_shown_on(
    browser, page_of
):
    pairs = contests("tie")[:6]
    page = page_of(pairs)
    [data] = re.findall(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    keys = json.loads(base64.b64decode(json.loads(data)["keys"]))
    swapped = [key[5] for key in keys]
    assert {True, False} == set(swapped[:4])
    begin(browser, page)
    browser.press("1", "2", "1", "2", "0", "5", "3", "4")  # 0 and 5 are no answers
    answers = zip("1212", swapped, strict=False)
    sides = ["second" if (key == "2") != swap else "first" for key, swap in answers]
    said = [*sides, "both good", "both bad"]
    assert rows_of(browser.download(keys=["d"])) == [
        [pair.id.benchmark, "tie", pair.id.uid, "", "", "Ann", "vote", value]
        for pair, value in zip(pairs, said, strict=True)
    ]


def test_two_people_at_one_browser_keep_their_own_answers(browser, page):
    begin(browser, page)
    browser.press("4", "4")
    browser.click("#other")
    sign_in(browser, 'Bo "B", jr')
    assert "1 of 4 0 answered" in browser.text("header")
    browser.press("0")
    download = browser.download(keys=["d"])
    assert [row[5:] for row in rows_of(download)] == [['Bo "B", jr', "SC", "0"]]
    assert re.fullmatch(r"labels-[0-9a-f]{12}-Bo_B_jr\.csv", download.name)
    browser.click("#other")
    sign_in(browser, "Ann")
    rows = rows_of(browser.download(keys=["d"]))
    assert [row[6:] for row in rows] == [["SC", "1"], ["PQ", "1"]]


def test_nobody_who_made_an_image_is_named_in_what_can_be_read(browser, page, samples):
    begin(browser, page)
    body = "document.body.innerHTML.replace(/<script.*/s, '')"
    seen = ""
    for _ in samples:
        seen += browser.text() + browser.evaluate(body)
        browser.press("ArrowRight")
    assert samples[-1].texts["instruction"] in seen
    assert not re.search(r"demo_[abc]|vieval_demo|\.png", seen)


def test_a_hostile_sample_is_only_text(browser, page_of, samples):
    images = samples[0].images
    named = {"output": images["output"], HOSTILE: images["source"]}
    identity = SampleId("own", "tig", HOSTILE, HOSTILE)
    hostile = Sample(identity, named, {"prompt": HOSTILE})
    begin(browser, page_of([hostile]), name="<b>Ann</b>")
    browser.press("1", "2")
    assert "<img src=x onerror=" in browser.text("article")
    assert "Labelling page" in browser.evaluate("document.title")
    assert browser.count("article b, article script, img:not([data-image])") == 0
    first, *_ = rows_of(browser.download(keys=["d"]))
    assert first == rated(hostile, "SC", "0.25", "<b>Ann</b>")
    browser.require_quiet()


PRESSED = {"at": 99, "pressed": {"0": {"SC": "9", "__proto__": "1", "PQ": []}}}


def test_what_was_kept_may_be_anything(browser, page):
    begin(browser, page)
    browser.press("4")
    for kept in ("{", "null", json.dumps(PRESSED)):
        keys = "Object.keys(localStorage).filter(k => k.endsWith('Ann'))"
        browser.evaluate(f"{keys}.forEach(k => localStorage[k] = {json.dumps(kept)})")
        browser.reopen()
        browser.press("Enter")
        assert "1 of 4 0 answered" in browser.text("header")
    assert browser.complaints() == []


def test_a_browser_that_keeps_nothing_is_told_of(browser, page):
    browser.open(page)
    full = "throw new DOMException('full', 'QuotaExceededError')"
    browser.evaluate(f"Storage.prototype.setItem = () => {{ {full} }}")
    sign_in(browser, "Ann")
    browser.press("4", "3")
    assert "1 answered, not saved" in browser.text("header")
    rows = rows_of(browser.download(keys=["d"]))
    assert [row[6:] for row in rows] == [["SC", "1"], ["PQ", "0.75"]]


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_it_can_be_read_by_everyone(browser, page, look):
    browser.open_on_phone(page) if look == "phone" else browser.open(page, scheme=look)
    assert browser.violations() == []
    browser.click("#rater")
    sign_in(browser, "Ann")
    browser.press("1")
    browser.require_readable()
    images = "[...document.querySelectorAll('article:not([hidden]) img')]"
    assert browser.evaluate(f"{images}.every(i => i.complete && i.naturalWidth)")
    browser.press("Tab")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert browser.evaluate(outline) == "solid"


def test_all_of_it_can_be_reached_without_a_mouse(browser, page_of, samples):
    output = {"output": Image(samples[0].images["output"].source)}
    begin(browser, page_of([Sample(SampleId("own", "tig", "m", "1"), output)]))
    reached = []
    for _ in range(20):
        browser.press("Tab")
        reached.append(browser.evaluate("document.activeElement.innerText"))
    assert {"Download", "Change rater"} <= set(reached)
    assert any("fully" in text for text in reached)
    browser.evaluate("document.querySelectorAll('legend button')[1].focus()")
    browser.press("Enter")
    assert "flawless" in browser.text(".questions")
    assert "fully" not in browser.text(".questions")


def test_a_phone_has_one_question_of_the_task_type_with_the_scale_in_reach(
    browser, page
):
    browser.open_on_phone(page)
    sign_in(browser, "Ann")
    asked = browser.text(".questions")
    assert "Is the image edited as the instruction says" in asked
    assert "fully" in asked
    assert "flawless" not in asked
    assert browser.box("fieldset.marked")["bottom"] <= 844
    assert browser.box("article:not([hidden]) img")["width"] > 160
    browser.click("fieldset.marked [data-key='4']")
    assert "flawless" in browser.text(".questions")
    assert browser.violations() == []
