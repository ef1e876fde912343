"""`vieval rank`: which generator is best, on a terminal and in files."""

import itertools
import json

import numpy as np
import pytest

from tests.builders import (
    a_contest,
    a_label_file,
    a_provenance,
    a_results_folder,
    a_sample,
    a_verdict,
    a_vote,
)
from tests.stored_results import csv_rows
from vieval_plugin.judges.contests import Votes
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.corrected_ranking import CORRECTED
from vieval_plugin.run.verdict_lines import write_verdicts

MEAN, LABELS = "mean over prompts", "mean of people's labels"
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
            failed = value is None
            scores = {} if failed else {"SC": value, "PQ": 0.5, "O": (value / 2) ** 0.5}
            found.append(a_verdict(Status.REFUSAL if failed else scores))
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
    rows = [line for line in table if not line.startswith("in all rows: ")]
    return [line.split() for line in rows[1:]]


def first_cells(text, title):
    """The different first cells of the rows of the table below the title that begins so."""
    lines = text.splitlines()
    start = next(n for n, line in enumerate(lines) if title in line)
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 4 :])
    return list(dict.fromkeys(row.split("|")[1].strip() for row in rows))


def numbers_by_system(path, **fields):
    """The rows of a table of numbers that have these fields, by system."""
    rows = csv_rows(path)
    kept = [row for row in rows if all(row[n] == v for n, v in fields.items())]
    return {row["system"]: row for row in kept}


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
    shown = (out / "rank.md").read_text()
    counts = {
        **{("part", "tie"): "10", ("part", "tig"): "30", ("tag", "people"): "20"},
        **{("category", "dogs"): "14", ("category", "cats"): "26"},
    }
    for breakdown in ("part", "category", "tag"):
        expected = [value for name, value in counts if name == breakdown]
        assert first_cells(shown, f"### By {breakdown}") == expected
    written = csv_rows(out / "numbers.csv")
    place = ("breakdown", "breakdown_value")
    found = {tuple(row[name] for name in place): row["n"] for row in written}
    found.pop(("", ""))
    assert found == counts
    of_tie = numbers_by_system(out / "numbers.csv", breakdown_value="tie", aspect="O")
    assert (of_tie["poor"]["rank_from"], of_tie["poor"]["rank_to"]) == ("3", "3")


def test_generators_in_several_files_are_ranked_together(tmp_path, rank):
    poor = GENERATORS["poor"]
    failing = {"poor": lambda n, draw: None if n < 10 else poor(n, draw)}
    first = verdicts(tmp_path / "a.jsonl", {"good": GENERATORS["good"]})
    shown = rank(first, verdicts(tmp_path / "b.jsonl", failing))
    row = rows_under(shown, f"{TITLE} 1 pair")[1]
    assert row[-5:] == [*("30", "of", "40"), *("refusal", "10")]
    assert "in all rows: PQ = 0.500, images = 40" in shown
    better = (
        "rates good's images better than poor's, and poor fails more often than good"
    )
    assert shown.startswith(f"viescore with judge-7b {better}.\n")
    assert "), on the 30 prompts that both have a score of." in shown
    assert "Failed verdicts: poor (refusal 10 of 40)." in shown


def test_the_best_of_several_images_counts_the_same_number_for_all(tmp_path, rank):
    """Of four images of a prompt and of two, the best of two counts."""
    four = verdicts(tmp_path / "four.jsonl", {"good": GENERATORS["good"]}, draws=4)
    two = verdicts(tmp_path / "two.jsonl", {"poor": GENERATORS["poor"]}, draws=2)
    rank(four, two, "--tables", tmp_path / "out")
    best = {
        row["system"]: float(row["value"])
        for row in csv_rows(tmp_path / "out" / "numbers.csv")
        if (row["aspect"], row["breakdown"]) == ("SC", "")
        and "best of 2" in row["statistic"]
    }
    for name, draws in (("good", 4), ("poor", 2)):
        rows = [[GENERATORS[name](n, draw) for draw in range(draws)] for n in range(40)]
        images = np.array(rows)
        pairs = itertools.combinations(range(draws), 2)
        means = [images[:, pair].max(axis=1).mean() for pair in map(list, pairs)]
        assert best[name] == pytest.approx(np.mean(means), abs=1e-5)


def labels(generator, bias, count=20, raters=("ann",)):
    """Ratings of a judge that is wrong by `bias`, of the first images."""
    for prompt, rater in itertools.product(range(count), raters):
        value = np.clip(GENERATORS[generator](prompt, 0) - bias, 0, 1)
        about = {"part": kind(prompt), "uid": f"u{prompt}", "generator": generator}
        yield {**about, "rater": rater, "value": f"{value:.4f}"}


