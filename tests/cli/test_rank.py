"""`vieval rank`: which generator is best, on a terminal and in files."""

import html
import itertools
import json
import re

import numpy as np
import pytest

from tests.builders import (
    a_contest,
    a_label_file,
    a_provenance,
    a_results_folder,
    a_sample,
    a_verdict,
    a_verdict_file,
    a_vote,
)
from tests.stored_results import csv_rows
from vieval_plugin.judges.protocol import Status
from vieval_plugin.run.verdict_lines import write_verdicts

pytestmark = pytest.mark.usefixtures("few_draws")


def quality(base, seed):
    """A generator whose images are as good as `base` and as the prompt lets them be."""
    own = np.random.default_rng([5, seed]).normal(0, 0.08, (60, 8))
    level = lambda n, draw: np.clip(base + 0.2 * np.sin(n) + own[n, draw], 0, 1)
    return lambda prompt, draw: float(level(prompt, draw))


GENERATORS = {"good": (0.7, 1), "also": (0.69, 2), "poor": (0.45, 3)}
GENERATORS = {name: quality(*about) for name, about in GENERATORS.items()}


def verdicts(path, generators, prompts=40, draws=1):
    """What `vieval score` writes of two kinds of prompts, half of them with a tag."""
    samples, found = [], []
    for name, score in generators.items():
        for prompt, draw in itertools.product(range(prompts), range(draws)):
            about = {"category": "cats" if prompt % 3 else "dogs", "draw": draw}
            about |= {"tags": ("people",) if prompt % 2 else (), "kind": kind(prompt)}
            samples.append(a_sample(f"u{prompt}", name, **about))
            value = score(prompt, draw)
            found.append(a_verdict({"SC": value, "PQ": 0.5, "O": (value / 2) ** 0.5}))
    write_verdicts(path, samples, found, a_provenance())
    return path


def kind(prompt):
    return "tie" if prompt % 4 == 0 else "tig"


@pytest.fixture
def rank(vieval):
    """What the command prints."""
    return lambda *arguments, **code: "".join(vieval("rank", *arguments, **code))


def rows_under(shown, title):
    """The rows of the table below the first title that begins so."""
    lines = shown.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(title))
    table = lines[start + 2 : lines.index("", start + 2)]
    return [line.split() for line in table if "in all rows: " not in line][1:]


def numbers_by_system(path, **fields):
    """The rows of a table of numbers that have these fields, by system."""
    rows = [row for row in csv_rows(path) if fields.items() <= row.items()]
    return {row["system"]: row for row in rows}


TITLE = "Your images: Mean O over prompts, by viescore 0shot (judge-7b); Holm correction over"


def test_generators_are_ranked_and_their_differences_tested(tmp_path, rank):
    out = tmp_path / "out"
    shown = rank(verdicts(tmp_path / "v.jsonl", GENERATORS), "--tables", out)
    first, *_ = shown.splitlines()
    places = [row[:2] for row in rows_under(shown, f"{TITLE} 3 pairs")]
    assert places == [["1-2", "good"], ["1-2", "also"], ["3", "poor"]]
    of_poor = numbers_by_system(out / "numbers.csv", aspect="SC", breakdown="")["poor"]
    score = [GENERATORS["poor"](prompt, 0) for prompt in range(40)]
    assert float(of_poor["value"]) == pytest.approx(np.mean(score), abs=1e-5)
    assert float(of_poor["low"]) < np.mean(score) < float(of_poor["high"])
    compared = ("aspect", "breakdown", "better", "worse")
    rows = csv_rows(out / "pairs.csv")
    pairs = {tuple(row[name] for name in compared): row for row in rows}
    pair = pairs["SC", "", "good", "poor"]
    assert float(pair["p_adjusted"]) < 0.02
    assert 0.15 < float(pair["low"]) < float(pair["difference"]) < float(pair["high"])
    findings = (out / "findings.json").read_text()
    document = json.loads(findings, parse_constant=pytest.fail)
    assert len(document["numbers"]) == len(csv_rows(out / "numbers.csv"))
    assert document["answers"][0]["title"] == first


