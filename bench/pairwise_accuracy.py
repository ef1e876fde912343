"""Pairwise accuracy with tie calibration: time and memory beside the definition, which holds all pairs at once.

Humans rate on five levels. The metric is continuous; or rounded to hundredths; or saturated, like
probabilities of an answer near 0 and 1. Each row runs in a process of its own; the highest memory
includes Python and its packages.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from common import Cost, conditions, costs, in_own_process, table

from vieval_plugin.stats import bootstrap, pairwise
from vieval_plugin.stats.correlation import Floats

Way = Callable[[Floats, Floats], pairwise.Calibrated]


def scores(items: int, kind: str) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    quality = rng.normal(size=items)
    human = np.digitize(quality, [-1.2, -0.4, 0.4, 1.2]).astype(float)
    metric = quality + 0.7 * rng.normal(size=items)
    if kind == "hundredths":
        metric = np.round(metric / 8 + 0.5, 2)
    elif kind == "saturated":
        metric = 1 / (1 + np.exp(-15 * metric))
    return metric, human


def by_definition(metric: Floats, human: Floats) -> pairwise.Calibrated:
    """All differences in two n x n matrices, sorted."""
    apart, rated = metric[:, None] - metric, human[:, None] - human
    above = np.triu(np.ones(apart.shape, dtype=bool), 1)
    apart, rated = apart[above], rated[above]
    alike = apart * rated > 0
    gain = (rated == 0).astype(int) - alike
    order = np.argsort(np.abs(apart))
    differences, first = np.unique(np.abs(apart)[order], return_index=True)
    gains = np.append(0, np.add.reduceat(gain[order], first).cumsum())
    # an epsilon of 0 ties differences of 0
    epsilons = np.append(0.0, differences)
    if differences[0] == 0:
        gains, epsilons = gains[1:], epsilons[1:]
    best = int(np.argmax(gains))
    return pairwise.Calibrated(
        float((alike.sum() + gains[best]) / len(apart)), float(epsilons[best])
    )


def measured(way: Way, items: int, kind: str) -> tuple[pairwise.Calibrated, Cost]:
    metric, human = scores(items, kind)
    with costs() as cost:
        found = way(metric, human)
    return found, cost


def resampled(items: int, draws: int) -> Cost:
    metric, human = scores(items, "continuous")
    counts = bootstrap.cluster_counts([str(number) for number in range(items)], draws)
    with costs() as cost:
        pairwise.resampled_accuracy(metric, human, 0.1, counts)
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, nargs="+", default=[1000, 5000, 20000])
    parser.add_argument(
        "--definition",
        type=int,
        default=5000,
        help="most items for the definition (default 5000)",
    )
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()

    print(conditions())
    rows = []
    for items in options.items:
        for kind in ("continuous", "hundredths", "saturated"):
            found, cost = in_own_process(measured, pairwise.calibrated, items, kind)
            row = [
                kind,
                f"{items:,}",
                f"{found.accuracy:.4f}",
                f"{found.epsilon:.3g}",
                *figures(cost),
                "",
                "",
                "",
            ]
            if items <= options.definition:
                expected, cost = in_own_process(measured, by_definition, items, kind)
                assert found == expected, (found, expected)
                row[-3:] = figures(cost)
            rows.append(row)
    header = [
        "metric",
        "items",
        "accuracy",
        "epsilon",
        "s",
        "CPU s",
        "peak MiB",
        "definition s",
        "CPU s",
        "peak MiB",
    ]
    table(header, rows)

    print(
        f"{options.draws:,} draws at a fixed epsilon; memory before includes their counts"
    )
    rows = []
    for items in options.items:
        cost = in_own_process(resampled, items, options.draws)
        rows.append(
            [
                f"{items:,}",
                f"{cost.wall:.2f}",
                f"{cost.cpu:.2f}",
                f"{cost.before:.0f}",
                f"{cost.peak:.0f}",
            ]
        )
    table(["items", "s", "CPU s", "MiB before", "peak MiB"], rows)


def figures(cost: Cost) -> list[str]:
    return [f"{cost.wall:.2f}", f"{cost.cpu:.2f}", f"{cost.peak:.0f}"]


if __name__ == "__main__":
    main()
