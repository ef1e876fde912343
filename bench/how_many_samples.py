"""How many samples of a card are enough: samples of published verdicts beside all of them.

Samples are drawn as `vieval card` draws them, and the number of a judge is that of its card. Of
each size so many samples are drawn, and set beside the number on all that was published: the mean
error, the spread, the width of the interval and how often it holds the number on all; and for
judges that are neighbours in the order on all, how often the sample has them in that order. What a
sample shares with all makes the last sizes look better than they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bench.common import conditions, script_parser, table
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.card.plan import draw_sample
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.records import Run
from vieval_plugin.results.published.judges import parts_present, present, run_of
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

SIZES = {
    "imagenhub": (400, 600, 800, 1600),
    "genai_bench_tiger": (100, 200, 400, 800, 1600),
}


def complete(
    benchmark: Benchmark, judged: Sequence[Judged], published: Path
) -> list[Run]:
    """The runs of published judges with logs of all parts, on all samples."""
    parts = {sample.id.part for sample in judged}
    runs = []
    for judge in present(benchmark.name, published):
        if parts <= set(parts_present(judge, published)):
            run = run_of(judge, published, judged)
            runs.append(replace(run, label=judge.title))
    return runs


def numbers(
    benchmark: Benchmark, runs: Sequence[Run], options: StatisticsOptions
) -> Mapping[str, Estimate]:
    """The number of each judge by the first statistic that ranks judges."""
    parts = tuple(benchmark.parts)
    findings = benchmark.report.findings(benchmark.name, parts, runs, options)
    ranking = findings.ranked[0]
    by_judge = {}
    for number in findings.numbers:
        if ranking.has(number):
            by_judge[number.system] = number.estimate
    return by_judge


def limited(run: Run, ids: set[SampleId]) -> Run:
    """The same run on these samples alone."""
    records = {}
    for part, several in run.records.items():
        kept = [rows for rows in several if rows[0].id in ids]
        if kept:
            records[part] = kept
    return replace(run, records=records)


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("data", type=Path, help="a data folder with the benchmark")
    parser.add_argument("published", type=Path, help="the folder of published verdicts")
    parser.add_argument("--benchmark", choices=SIZES, default="imagenhub")
    parser.add_argument(
        "--samples", type=int, default=100, help="samples of each size (default 100)"
    )
    parser.add_argument(
        "--resamples", type=int, default=300, help="of each interval (default 300)"
    )
    options = parser.parse_args()
    print(f"{conditions()}; {options.samples} samples of each size")
    benchmark = benchmark_registry.benchmark(options.benchmark)
    statistics = StatisticsOptions(draws=options.resamples)
    judged = []
    for part in benchmark.parts:
        judged += benchmark.load(options.data, part)
    runs = complete(benchmark, judged, options.published)
    whole = {}
    for label, number in numbers(benchmark, runs, statistics).items():
        if not str(number.coverage):
            whole[label] = number
    order = sorted(whole, key=lambda label: -whole[label].value)
    print("; ".join(f"{label} {whole[label].value:.3f}" for label in order))
    # of the other aspects nothing is shown
    ranked = [
        replace(run, aspects=run.aspects[-1:]) for run in runs if run.label in whole
    ]
    rows = []
    for size in (*SIZES[options.benchmark], len(judged)):
        count = options.samples if size < len(judged) else 1
        sampled = []
        for seed in tqdm(range(count), desc=str(size), disable=None):
            ids = {sample.id for sample in draw_sample(judged, size, seed)}
            fewer = [limited(run, ids) for run in ranked]
            sampled.append(numbers(benchmark, fewer, replace(statistics, seed=seed)))
        rows.append(row(size, sampled, whole, order))
    neighbours = [f"{better} above {worse}" for better, worse in pairwise(order)]
    table(["samples", "bias", "SD", "width", "holds %", *neighbours], rows)


def row(
    size: int,
    sampled: Sequence[Mapping[str, Estimate]],
    whole: Mapping[str, Estimate],
    order: Sequence[str],
) -> list[str]:
    """A row of the table: over judges and samples, then a percentage for each two neighbours."""
    ordered = [[of_judge[label] for label in order] for of_judge in sampled]
    values = np.array([[number.value for number in row] for row in ordered])
    lows = np.array([[number.low for number in row] for row in ordered])
    highs = np.array([[number.high for number in row] for row in ordered])
    truth = np.array([whole[label].value for label in order])
    errors = values - truth
    is_held = (lows <= truth) & (truth <= highs)
    is_right = values[:, :-1] > values[:, 1:]
    return [
        str(size),
        f"{np.nanmean(errors):+.3f}",
        f"{np.nanstd(errors):.3f}",
        f"{np.nanmean(highs - lows):.3f}",
        f"{100 * is_held.mean():.0f}",
        *(f"{100 * share:.0f}" for share in is_right.mean(axis=0)),
    ]


if __name__ == "__main__":
    main()
