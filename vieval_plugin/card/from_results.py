"""Make a card of a model from results of lmms-eval, VLMEvalKit or `vieval score`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vieval_plugin.card.card import Card
from vieval_plugin.card.making import card_of, entry_of
from vieval_plugin.card.placing import PlacedJudge, place_judge
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import Run
from vieval_plugin.results.host_samples import CARD_JSON, VERDICTS, samples_files
from vieval_plugin.results.lookup import require_consistent
from vieval_plugin.results.rows import rows_of
from vieval_plugin.results.runs import load_results
from vieval_plugin.run.verdict_lines import run_file
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import real

LEFT_OUT = (
    "made from results, so it does not show whether the model repeats its answers or "
    "what fools it"
)


@dataclass(frozen=True)
class ModelResults:
    """Verdict files, and the runs of one model in them."""

    files: tuple[Path, ...]
    runs: tuple[Run, ...]

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.runs[0].model


def results_of_model(results: Sequence[Path], model: str | None) -> ModelResults:
    """Read the results of one model.

    Args:
        results: folders or files of verdicts on benchmarks that people rated or voted on.
        model: name of the model, None if there is only one.

    Raises:
        VievalError: results cannot be read, or are of several models.
    """
    files = dict.fromkeys(file for result in results for file in samples_files(result))
    loaded = load_results(list(files))
    if loaded.unreadable:
        raise VievalError(loaded.unreadable[0])
    require_consistent(loaded.records)
    models = list(dict.fromkeys(run.model for run in loaded.runs))
    names = ", ".join(models)
    if model is None and len(models) > 1:
        raise VievalError(
            f"the results are from {len(models)} models ({names}); choose one with "
            "--model"
        )
    if model is not None and model not in models:
        raise VievalError(f"unknown model {model}; the results are from {names}")
    return ModelResults(
        tuple(files), tuple(run for run in loaded.runs if model in (None, run.model))
    )


def card_from_results(
    results: ModelResults,
    published: Path,
    folder: Path,
    options: StatisticsOptions,
    on_step: Callable[[str], None] = lambda line: None,
) -> tuple[Card, list[PlacedJudge]]:
    """Make the card of a model from its results, and copy their files next to it.

    Args:
        results: the model's.
        published: the folder of published verdicts.
        folder: of the card.
        options: failure policy, number of resamples, seed.
        on_step: called with a line on the next step.

    Raises:
        VievalError: no verdicts are on samples that people rated, or the folder already has the
            card of these files.
    """
    if (folder / CARD_JSON).exists() and any(
        real(file).is_relative_to(real(folder)) for file in results.files
    ):
        raise VievalError(
            f"{folder}: already contains the card for these verdicts; choose another "
            "folder with --out"
        )
    copies = _copied(results.files, folder)
    judges = []
    entries = []
    left_out = [LEFT_OUT]
    for run in results.runs:
        ids = {(record.id, record.provenance) for record in run.all_records}
        run_copies = [copy for copy, in_copy in copies.items() if in_copy & ids]
        run_files = [file for copy in run_copies if (file := run_file(copy)).exists()]
        step = (
            "computing numbers and comparing with published judges; this takes a "
            "minute or two"
        )
        on_step(f"{run.benchmark} by {run.judge}: {step}")
        try:
            judge = place_judge(replace(run, label=results.model), published, options)
        except VievalError as error:
            left_out.append(str(error))
        else:
            judges.append(judge)
            entries.append(entry_of(judge, (*run_copies, *run_files), folder))
    if not entries:
        raise VievalError("; ".join(left_out[1:]))
    return card_of(
        "results",
        judges,
        entries,
        [],
        [],
        left_out,
        options,
    ), judges


def _copied(files: Sequence[Path], folder: Path) -> dict[Path, set[object]]:
    """Copy verdict files to the folder of a card; return each copy with the ids and
    provenances in it.
    """
    copies: dict[Path, set[object]] = {}
    names = Counter(file.name for file in files)
    for number, file in enumerate(files, start=1):
        is_repeated = names[file.name] > 1
        copy_name = file.name
        if is_repeated:
            copy_name = f"{number}_{file.name}"
        copy = folder / VERDICTS / copy_name
        if real(copy) != real(file):
            write_whole(copy, file.read_bytes())
            if run_file(file).exists():
                write_whole(run_file(copy), run_file(file).read_bytes())
        copies[copy] = {
            (record.id, record.provenance)
            for records in rows_of(file)
            for record in records
        }
    return copies
