"""The published logs of six judges as runs, and the leaderboard of some."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.leaderboards import headlines_of
from vieval_plugin import config
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.records import Record, Run
from vieval_plugin.results import replay
from vieval_plugin.stats.options import StatisticsOptions

ASPECTS = ("SC", "PQ", "O")
MODELS = ("gpt4o", "gpt4v")
LOGS = (
    *(f"{model}_{shots}" for model in MODELS for shots in ("0shot", "1shot")),
    *("llava_0shot", "blip2_0shot"),
)
IMAGENHUB = benchmark("imagenhub")


def six_runs(
    data: Path, parts: Sequence[str] = tuple(IMAGENHUB.parts)
) -> dict[str, Run]:
    """Each log's verdicts on the samples of these task types, by the log's name."""
    samples = [sample for part in parts for sample in IMAGENHUB.load(data, part)]
    runs = {}
    for name in LOGS:
        recording = replay.load(data / "viescore_logs" / f"results_{name}", "viescore")
        records: dict[str, list[tuple[Record, ...]]] = {}
        for sample in samples:
            told = ("viescore", name.rpartition("_")[2], name, config.Config())
            found = replay.replayed(recording, sample.id, 0, *told)
            about = {"kind": sample.kind, "group": sample.group}
            record = Record(sample.id, *found, sample.ratings, **about)
            records.setdefault(sample.id.part, []).append((record,))
        runs[name] = Run(name, "imagenhub", "viescore", ASPECTS, records)
    return runs


def board(runs: Sequence[Run], options: StatisticsOptions | None = None) -> Leaderboard:
    """The leaderboard that leads a report on these runs."""
    parts = tuple(part for part in IMAGENHUB.parts if part in runs[0].records)
    against = "annotators on imagenhub"
    named = (IMAGENHUB.report, "imagenhub", parts, runs)
    return headlines_of(*named, options or StatisticsOptions(), against)[0]
