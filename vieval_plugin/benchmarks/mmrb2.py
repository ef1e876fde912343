"""Multimodal RewardBench 2, text-to-image and editing: pairs of outputs of which three annotators
preferred one.

Source: Hu et al., Multimodal RewardBench 2 (2025), in github.com/facebookresearch/MMRB2; with
images in the hub's `rl-research/multimodal-rewardbench-2`. An annotation is 1 (the second is much
better) to 6 (the first is); what counts is what most of the three prefer.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from vieval_plugin.benchmarks.loading.contest_hub import HubRows, Keep, hub_benchmark
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.judges.contests import FIRST, SECOND, Contest
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.readers.contest_rows import CONTESTS, ContestRows, read_contests
from vieval_plugin.readers.rows import Row, rating, read_lines, read_object
from vieval_plugin.readers.tables import are_objects
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import JsonObject

NAME = "mmrb2"
T2I = "t2i"
EDIT = "edit"
KINDS = {T2I: "tig", EDIT: "tie"}
TEXTS = {T2I: "prompt", EDIT: "instruction"}
LETTERS = {"A": FIRST, "B": SECOND}
FIRST_FROM = 4
LOWEST = 1
HIGHEST = 6
DATASET = "rl-research/multimodal-rewardbench-2"
SPLIT = "test"
ADVICE = f"run `vieval prepare {NAME}`"


def read(folder: Path, part: str) -> list[Contest]:
    """The pairs of a part from `<part>/contests.jsonl` or, where that does not exist,
    `<part>_response_only.json`.

    The latter is the authors' file of votes, without prompts: enough to compare recorded answers
    with.
    """
    home = folder / part
    common = ContestRows(NAME, part, KINDS[part], "two_way")
    if (home / CONTESTS).exists():
        return read_contests(
            read_lines(home / CONTESTS, ADVICE),
            home,
            common,
        )
    path = folder / f"{part}_response_only.json"
    if not path.exists():
        raise VievalError(
            f"{home / CONTESTS}: no such file, and no {path.name} in {folder}; {ADVICE}"
        )
    pairs: Any = read_object(path, ADVICE).get("pairs")
    if not are_objects(pairs):
        raise VievalError(f"{path}: pairs must be a list of objects; {ADVICE}")
    rows = (Row(f"{path}: row {number}", pair) for number, pair in enumerate(pairs))
    return read_contests(map(_voted, rows), home, common)


def _voted(row: Row) -> Row:
    """A row of the authors' file as one of ours; what was answered is named by its first file."""
    responses = [
        row.cells[side] for side in ("response_a", "response_b") if side in row.cells
    ]
    try:
        candidates = []
        for response in responses:
            image_model = response["model_name"]
            file = next(
                file for kind, file in response["response_content"] if kind == "image"
            )
            candidates.append({"image_model": image_model, "uid": Path(file).stem})
    except (KeyError, TypeError, ValueError, StopIteration):
        raise row.error(
            "each response must have model_name, and response_content with an image"
        ) from None
    cells = {**_votes(row), "id": row.uid("id"), "candidates": candidates}
    return Row(row.where, cells)


def _votes(row: Row) -> JsonObject:
    """Votes, group and tags: pairs of one prompt are drawn together, and told apart by where it
    comes from.
    """
    winner = row.text("chosen").upper()
    source = row.text("prompt_source")
    metadata = row.cells.get("prompt_metadata")
    annotations = row.cells.get("human_annotations")
    if not isinstance(metadata, dict) or not isinstance(annotations, list):
        raise row.error(
            "prompt_metadata must be an object, and human_annotations a list"
        )
    values = [
        rating(
            annotation,
            LOWEST,
            HIGHEST,
            f"{row.where}: annotation {n}",
        )
        for n, annotation in enumerate(annotations, start=1)
    ]
    names = (metadata[name] for name in ("category", "id") if name in metadata)
    return {
        "vote": LETTERS.get(winner, winner),
        "annotators": [FIRST if value >= FIRST_FROM else SECOND for value in values],
        "group": "/".join(map(str, (source, *names))),
        "tags": [source],
    }


def _convert_hub_row(part: str, number: int, row: JsonObject, keep: Keep) -> JsonObject:
    """A row of the hub as one of ours; its annotations and metadata are texts of JSON."""
    parsed = dict(row)
    for name in ("human_annotations", "prompt_metadata"):
        parsed[name] = json.loads(row[name])
    sources = row.get("prompt_images") or []
    # a judge that is shown one of several sources would judge something else: it gets none that is
    # called the source
    if len(sources) == 1:
        roles = ["source"]
    else:
        roles = [f"source_{k}" for k in range(len(sources))]
    text = row["prompt_text"]
    # the mark of where the one image stands; of several, the marks say which is meant
    if len(sources) < 2:
        text = re.sub(r"\s*<image_\d+>\s*", " ", text).strip()
    return {
        **_votes(Row(f"{DATASET}: row {number}", parsed)),
        "id": row["pair_id"],
        "texts": {TEXTS[part]: text},
        "images": {
            role: keep(stored) for role, stored in zip(roles, sources, strict=True)
        },
        "candidates": [
            {
                "image_model": row[f"response_{side}_model"],
                # nearly all responses are one image; the first is what judges of one see
                "images": {
                    f"output_{number}" if number else "output": keep(image)
                    for number, image in enumerate(row[f"response_{side}_images"] or ())
                },
            }
            for side in "ab"
        ],
    }


_FOLDER = DataFolder(
    NAME,
    {T2I: 1000, EDIT: 1000},
    read,
    ADVICE,
)
_HUB = {
    part: HubRows(
        DATASET,
        part,
        SPLIT,
        partial(_convert_hub_row, part),
    )
    for part in KINDS
}


BENCHMARK = hub_benchmark(
    _FOLDER,
    _HUB,
    ByVotes("two_way"),
    kinds=KINDS,
    title="MMRB2",
    source=(
        "Hu et al., Multimodal RewardBench 2 (2025), arXiv 2512.16899; votes from "
        f"github.com/facebookresearch/MMRB2, images from {DATASET} on the Hugging Face Hub"
    ),
    licence=(
        "CC BY-NC 4.0, for evaluation only; prompts and source images: the terms of their sources"
    ),
    folders={"task1_image": T2I, "task2_edit": EDIT},
)
