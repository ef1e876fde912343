"""Sources of samples to label: a samples file, a file of contests, a run of image
models, or a benchmark's part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.images import decode, examine, files_of, images_of, name_of
from vieval_plugin.judges.contests import SCHEMES, Judged, candidates_of
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.judges.spec import INPUTS
from vieval_plugin.labelling.choice import choose
from vieval_plugin.readers.absent_images import absent_image
from vieval_plugin.readers.arrow_tables import reread_cells
from vieval_plugin.readers.contest_rows import ContestRows, read_contests
from vieval_plugin.readers.image_folder import read_named
from vieval_plugin.readers.open_table import open_table
from vieval_plugin.readers.places import is_shards
from vieval_plugin.readers.rows import Row, read_lines
from vieval_plugin.readers.samples import SampleSource
from vieval_plugin.records import OWN, InputRow
from vieval_plugin.results.own_verdicts import is_own, written_file
from vieval_plugin.results.rows import rows_of
from vieval_plugin.results.shard_sample import sample_shards
from vieval_plugin.results.shard_verdicts import (
    input_sample,
    open_shards,
    record_named,
)
from vieval_plugin.results.unjudged import is_run, load_unjudged
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import did_you_mean
from vieval_plugin.text.untrusted import exists, is_below, isdir, path_of


@dataclass(frozen=True)
class ToLabel:
    """Sample or contest to label."""

    #: Sample or contest; of a folder of shards without texts and images until it is chosen.
    judged: Judged
    #: File and line, or its id.
    where: str
    #: Row in a folder of shards.
    row: InputRow | None = None


def read_to_label(
    inputs: Sequence[str],
    kind: str | None = None,
    partial: bool = False,
    columns: Mapping[str, str] | None = None,
    prompts: Path | None = None,
) -> list[ToLabel]:
    """Read the samples or contests of the given inputs.

    Args:
        inputs: samples (tables or folders, as for `vieval score`), or verdict files of `vieval
            score`. Alternatively one of: a JSONL file of contests
            (`readers/contest_rows.py`), the output of `generate_*` tasks with
            `--predict_only`, `BENCHMARK`, or `BENCHMARK/PART`. Or a folder of shards, which
            is sampled unless rows follow it, each as a uid or FILE:ROW.
        kind: of samples without a kind, and of contests.
        partial: read incomplete runs too.
        columns: meaning of a table's columns, from `parse_columns`.
        prompts: of images in folders, see `read_folders`.

    Raises:
        VievalError: an input does not exist, a line of the file is malformed, a kind is missing, or
            the benchmark's data is missing.
    """
    if is_shards(path_of(inputs[0])):
        return _read_shards(path_of(inputs[0]), inputs[1:], partial)
    files = [str(written_file(path_of(name))) for name in inputs]
    verdicts = [file for file in files if is_own(path_of(file))]
    if verdicts and len(verdicts) == len(inputs):
        return _of_verdicts(verdicts, partial)
    if verdicts:
        raise VievalError(
            "files of verdicts cannot be mixed with other files, got "
            f"{', '.join(inputs)}; use only files of verdicts"
        )
    if prompts or len(inputs) > 1:
        return _samples_to_label(
            read_named(inputs, prompts, kind, columns), ", ".join(inputs)
        )
    path = path_of(inputs[0])
    if not exists(path):
        return _read_benchmark(inputs[0])
    if is_run(path):
        source = load_unjudged(path).source
        return [
            ToLabel(row.sample, str(row.sample.id))
            for row in source
            if row.verdict is None
        ]
    if not isdir(path) and "candidates" in open_table(path).columns:
        return _contests(path, kind)
    return _samples_to_label(read_named(inputs, kind=kind, columns=columns), str(path))


def _of_verdicts(files: Sequence[str], partial: bool) -> list[ToLabel]:
    """Read the samples of verdict files, each once; VievalError if two files have
    different images for one id.
    """
    judged: dict[SampleId, Judged] = {}
    for file in files:
        for records in rows_of(path_of(file), partial):
            for record in records:
                sample = record.sample
                if sample and judged.setdefault(record.id, sample) != sample:
                    raise VievalError(
                        f"{record.id} must have the same images in all files, but "
                        f"{file} has different ones; put each model's images in a separate "
                        "folder and score them together: `vieval score NEW OLD --out "
                        "both.jsonl`"
                    )
    return [ToLabel(sample, str(sample.id)) for sample in judged.values()]


def choose_readable(
    samples: Sequence[ToLabel], count: int, seed: int
) -> tuple[list[ToLabel], dict[int, str]]:
    """Choose samples to label among those with readable images, and read their images.

    Only chosen samples are examined, because there may be many; unreadable ones are
    replaced.

    Args:
        samples: samples, or contests.
        count: as for `choose`.
        seed: as for `choose`.

    Returns:
        The choice in its order, and by its number the reason why a sample was left out.

    Raises:
        VievalError: as `choose`, and if no sample has readable images.
    """
    reasons = {
        number: reason
        for number, sample in enumerate(samples)
        if (reason := _missing_image(sample))
    }
    readable: dict[int, ToLabel] = {}
    while True:
        available = [number for number in range(len(samples)) if number not in reasons]
        if reasons and not available:
            where = samples[0].where
            raise VievalError(
                f"no sample has readable images (first: {where}: {reasons[0]})"
            )
        judged = [samples[number].judged for number in available]
        choice = [available[number] for number in choose(judged, count, seed)]
        if readable.keys() >= set(choice):
            return [readable[number] for number in choice], reasons
        for number in set(choice) - readable.keys():
            try:
                readable[number] = _read_images(samples[number])
            except VievalError as error:
                reasons[number] = str(error)


def read_planned(
    samples: Sequence[ToLabel], planned: Sequence[SampleId]
) -> list[ToLabel]:
    """Read the samples of a plan in its order, with their images; VievalError if one is
    missing.
    """
    by_id = {sample.judged.id: sample for sample in samples}
    if missing := [identity for identity in planned if identity not in by_id]:
        raise VievalError(
            f"the samples lack {len(missing)} of the plan's {len(planned)} images "
            f"(first: {missing[0]}); pass the samples that the plan was "
            "made from"
        )
    return [_read_images(by_id[identity]) for identity in planned]


def _missing_image(labelled: ToLabel) -> str:
    """Reason why a sample or contest cannot be shown, if an image is missing; empty if
    none is.

    Images in shards are checked when they are read.
    """
    if labelled.row:
        return ""
    has_images = any(images_of(labelled.judged))
    return absent_image(labelled.judged) if has_images else "no output image"


def _read_images(labelled: ToLabel) -> ToLabel:
    """Read the images of a sample; VievalError if one cannot be read."""
    if labelled.row is None:
        judged = reread_cells(labelled.judged)
    else:
        judged = replace(input_sample(labelled.row), id=labelled.judged.id)
    for image in images_of(judged):
        if not examine(image).plain:  # whose colours may have no agreed range
            decode(image)
    return replace(labelled, judged=judged)


def _read_shards(
    folder: Path, row_names: Sequence[str], partial: bool
) -> list[ToLabel]:
    opened = open_shards(folder, partial)
    named_records = [record_named(opened, name) for name in row_names]
    labelled = []
    for record in named_records or sample_shards(folder, partial).records:
        row = record.row
        if row and row.digest:
            sample = Sample(record.id, {}, kind=record.kind, group=row.group)
            labelled.append(ToLabel(sample, f"{row.file}:{row.row}", row))
    return labelled


def _samples_to_label(source: SampleSource, name: str) -> list[ToLabel]:
    labelled = []
    for row in source:
        sample = ToLabel(row.sample, f"{name}: {row.place}")
        if row.verdict and (row.addresses or not absent_image(row.sample)):
            raise VievalError(f"{sample.where}: {row.verdict.reason}; correct the line")
        _require_kind(sample)
        labelled.append(sample)
    return labelled


def _read_benchmark(benchmark_part: str) -> list[ToLabel]:
    name, _, part = benchmark_part.partition("/")
    if name not in benchmark_registry.benchmarks():
        hint = did_you_mean(name, benchmark_registry.benchmarks(), 0.6) or ";"
        raise VievalError(
            f"{benchmark_part}: no such file or benchmark{hint} pass a samples "
            "file, or BENCHMARK/PART"
        )
    parts = [part] if part else benchmark_registry.benchmark(name).parts
    return [
        ToLabel(sample, str(sample.id))
        for part_name in parts
        for sample in benchmark_registry.samples(name, part_name)
    ]


def _contests(path: Path, kind: str | None) -> list[ToLabel]:
    rows = read_lines(path, "pass a file of contests")
    common = ContestRows(
        benchmark=OWN,
        part=kind or "",
        kind=kind or "",
        scheme=_scheme(rows),
    )
    contest_rows = zip(read_contests(rows, path.parent, common), rows, strict=True)
    labelled = [ToLabel(contest, row.where) for contest, row in contest_rows]
    for contest in labelled:
        _require_kind(contest)
        _require_below(contest, path.parent)
    return labelled


def _require_below(labelled: ToLabel, folder: Path) -> None:
    """Raise VievalError for a link out of the folder of a contest's file, which would
    put any image of this machine on the page.
    """
    for file in files_of(candidates_of(labelled.judged)):
        if not is_below(file, folder):
            name = name_of(Image(file))
            raise VievalError(
                f"{labelled.where}: {name} links to a file outside "
                f"{folder}; copy the image there"
            )


def _scheme(rows: Sequence[Row]) -> str:
    """Scheme of existing votes: four-way if one of them requires it."""
    votes = []
    for row in rows:
        annotators = row.cells.get("annotators")
        votes.append(row.cells.get("vote"))
        if isinstance(annotators, list):
            votes += [vote for vote in annotators if isinstance(vote, str)]
    is_three_way = all(vote in (*SCHEMES["three_way"], None, "") for vote in votes)
    return "three_way" if is_three_way else "four_way"


def _require_kind(labelled: ToLabel) -> None:
    kind = labelled.judged.kind
    inputs = list(INPUTS)
    if not kind:
        raise VievalError(
            f"{labelled.where}: kind is missing; set the kind of all samples with "
            "--kind, such as tig"
        )
    if kind not in inputs:
        raise VievalError(
            f"{labelled.where}: unknown kind {kind!r}{did_you_mean(kind, inputs)} "
            f"known kinds: {', '.join(inputs)}"
        )
