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

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from tqdm import tqdm

from bench.common import script_parser, table
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.records import Provenance, Record, record_of
from vieval_plugin.report.gate import gate_of
from vieval_plugin.report.sections import sections_of
from vieval_plugin.results.logs import viescore
from vieval_plugin.results.runs import results_of
from vieval_plugin.stats.correlation import Floats
from vieval_plugin.stats.non_inferiority import MeanOfDifferences
from vieval_plugin.stats.options import StatisticsOptions

Pair = tuple[list[Verdict], list[Verdict]]
JUDGES = {
    "GPT-4o": "results_gpt4o_0shot",
    "GPT-4v": "results_gpt4v_0shot",
    "LLaVA": "results_llava_0shot",
}
EDITS = "ImagenHub_Text-Guided_IE"
SIZES = (110, 300)
MARGIN = 0.05
SHARED = 0.5
MARGINS = (0.02, 0.05, 0.1)
SOURCE = Provenance("viescore", (), ("O",), "recorded")
STATISTICS = StatisticsOptions(draws=2)


def verdicts_of(logs: Path, folder: str) -> Mapping[str, Mapping[str, Verdict]]:
    """The recorded verdicts of each editor by prompt."""

    def identity(model: str, name: str) -> SampleId:
        return SampleId("own", "tie", model, name)

    verdicts = viescore.read(logs / folder / EDITS, identity)
    by_editor: dict[str, dict[str, Verdict]] = defaultdict(dict)
    for sample, verdict in verdicts.items():
        if verdict.status is not Status.MISSING:
            by_editor[sample.image_model][sample.uid] = verdict
    return by_editor


def scores_of(verdicts: list[Verdict]) -> Floats:
    """Overall scores, NaN of failures."""
    return np.array([verdict.scores.get("O", np.nan) for verdict in verdicts])


def pairs_of(by_editor: Mapping[str, Mapping[str, Verdict]]) -> list[Pair]:
    """Of each two editors, in both orders, their verdicts on the prompts of both."""
    pairs = []
    for first, second in permutations(sorted(by_editor), 2):
        new = by_editor[first]
        last = by_editor[second]
        prompts = [uid for uid in new if uid in last]
        pair = (
            [new[uid] for uid in prompts],
            [last[uid] for uid in prompts],
        )
        pairs.append(pair)
    return pairs


def move_to(pair: Pair, difference: float) -> float:
    """What is added to the new build's scores, so that it is ahead of the last one by this much
    on average; NaN if nothing is.
    """
    new, last = map(scores_of, pair)

    def off(move: float) -> float:
        new_lead = np.nanmean(np.clip(new + move, 0, 1) - last)
        shared_lead = np.nanmean(np.clip(last + move, 0, 1) - last)
        return float(new_lead * (1 - SHARED) + shared_lead * SHARED - difference)

    if off(-1) < 0 < off(1):
        return float(brentq(off, -1, 1))
    return float("nan")


def movable(pairs: list[Pair], difference: float) -> list[tuple[Pair, float]]:
    """The pairs that can be so far apart, with the move of each."""
    moves = [(pair, move_to(pair, difference)) for pair in pairs]
    return [(pair, move) for pair, move in moves if not np.isnan(move)]


def decisions(
    pairs: list[Pair], n: int, difference: float, trials: int, rng: np.random.Generator
) -> Counter[str]:
    """How many builds the threshold passes (`bare`), and how many the gate decides in which way."""
    counts: Counter[str] = Counter()
    cases = movable(pairs, difference)
    for trial in range(trials):
        (new, last), move = cases[trial % len(cases)]
        prompts = rng.choice(len(last), n)
        is_shared = rng.random(n) < SHARED
        last_build = [last[prompt] for prompt in prompts]
        new_build = []
        for prompt, same in zip(prompts, is_shared, strict=True):
            verdict = last[prompt] if same else new[prompt]
            new_build.append(moved(verdict, move))
        threshold = np.nanmean(scores_of(last_build)) - MARGIN
        counts["bare"] += bool(np.nanmean(scores_of(new_build)) >= threshold)
        records = records_of("new", new_build) + records_of("last", last_build)
        report = sections_of(results_of(records), "generators", STATISTICS)
        counts[gate_of(report, MARGIN, STATISTICS).decision] += 1
    return counts


