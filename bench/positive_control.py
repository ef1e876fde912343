"""The positive control of a gate: planted judges and laws of scores, and how often each is passed.

    python -m bench.positive_control [--trials 2000] [--seed 0]

A build and its baseline are equal; their scores of a prompt correlate .5. A law says how scores of
a judge are spread. Spoilt images get what the planted judge makes of them: a good judge a low
score, one that sees the prompt alone another score of the same prompt, one that sees the image
alone the score of the image that the prompt got. Prompts are those with the highest scores of the
baseline (`highest`) or drawn at random (`random`). The control is that of `vieval rank --margin`;
before it was asked, each of these builds passed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtr

from bench.common import table
from vieval_plugin.stats.decisions import CONTROL_ITEMS
from vieval_plugin.stats.non_inferiority import control_change, exact_share

Floats = NDArray[np.float64]
PROMPTS, CORRELATION, MARGINS = 200, 0.5, (0.05, 0.1, 0.2, 0.3)
Law = Callable[[Floats], Floats]


def sparse(zeros: float) -> Law:
    """Scores of which a share is 0 and the others are spread from 0 to 1, by the quantile of a
    prompt.
    """
    above = beta(3, 2)
    return lambda q: np.where(
        q < zeros, 0.0, above(np.clip((q - zeros) / (1 - zeros), 0, 1))
    )


def beta(a: float, b: float) -> Law:
    """Scores of a beta distribution, by the quantile of a prompt."""
    quantiles = np.linspace(0, 1, 2001)
    values = stats.beta.ppf(quantiles, a, b)
    return lambda q: np.interp(q, quantiles, values)


LAWS: Mapping[str, Law] = {
    "easy, mean .8": beta(8, 2),
    "medium, mean .5": beta(2, 2),
    "edits, 50% at 0": sparse(0.5),
    "edits, 70% at 0": sparse(0.7),
    "edits, 78% at 0": sparse(0.78),
}
"""Score of a prompt by its quantile."""


def three_scores(law: Law, rng: np.random.Generator) -> Floats:
    """Scores of a build, of its baseline and of one more picture on each prompt, shape (3,
    prompts).
    """
    prompt, noise = rng.normal(size=PROMPTS), rng.normal(size=(3, PROMPTS))
    latent = np.sqrt(CORRELATION) * prompt + np.sqrt(1 - CORRELATION) * noise
    return np.round(law(ndtr(latent)), 2)


def control_of(
    judge: str, law: Law, own: Floats, again: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Scores of the build's own and of the spoilt images by a planted judge."""
    if judge == "good":
        return own, np.where(
            rng.random(len(own)) < 0.8, 0.0, rng.uniform(0, 0.3, len(own))
        )
    if judge == "noisy good":
        return own, law(rng.random(len(own))) * 0.5
    if judge == "constant .8":
        return np.full(len(own), 0.8), np.full(len(own), 0.8)
    if judge == ".7 and .8 at random":
        return rng.choice([0.7, 0.8], len(own)), rng.choice([0.7, 0.8], len(own))
    return own, again if judge == "sees the prompt alone" else rng.permutation(own)


def shares_passed(
    judge: str, law: Law, margin: float, trials: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Shares of controls that are seen on the prompts with the baseline's highest scores, and on
    prompts at random.
    """
    seen = np.zeros(2)
    for _ in range(trials):
        own, baseline, again = three_scores(law, rng)
        above = np.flatnonzero(baseline > margin)
        if len(above) < CONTROL_ITEMS:
            continue
        highest = above[np.argsort(-baseline[above], kind="stable")[:CONTROL_ITEMS]]
        for column, chosen in enumerate(
            (highest, rng.permutation(PROMPTS)[:CONTROL_ITEMS])
        ):
            change = control_change(
                *control_of(judge, law, own[chosen], again[chosen], rng)
            )
            seen[column] += change.high < -margin
    return float(seen[0] / trials), float(seen[1] / trials)


def both_ways(
    judge: str, margin: float, trials: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Shares of O seen by exchange, and by either way, for a judge that sees SC only and for one
    that sees PQ only.
    """
    exchanged = either = 0
    for _ in range(trials):
        sc, pq = (rng.beta(8, 2, CONTROL_ITEMS) for _ in range(2))
        own = np.sqrt(sc * pq)
        lost = rng.uniform(0, 0.2, CONTROL_ITEMS)
        after_exchange = np.sqrt(
            (lost if judge == "sees SC only" else rng.permutation(sc)) * pq
        )
        after_degrading = np.sqrt(sc * (lost if judge == "sees PQ only" else pq))
        seen = control_change(own, after_exchange).high < -margin
        exchanged += seen
        either += bool(seen or control_change(own, after_degrading).high < -margin)
    return exchanged / trials, either / trials


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(
        f"seed {options.seed}, {options.trials} trials a cell, {PROMPTS} prompts; before: all of "
        "these builds passed\n"
    )
    blind = (
        "sees the prompt alone",
        "sees the image alone",
        "constant .8",
        ".7 and .8 at random",
    )
    judges = ("good", "noisy good", *blind)
    rows = []
    for name, law in LAWS.items():
        for judge in judges:
            cells = []
            for margin in MARGINS:
                rng = np.random.default_rng([options.seed, int(100 * margin)])
                shares = shares_passed(judge, law, margin, options.trials, rng)
                cells.append(" / ".join(f"{100 * share:.1f}" for share in shares))
            rows.append([name, judge, *cells])
    table(
        [
            "law of scores",
            "judge",
            *(f"margin {m:g}: passed, highest / random, %" for m in MARGINS),
        ],
        rows,
    )
    rng = np.random.default_rng(options.seed)
    rows = [
        [
            judge,
            *(
                " / ".join(
                    f"{100 * s:.0f}" for s in both_ways(judge, m, options.trials, rng)
                )
                for m in MARGINS
            ),
        ]
        for judge in ("sees SC only", "sees PQ only")
    ]
    table(
        [
            "judge of O",
            *(f"margin {m:g}: seen by exchange / by either, %" for m in MARGINS),
        ],
        rows,
    )
    rows = [
        [
            f"{share:.0%}",
            *(f"{100 * contests(share, m, options.trials, rng):.1f}" for m in MARGINS),
        ]
        for share in (0.5, 0.7, 0.9, 0.95, 1.0)
    ]
    table(
        ["own's share of contests", *(f"margin {m:g}: seen, %" for m in MARGINS)], rows
    )


def contests(
    share: float, margin: float, trials: int, rng: np.random.Generator
) -> float:
    """Share of controls of `pairwise` that are seen, by how often the build's own image wins."""
    wins = rng.binomial(CONTROL_ITEMS, share, trials)
    return float(
        np.mean(
            [exact_share(int(won), CONTROL_ITEMS).low > 0.5 + margin for won in wins]
        )
    )


if __name__ == "__main__":
    main()
