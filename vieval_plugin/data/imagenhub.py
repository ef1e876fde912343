"""ImagenHub: seven tasks, 29 image models, three raters, as samples.

A data folder holds `imagenhub/human_ratings/<folder>/<stem>_rater{1,2,3}.tsv` and, for live judging, the museum's own
layout: `imagenhub/museum/<folder>/<image model | input | token | mask>/<uid>` with `dataset_lookup.json` beside them.
Source of all constants: Ku et al., ImagenHub (2024), and the files the authors published.
"""

from __future__ import annotations

import csv
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId

BENCHMARK = "imagenhub"
RATERS = 3
LEVELS = (0.0, 0.5, 1.0)

Ratings = dict[str, dict[str, tuple[tuple[float, float], ...]]]


@dataclass(frozen=True)
class TaskInfo:
    """One ImagenHub task.

    `added_last` is the rater (from 0) whose O the published code adds last: floating-point ties of the human O, and so
    the fourth decimal of printed correlations, depend on it.
    `images` maps a sample's image role to the museum's folder.
    """

    folder: str
    ratings_stem: str
    image_models: tuple[str, ...]
    instructions: int
    added_last: int
    images: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, str], ...]


TASKS: dict[str, TaskInfo] = {
    "tig": TaskInfo(
        "ImagenHub_Text-Guided_IG",
        "Text-To-Image",
        ("SD", "SDXL", "DALLE2", "DeepFloydIF", "OpenJourney"),
        197,
        0,
        (),
        (("prompt", "prompt"),),
    ),
    "mie": TaskInfo(
        "ImagenHub_Mask-Guided_IE",
        "Mask-Guided_IE",
        ("SDInpaint", "SDXLInpaint", "Glide", "BlendedDiffusion"),
        179,
        2,
        (("source", "input"), ("mask", "mask")),
        (("instruction", "instruction"),),
    ),
    "tie": TaskInfo(
        "ImagenHub_Text-Guided_IE",
        "Text-Guided_IE",
        (
            "MagicBrush",
            "InstructPix2Pix",
            "Prompt2prompt",
            "CycleDiffusion",
            "SDEdit",
            "Text2Live",
            "DiffEdit",
            "Pix2PixZero",
        ),
        179,
        2,
        (("source", "input"),),
        (("instruction", "instruction"),),
    ),
    "sdig": TaskInfo(
        "ImagenHub_Subject-Driven_IG",
        "Subject-Driven_IG",
        ("DreamBooth", "DreamBoothLora", "BLIPDiffusion_Gen", "TextualInversion"),
        150,
        1,
        (("subject", "input"),),
        (("prompt", "prompt"), ("subject", "subject")),
    ),
    "sdie": TaskInfo(
        "ImagenHub_Subject-Driven_IE",
        "Subject-Driven_IE",
        ("PhotoSwap", "DreamEdit", "BLIPDiffusion_Edit"),
        154,
        2,
        (("source", "input"), ("subject", "token")),
        (("subject", "subject"),),
    ),
    "mcic": TaskInfo(
        "ImagenHub_Multi-Concept_IC",
        "Multi-Subject_IG",
        ("CustomDiffusion", "DreamBooth", "TextualInversion"),
        102,
        2,
        (("concepts", "input"),),
        (("prompt", "prompt"), ("concept_1", "concept1"), ("concept_2", "concept2")),
    ),
    "cig": TaskInfo(
        "ImagenHub_Control-Guided_IG",
        "Control-Guided_IG",
        ("ControlNet", "UniControl"),
        150,
        0,
        (("control", "input"),),
        (("prompt", "text"), ("control_type", "control_type")),
    ),
}


def task_info(task: str) -> TaskInfo:
    """The facts of a task by its code; an unknown code is a VievalError that lists the seven."""
    if task not in TASKS:
        raise VievalError(f"no ImagenHub task {task!r}; the seven are {', '.join(TASKS)}")
    return TASKS[task]


def read_ratings(root: Path, task: str) -> Ratings:
    """Human ratings of a task: uid -> image model -> one `(SC, PQ)` a rater, each 0, 0.5 or 1.

    `root` is the data folder. Only the image models of the papers are kept.
    Raises VievalError naming file, row and column of what is wrong.
    """
    info = task_info(task)
    folder = root / BENCHMARK / "human_ratings" / info.folder
    tables = [
        _read_table(folder / f"{info.ratings_stem}_rater{r}.tsv", info.image_models) for r in range(1, RATERS + 1)
    ]
    first = tables[0]
    for number, table in enumerate(tables[1:], start=2):
        if differing := sorted(set(first) ^ set(table)):
            raise VievalError(
                f"{folder}: raters 1 and {number} do not rate the same uids (first: {differing[0]}); "
                "fetch the ratings again with `vieval prepare imagenhub`"
            )
    return {
        uid: {m: tuple(t[uid][m] for t in tables) for m in info.image_models} for uid in sorted(first, key=_uid_order)
    }


