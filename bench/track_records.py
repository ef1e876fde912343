"""Track records of published judges on two generators: how often people agree where a judge says that one is better.

A judge says so where `vieval rank` of these two does: p of the paired test on their common prompts
is at most .05. People agree where their mean difference has the same sign, and tell two generators
apart where the sign-flip test of their ratings has p of at most .05. Pairs are of generators of one
task type. As pairs share generators, the 95% interval of the share is that of resamples of the
generators of each task type (expanded percentiles, seed 0). The table is
`vieval_plugin/results/published/track_records.csv`.

`--coverage 2000` simulates how often that interval holds the truth, with ImagenHub's numbers of
generators. Their quality is standard normal, a judge likes each more or less than people do, and
means have an error of .12, so that the judge says better in 83% of pairs, as GPT-4o does. The truth
is the share over all generators of that kind.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.common import IMAGENHUB_FOLDER, conditions, mean_rating, script_parser, table
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.imagenhub.tasks import TASKS
from vieval_plugin.meta_evaluation.comparison import SystemPair
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.meta_evaluation.leaderboards import leaderboard
from vieval_plugin.records import Run
from vieval_plugin.results.published import judges
from vieval_plugin.stats.bootstrap import expanded_interval
from vieval_plugin.stats.generator_pairs import sign_flip_p
from vieval_plugin.stats.options import StatisticsOptions

BENCHMARK = "imagenhub"
LEVEL = 0.05
DRAWS = 10_000
LIKINGS = (0.25, 0.35, 0.5)
ERROR = 0.12


def people_differences(
    run: Run, part: str, aspect: str
) -> dict[tuple[str, str], np.ndarray]:
    """People's differences on common prompts of each two generators of a part."""
    ratings: dict[str, dict[str, float]] = defaultdict(dict)
    for record in chain(*run.records[part]):
        generator_ratings = ratings[record.id.image_model]
        generator_ratings[record.id.uid] = mean_rating(record.ratings[aspect])
    differences = {}
    for pair in combinations(ratings, 2):
        first, second = (ratings[generator] for generator in pair)
        prompts = [prompt for prompt in first if prompt in second]
        values = [first[prompt] - second[prompt] for prompt in prompts]
        differences[pair] = np.array(values)
    return differences


class JudgedPair(NamedTuple):
    """Two generators of a part, what the judge says of them, and whether people agree or tell
    them apart.
    """

    part: str
    first: str
    second: str
    says_better: bool
    agreed: bool
    told_apart: bool


def judged_pairs(run: Run) -> dict[str, list[JudgedPair]]:
    """The pairs by aspect."""
    pairs: dict[str, list[JudgedPair]] = defaultdict(list)
    options = StatisticsOptions(draws=10)
    for part, records in run.records.items():
        runs = [replace(run, records={part: records})]
        findings = OfGenerators().findings(BENCHMARK, (part,), runs, options)
        for statistic in findings.ranked:
            if statistic.breakdown:
                continue
            board = leaderboard(
                statistic, findings, BENCHMARK, runs, options, intervals=False
            )
            people = people_differences(run, part, board.aspect)
            for pair in board.comparison.all_pairs:
                pairs[board.aspect].append(judged_pair(part, pair, people))
    return pairs


def judged_pair(
    part: str, pair: SystemPair, people: Mapping[tuple[str, str], np.ndarray]
) -> JudgedPair:
    """What the judge and people say of a pair."""
    key = (pair.first, pair.second)
    differences = people.get(key)
    if differences is None:
        differences = -people[pair.second, pair.first]
    agreement = pair.result.difference.value * differences.mean()
    one_sided = sign_flip_p(differences)
    p = 2 * min(one_sided, 1 - one_sided)
    says_better = pair.result.p <= LEVEL
    return JudgedPair(part, *key, says_better, bool(agreement > 0), bool(p <= LEVEL))


