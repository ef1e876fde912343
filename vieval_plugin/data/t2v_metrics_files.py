"""TIFA160 and SeeTRUE from the files of the VQAScore authors' repository, linzhiqiu/t2v_metrics (folder datasets/).

TIFA160: Hu et al., TIFA (2023), rated anew by Cho et al., Davidsonian Scene Graph (2024). SeeTRUE: Yarom et al., What You
See is What You Read? (2023), the parts on generated images.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from vieval_plugin.data.alignment_files import ASPECT, UNNAMED, Row, image_file, read_object, read_table
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Sample, SampleId

TIFA, SEETRUE = "tifa160", "seetrue"
ADVICE = {
    TIFA: "put tifa160.json and dsg_tifa160_anns.csv of linzhiqiu/t2v_metrics there, and the images in images/",
    SEETRUE: "put SeeTRUE.csv of linzhiqiu/t2v_metrics there, and the images in images/",
}

MODEL_NAMES = {
    "mini-dalle": "mini_dalle",
    "sd1dot1": "stable_diffusion_v1_1",
    "sd1dot5": "stable_diffusion_v1_5",
    "sd2dot1": "stable_diffusion_v2_1",
    "vq-diffusion": "vq_diffusion",
}
"""TIFA160's image models as the ratings call them, and as the images do."""


def tifa160(folder: Path, task: str) -> list[Sample]:
    """Five image models on 160 texts, each image with the answers of three to five workers, from 1 to 5.

    The key of an image in `tifa160.json` is the ratings' `source_id` and, after a `_`, its image model. Workers differ
    from image to image and come in the file's order.
    """
    path = folder / "tifa160.json"
    listed = read_object(path, ADVICE[TIFA])
    answers = _answers(folder / "dsg_tifa160_anns.csv", listed)
    samples = []
    for key, cells in listed.items():
        row = Row(f"{path}: {key}", cells if isinstance(cells, dict) else {})
        uid, text, image = row.uid("text_id"), row.text("text"), row.file("image_path")
        model = key.removeprefix(f"{uid}_")
        if model not in MODEL_NAMES.values():
            raise VievalError(f"{row.where} is not text_id and a known image model; {ADVICE[TIFA]}")
        if key not in answers:
            raise VievalError(f"{row.where} has no answer in dsg_tifa160_anns.csv; {ADVICE[TIFA]}")
        images = {"output": image_file(folder / "images", image)}
        rated = {ASPECT: tuple(answers[key].values())}
        samples.append(Sample(SampleId(TIFA, task, model, uid), images, {"prompt": text}, rated))
    return samples


def _answers(path: Path, listed: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Answers by image and worker."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for row in read_table(path, ("model_type", "source_id", "worker_id", "answer"), ADVICE[TIFA]):
        model, worker, answer = row.text("model_type"), row.text("worker_id"), row.text("answer")
        if model not in MODEL_NAMES:
            raise VievalError(f"{row.where}: unknown model_type {model!r}; known: {', '.join(MODEL_NAMES)}")
        key = f"{row.text('source_id')}_{MODEL_NAMES[model]}"
        if key not in listed:
            raise VievalError(f"{row.where}: {key} is not in tifa160.json; {ADVICE[TIFA]}")
        if answer not in {"1", "2", "3", "4", "5"}:
            raise VievalError(f"{row.where}: answer {answer!r} is not 1 to 5; correct the line")
        if worker in found[key]:
            raise VievalError(f"{row.where}: worker {worker} rates {key} a second time; remove one of the lines")
        found[key][worker] = float(answer)
    return found


def seetrue(folder: Path, task: str) -> list[Sample]:
    """Images with a label, 1 where image and text agree, else 0; `task` is a `dataset_source` of the file.

    A uid is the number of the text, from 0 in the order of the file, and the image: `12#<image>`.
    """
    path = folder / "SeeTRUE.csv"
    rows = read_table(path, ("image", "text", "label", "dataset_source"), ADVICE[SEETRUE])
    rows = [row for row in rows if row.cells["dataset_source"] == task]
    if not rows:
        raise VievalError(f"{path}: no row with dataset_source {task}; {ADVICE[SEETRUE]}")
    texts: dict[str, int] = {}
    samples: dict[str, Sample] = {}
    for row in rows:
        name, text, label = row.file("image"), row.text("text"), row.cells["label"]
        if label not in {"0", "1"}:
            raise VievalError(f"{row.where}: label {label!r} is not 0 or 1; correct the line")
        uid = f"{texts.setdefault(text, len(texts))}#{name}"
        if uid in samples:
            raise VievalError(f"{row.where} repeats an image with its text, {name}; remove one of the lines")
        images = {"output": image_file(folder / "images", name)}
        sample_id = SampleId(SEETRUE, task, UNNAMED, uid)
        samples[uid] = Sample(sample_id, images, {"prompt": text}, {ASPECT: (float(label),)})
    return list(samples.values())
