"""Read the images of a host's run as samples: images to judge later, judged images, and
images of the host's own tasks.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.config import Config, current
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.media.files import require_plain
from vieval_plugin.readers.samples import (
    SampleRow,
    SampleSource,
    fingerprint_of,
    image_stamps,
)
from vieval_plugin.records import OWN, lines_of, unjudged
from vieval_plugin.results.documents import MALFORMED, read_record, read_unjudged
from vieval_plugin.results.host_samples import responses_of, samples_files
from vieval_plugin.run.generated import (
    GeneratedImage,
    generated_images,
    missing_image_verdict,
    read_answer,
    trusted_folders,
)
from vieval_plugin.text.errors import VievalError, line_of, system_reason
from vieval_plugin.text.untrusted import isdir, isfile, path_of, real
from vieval_plugin.text.yaml_json import JsonObject, first_row, read_json

_DATA = re.compile(r"data:image/[a-z]+;base64,", re.IGNORECASE)
_EDITS = ("tie", "mie")


@dataclass(frozen=True)
class UnjudgedRun:
    """The images of a run that are to be judged."""

    #: The images; missing ones already have a verdict.
    source: SampleSource
    #: Judge of its tasks; empty if they have none.
    judge: str
    setting: str


def is_run(path: Path) -> bool:
    """Return whether a path is a host's output: a folder with samples files, or a file
    with a host's rows.

    Raises:
        VievalError: the path is neither a folder nor a plain file.
    """
    if isdir(path):
        return any(path.rglob("*_samples_*.jsonl"))
    require_plain(path)
    return "filtered_resps" in first_row(path)


def load_unjudged(
    path: Path,
    options: Config | None = None,
    kind: str | None = None,
) -> UnjudgedRun:
    """Load the images of a run, with the reasons for missing ones; earlier verdicts on
    them are dropped.

    Args:
        path: the host's output folder, or one of its samples files.
        options: with trusted folders in addition to the run's (default: options of the file in
            VIEVAL_CONFIG).
        kind: of images from tasks without a kind, which are all tasks not from VIEval.

    Raises:
        VievalError: the run made no images, or its tasks have different judges.
    """
    rows = list[SampleRow]()
    judges = dict[tuple[str, str], None]()
    folder = path if path.is_dir() else path.parent
    trusted = trusted_folders(options or current(), folder)
    files = samples_files(path)
    for file in files:
        for number, line in enumerate(_lines(file), start=1):
            try:
                host_row = read_json(line)
                images = _rows_of(
                    host_row,
                    f"line {number}",
                    file,
                    kind,
                    trusted,
                )
                for judge_and_setting, row in images:
                    judges[judge_and_setting] = None
                    rows.append(row)
            except MALFORMED as error:
                raise VievalError(
                    f"{file}: line {number} is not an image to judge "
                    f"({line_of(error)}); pass a run that generated images, such as "
                    "generate_* tasks with --predict_only"
                ) from None
    if not rows:
        raise VievalError(
            f"{path}: contains no images; run generate_* tasks with --predict_only "
            "first"
        )
    judge, setting = _only_judge(path, judges)
    stamps = (image_stamps(row.sample) for row in rows)
    digest = fingerprint_of(files, kind or "", *stamps)
    source = SampleSource(
        str(path),
        lambda: iter(rows),
        digest,
        total=len(rows),
    )
    return UnjudgedRun(source, judge, setting)


def _only_judge(path: Path, judges: Collection[tuple[str, str]]) -> tuple[str, str]:
    """The judge and setting of all tasks; VievalError for several."""
    judge_and_setting, *others = judges
    if others:
        labels = [" ".join(filter(None, words)) or "none" for words in judges]
        raise VievalError(
            f"{path}: contains tasks for several judges ({', '.join(labels)}); pass the "
            "samples file of one judge"
        )
    return judge_and_setting


def _lines(file: Path) -> list[str]:
    try:
        return lines_of(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(
            f"{file}: cannot be read ({system_reason(error)}); restore it, or leave it out"
        ) from None


def _rows_of(
    row: JsonObject,
    line_name: str,
    file: Path,
    kind: str | None,
    trusted: Sequence[Path],
) -> Iterator[tuple[tuple[str, str], SampleRow]]:
    if is_foreign(row):
        for generated in made_of_row(row, file, kind, trusted):
            sample = generated.sample
            findings = generated.findings
            decided = missing_image_verdict(generated)
            yield ("", ""), SampleRow(sample, line_name, decided, findings)
        return
    for response in responses_of(row):
        document = read_json(response)
        # to be judged by another judge
        if isinstance(document, dict) and "verdict" in document:
            record = read_record(response, row["target"])
            if not isinstance(record.sample, Sample):
                raise VievalError(
                    "it contains a verdict on a benchmark image; judge it with "
                    "another task of that benchmark"
                )
            decided = None if "output" in record.sample.images else record.verdict
            sample_row = SampleRow(record.sample, line_name, decided)
            yield (record.provenance.judge, ""), sample_row
        else:
            image = read_unjudged(response, row["target"])
            decided = unjudged(image.status, image.reason) if image.reason else None
            sample_row = SampleRow(image.sample, line_name, decided, image.findings)
            yield (image.judge, image.setting), sample_row


def is_foreign(row: JsonObject) -> bool:
    """Return whether a row of a samples file belongs to a task of the host instead of
    VIEval.
    """
    try:
        target = read_json(str(row.get("target")))
    except (ValueError, RecursionError):
        return True
    return not (isinstance(target, dict) and "vieval" in target)


def made_of_row(
    row: JsonObject,
    file: Path,
    kind: str | None,
    trusted: Sequence[Path],
) -> Iterator[GeneratedImage]:
    """Yield the images in the answers of a row, generated from its prompt and its input
    image.

    Args:
        row: a row of the host's, with `arguments` (the prompt first), `filtered_resps` and perhaps
            `input_media`.
        file: the samples file; its folder gives the image model its name.
        kind: of the task, which rows do not record.
        trusted: folders that must contain the files in answers.

    Raises:
        VievalError: the kind or the prompt is missing.
    """
    if not kind:
        raise VievalError(
            "its task has no kind; set the kind of its images with --kind, such as tig"
        )
    texts = (text for text in row.get("arguments", ()) if isinstance(text, str))
    prompt = next(filter(str.strip, texts), "")
    if not prompt:
        raise VievalError("its arguments contain no prompt")
    number = 0
    if isinstance(row.get("doc_id"), int):
        number = row["doc_id"]
    task = re.sub(r"^.*_samples_", "", file.stem)
    text = "instruction" if kind in _EDITS else "prompt"
    identity = SampleId(
        OWN,
        kind,
        "",
        f"{task}-{number}",
    )
    conditions = Sample(
        identity,
        _source_images(row),
        {text: prompt},
    )
    answers = [read_answer(answer, number) for answer in responses_of(row)]
    image_model = real(file).parent.name
    image_counts = [len(answer.images) for answer in answers]
    yield from generated_images(
        conditions,
        image_model,
        answers,
        max([1, *image_counts]),
        trusted,
    )


def _source_images(row: JsonObject) -> dict[str, Image]:
    """Return the input image of a generator, if the row has one: an existing file, or
    embedded data.
    """
    media = row.get("input_media")
    for image in media if isinstance(media, list) else ():
        if not isinstance(image, str):
            continue
        head = _DATA.match(image)
        if head:
            with suppress(ValueError):
                content = base64.b64decode(image[head.end() :], validate=True)
                return {"source": Image(content)}
        elif isfile(image):
            return {"source": Image(path_of(image).absolute())}
    return {}
