"""How few samples of an image model a correlation may rest on: bias and coverage on ImagenHub's real ratings.

Two columns are correlated with annotators: the first annotator with the mean of the others, and a
judge's recorded scores with the mean of all. An image model's complete ratings are the population.
Of each task type so many instructions are drawn from it with replacement, the same for its image
models, and the statistics are computed as the product computes them: Spearman's rho clamped at
.9999, 0 where the judge is constant, no value where annotators are; Fisher's average over image
models, then over task types; a cluster bootstrap over the instructions drawn. The truth is the same
of the whole population.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bench.common import conditions, table
from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.results import replay
from vieval_plugin.stats.agreement import annotator_mean
from vieval_plugin.stats.bootstrap import cluster_counts, interval
from vieval_plugin.stats.correlation import (
    Floats,
    correlation,
    fisher_mean,
    fisher_mean_over,
    resampled_correlations,
)

SIZES = (3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 40)
NEARLY_ONE = 0.9999


@dataclass(frozen=True)
class Rated:
    """Instructions of a task type, arrays of shape (instructions, image models): scores and
    annotators' means.
    """

    scores: Floats
    human: Floats


@dataclass(frozen=True)
class Estimated:
    """One draw of all task types: the average with its interval, and of each cell value, low and high.

    Cells without a value are NaN, shape (cells, 3).
    """

    average: float
    low: float
    high: float
    cells: Floats


def populations(data: Path, logs: str, aspect: str) -> dict[str, dict[str, Rated]]:
    """Read ratings by column and task type; instructions that the judge scored for every image
    model.
    """
    benchmark = benchmark_registry.benchmark("imagenhub")
    recording = replay.load(data / "viescore_logs" / logs, "viescore")
    found: dict[str, dict[str, Rated]] = {"annotator": {}, logs: {}}
    for part in benchmark.parts:
        ratings: dict[str, dict[str, tuple[float, ...]]] = {}
        scores: dict[str, dict[str, float]] = {}
        for sample in benchmark.load(data, part):
            verdict, _ = replay.replayed(
                recording, sample.id, 0, "viescore", "0shot", "judge", config.Config()
            )
            ratings.setdefault(sample.id.uid, {})[sample.id.image_model] = tuple(
                sample.ratings[aspect]
            )
            scores.setdefault(sample.id.uid, {})[sample.id.image_model] = (
                verdict.scores.get(aspect, math.nan)
            )
        by_rater = np.array(
            [list(of_uid.values()) for of_uid in ratings.values()]
        ).transpose(2, 0, 1)
        scored = np.array([list(of_uid.values()) for of_uid in scores.values()])
        complete = ~np.isnan(scored).any(axis=1)
        found["annotator"][part] = Rated(by_rater[0], means(by_rater[1:]))
        found[logs][part] = Rated(scored[complete], means(by_rater)[complete])
    return found


def means(by_rater: Floats) -> Floats:
    """Annotators' mean ratings, of shape (instructions, image models)."""
    return annotator_mean(by_rater.reshape(len(by_rater), -1)).reshape(
        by_rater.shape[1:]
    )


def value(human: Floats, scores: Floats) -> float:
    """A cell's correlation: 0 where the judge is constant, NaN where annotators are."""
    if (human == human[0]).all():
        return math.nan
    rho = correlation(human, scores)
    return 0.0 if math.isnan(rho) else rho


def truth(parts: Mapping[str, Rated]) -> tuple[float, Floats]:
    """The average and the cells' values in the whole population."""
    cells = [
        [value(h, s) for h, s in zip(rated.human.T, rated.scores.T, strict=True)]
        for rated in parts.values()
    ]
    return fisher_mean([fisher_mean(of_part) for of_part in cells]), np.concatenate(
        cells
    )


def estimated(
    parts: Mapping[str, Rated], size: int, resamples: int, rng: np.random.Generator
) -> Estimated:
    """Draw so many instructions of each task type, and compute what the product would show."""
    by_part = []
    values_by_part = []
    cells = []
    for rated in parts.values():
        drawn = rng.integers(0, len(rated.human), size)
        counts = cluster_counts([str(place) for place in range(size)], resamples, rng)
        values = []
        resampled = []
        for human, scores in zip(
            rated.human[drawn].T, rated.scores[drawn].T, strict=True
        ):
            values.append(value(human, scores))
            if math.isnan(values[-1]):
                cells.append((math.nan, math.nan, math.nan))
                continue
            resampled.append(
                resampled_correlations(
                    human, scores, counts, constant_y_correlation=0.0
                )
            )
            cells.append((values[-1], *interval(resampled[-1])))
        if resampled:
            values_by_part.append(fisher_mean(values))
            by_part.append(fisher_mean_over(resampled))
    low, high = interval(fisher_mean_over(by_part))
    return Estimated(fisher_mean(values_by_part), low, high, np.array(cells))


def row(
    size: int, draws: Sequence[Estimated], average: float, of_cells: Floats
) -> list[str]:
    """A row of the table, percentages over draws (and cells)."""
    values, lows, highs = np.moveaxis(np.array([draw.cells for draw in draws]), 2, 0)
    defined = ~np.isnan(values)
    covered = (lows <= of_cells) & (of_cells <= highs)
    averages = np.array([draw.average for draw in draws])
    of_average = [draw.low <= average <= draw.high for draw in draws]
    return [
        f"{size}",
        f"{100 * (1 - defined.mean()):.1f}",
        f"{100 * (np.abs(values[defined]) >= NEARLY_ONE).mean():.1f}",
        f"{averages.mean() - average:+.3f}",
        f"{averages.std():.3f}",
        f"{100 * covered[defined].mean():.1f}",
        f"{100 * np.mean(of_average):.1f}",
    ]


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
    parser.add_argument("--aspect", default="O")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument(
        "--draws", type=int, default=300, help="draws of each size (default 300)"
    )
    parser.add_argument(
        "--resamples", type=int, default=500, help="of each interval (default 500)"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{conditions()}; {options.draws} draws, seed {options.seed}")
    for name, parts in populations(options.data, options.logs, options.aspect).items():
        average, of_cells = truth(parts)
        rows = []
        for size in tqdm(options.sizes, desc=name, disable=None):
            rng = np.random.default_rng([options.seed, size])
            draws = [
                estimated(parts, size, options.resamples, rng)
                for _ in range(options.draws)
            ]
            rows.append(row(size, draws, average, of_cells))
        print(f"{name}, {options.aspect}: {average:.3f} in the population")
        header = [
            "samples",
            "no value %",
            "at ±1 %",
            "bias",
            "SD",
            "cells covered %",
            "averages covered %",
        ]
        table(header, rows)


if __name__ == "__main__":
    main()
