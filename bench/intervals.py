"""Intervals of `vieval rank` in simulation: how often they hold the truth, and that they never contradict their p.

- Differences of two generators, a prompt a unit: the interval of the sign-flip test. Symmetric and
  skewed laws.
- Means of one generator, scores in [0, 1]: the percentile interval of 1,000 resamples, plain and
  expanded.
- Differences corrected by people's ratings of some of 200 prompts: the root of the mean squared
  error as a multiple of that of the ratings alone, with a weight of the judge for each mean and
  with one for both; coverage.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from bench.common import conditions, table
from vieval_plugin.stats.bootstrap import cluster_counts, expanded_interval, interval
from vieval_plugin.stats.comparison import (
    PERMUTATIONS,
    MeanDifference,
    paired_comparison,
)
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.prediction_powered import (
    common_weight,
    prediction_powered_difference,
    prediction_powered_mean,
)

Law = Callable[[np.random.Generator, int], Floats]
PROMPTS = (6, 8, 10, 14, 20, 40, 100)
RATED = (10, 20, 50)
ALL_PROMPTS = 200
BATCH = 50

DIFFERENCES: Mapping[str, tuple[Law, float]] = {
    "normal": (lambda rng, n: rng.normal(0, 0.15, n), 0.0),
    "uniform": (lambda rng, n: rng.uniform(-0.3, 0.3, n), 0.0),
    "Student's t, 3 degrees": (lambda rng, n: 0.1 * rng.standard_t(3, n), 0.0),
    "−.1, 0 or .1": (lambda rng, n: rng.integers(-1, 2, n) / 10, 0.0),
    "skewed: exponential": (lambda rng, n: rng.exponential(0.15, n), 0.15),
    "skewed: 10% fall by .5, noise .05": (
        lambda rng, n: rng.normal(0, 0.05, n) - 0.5 * (rng.random(n) < 0.1),
        -0.05,
    ),
    "skewed: 3% fall by .6, noise .05": (
        lambda rng, n: rng.normal(0, 0.05, n) - 0.6 * (rng.random(n) < 0.03),
        -0.018,
    ),
}
MEANS: Mapping[str, tuple[Law, float]] = {
    "beta(2, 2)": (lambda rng, n: rng.beta(2, 2, n), 0.5),
    "0, .1, ..., 1": (lambda rng, n: rng.integers(0, 11, n) / 10, 0.5),
    "skewed: beta(6, 1)": (lambda rng, n: rng.beta(6, 1, n), 6 / 7),
    "skewed: 10% are 0, others .7 to .9": (
        lambda rng, n: rng.uniform(0.7, 0.9, n) * (rng.random(n) >= 0.1),
        0.72,
    ),
}


def disagreements(runs: int, seed: int) -> int:
    """Number of simulated pairs of which the interval holds 0 although p is at most .05, or the
    other way round.
    """
    wrong = 0
    laws = [law for law, _ in DIFFERENCES.values()]
    for run in range(runs):
        rng = np.random.default_rng([seed, 1, run])
        units = int(rng.integers(2, 60))
        shift = rng.choice([0.0, 0.05, 0.1])
        differences = laws[run % len(laws)](rng, units) + shift
        groups = (
            rng.integers(0, units, units).tolist() if run % 2 else list(range(units))
        )
        found = paired_comparison(
            MeanDifference(differences, np.zeros(units), groups), seed=run
        )
        low = found.difference.low
        high = found.difference.high
        wrong += (math.isnan(low) or low <= 0 <= high) != (found.p > 0.05)
    return wrong


def holds(differences: Floats, truth: float, rng: np.random.Generator) -> Floats:
    """True where the interval of a row's mean difference holds the truth, which is where the test has p > .05.

    Rows of shape (runs, prompts) have the same swaps here, as many as
    `stats.comparison.sign_flip_interval` takes.
    """
    n = differences.shape[1]
    every = 2**n <= PERMUTATIONS
    swapped = (
        np.arange(2**n)[:, None] >> np.arange(n) & 1
        if every
        else rng.integers(0, 2, (1999, n))
    )
    flipped = np.abs((differences - truth) @ (1.0 - 2 * swapped).T)
    observed = np.abs((differences - truth).sum(axis=1, keepdims=True))
    return np.asarray((flipped >= observed - 1e-9).sum(axis=1) > 0.05 * len(swapped))


def coverage_of_differences(runs: int, seed: int) -> None:
    rows = []
    for name, (law, truth) in DIFFERENCES.items():
        row = [name]
        for place, n in enumerate(PROMPTS):
            rng = np.random.default_rng([seed, 2, place])
            held = [
                holds(np.array([law(rng, n) for _ in range(BATCH)]), truth, rng)
                for _ in range(runs // BATCH)
            ]
            row.append(f"{100 * np.mean(held):.1f}")
        rows.append(row)
    print(
        "Differences: share of 95% intervals that hold the truth, %, by the number of prompts"
    )
    table(["law of the differences", *map(str, PROMPTS)], rows)


def coverage_of_means(runs: int, seed: int) -> None:
    rows = []
    for name, (law, truth) in MEANS.items():
        plain = [f"{name}, plain"]
        expanded = [f"{name}, expanded"]
        for place, n in enumerate(PROMPTS):
            rng = np.random.default_rng([seed, 3, place])
            held = np.zeros(2)
            for _ in range(runs // BATCH):
                values = np.array([law(rng, n) for _ in range(BATCH)])
                resampled = (
                    values
                    @ cluster_counts([str(prompt) for prompt in range(n)], seed=rng).T
                    / n
                )
                ends = [
                    (interval(draws), expanded_interval(draws, n))
                    for draws in resampled
                ]
                held += np.sum(
                    [[low <= truth <= high for low, high in both] for both in ends],
                    axis=0,
                )
            for row, share in zip((plain, expanded), held / runs, strict=True):
                row.append(f"{100 * share:.1f}")
        rows += [plain, expanded]
    print(
        "Means of one generator: share of 95% intervals that hold the truth, %, by the number of "
        "prompts"
    )
    table(["law of the scores, interval", *map(str, PROMPTS)], rows)


def judged(law: str, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """People's ratings and a judge's scores of two equally good generators, each of shape (2,
    prompts).
    """
    difficulty = rng.normal(0.5, 0.2, ALL_PROMPTS)
    own = rng.normal(0, 0.12, (2, ALL_PROMPTS))
    if "skewed" in law:
        own = (rng.exponential(0.12, (2, ALL_PROMPTS)) - 0.12) * np.array(
            [[1.0], [0.3]]
        )
    people = difficulty + own
    if law.startswith("difficulty"):
        return people, difficulty + rng.normal(0, 0.1, people.shape)
    if law.startswith("good"):
        return people, people + rng.normal(0, 0.08, people.shape)
    return people, rng.normal(0.5, 0.2, people.shape)


def corrected(law: str, rated: int, rng: np.random.Generator) -> dict[str, Estimate]:
    """The difference by the ratings alone, with a weight for each mean, and with one weight."""
    people, scores = judged(law, rng)
    ratings = np.where(np.arange(ALL_PROMPTS) < rated, people, np.nan)
    first, second = (
        partial(prediction_powered_mean, y, f, range(ALL_PROMPTS), 0.95, None)
        for y, f in zip(ratings, scores, strict=True)
    )
    weight = common_weight(first, second)
    return {
        "ratings": prediction_powered_difference(first(0.0), second(0.0))[0],
        "two weights": prediction_powered_difference(first(None), second(None))[0],
        "one weight": prediction_powered_difference(
            first(weight), second(weight), fitted=weight > 0
        )[0],
    }


def corrected_differences(runs: int, seed: int) -> None:
    rows = []
    for law in ("difficulty", "difficulty, skewed", "good", "good, skewed", "noise"):
        for rated in RATED:
            found = [
                corrected(law, rated, np.random.default_rng([seed, 4, rated, run]))
                for run in range(runs)
            ]
            error = {
                way: math.sqrt(np.mean([e[way].value ** 2 for e in found]))
                for way in found[0]
            }
            held = {
                way: np.mean([e[way].low <= 0 <= e[way].high for e in found])
                for way in found[0]
            }
            ratios = [
                f"{error[way] / error['ratings']:.3f}"
                for way in ("two weights", "one weight")
            ]
            rows.append(
                [
                    law,
                    str(rated),
                    *ratios,
                    *(f"{100 * held[way]:.1f}" for way in ("ratings", "one weight")),
                ]
            )
    print(
        f"Corrected differences, {ALL_PROMPTS} prompts: rmse over that of the ratings alone, and "
        "coverage, %"
    )
    table(
        [
            "judge",
            "rated",
            "two weights",
            "one weight",
            "ratings cover",
            "one weight covers",
        ],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("p", "differences", "means", "corrected"))
    options = parser.parse_args()
    print(f"{conditions()}; {options.runs} runs, seed {options.seed}")
    if options.only in (None, "p"):
        print(
            (
                f"p and interval disagree in {disagreements(options.runs, options.seed)} of "
                f"{options.runs}"
            ),
            flush=True,
        )
    for name, simulate in (
        ("differences", coverage_of_differences),
        ("means", coverage_of_means),
        ("corrected", corrected_differences),
    ):
        if options.only in (None, name):
            simulate(options.runs, options.seed)


if __name__ == "__main__":
    main()
