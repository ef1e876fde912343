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

import math
import multiprocessing
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

import numpy as np
from tqdm import tqdm

from bench.common import conditions, script_parser, table
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
    shared_error = rng.normal(size=shape)
    human = annotator_mean(ratings.reshape(ANNOTATORS, -1)).reshape(shape)
    return Images(quality, shared_error, human)


def scores(rng: np.random.Generator, judged: Images, weight: float) -> Floats:
    """Draw a judge's scores of images."""
    shape = judged.quality.shape
    single_share = 1 - SHARED_ERROR - INSTRUCTION_ERROR
    instruction_error = np.sqrt(INSTRUCTION_ERROR) * rng.normal(size=(shape[0], 1))
    single_error = np.sqrt(single_share) * rng.normal(size=shape)
    error = (
        np.sqrt(SHARED_ERROR) * judged.shared_error + instruction_error + single_error
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
        judge = scores(rng, judged, weight)
        correlations.append(correlation(judged.human.ravel(), judge.ravel()))
    return float(np.interp(level, correlations, weights))


def incomplete_judge(levels: Sequence[float]) -> int:
    """Number of the judge whose samples are missing in two of the leaderboards."""
    return len(levels) // 2


def drop_hardest(values: Floats, difficulty: Floats) -> Floats:
    """Scores of which those of the most difficult images are missing."""
    threshold = np.quantile(difficulty, 1 - MISSING_SHARE)
    return np.where(difficulty > threshold, np.nan, values)


def rated_samples(
    seed: int, levels: Sequence[float]
) -> dict[str, dict[str, JudgedItem]]:
    """Draw a run: rated samples by judge, called by its number, and of the incomplete judge by
    scenario.
    """
    rng = np.random.default_rng(seed)
    samples: dict[str, dict[str, JudgedItem]] = defaultdict(dict)
    for part, info in TASKS.items():
        judged = images(rng, info.instructions, len(info.image_models))
        by_judge = {}
        for number, level in enumerate(levels):
            by_judge[str(number)] = scores(rng, judged, weight_of(level))
        complete = by_judge[str(incomplete_judge(levels))]
        chances = rng.random(complete.shape)
        by_judge[AT_RANDOM] = drop_hardest(complete, chances)
        by_judge[HARDEST] = drop_hardest(complete, np.abs(judged.shared_error))
        uids = map(str, range(info.instructions))
        cells = list(product(uids, info.image_models))
        for judge, of_judge in by_judge.items():
            rows = zip(cells, of_judge.flat, judged.human.flat, strict=True)
            for (uid, model), score, human in rows:
                item = JudgedItem(
                    uid, float(score), float(human), part, cell=(uid, model)
                )
                samples[judge][f"{part}/{uid}/{model}"] = item
    return samples


def leaderboards(seed: int, levels: Sequence[float] = LEVELS) -> dict[str, Leaderboard]:
    """Simulate a run: a leaderboard for each scenario.

    Args:
        seed: of the images, the judges and the tests.
        levels: the true correlation of each judge.
    """
    compared = compared_on("O", rated_samples(seed, levels))
    options = StatisticsOptions(seed=seed)
    comparison = compare_systems(compared, NAME, options, intervals=False)
    complete = [str(number) for number in range(len(levels))]
    boards = {COMPLETE: leaderboard(comparison, complete, levels)}
    for scenario in (AT_RANDOM, HARDEST):
        labels = list(complete)
        labels[incomplete_judge(levels)] = scenario
        boards[scenario] = leaderboard(comparison, labels, levels)
    return boards


def leaderboard(
    comparison: Comparison, labels: Sequence[str], levels: Sequence[float]
) -> Leaderboard:
    """Take the leaderboard of some systems, one for each judge, out of a comparison of more."""
    values = {system.label: system.value for system in comparison.systems}
    order = sorted(range(len(labels)), key=lambda judge: -values[labels[judge]])
    tested = {}
    for places in combinations(range(len(order)), 2):
        first, second = (labels[order[place]] for place in places)
        pair = comparison.pair_of(first, second)
        if pair:
            tested[places] = pair
    adjusted = holm([pair.result.p for pair in tested.values()]).tolist()
    beats = np.zeros((len(order), len(order)), dtype=bool)
    pairs = {}
    for (places, pair), p in zip(tested.items(), adjusted, strict=True):
        judge, other = (order[place] for place in places)
        is_reverse = pair.first != labels[judge]
        key = (min(judge, other), max(judge, other))
        pair_levels = (levels[judge], levels[other])
        pairs[key] = Pair(pair_levels, pair.result.p, p, is_reverse)
        if p <= SIGNIFICANCE_LEVEL:
            better, worse = reversed(places) if is_reverse else places
            beats[better, worse] = True
    best, worst = rank_ranges(beats)
    incomplete = incomplete_judge(levels)
    place = order.index(incomplete)
    ranks = (int(best[place]), int(worst[place]))
    return Leaderboard(pairs, values[labels[incomplete]], place + 1, ranks)


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
    counts = []
    for judges, pair in boards[0].pairs.items():
        if judge not in (None, *judges):
            continue
        first, second = pair.levels
        if math.isclose(abs(first - second), difference, abs_tol=1e-6):
            found = [is_significant(board.pairs[judges]) for board in boards]
            counts.append(sum(found))
    return counts


def by_own_p(pair: Pair) -> bool:
    """True where the pair's own p says that two judges differ."""
    return pair.p <= SIGNIFICANCE_LEVEL


def by_adjusted_p(pair: Pair) -> bool:
    """True where the adjusted p says that two judges differ."""
    return pair.adjusted <= SIGNIFICANCE_LEVEL


def report(runs: Sequence[Mapping[str, Leaderboard]], levels: Sequence[float]) -> None:
    """Print both tables."""
    print_pairs(runs)
    print_missing(runs, incomplete_judge(levels))


def print_pairs(runs: Sequence[Mapping[str, Leaderboard]]) -> None:
    """Print how often pairs of judges are significantly different."""
    boards = [run[COMPLETE] for run in runs]
    rows = []
    for difference, name in ((0.0, "equal"), (0.1, ".1 apart"), (0.2, ".2 apart")):
        for is_significant, p in ((by_own_p, "own"), (by_adjusted_p, "adjusted")):
            counts = detections(boards, difference, is_significant)
            if counts:
                row = [
                    name,
                    len(counts),
                    p,
                    np.mean(counts),
                    min(counts),
                    max(counts),
                ]
                rows.append(row)
    print(
        f"runs of {len(runs)} in which a pair is significantly different, over the pairs"
    )
    columns = {
        "levels": "",
        "pairs": "",
        "p": "",
        "mean": ".1f",
        "least": "",
        "most": "",
    }
    table(columns, rows)
    false_runs = sum(any(map(is_false_detection, pairs_of(board))) for board in boards)
    print(f"any equal pair by adjusted p: {false_runs} runs")
    against = 0
    for run in runs:
        for board in run.values():
            significant = filter(by_adjusted_p, pairs_of(board))
            against += sum(pair.reverse for pair in significant)
    print(
        "significant differences against the order by own numbers, over all scenarios: "
        f"{against}\n"
    )


def pairs_of(board: Leaderboard) -> Iterable[Pair]:
    return board.pairs.values()


def is_false_detection(pair: Pair) -> bool:
    """True where the adjusted p says that two judges of one level differ."""
    first, second = pair.levels
    return first == second and by_adjusted_p(pair)


def print_missing(runs: Sequence[Mapping[str, Leaderboard]], judge: int) -> None:
    """Print what missing samples do to a judge."""
    rows = []
    for scenario in (COMPLETE, AT_RANDOM, HARDEST):
        boards = [run[scenario] for run in runs]
        shifts = [run[scenario].value - run[COMPLETE].value for run in runs]
        places = [run[scenario].rank - run[COMPLETE].rank for run in runs]
        widths = [board.ranks[1] - board.ranks[0] + 1 for board in boards]
        row = [
            scenario,
            f"{np.mean([board.value for board in boards]):.3f}",
            f"{np.mean(shifts):+.3f} ({np.std(shifts):.3f})",
            f"{np.mean([board.rank for board in boards]):.2f}",
            f"{np.mean(places):+.2f}",
            f"{np.mean(widths):.1f}",
            f"{np.mean(detections(boards, 0.0, by_own_p, judge)):.1f}",
            f"{np.mean(detections(boards, 0.1, by_adjusted_p, judge)):.1f}",
        ]
        rows.append(row)
    print(
        "the judge with samples missing: its number, its place by that, and its pairs"
    )
    columns = [
        "samples",
        "value",
        "shift (SD)",
        "place",
        "shift",
        "ranks in range",
        "equal, own p",
        ".1 apart, adjusted p",
    ]
    table(columns, rows)


def main() -> None:
    parser = script_parser(__doc__, runs=200)
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
    context = multiprocessing.get_context("spawn")
    runs = []
    seconds = []
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        simulated = pool.map(timed_leaderboards, seeds)
        bar = tqdm(simulated, total=len(seeds), unit="run", disable=None)
        for run, run_seconds in bar:
            runs.append(run)
            seconds.append(run_seconds)
    print(f"{np.mean(seconds):.1f} CPU s a run")
    report(runs, LEVELS)


def timed_leaderboards(seed: int) -> tuple[dict[str, Leaderboard], float]:
    """Simulate a run, with the seconds of CPU that it took."""
    start = time.process_time()
    return leaderboards(seed), time.process_time() - start


if __name__ == "__main__":
    main()
