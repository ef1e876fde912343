"""`vieval report` on the labels that GenAI-Bench's authors recorded: CPU seconds and memory by the bootstrap's draws.

Every judge with a log of a part is replayed on that part's pairs and written as a samples file; a
report runs in a process of its own.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from common import Cost, conditions, costs, in_own_process, script_parser, table

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
    paths = []
    pairs = 0
    for log_folder, part in benchmark.folders.items():
        contests = benchmark.load(data, part)
        pairs += len(contests)
        recorded = (logs / log_folder).glob("*/pairwise.json")
        for name in sorted(path.parent.name for path in recorded):
            recording = replay.load(logs, JUDGE, name)
            path = folder / f"{part} {name}" / "1_samples_genai.jsonl"
            path.parent.mkdir(parents=True)
            with path.open("w") as file:
                for contest in contests:
                    verdict, source = replay.replayed(
                        recording, contest, 0, JUDGE, "answer", name, config.Config()
                    )
                    row = {
                        "filtered_resps": response_json(contest.id, verdict, source),
                        "target": target_json(contest),
                    }
                    file.write(f"{json.dumps(row)}\n")
            paths.append(path)
    return paths, pairs


def reported(results: list[Path], draws: int, out: Path) -> Cost:
    labels = [path.parent.name for path in results]
    with costs() as cost:
        loaded = load_results(results, labels)
        write_report(loaded, out, StatisticsOptions(draws=draws))
    return cost


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument(
        "data", type=Path, help="a folder with genai_bench_tiger and its logs"
    )
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1000])
    options = parser.parse_args()
    print(conditions())
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        results, pairs = replays(options.data, folder / "logs")
        for draws in options.draws:
            out = folder / f"report{draws}"
            cost = in_own_process(reported, results, draws, out)
            rows.append([len(results), pairs, draws, cost.cpu, cost.peak])
    columns = {
        "judges by part": "",
        "pairs": ",",
        "draws": ",",
        "CPU s": ".1f",
        "peak MiB": ".0f",
    }
    table(columns, rows)


if __name__ == "__main__":
    main()
