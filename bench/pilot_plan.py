"""What eight samples say of the tokens of a run: how often an interval of Student's t holds the total, and a limit does.

Laws of the tokens of an answer have a rare tail, as models that think have. The limit is
`max_tokens` of each call, which `vieval score --plan` names beside what the pilot took.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import numpy as np
import scipy

from bench.common import conditions, table
from vieval_plugin.run.plan import PILOT
from vieval_plugin.stats.correlation import Floats

SAMPLES, LIMIT = 1000, 4096
LAWS: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "normal, 100 and 20": lambda rng, shape: rng.normal(100, 20, shape),
    "1% twenty times as long": lambda rng, shape: (
        100 * np.where(rng.random(shape) < 0.01, 20, 1) + rng.normal(0, 5, shape)
    ),
    "5% up to the limit": lambda rng, shape: np.where(
        rng.random(shape) < 0.05, LIMIT, rng.normal(100, 10, shape)
    ),
    "lognormal, 1.5": lambda rng, shape: rng.lognormal(4, 1.5, shape),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(
        f"{conditions()}; {options.runs} runs of {SAMPLES} samples, seed {options.seed}"
    )
    reach = scipy.stats.t.ppf(0.975, PILOT - 1) * np.sqrt((1 - PILOT / SAMPLES) / PILOT)
    rows = []
    for name, law in LAWS.items():
        tokens = np.clip(
            law(np.random.default_rng(options.seed), (options.runs, SAMPLES)), 1, LIMIT
        )
        truth, pilot = tokens.mean(axis=1), tokens[:, :PILOT]
        half = reach * pilot.std(axis=1, ddof=1)
        held = np.abs(pilot.mean(axis=1) - truth) <= half
        above = truth > pilot.mean(axis=1) + half
        rows.append(
            [
                name,
                f"{held.mean():.0%}",
                f"{above.mean():.0%}",
                f"{(truth <= LIMIT).mean():.0%}",
            ]
        )
    table(
        [
            "tokens of an answer",
            "interval holds the total",
            "total above it",
            "total within the limit",
        ],
        rows,
    )


if __name__ == "__main__":
    main()
