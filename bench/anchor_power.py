"""Power of `vieval anchor check` at the difference that it says it finds, and its false alarms, by simulation.

A judge gives scores in steps of a tenth. With the chance `noise` an answer lies a step beside its
item's own, so that two answers to an item differ more often than that. After a change of the server
the new answer to some items, a binomial number, is one that no repeat gave; there are as many as
make the expected difference of the two values of `changed` what the column `detectable` says. A
check finds drift where any adjusted p is at most .05, and the change where that of `changed` is.
"""

from __future__ import annotations

import numpy as np
from tqdm import tqdm

from bench.common import script_parser, table
from vieval_plugin.stats.decisions import DRIFT_LEVEL
from vieval_plugin.stats.drift import drift_tests

NOISE = (0.0, 0.05, 0.4)
REPEATS = 3


def power(noise: float, items: int, runs: int, seed: int) -> tuple[float, float]:
    """Share of checks that find changed answers, and the mean difference that they said they find.

    Args:
        noise: chance of an answer beside the item's own.
        items: number of samples of the anchor.
        runs: number of anchors.
        seed: of all that is random.
    """
    rng = np.random.default_rng(seed)
    detected = 0
    claimed = 0.0
    equal_chance = (1 - noise) ** 2 + noise**2 / 2
    for run in range(runs):
        points = answers(rng, noise, items, REPEATS + 1)
        smallest = _tests(points, run)[0].smallest
        share = smallest / equal_chance  # the others differ from the repeats as it is
        is_changed = rng.random(items) < share
        signs = rng.choice([-1, 1], size=is_changed.sum())
        points[is_changed, -1] += 3 * signs
        check = _tests(points, run)[0]
        detected += check.adjusted <= DRIFT_LEVEL
        claimed += smallest
    return detected / runs, claimed / runs


def false_alarms(noise: float, items: int, runs: int, seed: int) -> tuple[float, float]:
    """Share of checks of an unchanged judge that call it drifted, and of pairs of checks that
    both do.
    """
    rng = np.random.default_rng(seed)
    first = 0
    second = 0
    for run in range(runs):
        points = answers(rng, noise, items, REPEATS + 2)
        if _drift(points[:, :-1], 2 * run):
            first += 1
            next_check = np.delete(points, REPEATS, axis=1)
            second += _drift(next_check, 2 * run + 1)
    return first / runs, second / runs


def answers(
    rng: np.random.Generator, noise: float, items: int, columns: int
) -> np.ndarray:
    """Scores in tenths, shape (items, columns)."""
    own = rng.integers(3, 8, size=(items, 1))
    chances = [noise / 2, 1 - noise, noise / 2]
    return own + rng.choice([-1, 0, 1], p=chances, size=(items, columns))


def _tests(points, seed):
    return drift_tests(points, points / 10, np.ones(points.shape), seed)


def _drift(points, seed):
    return any(test.adjusted <= DRIFT_LEVEL for test in _tests(points, seed))


def main() -> None:
    parser = script_parser(__doc__, runs=400, seed=0)
    parser.add_argument("--items", type=int, nargs="+", default=[200])
    options = parser.parse_args()
    rows = []
    for items in options.items:
        for noise in tqdm(NOISE, desc=f"{items} items", disable=None):
            found, claimed = power(noise, items, options.runs, options.seed)
            once, twice = false_alarms(noise, items, options.runs, options.seed)
            rows.append([items, noise, claimed, found, once, twice])
    print(f"seed {options.seed}, {options.runs} anchors a row, {REPEATS} repeats")
    columns = {
        "items": "",
        "noise": "",
        "detectable": ".3f",
        "found": ".1%",
        "false alarm": ".1%",
        "twice in a row": ".1%",
    }
    table(columns, rows)


if __name__ == "__main__":
    main()
