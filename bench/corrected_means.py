"""Means corrected by a few ratings, on ImagenHub's ratings with GPT-4o's recorded scores: coverage and width of intervals.

For each image model, images are drawn with replacement, as many as it has, and so many of them
count as rated. The truth is people's mean over all of its images. Beside ImagenHub stands a law of
ratings far from the ends of the scale.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy
from tqdm import tqdm

from bench.common import (
    IMAGENHUB_FOLDER,
    conditions,
    mean_rating,
    recorded_samples,
    script_parser,
    table,
)
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.prediction_powered import (
    bounded_interval,
    prediction_powered_mean,
)

ASPECT = "O"
EDITS = ("tie", "mie", "sdie")
EASY = "easy law"


def scores(data: Path, logs: str) -> dict[tuple[str, str], tuple[Floats, Floats]]:
    """By part and image model: people's mean rating and the judge's score of each image that it
    scored.
    """
    people: dict[tuple[str, str], list[float]] = defaultdict(list)
    judge: dict[tuple[str, str], list[float]] = defaultdict(list)
    for sample, verdict, _ in recorded_samples(data, logs):
        if ASPECT in verdict.scores:
            key = (sample.id.part, sample.id.image_model)
            people[key].append(mean_rating(sample.ratings[ASPECT]))
            judge[key].append(verdict.scores[ASPECT])
    return {key: (np.array(people[key]), np.array(judge[key])) for key in people}


def easy_law(rng: np.random.Generator, images: int = 200) -> tuple[Floats, Floats]:
    """People's ratings and a judge's scores that are nowhere near an end of the scale."""
    people = np.clip(rng.normal(0.5, 0.15, images), 0, 1)
    noise = rng.normal(0, 0.1, images)
    return people, np.clip(people + noise, 0, 1)


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
    rated = ratings.shape[1]
    unrated = scores.shape[1] - rated
    rated_scores = scores[:, :rated]
    products = centred(ratings) * centred(rated_scores)
    shared = products.mean(axis=1) / rated
    spread = scores.var(axis=1, ddof=1) * (1 / rated + 1 / unrated)
    best = np.divide(shared, spread, out=np.zeros(len(spread)), where=spread > 0)
    weight = np.clip(best, 0, 1)[:, None] * weighted
    misses = ratings - weight * rated_scores
    judged = weight * scores[:, rated:]
    value = misses.mean(axis=1) + judged.mean(axis=1)
    squared_error = misses.var(axis=1) / rated + judged.var(axis=1) / unrated
    return Powered(value, squared_error)


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
        centre = (rated * value + more * end) / total
        spread = squares + rated * more / total * (value - end) ** 2
        error = np.sqrt(spread / total / (total - 1))
        ends.append(centre + side * quantile * error)
    return np.clip(ends, 0, 1)


def intervals(
    people: Floats, judge: Floats, labels: int, runs: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Intervals by way, of many draws of images of which the first so many are rated."""
    images = rng.integers(0, len(people), (runs, len(people)))
    ratings = people[images[:, :labels]]
    scores = judge[images]
    alone = powered(ratings, scores, weighted=False)
    corrected = powered(ratings, scores, weighted=True)
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
    unrated = np.full(len(scores) - rated, np.nan)
    all_ratings = np.append(ratings, unrated)
    expected = prediction_powered_mean(all_ratings, scores)
    ends = (expected.mean.low, expected.mean.high, *bounded_interval(expected, rated))
    normal_ends = normal_intervals(means)[:, 0]
    shown_ends = shown_intervals(means, rated)[:, 0]
    np.testing.assert_allclose((*normal_ends, *shown_ends), ends, atol=1e-9)


def law_of(part: str) -> str:
    """The group of the table in which a part counts."""
    if part in EDITS:
        return "edits"
    if part == EASY:
        return EASY
    return "other tasks"


def main() -> None:
    parser = script_parser(__doc__, seed=0)
    parser.add_argument("data", type=Path, help=IMAGENHUB_FOLDER)
    parser.add_argument("--logs", default="results_gpt4o_0shot")
    parser.add_argument("--labels", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument(
        "--runs",
        type=int,
        default=2000,
        help="draws of each image model (default 2000)",
    )
    options = parser.parse_args()
    print(
        f"{conditions()}; {options.runs} runs of each image model, seed {options.seed}"
    )
    easy = easy_law(np.random.default_rng([options.seed, 1]))
    populations = {(EASY, str(number)): easy for number in range(15)}
    populations |= scores(options.data, options.logs)
    outcomes: dict[tuple[str, str], dict[int, list[tuple[float, float]]]] = {}
    for labels in options.labels:
        models = tqdm(populations.items(), unit="image model", disable=None)
        for place, ((part, _), (people, judge)) in enumerate(models):
            rng = np.random.default_rng([options.seed, labels, place])
            by_way = intervals(people, judge, labels, options.runs, rng)
            mean = people.mean()
            for way, (low, high) in by_way.items():
                covered = (low <= mean) & (mean <= high)
                by_labels = outcomes.setdefault((law_of(part), way), defaultdict(list))
                by_labels[labels].append((covered.mean(), (high - low).mean()))
    rows = []
    for names, by_labels in outcomes.items():
        cells = []
        for labels in options.labels:
            covered, width = np.mean(by_labels[labels], axis=0)
            cells.append(f"{covered:.1%} ({width:.2f})")
        rows.append([*names, *cells])
    print(
        "O: share of 95% intervals that hold people's mean (mean width), by labels of "
        "an image model"
    )
    table(["data", "interval", *map(str, options.labels)], rows)


if __name__ == "__main__":
    main()
