"""Leaderboards of simulated judges: how often tests say that two differ, where they do and where they do not.

Ratings and scores are drawn in the shape of ImagenHub: seven task types with 1,111 instructions, 29
image models, three annotators. In the model:

- An image's quality is a standard normal variable. Three tenths of its variance belong to the
  instruction, which all image models of a task type share.
- An annotator rates the quality with an error half as large, on three levels: 0, 0.5 and 1.
- A judge's score is a weighted sum of the quality and an error, in tenths from 0 to 1. A quarter of
  the error's variance is shared by all judges (hard images), a quarter belongs to judge and
  instruction, half to the single score.
- The weight is such that Spearman's correlation with the annotators' mean is the judge's level:
  .25, .35 or .45.

Four judges of each level make a leaderboard of 12. One of the middle level is in it once with all
samples, once with a fifth missing at random, and once with the fifth missing on which the judges'
shared error is largest. No difference and no p depends on a third judge. So 14 systems are compared
once, and the 66 pairs of each of the three leaderboards are taken from these; only Holm's
correction and the ranks are computed for each. Intervals of differences are left out, as no rank
depends on them.

Two judges are significantly different where p is at most .05: the pair's own, or the one adjusted
by Holm over 66 pairs.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
from tqdm import tqdm

from bench.common import conditions, table
from vieval_plugin.benchmarks.imagenhub.tasks import ANNOTATORS, NAME, TASKS
from vieval_plugin.meta_evaluation.common_items import JudgedItem
from vieval_plugin.meta_evaluation.comparison import Comparison, compare_systems
from vieval_plugin.meta_evaluation.image_models import compared_on
from vieval_plugin.stats.agreement import annotator_mean
from vieval_plugin.stats.correlation import Floats, correlation
from vieval_plugin.stats.decisions import SIGNIFICANCE_LEVEL
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import holm, rank_ranges

LEVELS = (0.25,) * 4 + (0.35,) * 4 + (0.45,) * 4
OF_INSTRUCTION = 0.3
ANNOTATOR_ERROR = 0.5
SHARED_ERROR = 0.25
INSTRUCTION_ERROR = 0.25
MISSING_SHARE = 0.2
CALIBRATION_IMAGES = 200_000
COMPLETE = "all samples"
AT_RANDOM = "a fifth missing at random"
HARDEST = "the hardest fifth missing"


@dataclass(frozen=True)
class Images:
    """Images of a task type, arrays of shape (instructions, image models): quality, all judges'
    error, mean rating.
    """

    quality: Floats
    shared_error: Floats
    human: Floats


@dataclass(frozen=True)
class Pair:
    """Two judges, the one with the higher own number first: p, adjusted p, and `reverse` where
    the tests say otherwise.
    """

    levels: tuple[float, float]
    p: float
    adjusted: float
    reverse: bool


@dataclass(frozen=True)
class Leaderboard:
    """A leaderboard's pairs of judges by number, and of the judge in question its value, rank
    and range of ranks.
    """

    pairs: Mapping[tuple[int, int], Pair]
    value: float
    rank: int
    ranks: tuple[int, int]


def images(rng: np.random.Generator, instructions: int, image_models: int) -> Images:
    """Draw images with their annotators' mean ratings."""
    shape = (instructions, image_models)
    of_instruction = rng.normal(size=(instructions, 1)) * np.sqrt(OF_INSTRUCTION)
    quality = of_instruction + rng.normal(size=shape) * np.sqrt(1 - OF_INSTRUCTION)
    perceived = quality + ANNOTATOR_ERROR * rng.normal(size=(ANNOTATORS, *shape))
    ratings = np.digitize(perceived, [-0.5, 0.5]) / 2
    return Images(
        quality,
        rng.normal(size=shape),
        annotator_mean(ratings.reshape(ANNOTATORS, -1)).reshape(shape),
    )


def scores(rng: np.random.Generator, judged: Images, weight: float) -> Floats:
    """Draw a judge's scores of images."""
    instructions, image_models = judged.quality.shape
    error = (
        np.sqrt(SHARED_ERROR) * judged.shared_error
        + np.sqrt(INSTRUCTION_ERROR) * rng.normal(size=(instructions, 1))
        + np.sqrt(1 - SHARED_ERROR - INSTRUCTION_ERROR)
        * rng.normal(size=(instructions, image_models))
    )
    score = weight * judged.quality + np.sqrt(1 - weight**2) * error
    return np.clip(np.round(5 + 2 * score), 0, 10) / 10


