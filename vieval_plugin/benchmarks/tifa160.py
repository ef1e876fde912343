"""TIFA160: five image models on 160 texts, from the files of the VQAScore authors' repository.

Hu et al., TIFA (2023), rated anew by Cho et al., Davidsonian Scene Graph (2024).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path

from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.readers.rows import (
    ASPECT,
    GRADED,
    KIND,
    Row,
    image_file,
    read_object,
    read_table,
)
from vieval_plugin.text.errors import VievalError

NAME = "tifa160"
ADVICE = (
    "put tifa160.json and dsg_tifa160_anns.csv from linzhiqiu/t2v_metrics into the "
    "benchmark folder, and the images into images/"
)
#: The image models as the ratings call them, and as the images do.
MODEL_NAMES = {
    "mini-dalle": "mini_dalle",
    "sd1dot1": "stable_diffusion_v1_1",
    "sd1dot5": "stable_diffusion_v1_5",
    "sd2dot1": "stable_diffusion_v2_1",
    "vq-diffusion": "vq_diffusion",
}


def read(folder: Path, part: str) -> list[Sample]:
    """Each image with the answers of three to five workers, from 1 to 5.

    The key of an image in `tifa160.json` is the ratings' `source_id` and, after a `_`, its image
    model. Workers differ from image to image and come in the file's order.
    """
    path = folder / "tifa160.json"
    images = read_object(path, ADVICE)
    answers = _answers(folder / "dsg_tifa160_anns.csv", images)
    samples = []
    for key, cells in images.items():
        row = Row(
            f"{path}: {key}",
            cells if isinstance(cells, dict) else {},
        )
        uid = row.uid("text_id")
        text = row.text("text")
        image = row.file("image_path")
        model = key.removeprefix(f"{uid}_")
        if model not in MODEL_NAMES.values():
            raise VievalError(
                f"{row.where}: the key must be text_id, _ and a known image model; "
                f"{ADVICE}"
            )
        if key not in answers:
            raise VievalError(
                f"{row.where}: no answer in dsg_tifa160_anns.csv; {ADVICE}"
            )
        samples.append(
            Sample(
                SampleId(NAME, part, model, uid),
                {"output": image_file(folder / "images", image)},
                {"prompt": text},
                {ASPECT: tuple(answers[key].values())},
                kind=KIND,
            )
        )
    return samples


def _answers(path: Path, images: Collection[str]) -> dict[str, dict[str, float]]:
    answers: dict[str, dict[str, float]] = defaultdict(dict)
    for row in read_table(
        path,
        ("model_type", "source_id", "worker_id", "answer"),
        ADVICE,
    ):
        model = row.text("model_type")
        worker = row.text("worker_id")
        answer = row.text("answer")
        if model not in MODEL_NAMES:
            known_models = ", ".join(MODEL_NAMES)
            raise VievalError(
                f"{row.where}: unknown model_type {model!r}; known model types: {known_models}"
            )
        key = f"{row.text('source_id')}_{MODEL_NAMES[model]}"
        if key not in images:
            raise VievalError(f"{row.where}: {key} is not in tifa160.json; {ADVICE}")
        if answer not in {"1", "2", "3", "4", "5"}:
            raise VievalError(
                f"{row.where}: answer must be between 1 and 5, got {answer!r}; "
                "correct the line"
            )
        if worker in answers[key]:
            raise VievalError(
                f"{row.where}: worker {worker} already rated {key}; remove one of the lines"
            )
        answers[key][worker] = float(answer)
    return answers


_FOLDER = DataFolder(NAME, {"all": 800}, read, ADVICE)

BENCHMARK = _FOLDER.benchmark(
    WithLabels((*GRADED, "spearman")),
    folders={"dsg": "all"},
    kind=KIND,
    title="TIFA160",
    source=(
        "Hu et al., TIFA (2023), arXiv 2303.11897, with the ratings of Cho et al., "
        "Davidsonian Scene Graph (2024), arXiv 2310.18235; files from "
        "github.com/linzhiqiu/t2v_metrics"
    ),
    licence="unknown (ask its authors)",
)
