"""ImagenHub's rated images as samples, with their conditions, and what a live run on them would lack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vieval_plugin.benchmarks.imagenhub.ratings import aspects, read_ratings
from vieval_plugin.benchmarks.imagenhub.tasks import NAME, TaskInfo, museum_folder, task_info
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.text.untrusted import isfile

LOOKUP = "dataset_lookup.json"


def load(root: Path, part: str) -> list[Sample]:
    """Rated images of a task, in uid order across image models, so that a limit does not pick one model.

    Images are named by path and not opened; conditions come from `dataset_lookup.json` where it is there (a run on
    recorded verdicts needs neither). VievalError for an unknown task, and for a file that is absent or malformed.
    """
    info, museum = task_info(part), museum_folder(root, part)
    lookup = _read_lookup(museum / LOOKUP)
    samples = []
    for uid, by_model in read_ratings(root, part).items():
        texts = _texts(part, lookup.get(uid, {}), info)
        conditions = {role: Image(museum / subfolder / uid) for role, subfolder in info.images}
        for model in info.image_models:
            images = {**conditions, "output": Image(museum / model / uid)}
            samples.append(Sample(SampleId(NAME, part, model, uid), images, texts, aspects(by_model[model]), kind=part))
    return samples


def conditions(root: Path, part: str) -> list[Sample]:
    """Conditions that the image models of a task were given, as samples without an output; ratings need not be there.

    Raises:
        VievalError: an unknown task, or no `dataset_lookup.json`.
    """
    info, museum = task_info(part), museum_folder(root, part)
    lookup = _read_lookup(museum / LOOKUP)
    if not lookup:
        raise VievalError(f"{museum / LOOKUP} is not there; run `vieval prepare {NAME} --part {part}`")
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
    """Images of conditions that a generator would lack, a line a folder."""
    info, museum = task_info(part), museum_folder(root, part)
    uids = [sample.id.uid for sample in conditions(root, part)]
    lines = []
    for _, subfolder in info.images:
        if missing_uids := [uid for uid in uids if not isfile(museum / subfolder / uid)]:
            lines.append(
                f"{museum / subfolder}: {len(missing_uids)} of {len(uids)} images missing, first {missing_uids[0]}"
            )
    return lines


def missing(root: Path, part: str) -> list[str]:
    """Files that a live run on a task would lack, a line each with what to do; empty when all is there."""
    info, museum = task_info(part), museum_folder(root, part)
    try:
        ratings, lookup = read_ratings(root, part), _read_lookup(museum / LOOKUP)
    except VievalError as error:
        return [str(error)]
    lines = []
    if missing_uids := [uid for uid in ratings if uid not in lookup]:
        lines.append(f"{museum / LOOKUP}: no conditions for {len(missing_uids)} of {len(ratings)} uids")
    for subfolder in info.museum_folders:
        if missing_uids := [uid for uid in ratings if not isfile(museum / subfolder / uid)]:
            lines.append(
                f"{museum / subfolder}: {len(missing_uids)} of {len(ratings)} images missing, first {missing_uids[0]}"
            )
    return lines


def _read_lookup(path: Path) -> dict[str, dict[str, Any]]:
    try:
        lookup = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise VievalError(f"{path}: not readable as JSON ({error}); run `vieval prepare {NAME}` again") from None
    if not isinstance(lookup, dict) or not all(isinstance(row, dict) for row in lookup.values()):
        raise VievalError(
            f"{path}: must be an object of uid -> object of conditions; run `vieval prepare {NAME}` again"
        )
    return lookup


def _texts(task: str, row: dict[str, Any], info: TaskInfo) -> dict[str, str]:
    """The texts of an instruction, cleaned as the authors do before they ask."""
    texts = {name: str(row[column]) for name, column in info.texts if column in row}
    if task == "sdig" and "prompt" in texts:
        texts["prompt"] = texts["prompt"].replace("<token> ", "")
    if task == "sdie" and "subject" in texts:
        texts["subject"] = texts["subject"].replace("_", " ")
    return texts
