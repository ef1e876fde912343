"""Write agreement of judges with people for model pages of the hub:
`.eval_results/*.yaml` for the repository of each model, and `eval.yaml` for that of the
benchmark.

Source: huggingface/hub-docs, `docs/hub/eval-results.md`, as it was in 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from vieval_plugin.benchmarks.benchmark import USER_SOURCE, Benchmark
from vieval_plugin.leaderboard.every_eval_ever import Publication, file_name
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.records import Run
from vieval_plugin.report.sections import Report, Section
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.versions import VERSION
from vieval_plugin.text.yaml_json import JsonObject

_FRAMEWORK = "vieval"


def export(
    report: Report,
    folder: Path,
    publication: Publication,
    dataset: str,
) -> list[Path]:
    """Write the results of each judge that was measured on a benchmark, and the
    benchmark's registration.

    Args:
        report: of verdicts on one benchmark that people rated.
        folder: for a folder of each model, and `eval.yaml`.
        publication: by whom and when.
        dataset: id of the benchmark's data set on the hub.

    Returns:
        The files, that of the benchmark last.

    Raises:
        VievalError: there is no agreement, or that of several benchmarks, or a file cannot be written.
    """
    all_results = [
        (section, _results(section, publication, dataset))
        for section in report.sections
    ]
    measured = [(section, results) for section, results in all_results if results]
    if len(measured) != 1:
        names = ", ".join(section.benchmark.name for section, _ in measured) or "none"
        raise VievalError(
            "--to hub-eval-results requires verdicts on one rated benchmark, "
            f"the one in --dataset, got {names}"
        )
    [(section, results)] = measured
    paths = []
    for run, entries in results:
        name = "_".join([section.benchmark.name, *run.setting.split()])
        model = folder / file_name(run.model or run.label)
        path = model / ".eval_results" / f"{file_name(name)}.yaml"
        paths.append(_write_yaml(path, entries))
    all_entries = [entry for _, entries in results for entry in entries]
    registration = _registration(section.benchmark, all_entries)
    return [*paths, _write_yaml(folder / "eval.yaml", registration)]


def _results(
    section: Section, publication: Publication, dataset: str
) -> list[tuple[Run, list[JsonObject]]]:
    """Return the entries of each judge that has a number on the benchmark."""
    results = [
        (run, list(_entries(section, run, publication, dataset)))
        for run in section.runs
    ]
    return [(run, entries) for run, entries in results if entries]


def _entries(
    section: Section,
    run: Run,
    publication: Publication,
    dataset: str,
) -> Iterator[JsonObject]:
    """Yield an entry for each main leaderboard of the benchmark that has a number of
    the judge.
    """
    date = datetime.fromtimestamp(publication.time, UTC).date().isoformat()
    provenance = run.all_records[0].provenance
    for board in section.headlines:
        own_numbers = (n for n in board.numbers if n.system == run.label)
        number = next(own_numbers, None)
        if number is None or not number.estimate.defined:
            continue
        estimate = number.estimate
        pack = f"prompt pack {provenance.pack} ({provenance.pack_hash})"
        notes = [
            f"{board.measured}, 95% interval {estimate.low:.3f} to {estimate.high:.3f}",
            f"n {estimate.sample_count}",
            f"judge {run.name}",
            *([pack] if provenance.pack else []),
            f"failed verdicts: {publication.options.policy}",
            f"vieval {VERSION}",
        ]
        yield {
            "dataset": {"id": dataset, "task_id": _task_id(board)},
            "value": round(estimate.value, 6),
            "date": date,
            "source": {"name": publication.organization},
            "evaluation_framework": _FRAMEWORK,
            "notes": "; ".join(notes),
        }


def _task_id(board: Leaderboard) -> str:
    return "_".join(filter(None, (board.part, board.aspect)))


def _registration(benchmark: Benchmark, entries: Sequence[JsonObject]) -> JsonObject:
    """Registration file at the root of a data set, with the tasks of all results."""
    ids = dict.fromkeys(entry["dataset"]["task_id"] for entry in entries)
    name = benchmark.title or benchmark.name
    description = benchmark.page_words(
        f"Agreement of image judges with people on {name}."
    )
    if benchmark.source != USER_SOURCE:
        description = f"{description} Source: {benchmark.source}."
    return {
        "name": name,
        "description": description,
        "evaluation_framework": _FRAMEWORK,
        "tasks": [{"id": name, "config": "default", "split": "test"} for name in ids],
    }


def _write_yaml(path: Path, document: JsonObject | Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)
    write_whole(path, [text], "--out")
    return path
