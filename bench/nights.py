"""A year of nightly gates against one baseline: red nights, retries, and a slow fall found by CUSUM.

    python -m bench.nights [--years 2000] [--seed 0]

Scores have the spread of VIEScore by GPT-4o on edits: the difference of two pictures of a prompt
has standard deviation .305. A build is equal to the baseline or lower by so much. Half of its
pictures, another half each night, are those of the baseline ("half the same"), or none ("other").
The gate is that of `vieval rank --margin 0.05`, and the CUSUM that of `--history`, with mean and
spread of the first 28 nights; beside it stands the CUSUM without widening.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from bench.common import table
from vieval_plugin.stats import drift
from vieval_plugin.stats.decisions import CUSUM_ALLOWANCE, CUSUM_LIMIT, FIRST_NIGHTS
from vieval_plugin.stats.non_inferiority import low_with_one_fall

Floats = NDArray[np.float64]
SPREAD, MARGIN, YEAR = 0.305 / np.sqrt(2), 0.05, 365
SIZES = (110, 200, 340)


def gated_nights(
    n: int,
    same: float,
    images: int,
    difference: float,
    rng: np.random.Generator,
    nights: int = YEAR,
) -> tuple[Floats, Floats]:
    """Mean difference of each night to one baseline with so many images a prompt, and whether it
    is red.
    """
    baseline = rng.normal(0, SPREAD / np.sqrt(images), n)
    scores = rng.normal(difference, SPREAD, (nights, n))
    shared = rng.random((nights, n)) < same
    differences = np.where(shared, difference, scores - baseline)
    error = differences.std(axis=1, ddof=1) / np.sqrt(n)
    means = differences.mean(axis=1)
    return means, np.asarray(low_with_one_fall(means, error, n) <= -MARGIN, dtype=float)


def correlated(nights: int, correlation: float, rng: np.random.Generator) -> Floats:
    """Nights of standard deviation 1, each of which depends on the one before."""
    noise = rng.normal(size=nights)
    for night in range(1, nights):
        noise[night] = (
            correlation * noise[night - 1] + np.sqrt(1 - correlation**2) * noise[night]
        )
    return noise


def alarm_after(nights: Floats) -> float:
    """Nights after the first 28 until an alarm, infinite without one."""
    found = drift.cusum(nights)
    return (
        np.inf
        if found is None or found.alarm is None
        else found.alarm - FIRST_NIGHTS + 1
    )


def without_widening(nights: Floats) -> float:
    """The same by the standard deviation of the first nights as it is."""
    first, later = nights[:FIRST_NIGHTS], nights[FIRST_NIGHTS:]
    scale = first.std(ddof=1) * np.sqrt(1 + 1 / FIRST_NIGHTS)
    total = 0.0
    for night, value in enumerate(later, start=1):
        total = max(0.0, total + (first.mean() - value) / scale - CUSUM_ALLOWANCE)
        if total > CUSUM_LIMIT:
            return night
    return np.inf


def red_nights(years: int, seed: int) -> None:
    rows = []
    for same, images in ((0.5, 1), (0.0, 1), (0.0, 4)):
        for n in SIZES:
            rng = np.random.default_rng([seed, n, images, int(10 * same)])
            shares = np.array(
                [
                    gated_nights(n, same, images, 0, rng, 20)[1].mean()
                    for _ in range(years)
                ]
            )
            low, high = np.percentile(shares, [10, 90])
            tried = min(years, 500)
            ever = np.mean(
                [
                    1 - gated_nights(n, same, images, -MARGIN, rng)[1].min()
                    for _ in range(tried)
                ]
            )
            pictures = "half the same" if same else "other"
            cells = (
                f"{100 * shares.mean():.0f}",
                f"{100 * low:.0f} to {100 * high:.0f}",
                f"{100 * ever:.0f}",
            )
            rows.append([pictures, str(images), str(n), *cells])
    headings = [
        "pictures",
        "images of the baseline",
        "prompts",
        "red nights, %",
        "of one baseline in ten to nine in ten",
    ]
    table(
        [*headings, "years in which a build worse by the margin passes once, %"], rows
    )


def alarms(years: int, seed: int) -> None:
    # a night of 200 prompts with half of the pictures the same, against a fixed baseline
    deviation = 0.0132
    rows = []
    for correlation in (0.0, 0.2, 0.3, 0.5):
        rng = np.random.default_rng([seed, int(100 * correlation)])
        series = [deviation * correlated(YEAR, correlation, rng) for _ in range(years)]
        falling = [nights - 0.02 * (np.arange(YEAR) >= 58) for nights in series]
        cells = []
        for found_after in (alarm_after, without_widening):
            false = np.mean([found_after(nights) < np.inf for nights in series])
            delays = np.array([found_after(nights) - 30 for nights in falling])
            cells += [f"{100 * false:.0f}", f"{np.median(delays[delays > 0]):.0f}"]
        rows.append([f"{correlation:g}", *cells])
    headings = [
        "correlation of nights",
        "false alarms in a first year, %",
        "nights until a fall of .02 is found",
    ]
    table([*headings, "without widening: false alarms, %", "nights"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--years", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.years} years a row, margin {MARGIN:g}\n")
    red_nights(options.years, options.seed)
    alarms(options.years, options.seed)


if __name__ == "__main__":
    main()
