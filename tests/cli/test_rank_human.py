"""`vieval rank --human`: the order by people's ratings, where the judge's is another."""

import html
import itertools
import re

import numpy as np
import pytest

from tests.builders import a_label_file, a_verdict_file
from tests.stored_results import csv_rows

PEOPLE = {"mine": 0.75, "theirs": 0.55, "third": 0.35}
LIKING = {"mine": 0.0, "theirs": 0.0, "third": 0.5}
"""How much more the judge likes a generator than people do: it puts the third first."""


@pytest.fixture
def given(few_draws, tmp_path):
    """Verdicts on 120 prompts, and a function that writes ratings of so many of them."""
    rng = np.random.default_rng(4)
    prompts = rng.normal(0, 0.05, 120)
    drawn = lambda level: np.clip(level + rng.normal(0, 0.05, 120), 0, 1)
    people = {name: drawn(PEOPLE[name] + prompts) for name in PEOPLE}
    order = ("third", "mine", "theirs")
    scores = {name: drawn(people[name] + LIKING[name]) for name in order}
    file = a_verdict_file(tmp_path / "v.jsonl", scores, fields={"prompt": None})

    def rated(number, generators=tuple(PEOPLE)):
        chosen = sorted(rng.choice(120, number, replace=False))
        value = lambda name, n: f"{people[name][n]:.3f}"
        labels = [
            {"uid": f"p{n:03}", "generator": it, "aspect": "O", "value": value(it, n)}
            for it, n in itertools.product(generators, chosen)
        ]
        return file, "--human", a_label_file(tmp_path / "ratings.csv", labels)

    return rated


@pytest.fixture
def rank(vieval):
    return lambda *arguments: vieval("rank", *arguments).out.splitlines()


def corrected_rows(path):
    """The rows of a table that are of corrected means."""
    corrected = "corrected by people's ratings"
    return [row for row in csv_rows(path) if corrected in row["statistic"]]


def test_pairs_and_headings_are_of_corrected_means(given, rank, tmp_path):
    out = tmp_path / "tables"
    rank(*given(60), "--tables", out, "--html", tmp_path / "rank.html")
    rows = corrected_rows(out / "pairs.csv")
    seen = [(row["better"], row["worse"], row["n"], row["significant"]) for row in rows]
    pairs = (("mine", "theirs"), ("mine", "third"), ("theirs", "third"))
    assert seen == [(*names, "60", "yes") for names in pairs]
    page = html.unescape((tmp_path / "rank.html").read_text())
    texts = re.sub(r"</?(abbr|button|span|dfn)\b[^>]*>", "", page)
    assert "Corrected mean O (overall), by viescore with judge-7b</h2>" in texts
    found = re.findall(r"<h3>(By the judge alone, \w+ scores lower) on", page)
    assert found == ["By the judge alone, mine scores lower"]


def test_two_files_of_ratings_count_together(given, rank, tmp_path):
    results, flag, file = given(60)
    header, *rows = file.read_text().splitlines()
    halves = []
    for number in (0, 1):
        half = tmp_path / f"half{number}.csv"
        half.write_text("\n".join([header, *rows[number::2]]) + "\n")
        halves.append(half)
    whole = rank(results, flag, file)
    assert rank(results, flag, *halves) == whole
    assert rank(results, flag, halves[0], flag, halves[1]) == whole


def test_an_annotator_with_one_value_alone_is_refused(given, vieval):
    verdicts, flag, path = given(60)
    header, *rows = path.read_text().splitlines()
    bored = [row.replace(",ann,", ",bea,").rpartition(",")[0] + ",0.5" for row in rows]
    path.write_text("\n".join([header, *bored]) + "\n")
    said = vieval("rank", verdicts, flag, path, code=1).err
    assert "ratings must vary: all 180 ratings by bea are 0.5" in said


def test_corrected_means_stay_within_the_scale(given, rank, tmp_path):
    verdicts, flag, path = given(60, ("mine", "third"))
    ratings = re.sub(r",O,0\.\d+|,O,1\.0+", ",O,1.000", path.read_text())
    path.write_text(ratings.replace(",O,1.000", ",O,0.990", 1))
    rank(verdicts, flag, path, "--tables", tmp_path / "tables")
    rows = corrected_rows(tmp_path / "tables" / "numbers.csv")
    ends = [float(row[end] or 0.5) for row in rows for end in ("value", "low", "high")]
    assert max(ends) == 1
    assert min(ends) >= 0
