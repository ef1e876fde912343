"""Means corrected by a few ratings, on ImagenHub's ratings with GPT-4v's recorded scores: coverage and width of intervals.

For each image model, images are drawn with replacement, as many as it has, and so many of them count as rated. The truth
is people's mean over all of its images. Averages are over image models.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from common import conditions, table
from tqdm import tqdm

from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.results import replay
from vieval_plugin.stats.agreement import annotator_mean
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.prediction_powered import prediction_powered_mean

ASPECTS = ("SC", "PQ", "O")
WAYS = ("labels alone", "judge alone", "corrected")


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


def intervals(
    people: Floats, judge: Floats, labels: int, rng: np.random.Generator
) -> dict[str, tuple[float, float, float]]:
    """Estimate and interval of each way, from one draw of images of which so many are rated."""
    drawn = rng.integers(0, len(people), len(people))
    rated = np.isin(np.arange(len(drawn)), rng.choice(len(drawn), labels, replace=False))
    given = np.where(rated, people[drawn], np.nan)
    return {
        "labels alone": prediction_powered_mean(given[rated], np.zeros(labels))[:3],
        "judge alone": prediction_powered_mean(judge[drawn], np.zeros(len(drawn)))[:3],
        "corrected": prediction_powered_mean(given, judge[drawn])[:3],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder with imagenhub/human_ratings and viescore_logs")
    parser.add_argument("--logs", default="results_gpt4v_0shot")
    parser.add_argument("--labels", type=int, nargs="+", default=[20, 40, 80])
    parser.add_argument("--runs", type=int, default=500, help="draws of each image model (default 500)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{conditions()}; {options.runs} runs, seed {options.seed}")
    held = scores(options.data, options.logs)
    for labels in options.labels:
        found: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
        for place, (key, (people, judge)) in enumerate(tqdm(held.items(), unit="image model", disable=None)):
            rng = np.random.default_rng([options.seed, labels, place])
            for _ in range(options.runs):
                for way, (mean, low, high) in intervals(people, judge, labels, rng).items():
                    truth = people.mean()
                    found[key[2], way].append((low <= truth <= high, high - low, (mean - truth) ** 2))
        print(f"{labels} labels an image model: coverage of 95% intervals, mean width, root of the mean squared error")
        rows = []
        for way in WAYS:
            cells = [np.mean(found[aspect, way], axis=0) for aspect in ASPECTS]
            rows.append([way, *(f"{100 * c:.1f}% {w:.3f} {np.sqrt(e):.3f}" for c, w, e in cells)])
        table(["interval", *ASPECTS], rows)


if __name__ == "__main__":
    main()
