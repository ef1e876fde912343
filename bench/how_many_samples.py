"""How many samples of a card are enough: samples of published verdicts beside all of them.

Samples are drawn as `vieval card` draws them, and the number of a judge is that of its card. Of
each size so many samples are drawn, and set beside the number on all that was published: the mean
error, the spread, the width of the interval and how often it holds the number on all; and for
judges that are neighbours in the order on all, how often the sample has them in that order. What a
sample shares with all makes the last sizes look better than they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from tqdm import tqdm

from bench.common import conditions, table
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
    judges = [
        judge
        for judge in present(benchmark.name, published)
        if parts <= set(parts_present(judge, published))
    ]
    return [
        replace(run_of(judge, published, judged), label=judge.title) for judge in judges
    ]


def numbers(
    benchmark: Benchmark, runs: Sequence[Run], options: StatisticsOptions
) -> Mapping[str, Estimate]:
    """The number of each judge by the first statistic that ranks judges."""
    findings = benchmark.report.findings(
        benchmark.name, tuple(benchmark.parts), runs, options
    )
    return {
        number.system: number.estimate
        for number in findings.numbers
        if findings.ranked[0].has(number)
    }


def limited(run: Run, ids: set[SampleId]) -> Run:
    """The same run on these samples alone."""
    kept = {
        part: [rows for rows in several if rows[0].id in ids]
        for part, several in run.records.items()
    }
    return replace(run, records={part: rows for part, rows in kept.items() if rows})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
    judged = [
        sample
        for part in benchmark.parts
        for sample in benchmark.load(options.data, part)
    ]
    runs = complete(benchmark, judged, options.published)
    whole = {
        label: number
        for label, number in numbers(benchmark, runs, statistics).items()
        if not str(number.coverage)
    }
    # of the other aspects nothing is shown
    runs = [
        replace(run, aspects=run.aspects[-1:]) for run in runs if run.label in whole
    ]
    order = sorted(whole, key=lambda label: -whole[label].value)
    print("; ".join(f"{label} {whole[label].value:.3f}" for label in order))
    rows = []
    for size in (*SIZES[options.benchmark], len(judged)):
        drawn = []
        for seed in tqdm(
            range(options.samples if size < len(judged) else 1),
            desc=str(size),
            disable=None,
        ):
            ids = {sample.id for sample in draw_sample(judged, size, seed)}
            drawn.append(
                numbers(
                    benchmark,
                    [limited(run, ids) for run in runs],
                    replace(statistics, seed=seed),
                )
            )
        rows.append(row(size, drawn, whole, order))
    neighbours = [f"{better} above {worse}" for better, worse in pairwise(order)]
    table(["samples", "bias", "SD", "width", "holds %", *neighbours], rows)


def row(
    size: int,
    drawn: Sequence[Mapping[str, Estimate]],
    whole: Mapping[str, Estimate],
    order: Sequence[str],
) -> list[str]:
    """A row of the table: over judges and samples, then a percentage for each two neighbours."""
    values, low, high = (
        np.array([[getattr(of[label], name) for label in order] for of in drawn])
        for name in ("value", "low", "high")
    )
    truth = np.array([whole[label].value for label in order])
    holds = (low <= truth) & (truth <= high)
    right = [
        100 * np.mean(values[:, place] > values[:, place + 1])
        for place in range(len(order) - 1)
    ]
    return [
        str(size),
        f"{np.nanmean(values - truth):+.3f}",
        f"{np.nanstd(values - truth):.3f}",
        f"{np.nanmean(high - low):.3f}",
        f"{100 * holds.mean():.0f}",
        *(f"{share:.0f}" for share in right),
    ]


if __name__ == "__main__":
    main()
