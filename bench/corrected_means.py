"""Means corrected by a few ratings, on ImagenHub's ratings with GPT-4o's recorded scores: coverage and width of intervals.

For each image model, images are drawn with replacement, as many as it has, and so many of them
count as rated. The truth is people's mean over all of its images. Beside ImagenHub stands a law of
ratings far from the ends of the scale.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy
from tqdm import tqdm

from bench.common import conditions, table
from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.results import replay
from vieval_plugin.stats.agreement import annotator_mean
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.prediction_powered import (
    bounded_interval,
    prediction_powered_mean,
)

ASPECT = "O"
EDITS = ("tie", "mie", "sdie")


def scores(data: Path, logs: str) -> dict[tuple[str, str], tuple[Floats, Floats]]:
    """By part and image model: people's mean rating and the judge's score of each image that it
    scored.
    """
    benchmark = benchmark_registry.benchmark("imagenhub")
    recording = replay.load(data / "viescore_logs" / logs, "viescore")
    held: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for part in benchmark.parts:
        for sample in benchmark.load(data, part):
            verdict, _ = replay.replayed(
                recording, sample.id, 0, "viescore", "0shot", "judge", config.Config()
            )
            if ASPECT in verdict.scores:
                people = float(
                    annotator_mean([[one] for one in sample.ratings[ASPECT]])[0]
                )
                held[part, sample.id.image_model].append(
                    (people, verdict.scores[ASPECT])
                )
    return {
        key: (np.array(rows)[:, 0], np.array(rows)[:, 1]) for key, rows in held.items()
    }


def easy_law(rng: np.random.Generator, images: int = 200) -> tuple[Floats, Floats]:
    """People's ratings and a judge's scores that are nowhere near an end of the scale."""
    people = np.clip(rng.normal(0.5, 0.15, images), 0, 1)
    return people, np.clip(people + rng.normal(0, 0.1, images), 0, 1)


class Powered(NamedTuple):
    """Corrected means of many draws, of which the first so many images are rated: those of
    `prediction_powered_mean`.
    """

    value: Floats
    squared_error: Floats


def powered(ratings: Floats, scores: Floats, weighted: bool) -> Powered:
    """The corrected mean of each draw; without weights by the ratings alone.

    Args:
        ratings: of the rated images, shape (draws, rated).
        scores: of all images, the rated first, shape (draws, images).
        weighted: whether the judge counts.
    """
    rated, images = ratings.shape[1], scores.shape[1]
    unrated = images - rated
    rated_scores = scores[:, :rated]
    rated_deviations = centred(ratings)
    shared = (rated_deviations * centred(rated_scores)).mean(axis=1) / rated
    spread = scores.var(axis=1, ddof=1) * (1 / rated + 1 / unrated)
    best = np.divide(shared, spread, out=np.zeros(len(spread)), where=spread > 0)
    weight = np.clip(best, 0, 1)[:, None] * weighted
    misses = ratings - weight * rated_scores
    judged = weight * scores[:, rated:]
    value = misses.mean(axis=1) + judged.mean(axis=1)
    return Powered(value, misses.var(axis=1) / rated + judged.var(axis=1) / unrated)


def centred(values: Floats) -> Floats:
    return np.asarray(values - values.mean(axis=1, keepdims=True))


def normal_intervals(means: Powered) -> Floats:
    """Ends of the normal intervals, shape (2, draws)."""
    reach = scipy.stats.norm.ppf(0.975) * np.sqrt(means.squared_error)
    return np.stack([means.value - reach, means.value + reach])


def shown_intervals(means: Powered, rated: int) -> Floats:
    """Ends of the intervals that are shown, shape (2, draws): those of `bounded_interval`."""
    more = 0.2
    total = rated + more
    value = np.clip(means.value, 0, 1)
    squares = rated**2 * means.squared_error
    quantile = scipy.stats.t.ppf(0.975, total - 1)
    ends = []
    for end, side in ((0.0, -1.0), (1.0, 1.0)):
        spread = squares + rated * more / total * (value - end) ** 2
        ends.append(
            (rated * value + more * end) / total
            + side * quantile * np.sqrt(spread / total / (total - 1))
        )
    return np.clip(ends, 0, 1)


def intervals(
    people: Floats, judge: Floats, labels: int, runs: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Intervals by way, of many draws of images of which the first so many are rated."""
    drawn = rng.integers(0, len(people), (runs, len(people)))
    ratings, scores = people[drawn[:, :labels]], judge[drawn]
    alone, corrected = (
        powered(ratings, scores, weighted) for weighted in (False, True)
    )
    require_same(ratings[0], scores[0], corrected)
    return {
        "labels alone, normal": normal_intervals(alone),
        "corrected, normal": normal_intervals(corrected),
        "labels alone, as shown": shown_intervals(alone, labels),
        "corrected, as shown": shown_intervals(corrected, labels),
    }


def require_same(ratings: Floats, scores: Floats, means: Powered) -> None:
    """Require that the first draw has the intervals of the functions that are shown to people."""
    rated = len(ratings)
    all_ratings = np.append(ratings, np.full(len(scores) - rated, np.nan))
    expected = prediction_powered_mean(all_ratings, scores)
    ends = (expected.mean.low, expected.mean.high, *bounded_interval(expected, rated))
    found = (*normal_intervals(means)[:, 0], *shown_intervals(means, rated)[:, 0])
    np.testing.assert_allclose(found, ends, atol=1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "data",
        type=Path,
        help="a folder with imagenhub/human_ratings and viescore_logs",
    )
    parser.add_argument("--logs", default="results_gpt4o_0shot")
    parser.add_argument("--labels", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument(
        "--runs",
        type=int,
        default=2000,
        help="draws of each image model (default 2000)",
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(
        f"{conditions()}; {options.runs} runs of each image model, seed {options.seed}"
    )
    easy = easy_law(np.random.default_rng([options.seed, 1]))
    populations = {("easy law", f"{number}"): easy for number in range(15)} | scores(
        options.data, options.logs
    )
    rows: dict[tuple[str, str, int], list[tuple[float, float]]] = defaultdict(list)
    for labels in options.labels:
        for place, (key, (people, judge)) in enumerate(
            tqdm(populations.items(), unit="image model", disable=None)
        ):
            law = (
                "edits"
                if key[0] in EDITS
                else "easy law"
                if key[0] == "easy law"
                else "other tasks"
            )
            rng = np.random.default_rng([options.seed, labels, place])
            for way, (low, high) in intervals(
                people, judge, labels, options.runs, rng
            ).items():
                covered = (low <= people.mean()) & (people.mean() <= high)
                rows[law, way, labels].append((covered.mean(), (high - low).mean()))
    cells = {key: np.mean(values, axis=0) for key, values in rows.items()}
    texts = {
        key: f"{covered:.1%} ({width:.2f})" for key, (covered, width) in cells.items()
    }
    names = dict.fromkeys((law, way) for law, way, _ in texts)
    print(
        "O: share of 95% intervals that hold people's mean (mean width), by labels of an image "
        "model"
    )
    table(
        ["data", "interval", *map(str, options.labels)],
        [[*n, *(texts[*n, k] for k in options.labels)] for n in names],
    )


if __name__ == "__main__":
    main()
