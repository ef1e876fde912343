"""The gate of `vieval rank --margin`: how often it passes what it must not, and what it must.

    python bench/gate.py [--trials 20000] [--seed 0]

Differences of scores from 0 to 1 are drawn with their true mean at minus the margin, so each pass
is false; 2.5% is the level, and Student's t without the added prompt stands beside. In the shapes
of rare falls a third of the other prompts moves by .1 up or down, or none does. Then the power, the
same generator twice with failures on both sides (scores about .8, differences with spread .15), and
two cases of failures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import numpy as np
from common import first_line, script_parser
from scipy import stats

from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.decisions import ONE_SIDED_LEVEL
from vieval_plugin.stats.non_inferiority import low_with_one_fall

SIZES = (20, 40, 100, 300, 1000)
SHARES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
FALLS = (0.3, 0.5, 0.6, 0.8, 1.0)
LEVEL_OF_SCORES = 0.8
SHAPES: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "3% fall by .6": ((-0.6, -0.1, 0.1, 0.0), (0.03, 0.97 / 6, 0.97 / 6, 0.97 * 2 / 3)),
    "3% fall by 1": ((-1.0, -0.1, 0.1, 0.0), (0.03, 0.97 / 6, 0.97 / 6, 0.97 * 2 / 3)),
    "10% fall by .5": ((-0.5, -0.1, 0.1, 0.0), (0.1, 0.15, 0.15, 0.6)),
    "70% +.3, 30% -.7": ((0.3, -0.7), (0.7, 0.3)),
    "3% change by .1, margin 0": ((-0.1, 0.1, 0.0), (0.015, 0.015, 0.97)),
}
"""Values of a difference and their probabilities, by the words for them."""


def passes(mean: Floats, error: Floats, n: int, margin: float) -> tuple[Floats, Floats]:
    """Whether each trial passes by the gate, and by Student's t alone."""
    quantile = stats.t.ppf(1 - ONE_SIDED_LEVEL, n - 1)
    gate_passes = low_with_one_fall(mean, error, n) > -margin
    t_passes = mean - quantile * error > -margin
    return np.asarray(gate_passes, dtype=float), np.asarray(t_passes, dtype=float)


def of_values(
    values: Sequence[float],
    shares: Sequence[float],
    n: int,
    trials: int,
    rng: np.random.Generator,
) -> str:
    """Shares of false passes where differences take few values and the margin is their mean."""
    value = np.array(values)
    margin = max(0.0, -float(np.dot(values, shares)))
    if margin < 1e-12:
        margin = 0.0
    counts = rng.multinomial(n, np.array(shares) / sum(shares), trials)
    mean = counts @ value / n
    variance = np.maximum(counts @ value**2 / n - mean**2, 0)
    error = np.sqrt(variance / (n - 1))
    return cell(passes(np.round(mean, 12), error, n, margin))


def of_normal(
    mean: float, sd: float, n: int, margin: float, trials: int, rng: np.random.Generator
) -> str:
    """Shares of passes where differences are those of images drawn anew."""
    means = rng.normal(mean, sd / np.sqrt(n), trials)
    errors = sd * np.sqrt(rng.chisquare(n - 1, trials) / (n - 1) / n)
    return cell(passes(means, errors, n, margin))


def cell(shares: tuple[Floats, Floats]) -> str:
    """The gate's share of passes, and in brackets that of t alone."""
    gate, t = shares
    return f"{100 * gate.mean():.1f} ({100 * t.mean():.1f})"