@cache
def weight_of(level: float) -> float:
    """Weight of the quality with which a judge's correlation with annotators is the level."""
    weights = np.linspace(0, 0.9, 10)
    correlations = []
    for weight in weights:
        rng = np.random.default_rng(0)
        judged = images(rng, CALIBRATION_IMAGES, 1)
        correlations.append(
            correlation(judged.human.ravel(), scores(rng, judged, weight).ravel())
        )
    return float(np.interp(level, correlations, weights))


def incomplete_judge(levels: Sequence[float]) -> int:
    """Number of the judge whose samples are missing in two of the leaderboards."""
    return len(levels) // 2


def rated_samples(
    seed: int, levels: Sequence[float]
) -> dict[str, dict[str, JudgedItem]]:
    """Draw a run: rated samples by judge, called by its number, and of the incomplete judge by
    scenario.
    """
    rng = np.random.default_rng(seed)
    samples: dict[str, dict[str, JudgedItem]] = {}
    for part, info in TASKS.items():
        judged = images(rng, info.instructions, len(info.image_models))
        by_judge = {
            str(number): scores(rng, judged, weight_of(level))
            for number, level in enumerate(levels)
        }
        complete = by_judge[str(incomplete_judge(levels))]
        for scenario, difficulty in (
            (AT_RANDOM, rng.random(complete.shape)),
            (HARDEST, np.abs(judged.shared_error)),
        ):
            by_judge[scenario] = np.where(
                difficulty > np.quantile(difficulty, 1 - MISSING_SHARE),
                np.nan,
                complete,
            )
        cells = [
            (str(uid), model)
            for uid in range(info.instructions)
            for model in info.image_models
        ]
        for judge, of_judge in by_judge.items():
            for cell, score, human in zip(
                cells, of_judge.flat, judged.human.flat, strict=True
            ):
                item = JudgedItem(cell[0], float(score), float(human), part, cell=cell)
                samples.setdefault(judge, {})["/".join((part, *cell))] = item
    return samples


def leaderboards(seed: int, levels: Sequence[float] = LEVELS) -> dict[str, Leaderboard]:
    """Simulate a run: a leaderboard for each scenario.

    Args:
        seed: of the images, the judges and the tests.
        levels: the true correlation of each judge.
    """
    compared = compared_on("O", rated_samples(seed, levels))
    comparison = compare_systems(
        compared, NAME, StatisticsOptions(seed=seed), intervals=False
    )
    labels = [str(number) for number in range(len(levels))]
    incomplete = incomplete_judge(levels)
    found = {}
    for scenario, label in (
        (COMPLETE, labels[incomplete]),
        (AT_RANDOM, AT_RANDOM),
        (HARDEST, HARDEST),
    ):
        found[scenario] = leaderboard(
            comparison, [*labels[:incomplete], label, *labels[incomplete + 1 :]], levels
        )
    return found


def leaderboard(
    comparison: Comparison, labels: Sequence[str], levels: Sequence[float]
) -> Leaderboard:
    """Take the leaderboard of some systems, one for each judge, out of a comparison of more."""
    values = {system.label: system.value for system in comparison.systems}
    order = sorted(range(len(labels)), key=lambda judge: -values[labels[judge]])
    tested = {
        places: pair
        for places in combinations(range(len(order)), 2)
        if (pair := comparison.pair_of(*(labels[order[place]] for place in places)))
    }
    adjusted = holm([pair.result.p for pair in tested.values()]).tolist()
    beats = np.zeros((len(order), len(order)), dtype=bool)
    pairs = {}
    for ((place, other_place), pair), p in zip(tested.items(), adjusted, strict=True):
        judge = order[place]
        other = order[other_place]
        is_reverse = pair.first != labels[judge]
        pairs[min(judge, other), max(judge, other)] = Pair(
            (levels[judge], levels[other]), pair.result.p, p, is_reverse
        )
        if p <= SIGNIFICANCE_LEVEL:
            beats[(other_place, place) if is_reverse else (place, other_place)] = True
    best, worst = rank_ranges(beats)
    incomplete = incomplete_judge(levels)
    place = order.index(incomplete)
    return Leaderboard(
        pairs,
        values[labels[incomplete]],
        place + 1,
        (int(best[place]), int(worst[place])),
    )


