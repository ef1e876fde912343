"""`vieval rank --human`: the order by people's ratings, where the judge's is another."""

import html
import re

import numpy as np
import pytest

from tests.builders import a_label_file, a_verdict_file
from tests.stored_results import csv_rows
from vieval_plugin.judges.protocol import Status

PEOPLE = {"mine": 0.75, "theirs": 0.55, "third": 0.35}
LIKING = {"mine": 0.0, "theirs": 0.0, "third": 0.5}
"""How much more the judge likes a generator than people do: it puts the third first."""


@pytest.fixture
def given(few_draws, tmp_path):
    """Verdicts on 120 prompts, and a function that writes ratings of so many of them."""
    rng = np.random.default_rng(4)
    prompts = rng.normal(0, 0.05, 120)
    people = {
        name: np.clip(PEOPLE[name] + prompts + rng.normal(0, 0.05, 120), 0, 1)
        for name in PEOPLE
    }
    scores = {
        name: np.clip(people[name] + LIKING[name] + rng.normal(0, 0.05, 120), 0, 1)
        for name in ("third", "mine", "theirs")
    }
    file = a_verdict_file(tmp_path / "v.jsonl", scores, fields={"prompt": None})

    def rated(number, generators=tuple(PEOPLE)):
        chosen = sorted(rng.choice(120, number, replace=False))
        labels = [
            {"uid": f"p{n:03}", "generator": name, "aspect": "O", "value": value}
            for name in generators
            for n, value in ((n, f"{people[name][n]:.3f}") for n in chosen)
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


def test_title_and_signs_follow_the_order(given, rank):
    """Ratings that differ by chance turn two close means over, and not the order."""
    sentence = "The order combines labels and judge, so it can differ from the order of the corrected means"
    assert sentence not in "\n".join(rank(*given(60)))
    verdicts, flag, path = given(12)
    header, *lines = path.read_text().splitlines()
    means = {"third": 0.7, "mine": 0.60, "theirs": 0.62}
    rng = np.random.default_rng(0)
    rated = {
        name: np.clip(mean + 0.3 * np.sign(rng.permutation(12) - 5.5), 0, 1)
        for name, mean in means.items()
    }
    rows = [
        f"{line.rpartition(',')[0]},{rated[line.split(',')[3]][n % 12]:.3f}"
        for n, line in enumerate(lines)
    ]
    path.write_text("\n".join([header, *rows]) + "\n")
    shown = "\n".join(rank(verdicts, flag, path))
    table = shown.partition("corrected by people's ratings")[2]
    row = re.compile(r"^ *(?:1-3 +)?(third|mine|theirs) +(0\.\d+) \[", re.MULTILINE)
    ordered = row.findall(table)
    assert [name for name, _ in ordered] == ["third", "mine", "theirs"]
    assert float(ordered[2][1]) > float(ordered[1][1])
    assert f"\n{sentence}" in shown
    assert re.search(r"^mine - theirs +-?0\.", shown, re.MULTILINE)


def test_the_difference_has_the_sign_of_the_answer(given, rank):
    """With noise for ratings neither is better; the answer begins with the first."""
    path, *human = given(120, ("theirs", "mine"))
    header, *lines = human[1].read_text().splitlines()
    rng = np.random.default_rng(0)
    noise = [f"{line.rpartition(',')[0]},{rng.uniform():.3f}" for line in lines]
    human[1].write_text("\n".join([header, *noise]) + "\n")
    shown = rank(path, *human)
    assert shown[0] == "mine and theirs cannot be told apart."
    corrected = r"of mine: 0\.\d\d, (0\.\d+) (higher|lower) than theirs"
    difference, sign = re.search(corrected, shown[1]).groups()
    alone = r"By the ratings alone, mine scores (0\.\d+) (higher|lower) "
    labelled, same = re.match(alone, shown[2]).groups()
    assert float(difference) == pytest.approx(float(labelled), abs=0.1)
    assert sign == same
    assert not any("ratings change the judge's order" in line for line in shown)


def test_pairs_and_headings_are_of_corrected_means(given, rank, tmp_path):
    out = tmp_path / "tables"
    shown = rank(*given(60), "--tables", out, "--html", tmp_path / "rank.html")
    columns = ("better", "worse", "n", "significant")
    rows = corrected_rows(out / "pairs.csv")
    seen = [tuple(row[name] for name in columns) for row in rows]
    assert seen == [
        (*names, "60", "yes")
        for names in (("mine", "theirs"), ("mine", "third"), ("theirs", "third"))
    ]
    [header] = [n for n, line in enumerate(shown) if line.startswith("first - second")]
    found = [line.split("  ")[0] for line in shown[header + 1 : header + 4]]
    assert found == [*("mine - theirs", "mine - third", "theirs - third")]
    assert "rated prompts = 60" in shown[header - 1]
    written = (out / "rank.md").read_text().splitlines()
    [columns] = [line for line in written if "rated prompts |" in line]
    assert columns.endswith("| p (Holm) | people's labels alone [95%] |")
    headings = [line for line in written if line.startswith("### ")]
    corrected, alone = (
        [line for line in headings if re.search(whose, line)]
        for whose in (
            r"Mean O .*, corrected by people's ratings",
            r"by viescore 0shot \(judge-7b\), not corrected",
        )
    )
    assert (len(corrected), len(alone)) == (2, 6)
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


def test_an_annotator_with_one_value_is_left_out(given, rank, vieval):
    verdicts, flag, path = given(60)
    alone = rank(verdicts, flag, path)
    header, *rows = path.read_text().splitlines()
    bored = [row.replace(",ann,", ",bea,").rpartition(",")[0] + ",0.5" for row in rows]
    path.write_text("\n".join([header, *rows, *bored]) + "\n")
    shown = rank(verdicts, flag, path)
    note = "note: all 180 ratings by bea are 0.5, so they are ignored"
    assert [line for line in shown if line != note] == alone
    assert note in shown
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


def test_images_without_a_score_are_left_out_and_counted(rank, tmp_path):
    scores = {name: [n / 20 for n in range(12)] for name in ("mine", "theirs")}
    scores["mine"][10:] = [Status.REFUSAL] * 2
    file = a_verdict_file(tmp_path / "v.jsonl", scores, fields={"prompt": None})
    labels = [
        {"uid": f"p{n:03}", "generator": name, "aspect": "O", "value": f"{n / 12:.2f}"}
        for name in scores
        for n in range(12)
    ]
    human = ("--human", a_label_file(tmp_path / "ratings.csv", labels))
    shown = rank(file, *human)
    assert shown[1].endswith("on the 10 rated prompts that both have a score of.")
    left_out = "2 rated images of mine, because the judge gave them no score."
    assert f"Left out: {left_out}" in shown
    assert rank(file)[1].endswith("on the 10 prompts that both have a score of.")