def records_of(build: str, verdicts: list[Verdict]) -> list[Record]:
    """The records of a build's images."""
    records = []
    for prompt, verdict in enumerate(verdicts):
        identity = SampleId("own", "tie", build, str(prompt))
        sample = Sample(identity, {}, kind="tie")
        records.append(record_of(sample, verdict, SOURCE))
    return records


def moved(verdict: Verdict, by: float) -> Verdict:
    """A verdict with a higher or lower score."""
    scores = {}
    for aspect, score in verdict.scores.items():
        scores[aspect] = float(np.clip(score + by, 0, 1))
    return replace(verdict, scores=scores)


def prompts_needed(spread: float, margin: float) -> float:
    """Prompts with which an equal build passes four times of five, by the spread of differences."""
    return MeanOfDifferences(0.0, spread / np.sqrt(110), 110).items_needed(margin)


def spread_of(scores: Floats) -> float:
    """Standard deviation without what failed."""
    return float(np.nanstd(scores, ddof=1))


def difference_spreads(pairs: list[Pair]) -> list[float]:
    """Standard deviation of the difference of each two editors."""
    spreads = []
    for first, second in pairs:
        differences = scores_of(first) - scores_of(second)
        spreads.append(spread_of(differences))
    return spreads


def half_width(spreads: Sequence[float]) -> float:
    """Half of the 95% interval of a mean of 110 prompts."""
    return float(1.96 * np.mean(spreads) / np.sqrt(110))


def print_widths(verdicts: Mapping[str, Mapping[str, Mapping[str, Verdict]]]) -> None:
    """Print the half widths of intervals by judge."""
    rows = []
    for judge, by_editor in verdicts.items():
        alone = []
        for by_prompt in by_editor.values():
            scores = scores_of([*by_prompt.values()])
            alone.append(spread_of(scores))
        spreads = difference_spreads(pairs_of(by_editor))
        half_the_same = np.sqrt(1 - SHARED) * np.array(spreads)
        widths = map(half_width, (alone, spreads, half_the_same))
        rows.append([judge, len(by_editor), *widths])
    columns = {
        "judge": "",
        "editors": "",
        "mean of 110": ".3f",
        "difference, other pictures": ".3f",
        "difference, half the same": ".3f",
    }
    table(columns, rows)


def print_decisions(
    pairs_by_judge: Mapping[str, list[Pair]], trials: int, rng: np.random.Generator
) -> None:
    """Print how many builds the threshold and the gate pass."""
    rows = []
    for judge, pairs in pairs_by_judge.items():
        for n in tqdm(SIZES, desc=judge, disable=None):
            row = [judge, str(n)]
            for factor in (0, 1, 2):
                counts = decisions(pairs, n, -factor * MARGIN, trials, rng)
                names = ("bare", "not_worse", "undecided", "worse")
                shares = [f"{100 * counts[name] / trials:.0f}" for name in names]
                row += [shares[0], " / ".join(shares[1:])]
            rows.append(row)
    headings = []
    for difference in ("equal", "worse by margin", "worse by 2 margins"):
        headings += [f"bare {difference}", f"gate {difference}"]
    table(["judge", "n", *headings], rows)


def print_needed(pairs_by_judge: Mapping[str, list[Pair]]) -> None:
    """Print the prompts that equal builds need."""
    rows = []
    for judge, pairs in pairs_by_judge.items():
        variance = np.mean(np.square(difference_spreads(pairs)))
        variances = {
            "no": variance,
            "half": (1 - SHARED) * variance,
        }
        for same, of_difference in variances.items():
            spread = float(np.sqrt(of_difference))
            prompts = [prompts_needed(spread, margin) for margin in MARGINS]
            rows.append([judge, same, *(f"{number:,.0f}" for number in prompts)])
    headings = [f"margin {margin:g}" for margin in MARGINS]
    table(["judge", "same", *headings], rows)


def main() -> None:
    parser = script_parser(__doc__, trials=500, seed=0)
    parser.add_argument(
        "logs", type=Path, help="folder with results_gpt4o_0shot and others"
    )
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    verdicts = {
        judge: verdicts_of(options.logs, folder) for judge, folder in JUDGES.items()
    }
    pairs = {judge: pairs_of(by_editor) for judge, by_editor in verdicts.items()}
    print(f"{options.trials} builds a cell, seed {options.seed}, margin {MARGIN:g}\n")
    print_widths(verdicts)
    print_decisions(pairs, options.trials, rng)
    print_needed(pairs)


if __name__ == "__main__":
    main()