def with_failures(
    n: int,
    new_rate: float,
    old_rate: float,
    trials: int,
    rng: np.random.Generator,
    both: bool = True,
) -> float:
    """Share of trials that pass whole: without failures, with these as 0, and no more failures than the old generator's.

    `both` false takes the old one's score where it failed.
    """
    spread = 0.15 / np.sqrt(2)
    new = rng.normal(LEVEL_OF_SCORES, spread, (trials, n))
    old = rng.normal(LEVEL_OF_SCORES, spread, (trials, n))
    new_failed = rng.random((trials, n)) < new_rate
    old_failed = rng.random((trials, n)) < old_rate
    scored = np.where(new_failed | old_failed, np.nan, new - old)
    new_filled = np.where(new_failed, 0, new)
    old_filled = np.where(old_failed, 0, old) if both else old
    new_alone = (new_failed & ~old_failed).sum(axis=1)
    old_alone = (old_failed & ~new_failed).sum(axis=1)
    p = stats.binom.sf(new_alone - 1, new_alone + old_alone, 0.5)
    is_passed = passed(scored) & passed(new_filled - old_filled) & (p > ONE_SIDED_LEVEL)
    return float(is_passed.mean())


def passed(differences: Floats) -> np.ndarray:
    """Whether each trial passes by the gate at margin .05, without the differences that are NaN."""
    n = (~np.isnan(differences)).sum(axis=1)
    means = np.nanmean(differences, axis=1)
    errors = np.nanstd(differences, axis=1, ddof=1) / np.sqrt(n)
    return low_with_one_fall(means, errors, n) > -0.05


def print_heading(title: str) -> None:
    """Print the head of a table by prompts."""
    print(f"| {title} | {' | '.join(map(str, SIZES))} |\n|{'---|' * (len(SIZES) + 1)}")


def print_row(name: str, cells: Iterable[str]) -> None:
    print(f"| {name} | {' | '.join(cells)} |")


def print_false_passes(trials: int, rng: np.random.Generator) -> None:
    """Print how often a build passes that is worse by the margin."""
    print_heading("false passes, by prompts")
    redrawn = [of_normal(-0.05, 0.15, n, 0.05, trials, rng) for n in SIZES]
    print_row("images drawn anew, sd .15, margin .05", redrawn)
    for words, (values, shares) in SHAPES.items():
        cells = [of_values(values, shares, n, trials, rng) for n in SIZES]
        print_row(words, cells)
    for share, fall, part in product(SHARES, FALLS, (1 / 3, 0.0)):
        moved = (1 - share) * part / 2
        values = (-fall, -0.1, 0.1, 0.0)
        shares = (share, moved, moved, 1 - share - 2 * moved)
        cells = [of_values(values, shares, n, trials, rng) for n in SIZES]
        print_row(f"{share:.1%} fall by {fall}, {part:.0%} move by .1", cells)


def print_power(trials: int, rng: np.random.Generator) -> None:
    """Print how often an equal build passes."""
    print()
    print_heading("passes at difference 0, sd .15")
    for margin in (0.05, 0.02, 0.01):
        cells = [of_normal(0, 0.15, n, margin, trials, rng) for n in SIZES]
        print_row(f"margin {margin}", cells)
    print_row("margin .05 at 200 prompts", [of_normal(0, 0.15, 200, 0.05, trials, rng)])


def print_failures(trials: int, rng: np.random.Generator) -> None:
    """Print how often builds with failures pass."""
    print(
        "\n| the same generator twice, margin .05, failures | 100 | 200 | 400 | 200, on "
        "the new side as 0 alone |"
    )
    print("|---|---|---|---|---|")
    for rate in (0.01, 0.03, 0.05):
        shares = [with_failures(n, rate, rate, trials, rng) for n in (100, 200, 400)]
        shares.append(with_failures(200, rate, rate, trials, rng, both=False))
        cells = [f"{100 * share:.0f}" for share in shares]
        print_row(f"{rate:.0%}", cells)
    print("\n| new images that failed, of 200; old ones 0 | passes |\n|---|---|")
    for failed in (67, 99):
        share = with_failures(200, failed / 200, 0, trials, rng)
        print_row(str(failed), [f"{100 * share:.2f}"])


def main() -> None:
    """Print tables in percent."""
    parser = script_parser(first_line(__doc__), trials=20_000, seed=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print(
        f"seed {options.seed}, {options.trials} trials, passes in percent: the gate "
        "(Student's t alone)\n"
    )
    print_false_passes(options.trials, rng)
    print_power(options.trials, rng)
    print_failures(options.trials, rng)


if __name__ == "__main__":
    main()