def _read_table(path: Path, image_models: tuple[str, ...]) -> dict[str, dict[str, tuple[float, float]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise VievalError(
            f"{path}: no such ratings file; set VIEVAL_DATA to the folder that holds imagenhub/human_ratings, "
            "or run `vieval prepare imagenhub`"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(f"{path}: cannot be read ({error})") from None
    rows = list(csv.reader(text.splitlines(), delimiter="\t"))
    header = rows[0] if rows else []
    for column in ("uid", *image_models):
        if column not in header:
            raise VievalError(
                f"{path}: column {column!r} is missing (found: {', '.join(header) or 'none'}); "
                "the file must have `uid` and one column an image model, separated by tabs"
            )
    table: dict[str, dict[str, tuple[float, float]]] = {}
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        if len(row) != len(header):
            raise VievalError(f"{path}: line {line} has {len(row)} cells where the header has {len(header)}")
        cells = dict(zip(header, row, strict=True))
        if cells["uid"] in table:
            raise VievalError(f"{path}: line {line} repeats uid {cells['uid']}")
        table[cells["uid"]] = {m: _read_cell(cells[m], path, line, m) for m in image_models}
    return table


def _read_cell(cell: str, path: Path, line: int, column: str) -> tuple[float, float]:
    try:
        sc, pq = json.loads(cell)
        if sc in LEVELS and pq in LEVELS and not isinstance(sc, bool) and not isinstance(pq, bool):
            return float(sc), float(pq)
    except (ValueError, TypeError):
        pass
    raise VievalError(
        f"{path}: line {line}, column {column}: {cell!r} is not [SC, PQ] with values 0, 0.5 or 1; correct the cell"
    )


def samples(root: Path, task: str) -> list[Sample]:
    """All rated images of a task, in uid order across image models, so that a limit does not pick one model.

    Images are named by path and not opened; conditions come from `dataset_lookup.json` where it is there (a run on
    recorded verdicts needs neither).
    """
    info = task_info(task)
    museum = root / BENCHMARK / "museum" / info.folder
    lookup = _read_lookup(museum / "dataset_lookup.json")
    found = []
    for uid, by_model in read_ratings(root, task).items():
        texts = _texts(task, lookup.get(uid, {}), info)
        conditions = {role: Image(museum / subfolder / uid) for role, subfolder in info.images}
        for model in info.image_models:
            images = {**conditions, "output": Image(museum / model / uid)}
            found.append(Sample(SampleId(BENCHMARK, task, model, uid), images, texts, aspects(by_model[model])))
    return found


def aspects(ratings: tuple[tuple[float, float], ...]) -> dict[str, tuple[float, ...]]:
    """SC, PQ and O of each rater from `(SC, PQ)` pairs; O is the root of their product, rater by rater (VIEScore)."""
    return {
        "SC": tuple(sc for sc, _ in ratings),
        "PQ": tuple(pq for _, pq in ratings),
        "O": tuple(math.sqrt(sc * pq) for sc, pq in ratings),
    }


def _read_lookup(path: Path) -> dict[str, dict[str, Any]]:
    try:
        lookup = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise VievalError(f"{path}: not readable as JSON ({error}); run `vieval prepare imagenhub` again") from None
    if not isinstance(lookup, dict):
        raise VievalError(f"{path}: must be an object of uid -> conditions; run `vieval prepare imagenhub` again")
    return lookup


def _texts(task: str, row: dict[str, Any], info: TaskInfo) -> dict[str, str]:
    """The texts of an instruction, cleaned as the authors do before they ask."""
    texts = {name: str(row[column]) for name, column in info.texts if column in row}
    if task == "sdig" and "prompt" in texts:
        texts["prompt"] = texts["prompt"].replace("<token> ", "")
    if task == "sdie" and "subject" in texts:
        texts["subject"] = texts["subject"].replace("_", " ")
    return texts


def missing(root: Path, task: str) -> list[str]:
    """What a live run on a task would lack, a line each with what to do; empty when all is there."""
    info = task_info(task)
    museum = root / BENCHMARK / "museum" / info.folder
    try:
        ratings = read_ratings(root, task)
    except VievalError as error:
        return [str(error)]
    lines = []
    lookup = _read_lookup(museum / "dataset_lookup.json")
    if absent := [uid for uid in ratings if uid not in lookup]:
        lines.append(f"{museum / 'dataset_lookup.json'}: no conditions for {len(absent)} of {len(ratings)} uids")
    for subfolder in (*(folder for _, folder in info.images), *info.image_models):
        if absent := [uid for uid in ratings if not (museum / subfolder / uid).is_file()]:
            lines.append(f"{museum / subfolder}: {len(absent)} of {len(ratings)} images missing, first {absent[0]}")
    return lines


def _uid_order(uid: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", uid)]
