"""ImagenHub's rated images as samples, with their conditions, and what a live run on them would
lack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from vieval_plugin.benchmarks.imagenhub.ratings import ADVICE, aspects, read_ratings
from vieval_plugin.benchmarks.imagenhub.tasks import (
    NAME,
    TaskInfo,
    museum_folder,
    task_info,
)
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.readers.rows import read_object
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import exists, isfile
from vieval_plugin.text.yaml_json import JsonObject

LOOKUP = "dataset_lookup.json"


def load(root: Path, part: str) -> list[Sample]:
    """Rated images of a task, in uid order across image models, so that a limit does not pick one
    model.

    Images are named by path and not opened; conditions come from `dataset_lookup.json` where it is
    there (a run on recorded verdicts needs neither). VievalError for an unknown task, and for a
    file that is absent or malformed.
    """
    info = task_info(part)
    museum = museum_folder(root, part)
    lookup = _read_lookup(museum / LOOKUP)
    samples = []
    for uid, by_model in read_ratings(root, part).items():
        texts = _texts(part, lookup.get(uid, {}), info)
        conditions = {}
        for role, subfolder in info.images:
            conditions[role] = Image(museum / subfolder / uid)
        for model in info.image_models:
            images = {**conditions, "output": Image(museum / model / uid)}
            samples.append(
                Sample(
                    SampleId(NAME, part, model, uid),
                    images,
                    texts,
                    aspects(by_model[model]),
                    kind=part,
                )
            )
    return samples


def conditions(root: Path, part: str) -> list[Sample]:
    """Conditions that the image models of a task were given, as samples without an output; ratings
    need not be there.

    Raises:
        VievalError: an unknown task, or no `dataset_lookup.json`.
    """
    info = task_info(part)
    museum = museum_folder(root, part)
    lookup = _read_lookup(museum / LOOKUP)
    if not lookup:
        raise VievalError(
            f"{museum / LOOKUP}: no such file; run `vieval prepare {NAME} --part {part}`"
        )
    return [
        Sample(
            SampleId(NAME, part, "", uid),
            {role: Image(museum / subfolder / uid) for role, subfolder in info.images},
            _texts(part, row, info),
            kind=part,
        )
        for uid, row in lookup.items()
    ]


def missing_conditions(root: Path, part: str) -> list[str]:
    """Images of conditions that a generator would lack, one line per folder."""
    info = task_info(part)
    museum = museum_folder(root, part)
    uids = [sample.id.uid for sample in conditions(root, part)]
    return _missing_images((museum / subfolder for _, subfolder in info.images), uids)


def missing(root: Path, part: str) -> list[str]:
    """Files that a live run on a task would lack, one line each with what to do; empty
    if nothing is missing.
    """
    info = task_info(part)
    museum = museum_folder(root, part)
    try:
        ratings = read_ratings(root, part)
        lookup = _read_lookup(museum / LOOKUP)
    except VievalError as error:
        return [str(error)]
    missing_uids = [uid for uid in ratings if uid not in lookup]
    if missing_uids:
        lines = [
            f"{museum / LOOKUP}: no conditions for {len(missing_uids)} of {len(ratings)} uids"
        ]
    else:
        lines = []
    return [
        *lines,
        *_missing_images(
            (museum / subfolder for subfolder in info.museum_folders),
            ratings,
        ),
    ]


def _missing_images(folders: Iterable[Path], uids: Collection[str]) -> list[str]:
    lines = []
    for folder in folders:
        missing_uids = [uid for uid in uids if not isfile(folder / uid)]
        if missing_uids:
            lines.append(
                f"{folder}: {len(missing_uids)} of {len(uids)} images missing (first: "
                f"{missing_uids[0]})"
            )
    return lines


def _read_lookup(path: Path) -> dict[str, JsonObject]:
    lookup = read_object(path, f"{ADVICE} again") if exists(path) else {}
    if not all(isinstance(row, dict) for row in lookup.values()):
        raise VievalError(
            f"{path}: must map uids to objects of conditions; {ADVICE} again"
        )
    return lookup


def _texts(task: str, row: JsonObject, info: TaskInfo) -> dict[str, str]:
    """The texts of an instruction, cleaned as the authors do before they ask."""
    texts = {}
    for name, column in info.texts:
        if column in row:
            texts[name] = str(row[column])
    if task == "sdig" and "prompt" in texts:
        texts["prompt"] = texts["prompt"].replace("<token> ", "")
    if task == "sdie" and "subject" in texts:
        texts["subject"] = texts["subject"].replace("_", " ")
    return texts
