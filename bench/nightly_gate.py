"""A nightly build's gate beside a bare threshold at the same margin, on recorded scores.

    python -m bench.nightly_gate LOGS [--trials 2000] [--seed 0]

LOGS is the folder of the VIEScore authors' logs. Of each judge and two editors whose scores are recorded on the same
prompts, the prompts are drawn anew. One editor is the last build; the other one's differences, whose spread is that of
images which have nothing but the prompt in common, are moved so that the true difference is 0, minus the margin or minus
twice the margin. The threshold is the last build's mean on the same prompts less the margin. Builds that share their
seeds differ less: there half of the prompts, drawn anew, have the last build's score.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.common import table
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.results.logs import viescore
from vieval_plugin.stats.non_inferiority import MeanOfDifferences

Floats = NDArray[np.float64]
JUDGES = {"GPT-4o": "results_gpt4o_0shot", "GPT-4v": "results_gpt4v_0shot", "LLaVA": "results_llava_0shot"}
EDITS = "ImagenHub_Text-Guided_IE"
SIZES, MARGIN, SHARED = (110, 300), 0.05, 0.5
MARGINS = (0.02, 0.05, 0.1)


def scores_of(logs: Path, folder: str) -> dict[str, dict[str, float]]:
    """The overall score of each editor's prompts."""
    verdicts = viescore.read(logs / folder / EDITS, lambda model, name: SampleId("own", "tie", model, name))
    by_editor: dict[str, dict[str, float]] = defaultdict(dict)
    for identity, verdict in verdicts.items():
        if "O" in verdict.scores:
            by_editor[identity.image_model][identity.uid] = verdict.scores["O"]
    return by_editor


def differences_of(by_editor: dict[str, dict[str, float]]) -> list[Floats]:
    """Of each two editors, the differences on the prompts of both, with mean 0."""
    pairs = []
    for first, second in combinations(sorted(by_editor), 2):
        common = sorted(by_editor[first].keys() & by_editor[second].keys())
        raw = np.array([by_editor[first][uid] - by_editor[second][uid] for uid in common])
        pairs.append(raw - raw.mean())
    return pairs


def shares(
    pairs: list[Floats], n: int, shift: float, trials: int, rng: np.random.Generator, shared: float = 0.0
) -> tuple[float, float, float]:
    """Shares of builds that the threshold passes, that the gate passes, and that the gate fails."""
    threshold, passed, failed = 0, 0, 0
    for trial in range(trials):
        drawn = rng.choice(pairs[trial % len(pairs)], n)
        drawn = np.where(rng.random(n) < shared, 0, drawn) + shift
        decision = MeanOfDifferences.from_differences(drawn, range(n)).decision(MARGIN)
        threshold += bool(drawn.mean() >= -MARGIN)
        passed += decision == "not_worse"
        failed += decision == "worse"
    return threshold / trials, passed / trials, failed / trials


def prompts_needed(pairs: list[Floats], margin: float, shared: float = 0.0) -> float:
    """Prompts with which an equal build passes four times of five, by the mean variance of all pairs."""
    spread = float(np.sqrt((1 - shared) * np.mean([pair.var() for pair in pairs])))
    return MeanOfDifferences(0.0, spread / np.sqrt(110), 110).items_needed(margin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=Path, help="folder with results_gpt4o_0shot and others")
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    errors, needed, widths = [], [], []
    for judge, folder in JUDGES.items():
        by_editor = scores_of(options.logs, folder)
        pairs = differences_of(by_editor)
        for shared, seeds in ((0.0, "no"), (SHARED, "half")):
            cells = [prompts_needed(pairs, margin, shared) for margin in MARGINS]
            needed.append([judge, seeds, *(f"{cell:,.0f}" for cell in cells)])
            for n in SIZES:
                row = [judge, seeds, str(n)]
                for factor in (0, 1, 2):
                    bare, passed, failed = shares(pairs, n, -factor * MARGIN, options.trials, rng, shared)
                    row += [
                        f"{100 * bare:.0f}",
                        f"{100 * passed:.0f} / {100 * (1 - passed - failed):.0f} / {100 * failed:.0f}",
                    ]
                errors.append(row)
        alone = [1.96 * np.std(list(of_editor.values()), ddof=1) / np.sqrt(110) for of_editor in by_editor.values()]
        paired = [1.96 * pair.std(ddof=1) / np.sqrt(110) for pair in pairs]
        half = [1.96 * pair.std(ddof=1) * np.sqrt(SHARED) / np.sqrt(110) for pair in pairs]
        widths.append([judge, str(len(by_editor)), *(f"{float(np.mean(w)):.3f}" for w in (alone, paired, half))])
    print(f"{options.trials} builds a cell, seed {options.seed}, margin {MARGIN:g}\n")
    table(["judge", "editors", "mean of 110", "difference, other pictures", "difference, half the same"], widths)
    headings = [
        f"{name} {words}" for words in ("equal", "worse by margin", "worse by 2 margins") for name in ("bare", "gate")
    ]
    table(["judge", "same", "n", *headings], errors)
    table(["judge", "same", *(f"margin {margin:g}" for margin in MARGINS)], needed)


if __name__ == "__main__":
    main()
