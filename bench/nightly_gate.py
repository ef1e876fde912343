"""A nightly build's gate beside a bare threshold at the same margin, on recorded scores.

    python -m bench.nightly_gate LOGS [--trials 500] [--seed 0]

LOGS is the folder of the VIEScore authors' logs. Of each judge and two editors with recorded
answers on the same prompts, prompts are drawn anew. One editor is the last build, and the other one
the new build: half of its prompts have the answer of the last build, as of builds that share their
seeds. Its other scores are raised or lowered together, within 0 and 1, until the true difference is
0, minus the margin or minus twice the margin; a last build whose scores are too low to lose as much
is no case. The gate is that of `vieval rank --margin`, on the verdicts as they are, with answers
that could not be read as failures; the threshold is the last build's mean on the same prompts less
the margin, and looks at scores alone.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from tqdm import tqdm

from bench.common import table
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.records import Provenance, record_of
from vieval_plugin.report.gate import gate_of
from vieval_plugin.report.sections import sections_of
from vieval_plugin.results.logs import viescore
from vieval_plugin.results.runs import results_of
from vieval_plugin.stats.non_inferiority import MeanOfDifferences
from vieval_plugin.stats.options import StatisticsOptions

Floats = NDArray[np.float64]
Pair = tuple[list[Verdict], list[Verdict]]
JUDGES = {
    "GPT-4o": "results_gpt4o_0shot",
    "GPT-4v": "results_gpt4v_0shot",
    "LLaVA": "results_llava_0shot",
}
EDITS = "ImagenHub_Text-Guided_IE"
SIZES, MARGIN, SHARED = (110, 300), 0.05, 0.5
MARGINS = (0.02, 0.05, 0.1)
SOURCE, STATISTICS = (
    Provenance("viescore", (), ("O",), "recorded"),
    StatisticsOptions(draws=2),
)


def verdicts_of(logs: Path, folder: str) -> Mapping[str, Mapping[str, Verdict]]:
    """The recorded verdicts of each editor by prompt."""
    verdicts = viescore.read(
        logs / folder / EDITS, lambda model, name: SampleId("own", "tie", model, name)
    )
    by_editor: dict[str, dict[str, Verdict]] = defaultdict(dict)
    for identity, verdict in verdicts.items():
        if verdict.status is not Status.MISSING:
            by_editor[identity.image_model][identity.uid] = verdict
    return by_editor


def scores_of(verdicts: list[Verdict]) -> Floats:
    """Overall scores, NaN of failures."""
    return np.array([verdict.scores.get("O", np.nan) for verdict in verdicts])


def pairs_of(by_editor: Mapping[str, Mapping[str, Verdict]]) -> list[Pair]:
    """Of each two editors, in both orders, their verdicts on the prompts of both."""
    return [
        tuple(
            [
                by_editor[name][uid]
                for uid in by_editor[first]
                if uid in by_editor[second]
            ]
            for name in (first, second)
        )
        for first, second in permutations(sorted(by_editor), 2)
    ]


def move_to(pair: Pair, difference: float) -> float:
    """What is added to the new build's scores, so that it is ahead of the last one by this much
    on average; NaN if nothing is.
    """
    new, last = map(scores_of, pair)

    def off(move: float) -> float:
        moved = [np.clip(scores + move, 0, 1) - last for scores in (new, last)]
        return float(
            np.nanmean(moved[0]) * (1 - SHARED)
            + np.nanmean(moved[1]) * SHARED
            - difference
        )

    return float(brentq(off, -1, 1)) if off(-1) < 0 < off(1) else float("nan")


def decisions(
    pairs: list[Pair], n: int, difference: float, trials: int, rng: np.random.Generator
) -> Counter[str]:
    """How many builds the threshold passes (`bare`), and how many the gate decides in which way."""
    counts: Counter[str] = Counter()
    cases = [
        (*pair, move)
        for pair in pairs
        if not np.isnan(move := move_to(pair, difference))
    ]
    for trial in range(trials):
        new, last, move = cases[trial % len(cases)]
        chosen, shared = rng.choice(len(last), n), rng.random(n) < SHARED
        records, means = [], []
        for name in ("new", "last"):
            side = [
                last[i] if name == "last" or same else new[i]
                for i, same in zip(chosen, shared, strict=True)
            ]
            if name == "new":
                side = [moved(verdict, move) for verdict in side]
            means.append(np.nanmean(scores_of(side)))
            samples = (
                Sample(SampleId("own", "tie", name, str(prompt)), {}, kind="tie")
                for prompt in range(n)
            )
            records += [
                record_of(*judged, SOURCE) for judged in zip(samples, side, strict=True)
            ]
        counts["bare"] += bool(means[0] >= means[1] - MARGIN)
        report = sections_of(results_of(records), "generators", STATISTICS)
        counts[gate_of(report, MARGIN, STATISTICS).decision] += 1
    return counts


def moved(verdict: Verdict, by: float) -> Verdict:
    """A verdict with a higher or lower score."""
    return replace(
        verdict,
        scores={
            name: float(np.clip(s + by, 0, 1)) for name, s in verdict.scores.items()
        },
    )


def prompts_needed(spread: float, margin: float) -> float:
    """Prompts with which an equal build passes four times of five, by the spread of differences."""
    return MeanOfDifferences(0.0, spread / np.sqrt(110), 110).items_needed(margin)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "logs", type=Path, help="folder with results_gpt4o_0shot and others"
    )
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    rows, needed, widths = [], [], []
    for judge, folder in JUDGES.items():
        by_editor = verdicts_of(options.logs, folder)
        pairs = pairs_of(by_editor)
        alone = [
            float(np.nanstd(scores_of([*of_one.values()]), ddof=1))
            for of_one in by_editor.values()
        ]
        spreads = [
            float(np.nanstd(scores_of(first) - scores_of(second), ddof=1))
            for first, second in pairs
        ]
        variances = {
            "no": np.mean(np.square(spreads)),
            "half": (1 - SHARED) * np.mean(np.square(spreads)),
        }
        for same, variance in variances.items():
            cells = (
                f"{prompts_needed(float(np.sqrt(variance)), margin):,.0f}"
                for margin in MARGINS
            )
            needed.append([judge, same, *cells])
        half_widths = (
            1.96 * np.mean(s) / np.sqrt(110)
            for s in (alone, spreads, np.sqrt(1 - SHARED) * np.array(spreads))
        )
        widths.append(
            [judge, str(len(by_editor)), *(f"{width:.3f}" for width in half_widths)]
        )
        for n in tqdm(SIZES, desc=judge, disable=None):
            row = [judge, str(n)]
            for factor in (0, 1, 2):
                counts = decisions(pairs, n, -factor * MARGIN, options.trials, rng)
                shares = {
                    name: f"{100 * count / options.trials:.0f}"
                    for name, count in counts.items()
                }
                gate = " / ".join(
                    shares.get(name, "0")
                    for name in ("not_worse", "undecided", "worse")
                )
                row += [shares.get("bare", "0"), gate]
            rows.append(row)
    print(f"{options.trials} builds a cell, seed {options.seed}, margin {MARGIN:g}\n")
    table(
        [
            "judge",
            "editors",
            "mean of 110",
            "difference, other pictures",
            "difference, half the same",
        ],
        widths,
    )
    headings = [
        f"{name} {words}"
        for words in ("equal", "worse by margin", "worse by 2 margins")
        for name in ("bare", "gate")
    ]
    table(["judge", "n", *headings], rows)
    table(["judge", "same", *(f"margin {margin:g}" for margin in MARGINS)], needed)


if __name__ == "__main__":
    main()
