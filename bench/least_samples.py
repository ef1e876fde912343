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

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bench.common import (
    IMAGENHUB_FOLDER,
    conditions,
    recorded_samples,
    script_parser,
    table,
)
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
    ratings: dict[str, dict[str, dict[str, tuple[float, ...]]]] = {}
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for sample, verdict, _ in recorded_samples(data, logs):
        part = sample.id.part
        uid = sample.id.uid
        model = sample.id.image_model
        by_uid = ratings.setdefault(part, defaultdict(dict))
        by_uid[uid][model] = sample.ratings[aspect]
        by_uid = scores.setdefault(part, defaultdict(dict))
        by_uid[uid][model] = verdict.scores.get(aspect, math.nan)
    annotator = {}
    judge = {}
    for part in ratings:
        by_rater = array_of(ratings[part]).transpose(2, 0, 1)
        judged = array_of(scores[part])
        is_complete = ~np.isnan(judged).any(axis=1)
        annotator[part] = Rated(by_rater[0], means(by_rater[1:]))
        judge[part] = Rated(judged[is_complete], means(by_rater)[is_complete])
    return {"annotator": annotator, logs: judge}


def array_of(cells: Mapping[str, Mapping[str, object]]) -> Floats:
    """The values by instruction and image model."""
    return np.array([list(by_model.values()) for by_model in cells.values()])


def means(by_rater: Floats) -> Floats:
    """Annotators' mean ratings, of shape (instructions, image models)."""
    raters = len(by_rater)
    flat = annotator_mean(by_rater.reshape(raters, -1))
    return flat.reshape(by_rater.shape[1:])


def value(human: Floats, scores: Floats) -> float:
    """A cell's correlation: 0 where the judge is constant, NaN where annotators are."""
    if (human == human[0]).all():
        return math.nan
    rho = correlation(human, scores)
    if math.isnan(rho):
        return 0.0
    return rho


def truth(parts: Mapping[str, Rated]) -> tuple[float, Floats]:
    """The average and the cells' values in the whole population."""
    averages = []
    cells = []
    for rated in parts.values():
        columns = zip(rated.human.T, rated.scores.T, strict=True)
        values = [value(human, scores) for human, scores in columns]
        averages.append(fisher_mean(values))
        cells += values
    return fisher_mean(averages), np.array(cells)


def estimated(
    parts: Mapping[str, Rated], size: int, resamples: int, rng: np.random.Generator
) -> Estimated:
    """Draw so many instructions of each task type, and compute what the product would show."""
    averages = []
    resampled_averages = []
    cells = []
    clusters = [str(place) for place in range(size)]
    for rated in parts.values():
        drawn = rng.integers(0, len(rated.human), size)
        counts = cluster_counts(clusters, resamples, rng)
        values = []
        resampled = []
        columns = zip(rated.human[drawn].T, rated.scores[drawn].T, strict=True)
        for human, scores in columns:
            rho = value(human, scores)
            values.append(rho)
            if math.isnan(rho):
                cells.append((math.nan, math.nan, math.nan))
                continue
            correlations = resampled_correlations(
                human, scores, counts, constant_y_correlation=0.0
            )
            resampled.append(correlations)
            cells.append((rho, *interval(correlations)))
        if resampled:
            averages.append(fisher_mean(values))
            resampled_averages.append(fisher_mean_over(resampled))
    low, high = interval(fisher_mean_over(resampled_averages))
    return Estimated(fisher_mean(averages), low, high, np.array(cells))


def row(
    size: int, draws: Sequence[Estimated], average: float, of_cells: Floats
) -> list[float]:
    """A row of the table, percentages over draws (and cells)."""
    cells = np.array([draw.cells for draw in draws])
    values, lows, highs = np.moveaxis(cells, 2, 0)
    is_defined = ~np.isnan(values)
    is_nearly_one = np.abs(values[is_defined]) >= NEARLY_ONE
    is_covered = (lows <= of_cells) & (of_cells <= highs)
    averages = np.array([draw.average for draw in draws])
    average_hits = [draw.low <= average <= draw.high for draw in draws]
    return [
        size,
        100 * (1 - is_defined.mean()),
        100 * is_nearly_one.mean(),
        averages.mean() - average,
        averages.std(),
        100 * is_covered[is_defined].mean(),
        100 * np.mean(average_hits),
    ]


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("data", type=Path, help=IMAGENHUB_FOLDER)
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
    columns = {
        "samples": "",
        "no value %": ".1f",
        "at ±1 %": ".1f",
        "bias": "+.3f",
        "SD": ".3f",
        "cells covered %": ".1f",
        "averages covered %": ".1f",
    }
    for name, parts in populations(options.data, options.logs, options.aspect).items():
        average, of_cells = truth(parts)
        rows = []
        for size in tqdm(options.sizes, desc=name, disable=None):
            rng = np.random.default_rng([options.seed, size])
            draws = []
            for _ in range(options.draws):
                draws.append(estimated(parts, size, options.resamples, rng))
            rows.append(row(size, draws, average, of_cells))
        print(f"{name}, {options.aspect}: {average:.3f} in the population")
        table(columns, rows)


if __name__ == "__main__":
    main()
