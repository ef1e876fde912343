"""Looks at labels in simulation: how often they decide, with how many labels, and how often they are wrong.

People's ratings alone, of each pair of ImagenHub's generators of one task, prompts in random order.
At no difference the two sides of each prompt are swapped at random. Rules: all labels at once, p of
at most .05 each 10 prompts (as who looks after each page does), and the finished quarters of a plan
at its levels.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import scipy

from bench.common import IMAGENHUB_FOLDER, conditions, script_parser, table
from bench.labels_needed import RecordedTask, recorded_tasks
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.decisions import LOOK_LEVELS


def differences(task: RecordedTask) -> list[Floats]:
    """People's differences on common prompts of each two generators of a task."""
    shape = (task.generators.max() + 1, task.prompts.max() + 1)
    ratings = np.full(shape, np.nan)
    ratings[task.generators, task.prompts] = task.ratings
    pairs = []
    for first, second in combinations(ratings, 2):
        difference = first - second
        is_common = ~np.isnan(difference)
        pairs.append(difference[is_common])
    return pairs


def p_values(sequences: Floats, ends: np.ndarray) -> Floats:
    """Two-sided p of Student's t after so many prompts of each sequence, shape (sequences,
    ends).
    """
    n = ends.astype(float)
    means = np.cumsum(sequences, axis=1)[:, ends - 1] / n
    squares = np.cumsum(sequences**2, axis=1)[:, ends - 1] / n
    variances = np.maximum(squares - means**2, 1e-12)
    errors = np.sqrt(variances / (n - 1))
    t = np.abs(means) / errors
    return np.asarray(2 * scipy.stats.t.sf(t, n - 1))


def outcomes(sequences: Floats) -> dict[str, tuple[float, float]]:
    """By rule: the share of sequences that are decided, and the mean share of their prompts at
    that look.
    """
    n = sequences.shape[1]
    quarters = np.array([-(-n * quarter // 4) for quarter in range(1, 5)])
    every_ten = np.unique([*range(10, n, 10), n])
    rules = {
        "all labels at once": (np.array([n]), np.array([0.05])),
        "p <= .05 each 10 prompts": (every_ten, np.full(len(every_ten), 0.05)),
        "quarters of a plan": (quarters, np.array(LOOK_LEVELS)),
    }
    by_rule = {}
    for rule, (ends, levels) in rules.items():
        is_significant = p_values(sequences, ends) <= levels
        is_decided = is_significant.any(axis=1)
        first_looks = is_significant.argmax(axis=1)
        prompts = np.where(is_decided, ends[first_looks], n)
        by_rule[rule] = (
            float(is_decided.mean()),
            float(prompts.mean() / n),
        )
    return by_rule


def main() -> None:
    parser = script_parser(__doc__, seed=0)
    parser.add_argument("data", type=Path, help=IMAGENHUB_FOLDER)
    parser.add_argument(
        "--runs",
        type=int,
        default=2000,
        help="random orders of each pair (default 2000)",
    )
    options = parser.parse_args()
    print(f"{conditions()}; {options.runs} runs, seed {options.seed}")
    rng = np.random.default_rng(options.seed)
    pairs = []
    for task in recorded_tasks(options.data, "GPT-4o zero-shot"):
        pairs += differences(task)
    for title in ("as people rated", "no difference"):
        by_pair = []
        for pair in pairs:
            copies = np.tile(pair, (options.runs, 1))
            sequences = rng.permuted(copies, axis=1)
            if title == "no difference":
                sequences *= rng.choice([-1.0, 1.0], sequences.shape)
            by_pair.append(outcomes(sequences))
        rows = []
        for rule in by_pair[0]:
            means = np.mean([by_rule[rule] for by_rule in by_pair], axis=0)
            rows.append([rule, *means])
        prompts = np.mean([len(pair) for pair in pairs])
        print(f"{len(pairs)} pairs, {prompts:.0f} prompts in the mean, {title}:")
        columns = {
            "rule": "",
            "decided": ".1%",
            "prompts used": ".0%",
        }
        table(columns, rows)


if __name__ == "__main__":
    main()
