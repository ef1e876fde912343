"""Winoground and EqBen-Mini: two images and two captions an example, of which each image fits one caption.

Source: Thrush et al., Winoground (2022), in the layout of the hub's `facebook/winoground`; Wang et al., Equivariant
Similarity for Vision-Language Foundation Models (2023), in the subset of 140 that the VQAScore authors chose.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import PIL.Image

from vieval_plugin.data.alignment_files import (
    ASPECT,
    UNNAMED,
    Row,
    image_file,
    read_json,
    read_lines,
    read_object,
    tag_list,
)
from vieval_plugin.data.download import write_whole
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId

WINOGROUND, EQBEN = "winoground", "eqben_mini"
ADVICE = {
    WINOGROUND: "put examples.jsonl and images/ of the hub's facebook/winoground there",
    EQBEN: "put all_select.json and images/ of the VQAScore authors' eqben_vllm.zip there",
}

_TAGS = ("collapsed_tag", "tag", "secondary_tag")
_SELECTION = "all_select.json"


def winoground(folder: Path, task: str) -> list[Sample]:
    """Four samples an example: each image with each caption, SC 1 where they belong together and 0 elsewhere.

    Tags are the dataset's own (its tag columns and number of main predicates) or, where `skills.json` (id -> list of
    skills) is there, those of that file.
    """
    return _samples(folder, WINOGROUND, task, read_lines(folder / "examples.jsonl", ADVICE[WINOGROUND]))


def eqben_mini(folder: Path, task: str) -> list[Sample]:
    """As Winoground, from `examples.jsonl` or from the authors' `all_select.json`.

    In the latter, an example's id is its position and its tag the folder of its first image. An image that is there as a
    NumPy array (`.npy`) is named as the PNG that `convert_arrays` makes of it.
    """
    if not (folder / _SELECTION).exists() or (folder / "examples.jsonl").exists():
        return _samples(folder, EQBEN, task, read_lines(folder / "examples.jsonl", ADVICE[EQBEN]))
    return _samples(folder, EQBEN, task, _selection(folder / _SELECTION))


def convert_arrays(folder: Path) -> list[str]:
    """Makes the PNG files that EqBen-Mini's samples name out of `.npy` arrays (blue first, as OpenCV has it).

    What is there is kept. Returns a line for each array that cannot be converted.
    """
    problems = []
    named = (image.source for sample in eqben_mini(folder, "all") for image in sample.images.values())
    for path in dict.fromkeys(path for path in named if isinstance(path, Path)):
        array = path.with_suffix(".npy")
        if path.exists() or not array.exists():
            continue
        try:
            pixels = np.load(array, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            problems.append(f"{array}: not readable as a NumPy array ({error}); unpack it again")
            continue
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
            problems.append(f"{array}: {pixels.dtype} of shape {pixels.shape} is no image; unpack it again")
            continue
        body = io.BytesIO()
        PIL.Image.fromarray(np.ascontiguousarray(pixels[:, :, ::-1])).save(body, "PNG")
        write_whole(path, body.getvalue())
    return problems


def _samples(folder: Path, benchmark: str, task: str, rows: Sequence[Row]) -> list[Sample]:
    skills = _skills(folder / "skills.json")
    samples, seen = [], set()
    for row in rows:
        uid = row.uid("id")
        if uid in seen:
            raise VievalError(f"{row.where} repeats id {uid}; correct the file")
        seen.add(uid)
        images = [_image(folder / "images", row.file(f"image_{i}")) for i in (0, 1)]
        captions = [row.text(f"caption_{t}") for t in (0, 1)]
        tags = _tags(row) if skills is None else skills.get(uid, ())
        for i, image in enumerate(images):
            for t, caption in enumerate(captions):
                sample_id = SampleId(benchmark, task, UNNAMED, f"{uid}#i{i}t{t}")
                fits = {ASPECT: (float(i == t),)}
                samples.append(Sample(sample_id, {"output": image}, {"prompt": caption}, fits, tags))
    return samples


def _image(folder: Path, name: str) -> Image:
    image = image_file(folder, name)
    path = image.source
    return Image(path.with_suffix(".png")) if isinstance(path, Path) and path.suffix.lower() == ".npy" else image


def _selection(path: Path) -> list[Row]:
    listed = read_json(path, ADVICE[EQBEN])
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise VievalError(f"{path}: holds no list of examples; {ADVICE[EQBEN]}")
    rows = []
    for number, item in enumerate(listed):
        row = Row(f"{path}: example {number}", item)
        images = {f"image_{i}": row.file(f"image{i}") for i in (0, 1)}
        captions = {f"caption_{t}": row.text(f"caption{t}") for t in (0, 1)}
        cells = {"id": number, **images, **captions, "tag": images["image_0"].split("/")[0]}
        rows.append(Row(row.where, cells))
    return rows


def _tags(row: Row) -> tuple[str, ...]:
    values = [row.text(column) for column in _TAGS if row.cells.get(column)]
    if predicates := row.cells.get("num_main_preds"):
        values.append(f"{predicates} Main Pred")
    return tuple(dict.fromkeys(values))


def _skills(path: Path) -> Mapping[str, tuple[str, ...]] | None:
    if not path.exists():
        return None
    listed = read_object(path, "it maps an id to a list of skills")
    return {uid: tag_list(tags, f"{path}: id {uid}") for uid, tags in listed.items()}
