"""ImagenHub's rated images as samples, with their conditions, and what a live run on them would
lack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from vieval_plugin.benchmarks.imagenhub.ratings import ADVICE, aspects, read_ratings
from vieval_plugin.benchmarks.imagenhub.tasks import (
    NAME,
    museum_folder,
    task_info,
)
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.readers.rows import read_object
from vieval_plugin.readers.tables import are_objects
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
    museum = museum_folder(root, part)
    lookup = _read_lookup(museum)
    samples = []
    for uid, by_model in read_ratings(root, part).items():
        texts = _texts(part, lookup.get(uid, {}))
        conditions = _images(museum, part, uid)
        for model in task_info(part).image_models:
            sample_id = SampleId(
                NAME,
                part,
                model,
                uid,
            )
            images = {**conditions, "output": Image(museum / model / uid)}
            ratings = aspects(by_model[model])
            samples.append(
                Sample(
                    sample_id,
                    images,
                    texts,
                    ratings,
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
    museum = museum_folder(root, part)
    lookup = _read_lookup(museum)
    if not lookup:
        raise VievalError(
            f"{museum / LOOKUP}: no such file; run `vieval prepare {NAME} --part {part}`"
        )
    return [
        Sample(
            SampleId(NAME, part, "", uid),
            _images(museum, part, uid),
            _texts(part, row),
            kind=part,
        )
        for uid, row in lookup.items()
    ]


def _images(museum: Path, part: str, uid: str) -> dict[str, Image]:
    folders = task_info(part).images.items()
    return {role: Image(museum / folder / uid) for role, folder in folders}


def missing_conditions(root: Path, part: str) -> list[str]:
    """Images of conditions that a generator would lack, one line per folder."""
    folders = task_info(part).images.values()
    uids = [sample.id.uid for sample in conditions(root, part)]
    return _missing_images(museum_folder(root, part), folders, uids)


def missing(root: Path, part: str) -> list[str]:
    """Files that a live run on a task would lack, one line each with what to do; empty
    if nothing is missing.
    """
    museum = museum_folder(root, part)
    try:
        ratings = read_ratings(root, part)
        lookup = _read_lookup(museum)
    except VievalError as error:
        return [str(error)]
    lines = []
    if missing_uids := ratings.keys() - lookup:
        lines.append(
            f"{museum / LOOKUP}: no conditions for {len(missing_uids)} of {len(ratings)} uids"
        )
    return lines + _missing_images(museum, task_info(part).museum_folders, ratings)


def _missing_images(
    museum: Path, folders: Iterable[str], uids: Collection[str]
) -> list[str]:
    lines = []
    for folder in folders:
        path = museum / folder
        if missing_uids := [uid for uid in uids if not isfile(path / uid)]:
            lines.append(
                f"{path}: {len(missing_uids)} of {len(uids)} images missing (first: "
                f"{missing_uids[0]})"
            )
    return lines


def _read_lookup(museum: Path) -> dict[str, JsonObject]:
    path = museum / LOOKUP
    lookup = read_object(path, f"{ADVICE} again") if exists(path) else {}
    if not are_objects([*lookup.values()]):
        raise VievalError(f"{path}: must map each uid to a JSON object; {ADVICE} again")
    return lookup


def _texts(task: str, row: JsonObject) -> dict[str, str]:
    """The texts of an instruction, cleaned as the authors do before they ask."""
    columns = task_info(task).texts.items()
    texts = {name: str(row[column]) for name, column in columns if column in row}
    if task == "sdig" and "prompt" in texts:
        texts["prompt"] = texts["prompt"].replace("<token> ", "")
    if task == "sdie" and "subject" in texts:
        texts["subject"] = texts["subject"].replace("_", " ")
    return texts
