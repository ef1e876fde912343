"""Pages that commands write have no dead links and show one version."""

import asyncio
import configparser
import re

import numpy as np
import PIL.Image
import pytest

import vieval_plugin
import vieval_plugin.text.errors
from tests.brightness import prompts
from tests.card.judges import card, judge, published
from tests.docs.pages import DOCS, ROOT
from tests.html_links import dead_links
from tests.work import run_process
from vieval_plugin.card.writing import page as card_page
from vieval_plugin.leaderboard.board import BenchmarkBoard, View
from vieval_plugin.leaderboard.printed import PrintedNumber
from vieval_plugin.leaderboard.writing import page as leaderboard_page
from vieval_plugin.serve.app import page as server_page
from vieval_plugin.stats.options import StatisticsOptions

VERSION = re.compile(r"VIEval (\d+\.\d+\.\d+)")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the pages of `rank`, `report` and `label` of one run."""
    from vieval_plugin.cli import main

    folder, rng = tmp_path_factory.mktemp("made"), np.random.default_rng(0)
    sides = [folder / "mine", folder / "theirs"]
    for side in sides:
        side.mkdir()
        for number in range(8):
            pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
            PIL.Image.fromarray(pixels).save(side / f"p{number}.png")
    verdicts = folder / "verdicts.jsonl"
    flags = f"--prompts {prompts(folder, 8)} --judge sharpness --out {verdicts}".split()
    given = [*map(str, sides), *flags, "--html", str(folder / "rank.html")]
    assert main(["rank", *given]) == 0
    assert main(["report", str(verdicts), "--out", str(folder)]) == 0
    assert main(["label", str(verdicts), "--out", str(folder / "label.html")]) == 0
    return folder


@pytest.mark.parametrize("name", ["rank.html", "report.html", "label.html"])
def test_pages_of_a_run(made, name):
    text = (made / name).read_text(encoding="utf-8")
    assert text.count("href=") > 1 or name == "label.html"
    assert dead_links(text, made) == []
    assert set(VERSION.findall(text)) <= {vieval_plugin.__version__}


def test_the_page_of_a_card(tmp_path):
    others = [published("judge", 0.1, 0.01, {"tie": (0.1, 0.01)})]
    of_model = judge(others=others, parts={"tie": 0.4, "tig": 0.4})
    text = card_page(card(of_model), [of_model])
    assert dead_links(text, tmp_path) == []
    assert VERSION.findall(text) == [vieval_plugin.__version__]


def test_the_page_of_the_leaderboard_wherever_it_lies(tmp_path):
    board = judge(others=[published("judge", 0.1, 0.01)]).board
    view = View({"aspect": "O"}, board, (), ("A finding.",), {}, True)
    number = ("judge", "T1", "all", "", "O", 0.4)
    erratum = PrintedNumber(*number, computed=0.5, reason="Another row.")
    about = ((view,), {}, frozenset(), (), (erratum,), "a paper")
    made = BenchmarkBoard("b", "Mine", *about)
    for name in ("leaderboard.csv", "leaderboard.json"):
        (tmp_path / name).touch()
    text = leaderboard_page([made], StatisticsOptions())
    assert "erratum</a>" in text
    assert dead_links(text, tmp_path) == []


def test_the_page_of_the_server(tmp_path):
    response = asyncio.run(server_page([])(None))
    assert dead_links(response.body.decode(), tmp_path) == []


@pytest.mark.parametrize(
    "page", sorted(DOCS.rglob("*.html")), ids=lambda page: str(page.relative_to(DOCS))
)
def test_pages_of_the_documentation(page):
    text = page.read_text(encoding="utf-8")
    assert dead_links(text, page.parent) == []
    assert VERSION.findall(text) == [vieval_plugin.__version__]


FAR = f"{vieval_plugin.text.errors.PROJECT}/blob/main/docs/index.md#no"


@pytest.mark.parametrize("link", ["#nowhere", "nowhere.md", "https://x.example/", FAR])
def test_a_dead_link_is_found(link, tmp_path):
    page = f'<p id="here"><a href="{link}">x</a><a href="#here">y</a>'
    assert dead_links(page, tmp_path) == [link]


def test_the_version_stands_in_one_place():
    """All others are read from it."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    assert settings["metadata"]["version"] == "attr: vieval_plugin.__version__"
    other = r"version(_of)?\(.vieval.\)|_PACKAGES = .*.vieval."
    rooms = ("vieval_plugin", "judges", "docs", "bench")
    grep = ["git", "grep", "-nE", other, "--", *rooms]
    assert run_process(grep, cwd=ROOT).stdout == ""
