"""`vieval report` on full replays of the VIEScore authors' logs: seconds and memory, for two results and for many.

The logs of GPT-4v with and without an example, 4,801 verdicts each, are written as samples files; for more results than
two they are repeated under labels. Each report runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from common import Cost, conditions, costs, in_own_process, table

from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.records import response_json, target_json
from vieval_plugin.report import write_report
from vieval_plugin.results import replay
from vieval_plugin.results.runs import load_results
from vieval_plugin.stats.options import StatisticsOptions

LOGS = {"gpt4v_0shot": "0shot", "gpt4v_1shot": "1shot"}


def replays(data: Path, folder: Path, judge: str) -> list[Path]:
    """A samples file of each setting's replay."""
    benchmark = benchmark_registry.benchmark("imagenhub")
    written = []
    for name, setting in LOGS.items():
        recording = replay.load(data / "viescore_logs" / f"results_{name}", judge)
        written.append(folder / name / "1_samples_imagenhub.jsonl")
        written[-1].parent.mkdir(parents=True)
        with written[-1].open("w") as file:
            for sample in (one for part in benchmark.parts for one in benchmark.load(data, part)):
                verdict, source = replay.replayed(recording, sample.id, 0, judge, setting, name, config.Config())
                row = {"filtered_resps": response_json(sample.id, verdict, source), "target": target_json(sample)}
                file.write(f"{json.dumps(row)}\n")
    return written


def reported(results: list[Path], labels: list[str], out: Path) -> Cost:
    with costs() as cost:
        write_report(load_results(results, labels), out, StatisticsOptions())
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder with imagenhub/human_ratings and viescore_logs")
    parser.add_argument("--results", type=int, nargs="+", default=[2, 17])
    options = parser.parse_args()
    print(conditions())
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = replays(options.data, folder / "logs", "viescore")
        for number in options.results:
            results = [folder / f"run{n}" / "1_samples_imagenhub.jsonl" for n in range(number)]
            for n, result in enumerate(results):
                result.parent.mkdir(exist_ok=True)
                if not result.exists():
                    result.hardlink_to(files[n % len(files)])
            labels = [f"judge {n}" for n in range(number)]
            cost = in_own_process(reported, results, labels, folder / f"report{number}")
            rows.append([str(number), f"{4801 * number:,}", f"{cost.wall:.1f}", f"{cost.cpu:.1f}", f"{cost.peak:.0f}"])
    table(["results", "verdicts", "s", "CPU s", "peak MiB"], rows)


if __name__ == "__main__":
    main()
