"""Reports, cards and leaderboards: the page's words, and what the command prints."""

import json
import random
from pathlib import Path

import pytest

from tests.benchmarks.folders import SIGNS, rating_rows
from tests.builders import (
    a_provenance,
    a_results_folder,
    a_sample,
    a_table,
    a_verdict,
    a_verdict_file,
    an_image_file,
)
from tests.leaderboard.logs import few_logs
from tests.six_logs import IMAGENHUB, board, six_runs
from vieval_plugin.benchmarks.loading.description import Description
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.metrics import host_table_cell, primary_statistic
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.statistics import Rating, summary_of
from vieval_plugin.report.answer import answer
from vieval_plugin.report.tables import leaderboard_table
from vieval_plugin.stats.options import StatisticsOptions


def test_report_of_own_images(approve):
    a_verdict_file("one.jsonl", aurora=[0.5, 0.6])
    a_verdict_file("better.jsonl", aurora=[0.9] * 9, borealis=[0.1] * 9)
    a_verdict_file("failed.jsonl", aurora=[0.5, 0.6], borealis=[Status.REFUSAL] * 2)
    commands = []
    for name in ("one", "better", "failed"):
        report = f"vieval report {name}.jsonl --out {name}"
        commands += [report, f"cat {name}/report.html"]
    approve(*commands)


def rated(noises, few=(), refusing=()):
    """Write results of judges on 60 rated samples, each as far from the ratings as its noise."""
    people = random.Random(0)
    ratings = [people.choice([0.0, 0.25, 0.5, 0.75, 1.0]) for _ in range(60)]
    drawn = {"kind": "tie", "benchmark": "vieval_demo"}
    for judge, noise in noises.items():
        own = random.Random(judge)
        rows = []
        for number, rating in enumerate(ratings):
            score = min(max(rating + own.gauss(0, noise), 0), 1)
            if judge in refusing or (judge in few and number % 3):
                score = Status.REFUSAL
            ratings_of = {"ratings": {"O": (rating,)}}
            sample = a_sample(f"u{number}", "demo_a", **drawn, **ratings_of)
            rows.append((sample, a_verdict(score, ("O",))))
        a_results_folder(judge, rows, a_provenance(model=judge, aspects=("O",)))


def test_report_of_judges(approve):
    noises = {"good": 0.05, "poor": 3.0, "few": 0.1, "none": 0.1}
    rated(noises, few=("few",), refusing=("none",))
    approve(
        "vieval report good poor few none --out r",
        "cat r/report.md",
        "vieval report none --out none",
        "cat none/report.md",
    )


@pytest.mark.slow
def test_card(approve, judge_server):
    judge_server()
    sizes = "--samples 70 --repeats 5 --audit 0"
    judge = "--benchmark vieval_demo_contests --judge pairwise"
    card = f"vieval card {judge} {sizes} --out card"
    approve(card, "cat card/card.md", "vieval compare card card --label a --label b")


def test_card_refused(approve, judge_server, monkeypatch):
    judge_server()
    monkeypatch.setenv("VIEVAL_DATA", "data")
    Path("published").mkdir()
    demo = "vieval card --benchmark vieval_demo --out card"
    approve(
        "vieval card",
        f"{demo} --samples 100",
        f"{demo} --budget 100",
        f"{demo} --published nowhere",
        f"{demo} --published published",
    )


@pytest.mark.slow
def test_leaderboard(approve, shared_data, monkeypatch):
    few_logs(shared_data, Path("published").absolute())
    monkeypatch.setenv("VIEVAL_DATA", "published")
    approve(
        "vieval leaderboard make --out page --published published",
        "cat page/index.html",
    )


EVERY = pytest.param(
    tuple(IMAGENHUB.parts), id="all task types", marks=pytest.mark.extras
)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [pytest.param(("cig",), id="one task type"), EVERY])
def test_six_logs(approve_text, shared_data, parts):
    runs = six_runs(shared_data, parts)
    leaderboard = board([*runs.values()], StatisticsOptions(draws=50))
    table = leaderboard_table(leaderboard)
    rows = [" | ".join(row) for row in (table.header, *table.rows)]
    approve_text({"sentences": answer(leaderboard).lines, "table": rows})


def test_benchmark_of_your_own(approve, judge_server):
    for number in range(50):
        an_image_file(f"signs/images/{number}.png", colour=(5 * number, 10, 20))
    a_table("signs/ratings.csv", rating_rows())
    Path("signs/benchmark.yaml").write_text(json.dumps(SIGNS))
    judge_server()
    approve(
        "vieval score --benchmark signs --judge sharpness --judge viescore --out v.jsonl",
        "vieval report v.jsonl --benchmark signs --out r",
        "cat r/report.md",
    )


def test_benchmark_of_your_own_in_a_host(approve_text):
    """The one number of the host's table, of a judge that scores what people rated and more."""
    rating = Rating(("SC", "PQ", "O"))
    judged = []
    for n in range(40):
        people = {"SC": (n % 5 / 4, n % 3 / 2)}
        scores = dict.fromkeys(rating.aspects, n % 7 / 6)
        judged.append(Observation(f"m{n % 2}", str(n), people, scores, Status.OK))
    options = StatisticsOptions(draws=50)
    report = Description(**SIGNS).report()
    summary = summary_of(report, judged, rating, "signs", "all", options)
    metric = primary_statistic(summary.statistics).metric
    approve_text({metric: host_table_cell(summary)})
