"""T2I-Eval-Bench: pairs of prompt and image that three annotators rated, overall and in three
dimensions, 0 to 10.

Source: Tu et al., Automatic Evaluation for Text-to-Image Generation (2024), in the files of the
hub's `DataHammer/T2I-Eval-Bench`. The shapes inside them are read tolerantly, as the data set
itself was not seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.benchmarks.loading.conditions import generating
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.images import files_of
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.meta_evaluation.annotators import WithAnnotators
from vieval_plugin.readers.rows import (
    KIND,
    UNNAMED,
    Row,
    rating,
    read_json,
    read_objects,
    rows_by_uid,
)
from vieval_plugin.readers.tables import are_objects
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import isfile
from vieval_plugin.text.yaml_json import JsonObject

NAME = "t2i_eval_bench"
PART = "tig"
DIMENSIONS = ("appearance", "intrinsic", "relationship")
OVERALL = "O"
ANNOTATORS = 3
LOWEST = 0.0
HIGHEST = 10.0
ARCHIVE = "images.tar.gz"
IMAGES = "images"
ADVICE = (
    f"put t2i-eval-bench.json, scores.json and {ARCHIVE} from "
    "DataHammer/T2I-Eval-Bench on the Hugging Face Hub into the benchmark folder, "
    f"then run `vieval prepare {NAME}`"
)

_MISSING = (None, "N/A")


def read(folder: Path, part: str) -> list[Sample]:
    """One sample per pair, with ratings O, appearance, intrinsic and relationship of
    each annotator, NaN where one gave none.

    Images: `output`, and `reference` where there is one. Annotations, where the files have any: the
    dataset's own `extraction` (structured_info, <dimension>_questions), and the annotators'
    `reference_explanations` by overall, dimension or question.
    """
    rows = rows_by_uid(read_objects(folder / "t2i-eval-bench.json", ADVICE))
    scores = _scores(folder / "scores.json")
    # the authors' own evaluation names pairs by their position
    are_named = any(uid in scores for uid in rows)
    samples = []
    for number, (uid, row) in enumerate(rows.items()):
        key = uid if are_named else str(number)
        if key not in scores:
            raise VievalError(
                f"{row.where}: id {uid} has no row in scores.json; correct the files"
            )
        sample_id = SampleId(NAME, part, UNNAMED, uid)
        samples.append(_sample(folder, sample_id, row, scores[key]))
    return samples


def unpack_images(folder: Path, preparing: Preparing) -> list[str]:
    """Unpack the archive where an image that the samples name is not there; a line for one that
    cannot be used.
    """
    from vieval_plugin.readers.unpack import unpack

    archive = folder / ARCHIVE
    if not archive.is_file() or all(map(isfile, files_of(read(folder, PART)))):
        return []
    try:
        unpack(archive, folder / IMAGES)
    except VievalError as error:
        return [str(error)]
    return []


def _sample(folder: Path, sample_id: SampleId, row: Row, scores: Row) -> Sample:
    images = {"output": _image(folder, row.file("gt_image"))}
    if row.cells.get("ref_image"):
        images["reference"] = _image(folder, row.file("ref_image"))
    aspects = _aspects(scores)
    annotations = {
        "extraction": _extraction(row),
        "reference_explanations": _explanations(row, scores, aspects),
    }
    return Sample(
        sample_id,
        images,
        {"prompt": row.text("image_caption")},
        {
            aspect: _ratings(Row(f"{scores.where}, {key}", cell))
            for aspect, (key, cell) in aspects.items()
        },
        kind=KIND,
        annotations={
            name: noted for name, noted in annotations.items() if any(noted.values())
        },
    )


def _image(folder: Path, name: str) -> Image:
    first_folder = PurePosixPath(name).parts[0]
    home = folder if first_folder == IMAGES else folder / IMAGES
    return Image(home / name)


def _extraction(row: Row) -> JsonObject:
    structure = row.cells.get("structured_info_str")
    if structure is not None and not isinstance(structure, str):
        raise row.error("structured_info_str must be a string")
    extraction: JsonObject = {"structured_info": structure or ""}
    for dimension in DIMENSIONS:
        column = f"{dimension}_questions"
        questions: list[Any] = [
            {"entity": entity, "question": text} if entity else text
            for text, entity, _ in _questions(row, column)
        ]
        extraction[column] = questions
    return extraction


def _questions(row: Row, column: str) -> Iterator[tuple[str, str, JsonObject]]:
    """Text, entity (empty where not said) and cells of each question of a list, or of an
    entity's list in an object.
    """
    value = row.cells.get(column) or []
    groups = value.items() if isinstance(value, dict) else [("", value)]
    for group, questions in groups:
        if not isinstance(questions, list):
            raise row.error(f"{column} must be a list of questions")
        for question in questions:
            cells = {"question": question} if isinstance(question, str) else question
            if not isinstance(cells, dict):
                kind = type(question).__name__
                raise row.error(
                    f"{column} must have strings or objects with question, got {kind}"
                )
            entity = cells.get("entity")
            question_row = Row(f"{row.where}, {column}", cells)
            text = question_row.text("question")
            yield text, entity if isinstance(entity, str) else group, cells


def _explanations(
    row: Row, scores: Row, aspects: Mapping[str, tuple[str, JsonObject]]
) -> dict[str, str]:
    """Explanations of the annotators, by `overall`, dimension or question."""
    explanations = {
        "overall" if aspect == OVERALL else aspect: _explanation(cell)
        for aspect, (_, cell) in aspects.items()
    }
    for dimension in DIMENSIONS:
        questions = _questions(row, f"{dimension}_questions")
        question_cells: list[Any] = [cells for _, _, cells in questions]
        rated = scores.cells.get(dimension)
        if isinstance(rated, list):
            question_cells += rated
        for cells in question_cells:
            question = cells.get("question") if isinstance(cells, dict) else None
            if isinstance(question, str):
                explanations[question] = _explanation(cells) or explanations.get(
                    question, ""
                )
    return {name: text for name, text in explanations.items() if text}


def _explanation(cells: JsonObject) -> str:
    """A text, or several, that says it is people's: a plain `explanation` stands beside a
    model's score.
    """
    value = cells.get("manual_explanation", cells.get("reference_explanation"))
    texts = value if isinstance(value, list) else [value]
    strings = (text for text in texts if isinstance(text, str))
    return "\n".join(filter(None, map(str.strip, strings)))


def _aspects(scores: Row) -> dict[str, tuple[str, JsonObject]]:
    """The name and cell of each aspect under `overall`; O is always among them."""
    overall = scores.cells.get("overall")
    if not isinstance(overall, dict):
        raise scores.error("overall must be an object")
    cells_by_aspect: dict[str, tuple[str, JsonObject]] = {}
    for key, cell in overall.items():
        names = (name for name in (*DIMENSIONS, "overall") if name in key.lower())
        name = next(names, "")
        if not name:
            continue
        aspect = OVERALL if name == "overall" else name
        if aspect in cells_by_aspect:
            first_key, _ = cells_by_aspect[aspect]
            raise scores.error(f"{first_key} and {key} are the same aspect")
        if cell is not None and not isinstance(cell, dict):
            raise scores.error(f"{key} must be an object with manual_score")
        cells_by_aspect[aspect] = (key, cell or {})
    if OVERALL not in cells_by_aspect:
        keys = ", ".join(overall) or "none"
        raise scores.error(f"overall must have an overall score, got {keys}")
    return cells_by_aspect


def _ratings(aspect: Row) -> tuple[float, ...]:
    scores = aspect.cells.get("manual_score")
    if scores is None:
        return (math.nan,) * ANNOTATORS
    score_counts = (ANNOTATORS, ANNOTATORS + 1)
    if not isinstance(scores, list) or len(scores) not in score_counts:
        raise aspect.error(
            f"manual_score must be a list of the scores of {ANNOTATORS} "
            "annotators, optionally followed by their mean"
        )
    ratings = []
    for number, score in enumerate(scores[:ANNOTATORS], start=1):
        if score in _MISSING:
            ratings.append(math.nan)
        else:
            where = f"{aspect.where}: score {number}"
            ratings.append(rating(score, LOWEST, HIGHEST, where))
    return tuple(ratings)


def _scores(path: Path) -> dict[str, Row]:
    """Rows of scores by id, from a list of rows that have one or from an object."""
    document = read_json(path, ADVICE)
    if not isinstance(document, dict) or not are_objects([*document.values()]):
        rows = rows_by_uid(read_objects(path, ADVICE))
        document = {uid: row.cells for uid, row in rows.items()}
    return {uid: Row(f"{path}: id {uid}", cells) for uid, cells in document.items()}


_FOLDER = DataFolder(
    NAME,
    {PART: 301},
    read,
    ADVICE,
    unpack_images,
)

BENCHMARK = _FOLDER.benchmark(
    WithAnnotators(DIMENSIONS, OVERALL, ANNOTATORS),
    title="T2I-Eval-Bench",
    source=(
        "Tu et al., Automatic Evaluation for Text-to-Image Generation (2024), arXiv "
        "2411.15488; DataHammer/T2I-Eval-Bench on the Hugging Face Hub"
    ),
    licence=(
        "MIT (Hugging Face card); an evaluation set: do not report results on it for "
        "models that were trained on it"
    ),
    trainable=True,
)

BENCHMARKS = (BENCHMARK, generating(BENCHMARK, _FOLDER.parts, _FOLDER.load))
