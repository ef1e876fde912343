"""Prompts of templates in a gate: ten near-duplicates a group as ten prompts, and as one unit.

    python -m bench.gate_groups [--trials 2000] [--seed 0]

Differences of a prompt have standard deviation .215, and those of one group correlate .7. A pass is
false where the build is worse by the margin; "better" is a significant difference of equal builds.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from bench.common import script_parser, table
from vieval_plugin.stats.decisions import ONE_SIDED_LEVEL
from vieval_plugin.stats.non_inferiority import MeanOfDifferences

SPREAD = 0.215
CORRELATION = 0.7
A_GROUP = 10
MARGIN = 0.05


def shares(
    groups: int, difference: float, trials: int, rng: np.random.Generator
) -> list[float]:
    """Shares of passes and of significantly better builds, by prompts and by groups."""
    counts = np.zeros(4)
    names = np.repeat(np.arange(groups), A_GROUP).tolist()
    for _ in range(trials):
        shared = np.repeat(rng.normal(size=groups), A_GROUP)
        noise = rng.normal(size=groups * A_GROUP)
        latent = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * noise
        differences = difference + SPREAD * latent
        for column, units in enumerate((range(len(differences)), names)):
            mean = MeanOfDifferences.from_differences(differences, units)
            quantile = stats.t.ppf(1 - ONE_SIDED_LEVEL, mean.n - 1)
            counts[column] += mean.decision(MARGIN) == "not_worse"
            counts[2 + column] += abs(mean.value) > quantile * mean.error
    return [float(count / trials) for count in counts]


def main() -> None:
    options = script_parser(__doc__, trials=2000, seed=0).parse_args()
    print(
        f"seed {options.seed}, {options.trials} trials, margin {MARGIN:g}, in percent: "
        "by prompts / by groups\n"
    )
    rows = []
    for groups in (20, 60, 200):
        rng = np.random.default_rng([options.seed, groups])
        worse = shares(groups, -MARGIN, options.trials, rng)
        equal = shares(groups, 0.0, options.trials, rng)
        pairs = (worse[:2], equal[2:], equal[:2])
        cells = [" / ".join(f"{100 * share:.1f}" for share in pair) for pair in pairs]
        rows.append([f"{groups * A_GROUP} in {groups}", *cells])
    columns = [
        "prompts in groups",
        "false passes",
        "equal builds differ significantly",
        "equal builds pass",
    ]
    table(columns, rows)


if __name__ == "__main__":
    main()
