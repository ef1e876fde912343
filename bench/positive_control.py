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

from collections.abc import Callable, Mapping

import numpy as np
from scipy import stats
from scipy.special import ndtr

from bench.common import script_parser, table
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.decisions import CONTROL_ITEMS
from vieval_plugin.stats.non_inferiority import control_change, exact_share

PROMPTS = 200
CORRELATION = 0.5
MARGINS = (0.05, 0.1, 0.2, 0.3)
Law = Callable[[Floats], Floats]


def sparse(zeros: float) -> Law:
    """Scores of which a share is 0 and the others are spread from 0 to 1, by the quantile of a
    prompt.
    """
    above = beta(3, 2)

    def law(quantiles: Floats) -> Floats:
        rescaled = (quantiles - zeros) / (1 - zeros)
        return np.where(quantiles < zeros, 0.0, above(np.clip(rescaled, 0, 1)))

    return law


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
JUDGES = (
    "good",
    "noisy good",
    "sees the prompt alone",
    "sees the image alone",
    "constant .8",
    ".7 and .8 at random",
)


def three_scores(law: Law, rng: np.random.Generator) -> Floats:
    """Scores of a build, of its baseline and of one more picture on each prompt, shape (3,
    prompts).
    """
    prompt = rng.normal(size=PROMPTS)
    noise = rng.normal(size=(3, PROMPTS))
    latent = np.sqrt(CORRELATION) * prompt + np.sqrt(1 - CORRELATION) * noise
    return np.round(law(ndtr(latent)), 2)


def control_of(
    judge: str, law: Law, own: Floats, again: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Scores of the build's own and of the spoilt images by a planted judge."""
    prompts = len(own)
    if judge == "good":
        is_zero = rng.random(prompts) < 0.8
        return own, np.where(is_zero, 0.0, rng.uniform(0, 0.3, prompts))
    if judge == "noisy good":
        return own, law(rng.random(prompts)) * 0.5
    if judge == "constant .8":
        return np.full(prompts, 0.8), np.full(prompts, 0.8)
    if judge == ".7 and .8 at random":
        return rng.choice([0.7, 0.8], prompts), rng.choice([0.7, 0.8], prompts)
    if judge == "sees the prompt alone":
        return own, again
    return own, rng.permutation(own)


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
        order = np.argsort(-baseline[above], kind="stable")
        highest = above[order[:CONTROL_ITEMS]]
        at_random = rng.permutation(PROMPTS)[:CONTROL_ITEMS]
        for column, prompts in enumerate((highest, at_random)):
            control = control_of(judge, law, own[prompts], again[prompts], rng)
            seen[column] += control_change(*control).high < -margin
    return float(seen[0] / trials), float(seen[1] / trials)


def both_ways(
    judge: str, margin: float, trials: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Shares of O seen by exchange, and by either way, for a judge that sees SC only and for one
    that sees PQ only.
    """
    exchanged = 0
    either = 0
    for _ in range(trials):
        sc = rng.beta(8, 2, CONTROL_ITEMS)
        pq = rng.beta(8, 2, CONTROL_ITEMS)
        lost = rng.uniform(0, 0.2, CONTROL_ITEMS)
        own = np.sqrt(sc * pq)
        if judge == "sees SC only":
            after_exchange = np.sqrt(lost * pq)
            after_degrading = own
        else:
            after_exchange = np.sqrt(rng.permutation(sc) * pq)
            after_degrading = np.sqrt(sc * lost)
        is_seen = control_change(own, after_exchange).high < -margin
        exchanged += is_seen
        if is_seen or control_change(own, after_degrading).high < -margin:
            either += 1
    return exchanged / trials, either / trials


def print_laws(trials: int, seed: int) -> None:
    """Print the shares of controls that each planted judge passes, by the law of its scores."""
    rows = []
    for name, law in LAWS.items():
        for judge in JUDGES:
            cells = []
            for margin in MARGINS:
                rng = np.random.default_rng([seed, int(100 * margin)])
                highest, at_random = shares_passed(judge, law, margin, trials, rng)
                cells.append(f"{100 * highest:.1f} / {100 * at_random:.1f}")
            rows.append([name, judge, *cells])
    headings = [f"margin {m:g}: passed, highest / random, %" for m in MARGINS]
    table(["law of scores", "judge", *headings], rows)


def print_both_ways(trials: int, rng: np.random.Generator) -> None:
    """Print what exchanged and degraded images show of judges that see one aspect."""
    rows = []
    for judge in ("sees SC only", "sees PQ only"):
        cells = []
        for margin in MARGINS:
            exchanged, either = both_ways(judge, margin, trials, rng)
            cells.append(f"{100 * exchanged:.0f} / {100 * either:.0f}")
        rows.append([judge, *cells])
    headings = [f"margin {m:g}: seen by exchange / by either, %" for m in MARGINS]
    table(["judge of O", *headings], rows)


def print_contests(trials: int, rng: np.random.Generator) -> None:
    """Print how often controls of `pairwise` are seen."""
    rows = []
    for share in (0.5, 0.7, 0.9, 0.95, 1.0):
        seen = [contests(share, margin, trials, rng) for margin in MARGINS]
        cells = [f"{100 * share_seen:.1f}" for share_seen in seen]
        rows.append([f"{share:.0%}", *cells])
    headings = [f"margin {m:g}: seen, %" for m in MARGINS]
    table(["own's share of contests", *headings], rows)


def main() -> None:
    options = script_parser(__doc__, trials=2000, seed=0).parse_args()
    print(
        f"seed {options.seed}, {options.trials} trials a cell, {PROMPTS} prompts; "
        "before: all of these builds passed\n"
    )
    print_laws(options.trials, options.seed)
    rng = np.random.default_rng(options.seed)
    print_both_ways(options.trials, rng)
    print_contests(options.trials, rng)


def contests(
    share: float, margin: float, trials: int, rng: np.random.Generator
) -> float:
    """Share of controls of `pairwise` that are seen, by how often the build's own image wins."""
    wins = rng.binomial(CONTROL_ITEMS, share, trials)
    lows = [exact_share(int(won), CONTROL_ITEMS).low for won in wins]
    return float(np.mean([low > 0.5 + margin for low in lows]))


if __name__ == "__main__":
    main()