def test_kinds_tags_and_categories_have_rankings_of_their_own(tmp_path, rank):
    out = tmp_path / "out"
    rank(verdicts(tmp_path / "v.jsonl", GENERATORS), "--tables", out)
    counts = {("tag", "people"): "20", ("category", "cats"): "26"}
    counts |= {("part", "tie"): "10", ("part", "tig"): "30", ("category", "dogs"): "14"}
    written = csv_rows(out / "numbers.csv")
    found = {(row["breakdown"], row["breakdown_value"]): row["n"] for row in written}
    del found["", ""]
    assert found == counts
    of_tie = numbers_by_system(out / "numbers.csv", breakdown_value="tie", aspect="O")
    assert (of_tie["poor"]["rank_from"], of_tie["poor"]["rank_to"]) == ("3", "3")


def test_the_best_of_several_images_counts_the_same_number_for_all(tmp_path, rank):
    """Of four images of a prompt and of two, the best of two counts."""
    four = verdicts(tmp_path / "four.jsonl", {"good": GENERATORS["good"]}, draws=4)
    two = verdicts(tmp_path / "two.jsonl", {"poor": GENERATORS["poor"]}, draws=2)
    rank(four, two, "--tables", tmp_path / "out")
    about = {"aspect": "SC", "breakdown": ""}
    rows = [
        row
        for row in csv_rows(tmp_path / "out" / "numbers.csv")
        if about.items() <= row.items()
    ]
    counted = [row for row in rows if "best of 2" in row["statistic"]]
    best = {row["system"]: float(row["value"]) for row in counted}
    for name, draws in (("good", 4), ("poor", 2)):
        rows = [[GENERATORS[name](n, draw) for draw in range(draws)] for n in range(40)]
        images = np.array(rows)
        pairs = itertools.combinations(range(draws), 2)
        means = [images[:, pair].max(axis=1).mean() for pair in map(list, pairs)]
        assert best[name] == pytest.approx(np.mean(means), abs=1e-5)


def test_ratings_of_some_other_samples_are_left_out_with_a_note(tmp_path, rank):
    given = verdicts(tmp_path / "v.jsonl", {"good": GENERATORS["good"]})
    rated = [{"uid": f"u{n}", "part": kind(n), "value": n / 20} for n in range(20)]
    rows = [{**row, "generator": "good"} for row in (*rated, {"uid": "x", "value": 1})]
    shown = rank(given, "--human", a_label_file(tmp_path / "r.csv", rows))
    assert "note: ratings of 1 sample without a verdict are left out (first: " in shown
    assert "line 22: own/tig/good/x" in shown


def test_contests_that_name_no_generators_rank_none_and_say_so(tmp_path, rank):
    about = {"kind": "tie", "benchmark": "vieval_demo_contests"}
    unnamed = [a_contest(f"p{n}", "unnamed", "unnamed", **about) for n in range(30)]
    source = a_provenance("pairwise", aspects=(), settings=(), pack="", pack_hash="")
    judged = [(contest, a_vote()) for contest in unnamed]
    folder = a_results_folder(tmp_path / "run", judged, source)
    [line] = rank(folder, code=1).splitlines()
    refused = "cannot rank generators on vieval_demo_contests"
    assert line.startswith(f"vieval: {refused}: the judged contests must compare ")


# Ratings of people, where the judge's order is another.


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
    shown = rank(file, *human).splitlines()
    assert shown[1].endswith("on the 10 rated prompts that both have a score of.")
    left_out = "2 rated images of mine, because the judge gave them no score."
    assert f"Left out: {left_out}" in shown
    judged = rank(file).splitlines()
    assert judged[1].endswith("on the 10 prompts that both have a score of.")
