"""AURORA-Bench: edits of eight sources by five editors, rated from 0 to 2, and compared two by two.

Source: Krojer et al., Learning Action and Reasoning-Centric Image Editing from Videos and
Simulations (AURORA, 2024). The edits are in the authors' repository, their ratings behind a link of
theirs. Ratings and comparisons are two benchmarks, because what is counted differs; the edits alone
are a third, in which a generator makes the images.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from vieval_plugin.benchmarks.benchmark import printed_numbers
from vieval_plugin.benchmarks.loading.conditions import generating
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.images import files_of
from vieval_plugin.judges.contests import FIRST, SECOND, TIE, Contest
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.tables import Printed
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.readers.contest_rows import ContestRows, read_contests
from vieval_plugin.readers.rows import UNNAMED, Row, read_objects
from vieval_plugin.readers.tables import are_texts
from vieval_plugin.text.untrusted import isfile
from vieval_plugin.text.yaml_json import JsonObject

NAME = "aurora_bench"
POINTS = "points"
PAIRS = "pairs"
EDITS = "edits"
KIND = "tie"
ASPECT = "O"
SCHEME = "three_way"
LOWEST = 0.0
HIGHEST = 2.0
POINTS_FILE = "human_ratings.json"
PAIRS_FILE = "human_ratings_pairwise.json"
EDITS_FILE = "test.json"
ADVICE = (
    "download test.json and data/ from github.com/McGill-NLP/AURORA, and human_ratings.json, "
    "human_ratings_pairwise.json and the edited images from the link in its README"
)
SOURCE = "Krojer et al., AURORA (2024), arXiv 2407.03471; github.com/McGill-NLP/AURORA"
LICENCE = "MIT (the repository); images: the terms of their eight sources; ratings: no stated terms"


def read_points(folder: Path, part: str) -> list[Sample]:
    """One sample per edited image, in the order of the file; several rows of one image
    are by several annotators.
    """
    rated: dict[str, tuple[Row, list[float]]] = {}
    for row in read_objects(folder / POINTS_FILE, ADVICE):
        output_file = row.file("gen")
        first, scores = rated.setdefault(output_file, (row, []))
        if any(
            row.text(column) != first.text(column) for column in ("input", "prompt")
        ):
            raise row.error(
                f"the conditions of {output_file} differ from an earlier row"
            )
        scores.append(row.rating("score", LOWEST, HIGHEST))
    samples = []
    for output_file, (row, scores) in rated.items():
        model = row.text("model") if "model" in row.cells else UNNAMED
        images = {
            "source": Image(folder / row.file("input")),
            "output": Image(folder / output_file),
        }
        samples.append(
            Sample(
                SampleId(NAME, part, model, output_file),
                images,
                {"instruction": row.text("prompt")},
                ratings={ASPECT: tuple(scores)},
                tags=_tags(row),
                kind=KIND,
                group=_edit(row),
            )
        )
    return samples


def read_pairs(folder: Path, part: str) -> list[Contest]:
    """One contest per row: two edits of one image, and which editor people prefer, or
    that they are alike.
    """
    pairs = read_objects(folder / PAIRS_FILE, ADVICE)
    rows = [_pair(number, row) for number, row in enumerate(pairs)]
    return read_contests(
        rows,
        folder,
        ContestRows(_PAIRS_NAME, part, KIND, SCHEME),
    )


def _pair(number: int, row: Row) -> Row:
    models: Any = row.cells.get("models")
    files: Any = row.cells.get("gens")
    for names in (models, files):
        if not are_texts(names) or len(names) != 2 or not all(map(str.strip, names)):
            raise row.error("models and gens must have two names each")
    winner = row.text("winner")
    if winner not in (*models, TIE) or models[0] == models[1]:
        raise row.error(
            f"winner must be {TIE} or one of the two models, got {winner[:40]!r}"
        )
    votes = {
        models[0]: FIRST,
        models[1]: SECOND,
        TIE: TIE,
    }
    cells: JsonObject = {
        "id": str(number),
        "texts": {"instruction": row.text("prompt")},
        "images": {"source": row.file("input")},
        "candidates": [
            {
                "image_model": model,
                "uid": file,
                "images": {"output": file},
            }
            for model, file in zip(models, files, strict=True)
        ],
        "vote": votes[winner],
        "group": _edit(row),
        "tags": list(_tags(row)),
    }
    return Row(row.where, cells)


def load_edits(root: Path, part: str) -> list[Sample]:
    """The edits that editors were given, from `test.json`; its own outputs are left out."""
    folder = root / NAME
    return [
        Sample(
            SampleId(NAME, part, "", str(number)),
            {"source": Image(folder / row.file("input"))},
            {"instruction": row.text("prompt")},
            tags=_tags(row),
            kind=KIND,
            group=_edit(row),
        )
        for number, row in enumerate(read_objects(folder / EDITS_FILE, ADVICE))
    ]


def _missing_sources(root: Path, part: str) -> list[str]:
    """Notice that sources of edits are not there, in one line."""
    sources = list(files_of(load_edits(root, part)))
    missing = [file for file in dict.fromkeys(sources) if not isfile(file)]
    if missing:
        return [
            f"{len(missing)} of {len(sources)} source images missing (first: "
            f"{missing[0]}); {ADVICE}"
        ]
    return []


def _tags(row: Row) -> tuple[str, ...]:
    """Name of the source, of eight, that an edit is of, where the file says it."""
    return (row.text("task"),) if "task" in row.cells else ()


def _edit(row: Row) -> str:
    """Key that the edits by all editors have in common: they are resampled together."""
    return f"{row.text('input')} | {row.text('prompt')}"


_PRINTED = Printed(
    PAIRS,
    ("accuracy",),
    printed_numbers(
        """
        random: 33.43
        GPT-4o: 50.81
        GPT-5: 47.27
        Gemini-2.0-Flash: 44.31
        Gemini-2.5-Flash: 47.63
        Qwen2.5-VL-3B-Instruct: 30.69
        Qwen2.5-VL-7B-Instruct: 38.62
        Qwen2.5-VL-32B-Instruct: 37.06
        MiMo-VL-7B-SFT-2508: 30.43
        ADIEE: 55.56
        EditReward (Qwen2.5-VL-7B): 59.50
        EditReward (MiMo-VL-7B): 63.62
        """
    ),
    (
        "% in the README of github.com/TIGER-AI-Lab/EditReward, whose authors chose "
        "the tie thresholds on the test set"
    ),
)

_PAIRS_NAME = f"{NAME}_{PAIRS}"
_POINTS_FOLDER = DataFolder(NAME, {POINTS: 2000}, read_points, ADVICE)
# the pairs are of the same folder
_PAIRS_FOLDER = DataFolder(NAME, {PAIRS: 1600}, read_pairs, ADVICE)

BENCHMARK = _POINTS_FOLDER.benchmark(
    WithLabels(("spearman", "pearson", "kendall"), (ASPECT,)),
    KIND,
    title="AURORA-Bench",
    source=SOURCE,
    licence=LICENCE,
)

BENCHMARKS = (
    BENCHMARK,
    replace(
        _PAIRS_FOLDER.benchmark(
            ByVotes(SCHEME),
            KIND,
            title="AURORA-Bench-Pairs",
            source=SOURCE,
            licence=LICENCE,
            printed=(_PRINTED,),
        ),
        name=_PAIRS_NAME,
    ),
    generating(
        BENCHMARK,
        {EDITS: 400},
        load_edits,
        _missing_sources,
    ),
)
