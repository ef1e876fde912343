"""AURORA-Bench: correlations, missing source images and published numbers."""

import json

import numpy as np
import pytest
from scipy import stats

from tests.pictures import plain
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.statistics import Rating, summary_of
from vieval_plugin.meta_evaluation.tables import printed_tables
from vieval_plugin.stats.options import StatisticsOptions

POINTS = benchmark_registry.benchmark("aurora_bench")
PAIRS = benchmark_registry.benchmark("aurora_bench_pairs")
EDITS = benchmark_registry.benchmark("generate_aurora_bench")


def test_a_judge_of_the_whole_is_correlated_with_the_ratings():
    rng = np.random.default_rng(1)
    people, judge = rng.integers(0, 3, 40), rng.integers(0, 11, 40) / 10
    scores = [{"SC": 0.1, "O": float(value)} for value in judge]
    ratings = [{"O": (float(value),)} for value in people]
    rows = tuple(
        Observation("m", f"{n:02}", rated, scored, Status.OK)
        for n, (rated, scored) in enumerate(zip(ratings, scores, strict=True))
    )
    rating, options = Rating(("SC", "O")), StatisticsOptions(draws=5)
    found = summary_of(POINTS.report, rows, rating, "aurora_bench", "points", options)
    got = found.estimates["spearman_value"].value
    assert got == pytest.approx(stats.spearmanr(people, judge).statistic)


def test_source_images_are_counted_for_a_generator(tmp_path):
    source = "data/ag/images/0_left.png"
    row = {"input": source, "prompt": "add a hat", "task": "ag", "output": "x.png"}
    folder = tmp_path / "aurora_bench"
    (folder / source).parent.mkdir(parents=True)
    (folder / "test.json").write_text(json.dumps([row]))
    [line] = EDITS.missing(tmp_path, "edits")
    assert line.startswith("1 of 1 source images missing (first:")
    (folder / source).write_bytes(plain("red"))
    assert EDITS.missing(tmp_path, "edits") == []
    assert EDITS.generates


def test_published_accuracies_are_of_the_pairs():
    [table] = printed_tables(PAIRS.printed)
    assert ("pairs", "GPT-4o (printed)", "50.81") in table.rows
    assert POINTS.printed == EDITS.printed == ()
