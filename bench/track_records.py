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

import argparse
import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.common import conditions, table
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.imagenhub.tasks import TASKS
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.meta_evaluation.leaderboards import leaderboard
from vieval_plugin.records import Run
from vieval_plugin.results.published import judges
from vieval_plugin.stats.agreement import annotator_mean
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
    ratings: dict[str, dict[str, float]] = {}
    for record in chain(*run.records[part]):
        mean = float(annotator_mean([[rating] for rating in record.ratings[aspect]])[0])
        ratings.setdefault(record.id.image_model, {})[record.id.uid] = mean
    return {
        (first, second): np.array(
            [
                ratings[first][p] - ratings[second][p]
                for p in ratings[first]
                if p in ratings[second]
            ]
        )
        for first, second in combinations(ratings, 2)
    }


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
    pairs: dict[str, list[JudgedPair]] = {}
    options = StatisticsOptions(draws=10)
    for part, records in run.records.items():
        of_part = replace(run, records={part: records})
        findings = OfGenerators().findings(BENCHMARK, (part,), [of_part], options)
        ranked = [statistic for statistic in findings.ranked if not statistic.breakdown]
        boards = [
            leaderboard(s, findings, BENCHMARK, [of_part], options, intervals=False)
            for s in ranked
        ]
        for board in boards:
            people = people_differences(run, part, board.aspect)
            for pair in board.comparison.all_pairs:
                key = (pair.first, pair.second)
                differences = (
                    people[key] if key in people else -people[pair.second, pair.first]
                )
                says = pair.result.p <= LEVEL
                agreed = bool(pair.result.difference.value * differences.mean() > 0)
                one_sided = sign_flip_p(differences)
                told_apart = bool(2 * min(one_sided, 1 - one_sided) <= LEVEL)
                pairs.setdefault(board.aspect, []).append(
                    JudgedPair(part, *key, says, agreed, told_apart)
                )
    return pairs


def share_interval(
    pairs: Sequence[JudgedPair], draws: int = DRAWS
) -> tuple[float, float]:
    """The 95% interval of the share of agreement where the judge says better, over resamples of
    generators.
    """
    rng = np.random.default_rng(0)
    better = [pair for pair in pairs if pair.says_better]
    names = sorted(
        {(pair.part, name) for pair in pairs for name in (pair.first, pair.second)}
    )
    number = {name: place for place, name in enumerate(names)}
    parts = [part for part, _ in names]
    counts = np.hstack(
        [rng.multinomial(n, np.full(n, 1 / n), draws) for n in Counter(parts).values()]
    )
    first, second = (
        counts[:, [number[pair.part, pair[place]] for pair in better]]
        for place in (1, 2)
    )
    weights = first * second
    agreed = np.array([pair.agreed for pair in better], dtype=float)
    totals = weights.sum(axis=1)
    shares = weights[totals > 0] @ agreed / totals[totals > 0]
    return expanded_interval(shares, len(names))


def planted_pairs(
    sizes: Sequence[int], liking: float, rng: np.random.Generator
) -> list[JudgedPair]:
    """The pairs of drawn generators, of task types with so many."""
    pairs = []
    for part, size in enumerate(sizes):
        quality = rng.normal(size=size)
        judged = quality + rng.normal(0, np.hypot(liking, ERROR), size)
        rated = quality + rng.normal(0, ERROR, size)
        for first, second in combinations(range(size), 2):
            difference = judged[first] - judged[second]
            says = abs(difference) > 1.96 * np.sqrt(2) * ERROR
            agreed = difference * (rated[first] - rated[second]) > 0
            pairs.append(
                JudgedPair(
                    str(part), str(first), str(second), bool(says), bool(agreed), False
                )
            )
    return pairs


def coverage(trials: int) -> None:
    """Print how often the interval holds the share of planted generators."""
    sizes = [len(task.image_models) for task in TASKS.values()]
    rows = []
    for liking in LIKINGS:
        rng = np.random.default_rng(0)
        many = planted_pairs((2,) * 200_000, liking, rng)
        truth = np.mean([pair.agreed for pair in many if pair.says_better])
        ends = np.array(
            [
                share_interval(planted_pairs(sizes, liking, rng), 2000)
                for _ in range(trials)
            ]
        )
        held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        width = (ends[:, 1] - ends[:, 0]).mean()
        says = np.mean([pair.says_better for pair in many])
        cells = (f"{100 * share:.1f}" for share in (says, truth, held.mean()))
        rows.append([f"{liking:g}", *cells, f"{width:.2f}"])
    print(f"{trials} trials, seed 0")
    table(
        ["liking", "says better, %", "people agree, %", "holds the truth, %", "width"],
        rows,
    )


def row(pairs: Sequence[JudgedPair]) -> list[str]:
    """Counts of pairs, and the interval of the share on which people agree."""
    better = [pair for pair in pairs if pair.says_better]
    equal = [pair for pair in pairs if not pair.says_better]
    counts = (
        len(better),
        sum(p.agreed for p in better),
        len(equal),
        sum(p.told_apart for p in equal),
    )
    return [*map(str, counts), *(f"{end:.3f}" for end in share_interval(pairs))]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "data",
        type=Path,
        help="a folder with imagenhub/human_ratings and viescore_logs",
    )
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
    samples = [
        sample
        for part in benchmark.parts
        for sample in benchmark.load(options.data, part)
    ]
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
        for aspect, pairs in judged_pairs(
            judges.run_of(judge, options.data, samples)
        ).items():
            rows.append(
                [BENCHMARK, judge.judge, judge.setting, judge.name, aspect, *row(pairs)]
            )
    table(header, rows)
    if options.out:
        with options.out.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    main()
