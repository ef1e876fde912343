"""Judge the samples of a card into files of a folder, so that an interrupted card
resumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from vieval_plugin.audit.anchor import REPEATS, runs_of_anchor
from vieval_plugin.backends.http.batches import BatchOptions
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.card.plan import PlannedEntry, draw_sample
from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges.protocol import Status
from vieval_plugin.readers.samples import SampleSource
from vieval_plugin.records import Provenance, Record
from vieval_plugin.results.host_samples import VERDICTS
from vieval_plugin.results.rows import rows_of
from vieval_plugin.results.scored import write_scored
from vieval_plugin.run.evaluate import provenance_of
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scoring import score_into
from vieval_plugin.run.verdict_lines import differing, inputs_of, run_file, run_hash
from vieval_plugin.run.verdict_log import VerdictLog, partial_file, usage_of
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import read_json

#: The folder of a card's repeats, which are anchors.
ANCHORS = "anchors"
#: The number of the first repeat's answers, of which no store has any.
FIRST_REPEAT = 1_000


@dataclass(frozen=True)
class Judging:
    """Options and model of all runs of a card; `progress` counts them.

    `batch` is the folder with the answers of batches; None to call the model.
    """

    options: Config
    backbone: Backbone | None
    progress: Progress
    batch: BatchOptions | None = None


@dataclass(frozen=True)
class JudgedFile:
    """A file of verdicts, with its records and usage."""

    path: Path
    records: tuple[Record, ...]
    usage: Usage

    @property
    def files(self) -> tuple[Path, Path]:
        """The file and its run file."""
        return self.path, run_file(self.path)


def entry_file(entry: PlannedEntry, folder: Path) -> Path:
    """Path of an entry's verdicts."""
    return folder / VERDICTS / f"{entry.stem}.jsonl"


def repeats_file(entry: PlannedEntry, folder: Path) -> Path:
    """Path of an entry's repeats."""
    return folder / ANCHORS / f"{entry.stem}.jsonl"


def is_complete(path: Path) -> bool:
    """True if a file of verdicts exists and contains no failed calls."""
    if not path.exists() or partial_file(path).exists():
        return False
    return not any(
        record.verdict.status is Status.API_ERROR
        for record in chain.from_iterable(rows_of(path))
    )


async def judge_entry(
    entry: PlannedEntry, folder: Path, judging: Judging
) -> JudgedFile:
    """Judge the samples of an entry into a file below a folder, or read the file of an
    earlier run with the same options.

    Raises:
        VievalError: the run cannot continue, or an existing file is from another run.
    """
    path = entry_file(entry, folder)
    provenance = provenance_of(entry.prepared, judging.options, judging.backbone)
    return await _judge_into(
        path,
        entry,
        {0: provenance},
        judging,
    )


async def judge_repeats(
    entry: PlannedEntry,
    n: int,
    seed: int,
    folder: Path,
    judging: Judging,
) -> JudgedFile:
    """Judge n samples of an entry three times without the store, as repeats of an
    anchor.
    """
    provenance = provenance_of(entry.prepared, judging.options, judging.backbone)
    store = judging.options.store.model_copy(update={"use": False})
    past_store = judging.options.model_copy(update={"store": store})
    entry = replace(entry, judged=tuple(draw_sample(entry.judged, n, seed)))
    runs = [run for _, run in runs_of_anchor(provenance, [[]] * REPEATS)]
    path = repeats_file(entry, folder)
    by_repeat = dict(enumerate(runs, start=FIRST_REPEAT))
    return await _judge_into(
        path,
        entry,
        by_repeat,
        replace(judging, options=past_store),
    )


async def _judge_into(
    path: Path,
    entry: PlannedEntry,
    by_repeat: Mapping[int, Provenance],
    judging: Judging,
) -> JudgedFile:
    source = entry.source
    runs = {run_hash(provenance): provenance for provenance in by_repeat.values()}
    if path.exists() and not partial_file(path).exists():
        usage = _require_same_run(path, source, runs)
        if is_complete(path):
            return JudgedFile(path, tuple(chain.from_iterable(rows_of(path))), usage)
    batch = judging.batch if entry.prepared.asks_a_model else None
    with VerdictLog(partial_file(path), inputs := inputs_of(source), runs) as log:
        for repeat, provenance in by_repeat.items():
            await score_into(
                log,
                source,
                entry.prepared,
                provenance,
                path.parent,
                judging.options,
                judging.backbone,
                judging.progress,
                True,
                batch,
                repeat,
            )
        write_scored(path, log, inputs, runs)
        usage = sum(map(log.usage, runs), Usage())
        log.complete = True
    return JudgedFile(path, tuple(chain.from_iterable(rows_of(path))), usage)


def _require_same_run(
    path: Path, source: SampleSource, runs: dict[str, Provenance]
) -> Usage:
    """Return the usage of a complete run; VievalError if its options differ."""
    try:
        document = read_json(run_file(path).read_bytes())
        run_documents = document["runs"]
        earlier = {name: run["provenance"] for name, run in run_documents.items()}
        difference = differing(
            document["inputs"],
            earlier,
            inputs_of(source),
            runs,
        )
        usages = (usage_of(run["usage"]) for run in run_documents.values())
        usage = sum(usages, Usage())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise VievalError(
            f"{path}: {run_file(path).name} is missing from the same folder "
            "or damaged; "
            "choose another --out"
        ) from None
    if difference:
        raise VievalError(
            f"{path}: judged {difference}; rerun with the original options, or choose "
            "another --out"
        )
    return usage
