"""A year of nightly gates against one baseline: red nights, retries, and a slow fall found by CUSUM.

    python -m bench.nights [--years 2000] [--seed 0]

Scores have the spread of VIEScore by GPT-4o on edits: the difference of two pictures of a prompt
has standard deviation .305. A build is equal to the baseline or lower by so much. Half of its
pictures, another half each night, are those of the baseline ("half the same"), or none ("other").
The gate is that of `vieval rank --margin 0.05`, and the CUSUM that of `--history`, with mean and
spread of the first 28 nights; beside it stands the CUSUM without widening.
"""

from __future__ import annotations

import numpy as np

from bench.common import script_parser, table
from vieval_plugin.stats import drift
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.decisions import CUSUM_ALLOWANCE, CUSUM_LIMIT, FIRST_NIGHTS
from vieval_plugin.stats.non_inferiority import low_with_one_fall

SPREAD = 0.305 / np.sqrt(2)
MARGIN = 0.05
YEAR = 365
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
    is_shared = rng.random((nights, n)) < same
    differences = np.where(is_shared, difference, scores - baseline)
    errors = differences.std(axis=1, ddof=1) / np.sqrt(n)
    means = differences.mean(axis=1)
    is_red = low_with_one_fall(means, errors, n) <= -MARGIN
    return means, np.asarray(is_red, dtype=float)


def correlated(nights: int, correlation: float, rng: np.random.Generator) -> Floats:
    """Nights of standard deviation 1, each of which depends on the one before."""
    values = rng.normal(size=nights)
    noise_weight = np.sqrt(1 - correlation**2)
    for night in range(1, nights):
        values[night] = correlation * values[night - 1] + noise_weight * values[night]
    return values


def alarm_after(nights: Floats) -> float:
    """Nights after the first 28 until an alarm, infinite without one."""
    found = drift.cusum(nights)
    if found is None or found.alarm is None:
        return np.inf
    return found.alarm - FIRST_NIGHTS + 1


def without_widening(nights: Floats) -> float:
    """The same by the standard deviation of the first nights as it is."""
    first = nights[:FIRST_NIGHTS]
    later = nights[FIRST_NIGHTS:]
    mean = first.mean()
    scale = first.std(ddof=1) * np.sqrt(1 + 1 / FIRST_NIGHTS)
    total = 0.0
    for night, value in enumerate(later, start=1):
        fall = (mean - value) / scale
        total = max(0.0, total + fall - CUSUM_ALLOWANCE)
        if total > CUSUM_LIMIT:
            return night
    return np.inf


def red_nights(years: int, seed: int) -> None:
    rows = []
    for same, images in ((0.5, 1), (0.0, 1), (0.0, 4)):
        pictures = "half the same" if same else "other"
        for n in SIZES:
            rng = np.random.default_rng([seed, n, images, int(10 * same)])
            shares = []
            for _ in range(years):
                _, is_red = gated_nights(n, same, images, 0, rng, 20)
                shares.append(is_red.mean())
            passes = []
            for _ in range(min(years, 500)):
                _, is_red = gated_nights(n, same, images, -MARGIN, rng)
                passes.append(1 - is_red.min())
            low, high = np.percentile(shares, [10, 90])
            tenths = f"{100 * low:.0f} to {100 * high:.0f}"
            mean = 100 * np.mean(shares)
            rows.append([pictures, images, n, mean, tenths, 100 * np.mean(passes)])
    columns = {
        "pictures": "",
        "images of the baseline": "",
        "prompts": "",
        "red nights, %": ".0f",
        "of one baseline in ten to nine in ten": "",
        "years in which a build worse by the margin passes once, %": ".0f",
    }
    table(columns, rows)


def alarms(years: int, seed: int) -> None:
    # a night of 200 prompts with half of the pictures the same, against a fixed baseline
    deviation = 0.0132
    fall = 0.02 * (np.arange(YEAR) >= 58)
    rows = []
    for correlation in (0.0, 0.2, 0.3, 0.5):
        rng = np.random.default_rng([seed, int(100 * correlation)])
        series = [deviation * correlated(YEAR, correlation, rng) for _ in range(years)]
        cells = []
        for nights_until in (alarm_after, without_widening):
            false = np.mean([nights_until(nights) < np.inf for nights in series])
            delays = np.array([nights_until(nights - fall) - 30 for nights in series])
            cells += [100 * false, np.median(delays[delays > 0])]
        rows.append([correlation, *cells])
    columns = {
        "correlation of nights": "g",
        "false alarms in a first year, %": ".0f",
        "nights until a fall of .02 is found": ".0f",
        "without widening: false alarms, %": ".0f",
        "nights": ".0f",
    }
    table(columns, rows)


def main() -> None:
    options = script_parser(__doc__, years=2000, seed=0).parse_args()
    print(f"seed {options.seed}, {options.years} years a row, margin {MARGIN:g}\n")
    red_nights(options.years, options.seed)
    alarms(options.years, options.seed)


if __name__ == "__main__":
    main()
