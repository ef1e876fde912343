"""`vieval report` on full replays of the VIEScore authors' logs: seconds and memory, for two results and for many.

Six logs, 4,801 samples each, are written as samples files. For more results than six they come
again, a tenth more of an image model's verdicts exchanged among each other every time, so that no
two judges are alike. Each report, and the pair tests of O alone, run in a process of their own;
BLAS has as many threads as it takes.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import (
    IMAGENHUB_FOLDER,
    Cost,
    conditions,
    costs,
    in_own_process,
    script_parser,
    table,
)

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
    samples = []
    for part in benchmark.parts:
        samples += benchmark.load(data, part)
    return [
        write_replay(data, folder / str(judge), judge, samples)
        for judge in range(number)
    ]


def write_replay(
    data: Path, folder: Path, judge: int, samples: Sequence[Sample]
) -> Path:
    """Write the samples file of a judge."""
    name = LOGS[judge % len(LOGS)]
    recording = replay.load(data / "viescore_logs" / f"results_{name}", JUDGE)
    setting = name.rpartition("_")[2]
    recorded = []
    sources = []
    for sample in samples:
        verdict, source = replay.replayed(
            recording, sample.id, 0, JUDGE, setting, name, config.Config()
        )
        recorded.append(verdict)
        sources.append(source)
    verdicts = exchanged(recorded, samples, judge)
    folder.mkdir(parents=True)
    path = folder / "1_samples_imagenhub.jsonl"
    with path.open("w") as file:
        for sample, verdict, source in zip(samples, verdicts, sources, strict=True):
            row = {
                "filtered_resps": response_json(sample.id, verdict, source),
                "target": target_json(sample),
            }
            file.write(f"{json.dumps(row)}\n")
    return path


def exchanged(
    verdicts: Sequence[Verdict], samples: Sequence[Sample], judge: int
) -> list[Verdict]:
    """Verdicts of which a share, larger each time that the logs come again, is another sample's
    of the same image model.
    """
    rng = np.random.default_rng(judge)
    after = list(verdicts)
    share = EXCHANGED_MORE * (judge // len(LOGS))
    places_by_model = defaultdict(list)
    for place, sample in enumerate(samples):
        places_by_model[sample.id.part, sample.id.image_model].append(place)
    for model_places in places_by_model.values():
        places = np.array(model_places)
        places = places[rng.random(len(places)) < share]
        exchanged_places = rng.permutation(places)
        for place, other in zip(
            places.tolist(), exchanged_places.tolist(), strict=True
        ):
            after[place] = verdicts[other]
    return after


def tested(results: list[Path], labels: list[str], intervals: bool) -> Cost:
    """The pair tests of O."""
    benchmark = benchmark_registry.benchmark("imagenhub")
    runs = load_results(results, labels).runs
    options = StatisticsOptions()
    parts = tuple(benchmark.parts)
    findings = benchmark.report.findings(benchmark.name, parts, runs, options)
    [overall] = [found for found in findings.ranked if found.aspect == "O"]
    compared = overall.compared(options)
    with costs() as cost:
        compare_systems(compared, benchmark.name, options, intervals)
    return cost


def reported(results: list[Path], labels: list[str], out: Path) -> Cost:
    with costs() as cost:
        write_report(load_results(results, labels), out, StatisticsOptions())
    return cost


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("data", type=Path, help=IMAGENHUB_FOLDER)
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
            row = [
                number,
                4801 * number,
                cost.wall,
                cost.cpu,
                pairs.cpu,
                cost.peak,
            ]
            rows.append(row)
    columns = {
        "results": "",
        "verdicts": ",",
        "s": ".1f",
        "CPU s": ".1f",
        "CPU s of O's pair tests": ".1f",
        "peak MiB": ".0f",
    }
    table(columns, rows)


if __name__ == "__main__":
    main()
