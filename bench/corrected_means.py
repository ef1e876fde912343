"""Means corrected by a few ratings, on ImagenHub's ratings with GPT-4o's recorded scores: coverage and width of intervals.

For each image model, images are drawn with replacement, as many as it has, and so many of them count as rated. The truth
is people's mean over all of its images. Beside ImagenHub stands a law of ratings far from the ends of the scale.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bench.common import conditions, table
from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.results import replay
from vieval_plugin.stats.agreement import annotator_mean
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.prediction_powered import bounded_interval, prediction_powered_mean

ASPECTS = ("SC", "PQ", "O")
EDITS = ("tie", "mie", "sdie")


def scores(data: Path, logs: str) -> dict[tuple[str, str, str], tuple[Floats, Floats]]:
    """By part, image model and aspect: people's mean rating and the judge's score of each image that it scored."""
    benchmark = benchmark_registry.benchmark("imagenhub")
    recording = replay.load(data / "viescore_logs" / logs, "viescore")
    held: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for part in benchmark.parts:
        for sample in benchmark.load(data, part):
            verdict, _ = replay.replayed(recording, sample.id, 0, "viescore", "0shot", "judge", config.Config())
            for aspect in ASPECTS:
                if aspect in verdict.scores:
                    people = float(annotator_mean([[one] for one in sample.ratings[aspect]])[0])
                    held[part, sample.id.image_model, aspect].append((people, verdict.scores[aspect]))
    return {key: (np.array(rows)[:, 0], np.array(rows)[:, 1]) for key, rows in held.items()}


def easy_law(rng: np.random.Generator, images: int = 200) -> tuple[Floats, Floats]:
    """People's ratings and a judge's scores that are nowhere near an end of the scale."""
    people = np.clip(rng.normal(0.5, 0.15, images), 0, 1)
    return people, np.clip(people + rng.normal(0, 0.1, images), 0, 1)


def intervals(people: Floats, judge: Floats, labels: int, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """Intervals by way, from one draw of images of which so many are rated."""
    drawn = rng.integers(0, len(people), len(people))
    rated = np.isin(np.arange(len(drawn)), rng.choice(len(drawn), labels, replace=False))
    ratings = np.where(rated, people[drawn], np.nan)
    alone = prediction_powered_mean(ratings, judge[drawn], weight=0.0)
    corrected = prediction_powered_mean(ratings, judge[drawn])
    return {
        "labels alone, normal": (alone.mean.low, alone.mean.high),
        "corrected, normal": (corrected.mean.low, corrected.mean.high),
        "labels alone, as shown": bounded_interval(alone, labels),
        "corrected, as shown": bounded_interval(corrected, labels),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder with imagenhub/human_ratings and viescore_logs")
    parser.add_argument("--logs", default="results_gpt4o_0shot")
    parser.add_argument("--labels", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--runs", type=int, default=200, help="draws of each image model (default 200)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{conditions()}; {options.runs} runs of each image model, seed {options.seed}")
    easy = easy_law(np.random.default_rng([options.seed, 1]))
    populations = {("easy law", f"{number}", "O"): easy for number in range(15)} | scores(options.data, options.logs)
    rows: dict[tuple[str, str, int], list[tuple[float, float]]] = defaultdict(list)
    for labels in options.labels:
        for place, (key, (people, judge)) in enumerate(tqdm(populations.items(), unit="image model", disable=None)):
            law = "edits" if key[0] in EDITS else "easy law" if key[0] == "easy law" else "other tasks"
            rng = np.random.default_rng([options.seed, labels, place])
            for _ in range(options.runs if key[2] == "O" else 0):
                for way, (low, high) in intervals(people, judge, labels, rng).items():
                    rows[law, way, labels].append((low <= people.mean() <= high, high - low))
    cells = {key: np.mean(values, axis=0) for key, values in rows.items()}
    texts = {key: f"{covered:.1%} ({width:.2f})" for key, (covered, width) in cells.items()}
    names = dict.fromkeys((law, way) for law, way, _ in texts)
    print("O: share of 95% intervals that hold people's mean (mean width), by labels of an image model")
    table(
        ["data", "interval", *map(str, options.labels)], [[*n, *(texts[*n, k] for k in options.labels)] for n in names]
    )


if __name__ == "__main__":
    main()