def test_some_ratings_correct_a_judge_that_likes_a_generator_too_much(tmp_path, rank):
    rows = [*labels("good", 0.25), *labels("poor", -0.1)]
    human = ("--human", a_label_file(tmp_path / "r.csv", rows))
    given = (verdicts(tmp_path / "v.jsonl", GENERATORS), *human)
    assert "by prediction-powered inference" in rank(
        *given, "--tables", tmp_path / "out"
    )
    about = {"aspect": "SC", "breakdown": ""}
    numbers = tmp_path / "out" / "numbers.csv"
    alone, corrected, labelled = (
        numbers_by_system(numbers, statistic=name, **about)
        for name in (MEAN, CORRECTED.name, LABELS)
    )
    assert corrected["also"]["value"] == ""
    assert corrected["also"]["reason"] == "its images have no ratings"
    for name, bias in (("good", 0.25), ("poor", -0.1)):
        judged = np.mean([GENERATORS[name](prompt, 0) for prompt in range(40)])
        assert float(alone[name]["value"]) == pytest.approx(judged, abs=1e-5)
        assert float(corrected[name]["value"]) == pytest.approx(judged - bias, abs=0.01)
        both = (corrected[name], labelled[name])
        widths = [float(row["high"]) - float(row["low"]) for row in both]
        assert widths[0] < widths[1]
        assert (labelled[name]["n"], corrected[name]["n"]) == ("20", "40")


def test_raters_are_told_how_far_they_agree(tmp_path, rank):
    both = labels("good", 0.25, raters=("ann", "ben"))
    rows = [*both, *labels("poor", 0, 4, raters=("cem",))]
    given = verdicts(tmp_path / "v.jsonl", GENERATORS)
    shown = rank(given, "--human", a_label_file(tmp_path / "r.csv", rows))
    found = rows_under(shown, "Agreement between human raters")
    assert found == [["SC", "3", "24", "20", "1.000"]]


def test_ratings_of_some_other_samples_are_left_out_with_a_note(tmp_path, rank):
    other = {"uid": "elsewhere", "generator": "good", "value": 1}
    given = verdicts(tmp_path / "v.jsonl", {"good": GENERATORS["good"]})
    human = a_label_file(tmp_path / "r.csv", [*labels("good", 0.25), other])
    shown = rank(given, "--human", human)
    assert "note: ratings of 1 sample without a verdict are left out (first: " in shown
    assert "line 22: own/tig/good/elsewhere" in shown


def contests(folder, beats, names="abc"):
    """A samples file of contests of three models, each with each on 30 prompts."""
    about = {"kind": "tie", "benchmark": "vieval_demo_contests"}
    about["votes"] = Votes("four_way", "first")
    pairs = itertools.product(range(30), itertools.combinations(names, 2))
    judged = [
        (
            a_contest(f"p{prompt}", *both, **about),
            a_vote(beats(*both, prompt)),
        )
        for prompt, both in pairs
    ]
    source = a_provenance("pairwise", aspects=(), settings=(), pack="", pack_hash="")
    return a_results_folder(folder, judged, source)


def test_contests_rank_image_models_by_strength(tmp_path, rank):
    """The judge prefers a to b and to c in four contests of five, and b to c in every other one."""
    out = tmp_path / "out"

    def beats(first, second, prompt):
        return "first" if prompt % (2 if first == "b" else 5) else "second"

    shown = rank(contests(tmp_path / "run", beats), "--tables", out)
    title = "vieval_demo_contests/tie, contests by pairwise (judge-7b): Bradley-Terry"
    places = [row[:2] for row in rows_under(shown, f"{title} with ties (Davidson)")]
    assert places == [["1", "a"], ["2-3", "b"], ["2-3", "c"]]
    judge = {"statistic": "log strength", "judge": "pairwise (judge-7b)"}
    rows = numbers_by_system(out / "numbers.csv", **judge)
    a, b, c = (float(rows[model]["value"]) for model in "abc")
    assert c == pytest.approx(b, abs=1e-5)
    tested = ("better", "worse", "p", "p_adjusted", "low", "high")
    by_contests, by_wins = (
        {
            tuple(row[name] for name in tested)
            for row in csv_rows(out / "pairs.csv")
            if (row["statistic"], row["judge"]) == (statistic, judge["judge"])
        }
        for statistic in ("log strength", "win rate")
    )
    assert len(by_contests) == 3
    assert by_contests == by_wins
    # a won 48 of 60 and lost 12, whichever the other was
    assert a - b == pytest.approx(np.log(4), rel=1e-4)
    # by people, to whom the first is always better
    assert "no ranking: the image models split into two sets" in shown


def test_contests_that_name_no_generators_rank_none_and_say_so(tmp_path, rank):
    unnamed = contests(tmp_path / "run", lambda *_: "first", ("unnamed", "unnamed"))
    [line] = rank(unnamed, code=1).splitlines()
    refused = "cannot rank generators on vieval_demo_contests"
    assert line.startswith(f"vieval: {refused}: the judged contests must compare ")
