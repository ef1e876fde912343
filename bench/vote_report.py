"""`vieval report` on the labels that GenAI-Bench's authors recorded: CPU seconds and memory by the bootstrap's draws.

Every judge with a log of a part is replayed on that part's pairs and written as a samples file; a
report runs in a process of its own.
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
from vieval_plugin.report.writing import write_report
from vieval_plugin.results import replay
from vieval_plugin.results.runs import load_results
from vieval_plugin.stats.options import StatisticsOptions

BENCHMARK = "genai_bench_tiger"
JUDGE = "pairwise"


def replays(data: Path, folder: Path) -> tuple[list[Path], int]:
    """A samples file of each judge's replay of a part, and how many pairs there are."""
    benchmark = benchmark_registry.benchmark(BENCHMARK)
    logs = data / BENCHMARK
    written = []
    pairs = 0
    for log_folder, part in benchmark.folders.items():
        contests = benchmark.load(data, part)
        pairs += len(contests)
        names = sorted(
            path.parent.name for path in (logs / log_folder).glob("*/pairwise.json")
        )
        for name in names:
            recording = replay.load(logs, JUDGE, name)
            written.append(folder / f"{part} {name}" / "1_samples_genai.jsonl")
            written[-1].parent.mkdir(parents=True)
            with written[-1].open("w") as file:
                for contest in contests:
                    verdict, source = replay.replayed(
                        recording, contest, 0, JUDGE, "answer", name, config.Config()
                    )
                    row = {
                        "filtered_resps": response_json(contest.id, verdict, source),
                        "target": target_json(contest),
                    }
                    file.write(f"{json.dumps(row)}\n")
    return written, pairs


def reported(results: list[Path], draws: int, out: Path) -> Cost:
    with costs() as cost:
        write_report(
            load_results(results, [path.parent.name for path in results]),
            out,
            StatisticsOptions(draws=draws),
        )
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "data", type=Path, help="a folder with genai_bench_tiger and its logs"
    )
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1000])
    options = parser.parse_args()
    print(conditions())
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        results, pairs = replays(options.data, Path(temporary) / "logs")
        for draws in options.draws:
            cost = in_own_process(
                reported, results, draws, Path(temporary) / f"report{draws}"
            )
            rows.append(
                [
                    f"{len(results)}",
                    f"{pairs:,}",
                    f"{draws:,}",
                    f"{cost.cpu:.1f}",
                    f"{cost.peak:.0f}",
                ]
            )
    table(["judges by part", "pairs", "draws", "CPU s", "peak MiB"], rows)


if __name__ == "__main__":
    main()