def detections(
    boards: Sequence[Leaderboard],
    difference: float,
    is_significant: Callable[[Pair], bool],
    judge: int | None = None,
) -> list[int]:
    """Number of runs in which a pair is significantly different, for each pair whose levels differ by so much.

    Args:
        boards: of one scenario, one a run.
        difference: of the levels.
        is_significant: by which p.
        judge: only pairs with this one; None takes all.
    """
    return [
        sum(is_significant(board.pairs[numbers]) for board in boards)
        for numbers, pair in boards[0].pairs.items()
        if judge in (None, *numbers)
        and math.isclose(abs(pair.levels[0] - pair.levels[1]), difference, abs_tol=1e-6)
    ]


def by_own_p(pair: Pair) -> bool:
    """True where the pair's own p says that two judges differ."""
    return pair.p <= SIGNIFICANCE_LEVEL


def by_adjusted_p(pair: Pair) -> bool:
    """True where the adjusted p says that two judges differ."""
    return pair.adjusted <= SIGNIFICANCE_LEVEL


def report(runs: Sequence[Mapping[str, Leaderboard]], levels: Sequence[float]) -> None:
    """Print both tables."""
    boards = [run[COMPLETE] for run in runs]
    rows = []
    for difference, name in ((0.0, "equal"), (0.1, ".1 apart"), (0.2, ".2 apart")):
        for is_significant, p in ((by_own_p, "own"), (by_adjusted_p, "adjusted")):
            counts = detections(boards, difference, is_significant)
            if counts:
                rows.append(
                    [
                        name,
                        f"{len(counts)}",
                        p,
                        f"{np.mean(counts):.1f}",
                        f"{min(counts)}",
                        f"{max(counts)}",
                    ]
                )
    print(
        f"runs of {len(runs)} in which a pair is significantly different, over the pairs"
    )
    table(["levels", "pairs", "p", "mean", "least", "most"], rows)
    equal = [
        [pair for pair in board.pairs.values() if pair.levels[0] == pair.levels[1]]
        for board in boards
    ]
    print(
        f"any equal pair by adjusted p: {sum(any(map(by_adjusted_p, pairs)) for pairs in equal)} "
        "runs"
    )
    against = sum(
        pair.reverse and by_adjusted_p(pair)
        for run in runs
        for b in run.values()
        for pair in b.pairs.values()
    )
    print(
        f"significant differences against the order by own numbers, over all scenarios: {against}\n"
    )

    judge = incomplete_judge(levels)
    rows = []
    for scenario in (COMPLETE, AT_RANDOM, HARDEST):
        boards = [run[scenario] for run in runs]
        shifts = [run[scenario].value - run[COMPLETE].value for run in runs]
        places = [run[scenario].rank - run[COMPLETE].rank for run in runs]
        rows.append(
            [
                scenario,
                f"{np.mean([board.value for board in boards]):.3f}",
                f"{np.mean(shifts):+.3f} ({np.std(shifts):.3f})",
                f"{np.mean([board.rank for board in boards]):.2f}",
                f"{np.mean(places):+.2f}",
                f"{np.mean([board.ranks[1] - board.ranks[0] + 1 for board in boards]):.1f}",
                f"{np.mean(detections(boards, 0.0, by_own_p, judge)):.1f}",
                f"{np.mean(detections(boards, 0.1, by_adjusted_p, judge)):.1f}",
            ]
        )
    print(
        "the judge with samples missing: its number, its place by that, and its pairs"
    )
    header = ["samples", "value", "shift (SD)", "place", "shift", "ranks in range"]
    table([*header, "equal, own p", ".1 apart, adjusted p"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        help="of the first run; each run has the next (default 0)",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    options = parser.parse_args()
    print(f"{conditions()}; {options.runs} runs, seed {options.seed}", flush=True)
    seeds = range(options.seed, options.seed + options.runs)
    with ProcessPoolExecutor(
        options.jobs, mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        timed = list(
            tqdm(
                pool.map(timed_leaderboards, seeds),
                total=len(seeds),
                unit="run",
                disable=None,
            )
        )
    print(f"{np.mean([seconds for _, seconds in timed]):.1f} CPU s a run")
    report([run for run, _ in timed], LEVELS)


def timed_leaderboards(seed: int) -> tuple[dict[str, Leaderboard], float]:
    """Simulate a run, with the seconds of CPU that it took."""
    start = time.process_time()
    return leaderboards(seed), time.process_time() - start


if __name__ == "__main__":
    main()
