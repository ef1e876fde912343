"""`vieval report` on full replays of the VIEScore authors' logs: seconds and memory, for two results and for many.

Six logs, 4,801 samples each, are written as samples files. For more results than six they come
again, a tenth more of an image model's verdicts exchanged among each other every time, so that no
two judges are alike. Each report, and the pair tests of O alone, run in a process of their own;
BLAS has as many threads as it takes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import Cost, conditions, costs, in_own_process, table

from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.judges.protocol import Sample, Verdict
from vieval_plugin.meta_evaluation.comparison import compare_systems
from vieval_plugin.records import response_json, target_json
from vieval_plugin.report.writing import write_report
from vieval_plugin.results import replay
from vieval_plugin.results.runs import load_results
from vieval_plugin.stats.options import StatisticsOptions

LOGS = (
    "gpt4o_0shot",
    "gpt4v_0shot",
    "gpt4o_1shot",
    "gpt4v_1shot",
    "llava_0shot",
    "blip2_0shot",
)
JUDGE = "viescore"
EXCHANGED_MORE = 0.1


def replays(data: Path, folder: Path, number: int) -> list[Path]:
    """Samples files of so many judges."""
    benchmark = benchmark_registry.benchmark("imagenhub")
    samples = [
        sample for part in benchmark.parts for sample in benchmark.load(data, part)
    ]
    written = []
    for judge in range(number):
        name = LOGS[judge % len(LOGS)]
        recording = replay.load(data / "viescore_logs" / f"results_{name}", JUDGE)
        setting = name.rpartition("_")[2]
        found = [
            replay.replayed(recording, s.id, 0, JUDGE, setting, name, config.Config())
            for s in samples
        ]
        verdicts = exchanged([verdict for verdict, _ in found], samples, judge)
        written.append(folder / f"{judge}" / "1_samples_imagenhub.jsonl")
        written[-1].parent.mkdir(parents=True)
        with written[-1].open("w") as file:
            for sample, verdict, (_, source) in zip(
                samples, verdicts, found, strict=True
            ):
                row = {
                    "filtered_resps": response_json(sample.id, verdict, source),
                    "target": target_json(sample),
                }
                file.write(f"{json.dumps(row)}\n")
    return written


def exchanged(
    verdicts: Sequence[Verdict], samples: Sequence[Sample], judge: int
) -> list[Verdict]:
    """Verdicts of which a share, larger each time that the logs come again, is another sample's
    of the same image model.
    """
    rng = np.random.default_rng(judge)
    after = list(verdicts)
    models = [(sample.id.part, sample.id.image_model) for sample in samples]
    for model in dict.fromkeys(models):
        places = np.array([place for place, of in enumerate(models) if of == model])
        places = places[rng.random(len(places)) < EXCHANGED_MORE * (judge // len(LOGS))]
        for place, other in zip(
            places.tolist(), rng.permutation(places).tolist(), strict=True
        ):
            after[place] = verdicts[other]
    return after


def tested(results: list[Path], labels: list[str], intervals: bool) -> Cost:
    """The pair tests of O."""
    benchmark = benchmark_registry.benchmark("imagenhub")
    runs = load_results(results, labels).runs
    options = StatisticsOptions()
    findings = benchmark.report.findings(
        benchmark.name, tuple(benchmark.parts), runs, options
    )
    [of_overall] = [
        statistic.compared(options)
        for statistic in findings.ranked
        if statistic.aspect == "O"
    ]
    with costs() as cost:
        compare_systems(of_overall, benchmark.name, options, intervals)
    return cost


def reported(results: list[Path], labels: list[str], out: Path) -> Cost:
    with costs() as cost:
        write_report(load_results(results, labels), out, StatisticsOptions())
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "data",
        type=Path,
        help="a folder with imagenhub/human_ratings and viescore_logs",
    )
    parser.add_argument("--results", type=int, nargs="+", default=[2, 6, 17])
    options = parser.parse_args()
    print(conditions())
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = replays(options.data, folder, max(options.results))
        for number in options.results:
            results = files[:number]
            labels = [f"judge {n}" for n in range(number)]
            cost = in_own_process(reported, results, labels, folder / f"report{number}")
            pairs = in_own_process(tested, results, labels, False)
            numbers = (cost.wall, cost.cpu, pairs.cpu)
            rows.append(
                [
                    f"{number}",
                    f"{4801 * number:,}",
                    *(f"{n:.1f}" for n in numbers),
                    f"{cost.peak:.0f}",
                ]
            )
    table(
        ["results", "verdicts", "s", "CPU s", "CPU s of O's pair tests", "peak MiB"],
        rows,
    )


if __name__ == "__main__":
    main()
