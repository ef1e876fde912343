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

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from bench.common import conditions, script_parser, table
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
        law = laws[run % len(laws)]
        differences = law(rng, units) + shift
        groups = list(range(units))
        if run % 2:
            groups = rng.integers(0, units, units).tolist()
        compared = MeanDifference(differences, np.zeros(units), groups)
        found = paired_comparison(compared, seed=run)
        low = found.difference.low
        high = found.difference.high
        holds_zero = math.isnan(low) or low <= 0 <= high
        wrong += holds_zero != (found.p > 0.05)
    return wrong


def sign_swaps(n: int, rng: np.random.Generator) -> np.ndarray:
    """The swaps of prompts that `stats.comparison.sign_flip_interval` takes."""
    if 2**n <= PERMUTATIONS:
        return np.arange(2**n)[:, None] >> np.arange(n) & 1
    return rng.integers(0, 2, (1999, n))


def holds(differences: Floats, truth: float, rng: np.random.Generator) -> Floats:
    """True where the interval of a row's mean difference holds the truth, which is where the test has p > .05.

    Rows of shape (runs, prompts) have the same swaps here.
    """
    swaps = sign_swaps(differences.shape[1], rng)
    signs = 1.0 - 2 * swaps
    centred = differences - truth
    flipped = np.abs(centred @ signs.T)
    observed = np.abs(centred.sum(axis=1, keepdims=True))
    extreme = (flipped >= observed - 1e-9).sum(axis=1)
    return np.asarray(extreme > 0.05 * len(swaps))


def coverage_of_differences(runs: int, seed: int) -> None:
    rows = []
    for name, (law, truth) in DIFFERENCES.items():
        row = [name]
        for place, n in enumerate(PROMPTS):
            rng = np.random.default_rng([seed, 2, place])
            held = []
            for _ in range(runs // BATCH):
                differences = np.array([law(rng, n) for _ in range(BATCH)])
                held.append(holds(differences, truth, rng))
            row.append(f"{100 * np.mean(held):.1f}")
        rows.append(row)
    print(
        "Differences: share of 95% intervals that hold the truth, %, by the number of "
        "prompts"
    )
    table(["law of the differences", *map(str, PROMPTS)], rows)


def means_held(
    law: Law, truth: float, n: int, runs: int, rng: np.random.Generator
) -> Floats:
    """Shares of runs whose percentile interval, plain and expanded, holds the true mean."""
    held = np.zeros(2)
    prompts = [str(prompt) for prompt in range(n)]
    for _ in range(runs // BATCH):
        values = np.array([law(rng, n) for _ in range(BATCH)])
        counts = cluster_counts(prompts, seed=rng)
        for draws in values @ counts.T / n:
            for way, (low, high) in enumerate(
                (interval(draws), expanded_interval(draws, n))
            ):
                held[way] += low <= truth <= high
    return held / runs


def coverage_of_means(runs: int, seed: int) -> None:
    rows = []
    for name, (law, truth) in MEANS.items():
        plain_cells = []
        expanded_cells = []
        for place, n in enumerate(PROMPTS):
            rng = np.random.default_rng([seed, 3, place])
            plain, expanded = means_held(law, truth, n, runs, rng)
            plain_cells.append(f"{100 * plain:.1f}")
            expanded_cells.append(f"{100 * expanded:.1f}")
        rows.append([f"{name}, plain", *plain_cells])
        rows.append([f"{name}, expanded", *expanded_cells])
    print(
        "Means of one generator: share of 95% intervals that hold the truth, %, by the "
        "number of prompts"
    )
    table(["law of the scores, interval", *map(str, PROMPTS)], rows)


def judged(law: str, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """People's ratings and a judge's scores of two equally good generators, each of shape (2,
    prompts).
    """
    shape = (2, ALL_PROMPTS)
    difficulty = rng.normal(0.5, 0.2, ALL_PROMPTS)
    own = rng.normal(0, 0.12, shape)
    if "skewed" in law:
        scales = np.array([[1.0], [0.3]])
        own = (rng.exponential(0.12, shape) - 0.12) * scales
    people = difficulty + own
    if law.startswith("difficulty"):
        return people, difficulty + rng.normal(0, 0.1, shape)
    if law.startswith("good"):
        return people, people + rng.normal(0, 0.08, shape)
    return people, rng.normal(0.5, 0.2, shape)


def corrected(law: str, rated: int, rng: np.random.Generator) -> dict[str, Estimate]:
    """The difference by the ratings alone, with a weight for each mean, and with one weight."""
    people, scores = judged(law, rng)
    prompts = range(ALL_PROMPTS)
    ratings = np.where(np.array(prompts) < rated, people, np.nan)
    means = []
    for y, f in zip(ratings, scores, strict=True):
        means.append(partial(prediction_powered_mean, y, f, prompts, 0.95, None))
    first, second = means
    by_ratings, _ = prediction_powered_difference(first(0.0), second(0.0))
    by_two, _ = prediction_powered_difference(first(None), second(None))
    weight = common_weight(first, second)
    by_one, _ = prediction_powered_difference(
        first(weight), second(weight), fitted=weight > 0
    )
    return {
        "ratings": by_ratings,
        "two weights": by_two,
        "one weight": by_one,
    }


def corrected_differences(runs: int, seed: int) -> None:
    rows = []
    for law in ("difficulty", "difficulty, skewed", "good", "good, skewed", "noise"):
        for rated in RATED:
            estimates = defaultdict(list)
            for run in range(runs):
                rng = np.random.default_rng([seed, 4, rated, run])
                for way, estimate in corrected(law, rated, rng).items():
                    estimates[way].append(estimate)
            errors = {way: root_mean_square(found) for way, found in estimates.items()}
            row = [
                law,
                rated,
                errors["two weights"] / errors["ratings"],
                errors["one weight"] / errors["ratings"],
                100 * share_holding_zero(estimates["ratings"]),
                100 * share_holding_zero(estimates["one weight"]),
            ]
            rows.append(row)
    print(
        f"Corrected differences, {ALL_PROMPTS} prompts: rmse over that of the ratings "
        "alone, and coverage, %"
    )
    columns = {
        "judge": "",
        "rated": "",
        "two weights": ".3f",
        "one weight": ".3f",
        "ratings cover": ".1f",
        "one weight covers": ".1f",
    }
    table(columns, rows)


def root_mean_square(estimates: Sequence[Estimate]) -> float:
    return math.sqrt(np.mean([estimate.value**2 for estimate in estimates]))


def share_holding_zero(estimates: Sequence[Estimate]) -> float:
    return float(np.mean([found.low <= 0 <= found.high for found in estimates]))


def main() -> None:
    parser = script_parser(__doc__, runs=5000, seed=0)
    parser.add_argument("--only", choices=("p", "differences", "means", "corrected"))
    options = parser.parse_args()
    print(f"{conditions()}; {options.runs} runs, seed {options.seed}")
    if options.only in (None, "p"):
        wrong = disagreements(options.runs, options.seed)
        print(f"p and interval disagree in {wrong} of {options.runs}", flush=True)
    simulations = {
        "differences": coverage_of_differences,
        "means": coverage_of_means,
        "corrected": corrected_differences,
    }
    for name, simulate in simulations.items():
        if options.only in (None, name):
            simulate(options.runs, options.seed)


if __name__ == "__main__":
    main()
