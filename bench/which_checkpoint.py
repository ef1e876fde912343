"""Simulated trainings: how often the steps that are named lack the best one, and how many they are.

    python -m bench.which_checkpoint [--steps 12] [--prompts 200] [--trials 200] [--seed 0]

The true mean falls by .05 a step on both sides of the best, which is any step; the difference of two
steps on one prompt has a standard deviation of .3. `flat` has all steps equal but for the best, which
is .05 above, and `equal` all of them equal, where any one is taken as the best.
"""

from __future__ import annotations

import numpy as np

from bench.common import script_parser, table
from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import compare_systems
from vieval_plugin.stats.options import StatisticsOptions

GAP = 0.05
SPREAD = 0.3


def true_means(shape: str, best: int, steps: int) -> np.ndarray:
    """The means of the steps, 0 for the best."""
    distance = abs(np.arange(steps) - best)
    if shape == "equal":
        return np.zeros(steps)
    if shape == "flat":
        distance = np.minimum(distance, 1)
    return -GAP * distance


def simulate(
    steps: int, prompts: int, trials: int, seed: int, shape: str = "peak"
) -> tuple[int, list[int]]:
    """Trainings whose set lacks the best step, and the sizes of all sets."""
    rng = np.random.default_rng([seed, steps, prompts])
    missing = 0
    sizes = []
    names = [f"step_{number}" for number in range(steps)]
    for _ in range(trials):
        best = int(rng.integers(steps))
        noise = rng.normal(size=(steps, prompts)) * SPREAD / np.sqrt(2)
        scores = true_means(shape, best, steps)[:, None] + noise
        items = {}
        for name, values in zip(names, scores.tolist(), strict=True):
            items[name] = judged_items(values)
        compared = compared_means("all", "O", "mean", items, "prompts", "generators")
        found = compare_systems(compared, "own", StatisticsOptions(), intervals=False)
        missing += names[best] not in found.contenders
        sizes.append(len(found.contenders))
    return missing, sizes


def judged_items(values: list[float]) -> dict[str, JudgedItem]:
    """The scores of a step by prompt."""
    items = {}
    for number, value in enumerate(values):
        prompt = f"p{number}"
        items[prompt] = JudgedItem(prompt, value)
    return items


def main() -> None:
    parser = script_parser(__doc__, steps=12, prompts=200, trials=200, seed=0)
    options = vars(parser.parse_args())
    rows = []
    for shape in ("peak", "flat", "equal"):
        missing, sizes = simulate(**options, shape=shape)
        median, high = np.percentile(sizes, [50, 95])
        rows.append([shape, f"{missing} of {len(sizes)}", median, high])
    columns = {
        "means": "",
        "best missing": "",
        "median set": "g",
        "95th percentile": "g",
    }
    table(columns, rows)


if __name__ == "__main__":
    main()
