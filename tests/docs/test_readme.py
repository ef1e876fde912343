"""README's generated part and its numbers are those of the code and the leaderboard."""

import configparser
import re
import runpy
from pathlib import Path

import PIL.Image
import pytest
from PIL import ImageChops, ImageStat

from tests.stored_results import csv_rows
from vieval_plugin.benchmarks import registry

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS.parent / "README.md").read_text(encoding="utf-8")


def test_the_table_of_judges_is_that_of_their_specs():
    script = runpy.run_path(str(DOCS / "make_judge_table.py"))
    readme = script["README"].read_text(encoding="utf-8")
    assert script["filled"](readme) == readme
    assert readme.count("\n| `viescore` with GPT-4o | correlation **0.47** (") == 1
    assert "where people reach 0.65 with one another" in readme


def test_the_lengths_of_answers_are_those_of_the_published_logs(shared_data):
    script = runpy.run_path(str(DOCS / "make_judge_table.py"))
    kept = script["ANSWERS"].read_text(encoding="utf-8")
    assert script["measure_answers"](shared_data) == kept


def test_the_picture_shows_what_the_judge_says_today(monkeypatch):
    for module in ("skimage", "rapidocr"):
        pytest.importorskip(module)
    monkeypatch.syspath_prepend(str(DOCS))
    script = runpy.run_path(str(DOCS / "make_hero.py"))
    drawn = script["picture"]()
    with PIL.Image.open(script["HERO"]) as written:
        assert written.size == drawn.size
        difference = ImageChops.difference(written.convert("RGB"), drawn)
    lines = difference.crop((0, script["SIDE"] + script["MARGIN"], *drawn.size))
    assert max(ImageStat.Stat(lines).mean) < 2
    assert max(ImageStat.Stat(difference).mean) < 6


def test_the_badges_are_those_of_the_package():
    setup = configparser.ConfigParser()
    setup.read(DOCS.parent / "setup.cfg")
    classifiers = setup["metadata"]["classifiers"]
    versions = re.findall(r"Python :: (3\.\d+)$", classifiers, re.M)
    assert f"[![Python {versions[0]} to {versions[-1]}](" in TEXT
    assert f"python-{versions[0]}_to_{versions[-1]}-blue" in TEXT
    assert f"[![Licence: {setup['metadata']['license_expression']}](" in TEXT


def test_the_demo_of_the_first_screen_makes_all_it_names():
    makefile = (DOCS.parent / "Makefile").read_text(encoding="utf-8")
    [recipe] = re.findall(r"^demo: demo-light\n((?:\t.*\n)+)", makefile, re.M)
    assert "lmms-eval --model vieval_scorer --tasks $(DEMO_TASKS)" in recipe
    assert recipe.splitlines()[-1].endswith('/demo-report/report.html"')


def test_the_number_of_benchmarks_is_that_of_the_registry():
    assert f"`vieval tasks` lists {len(registry.benchmarks())} benchmarks" in TEXT


def test_what_people_and_gpt_4o_reach_is_what_the_leaderboard_has():
    place = {"failure_policy": "drop", "setting": "all", "benchmark": "imagenhub"}
    place |= {"part": "all", "aspect": "O", "statistic": "spearman", "breakdown": ""}
    rows = csv_rows(DOCS / "leaderboard" / "leaderboard.csv")
    found = [row for row in rows if place.items() <= row.items()]
    [people] = [row for row in found if row["role"] == "ceiling"]
    [gpt_4o] = [row for row in found if row["system"] == "GPT-4o zero-shot"]
    reached, published = (f"{float(it['value']):.2f}"[1:] for it in (people, gpt_4o))
    assert f"people reach {reached} with one another" in TEXT
    assert f"with one another, and the published GPT-4o {published}" in TEXT
    assert f"On {int(people['n']):,} images of ImagenHub" in TEXT