def share_interval(
    pairs: Sequence[JudgedPair], draws: int = DRAWS
) -> tuple[float, float]:
    """The 95% interval of the share of agreement where the judge says better, over resamples of
    generators.
    """
    rng = np.random.default_rng(0)
    better = [pair for pair in pairs if pair.says_better]
    generators = set()
    for pair in pairs:
        generators |= {(pair.part, pair.first), (pair.part, pair.second)}
    names = sorted(generators)
    number = {name: place for place, name in enumerate(names)}
    counts = []
    for n in Counter(part for part, _ in names).values():
        counts.append(rng.multinomial(n, np.full(n, 1 / n), draws))
    resamples = np.hstack(counts)
    first = resamples[:, [number[pair.part, pair.first] for pair in better]]
    second = resamples[:, [number[pair.part, pair.second] for pair in better]]
    weights = first * second
    totals = weights.sum(axis=1)
    is_defined = totals > 0
    agreed = np.array([pair.agreed for pair in better], dtype=float)
    shares = weights[is_defined] @ agreed / totals[is_defined]
    return expanded_interval(shares, len(names))


def planted_pairs(
    sizes: Sequence[int], liking: float, rng: np.random.Generator
) -> list[JudgedPair]:
    """The pairs of drawn generators, of task types with so many."""
    pairs = []
    threshold = 1.96 * np.sqrt(2) * ERROR
    spread = np.hypot(liking, ERROR)
    for part, size in enumerate(sizes):
        quality = rng.normal(size=size)
        judged = quality + rng.normal(0, spread, size)
        rated = quality + rng.normal(0, ERROR, size)
        for first, second in combinations(range(size), 2):
            difference = judged[first] - judged[second]
            says_better = bool(abs(difference) > threshold)
            agreed = bool(difference * (rated[first] - rated[second]) > 0)
            names = (str(part), str(first), str(second))
            pairs.append(JudgedPair(*names, says_better, agreed, told_apart=False))
    return pairs


def coverage(trials: int) -> None:
    """Print how often the interval holds the share of planted generators."""
    sizes = [len(task.image_models) for task in TASKS.values()]
    rows = []
    for liking in LIKINGS:
        rng = np.random.default_rng(0)
        many = planted_pairs((2,) * 200_000, liking, rng)
        truth = np.mean([pair.agreed for pair in many if pair.says_better])
        ends = []
        for _ in range(trials):
            ends.append(share_interval(planted_pairs(sizes, liking, rng), 2000))
        low, high = np.array(ends).T
        is_held = (low <= truth) & (truth <= high)
        says_better = np.mean([pair.says_better for pair in many])
        shares = (100 * says_better, 100 * truth, 100 * is_held.mean())
        rows.append([liking, *shares, (high - low).mean()])
    print(f"{trials} trials, seed 0")
    columns = {
        "liking": "g",
        "says better, %": ".1f",
        "people agree, %": ".1f",
        "holds the truth, %": ".1f",
        "width": ".2f",
    }
    table(columns, rows)


def row(pairs: Sequence[JudgedPair]) -> list[str]:
    """Counts of pairs, and the interval of the share on which people agree."""
    better = [pair for pair in pairs if pair.says_better]
    equal = [pair for pair in pairs if not pair.says_better]
    agreed = sum(pair.agreed for pair in better)
    told_apart = sum(pair.told_apart for pair in equal)
    counts = map(str, (len(better), agreed, len(equal), told_apart))
    low, high = share_interval(pairs)
    return [*counts, f"{low:.3f}", f"{high:.3f}"]


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("data", type=Path, help=IMAGENHUB_FOLDER)
    parser.add_argument("--out", type=Path, help="write the table as CSV")
    parser.add_argument(
        "--coverage", type=int, metavar="N", help="simulate the interval N times"
    )
    options = parser.parse_args()
    print(conditions())
    if options.coverage:
        coverage(options.coverage)
        return
    benchmark = benchmark_registry.benchmark(BENCHMARK)
    samples = []
    for part in benchmark.parts:
        samples += benchmark.load(options.data, part)
    header = [
        "benchmark",
        "judge",
        "setting",
        "name",
        "aspect",
        "better",
        "agreed",
        "equal",
        "told_apart",
        "low",
        "high",
    ]
    rows = []
    for judge in judges.present(BENCHMARK, options.data):
        run = judges.run_of(judge, options.data, samples)
        names = [BENCHMARK, judge.judge, judge.setting, judge.name]
        for aspect, pairs in judged_pairs(run).items():
            rows.append([*names, aspect, *row(pairs)])
    table(header, rows)
    if options.out:
        with options.out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    main()
