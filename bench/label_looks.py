"""Looks at labels in simulation: how often they decide, with how many labels, and how often they are wrong.

People's ratings alone, of each pair of ImagenHub's generators of one task, prompts in random order.
At no difference the two sides of each prompt are swapped at random. Rules: all labels at once, p of
at most .05 each 10 prompts (as who looks after each page does), and the finished quarters of a plan
at its levels.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
import scipy

from bench.common import conditions, table
from bench.labels_needed import RecordedTask, recorded_tasks
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.decisions import LOOK_LEVELS


def differences(task: RecordedTask) -> list[Floats]:
    """People's differences on common prompts of each two generators of a task."""
    table_of = np.full((task.generators.max() + 1, task.prompts.max() + 1), np.nan)
    table_of[task.generators, task.prompts] = task.ratings
    pairs = [
        table_of[first] - table_of[second]
        for first, second in combinations(range(len(table_of)), 2)
    ]
    return [pair[~np.isnan(pair)] for pair in pairs]


def p_values(sequences: Floats, ends: np.ndarray) -> Floats:
    """Two-sided p of Student's t after so many prompts of each sequence, shape (sequences,
    ends).
    """
    n = ends.astype(float)
    means = np.cumsum(sequences, axis=1)[:, ends - 1] / n
    squares = np.cumsum(sequences**2, axis=1)[:, ends - 1]
    errors = np.sqrt(np.maximum(squares / n - means**2, 1e-12) / (n - 1))
    return np.asarray(2 * scipy.stats.t.sf(np.abs(means) / errors, n - 1))


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
    found = {}
    for name, (ends, levels) in rules.items():
        significant = p_values(sequences, ends) <= levels
        decided = significant.any(axis=1)
        at = np.where(decided, ends[significant.argmax(axis=1)], n)
        found[name] = float(decided.mean()), float(at.mean() / n)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "data",
        type=Path,
        help="a folder with imagenhub/human_ratings and viescore_logs",
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=2000,
        help="random orders of each pair (default 2000)",
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{conditions()}; {options.runs} runs, seed {options.seed}")
    rng = np.random.default_rng(options.seed)
    pairs = [
        pair
        for task in recorded_tasks(options.data, "GPT-4o zero-shot")
        for pair in differences(task)
    ]
    for title in ("as people rated", "no difference"):
        found = []
        for pair in pairs:
            sequences = rng.permuted(np.tile(pair, (options.runs, 1)), axis=1)
            if title == "no difference":
                sequences *= rng.choice([-1.0, 1.0], sequences.shape)
            found.append(outcomes(sequences))
        rows = []
        for rule in found[0]:
            decided, used = np.mean([of_pair[rule] for of_pair in found], axis=0)
            rows.append([rule, f"{decided:.1%}", f"{used:.0%}"])
        prompts = np.mean([len(pair) for pair in pairs])
        print(f"{len(pairs)} pairs, {prompts:.0f} prompts in the mean, {title}:")
        table(["rule", "decided", "prompts used"], rows)


if __name__ == "__main__":
    main()
