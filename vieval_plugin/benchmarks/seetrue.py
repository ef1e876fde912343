"""SeeTRUE: images with a label that says whether they fit their text, in the parts on generated
images.

Source: Yarom et al., What You See is What You Read? (2023).
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.readers.rows import ASPECT, KIND, UNNAMED, image_file, read_table
from vieval_plugin.text.errors import VievalError

NAME = "seetrue"
ADVICE = (
    "put SeeTRUE.csv from linzhiqiu/t2v_metrics into the benchmark folder, and the "
    "images into images/"
)


def read(folder: Path, part: str) -> list[Sample]:
    """Images with a label, 1 where image and text agree, else 0; `part` is a `dataset_source` of
    the file.

    A uid is the number of the text, from 0 in the order of the file, and the image: `12#<image>`.
    Images of a text are a group.
    """
    path = folder / "SeeTRUE.csv"
    rows = read_table(path, ("image", "text", "label", "dataset_source"), ADVICE)
    rows = [row for row in rows if row.cells["dataset_source"] == part]
    if not rows:
        raise VievalError(f"{path}: no row with dataset_source {part}; {ADVICE}")
    texts: dict[str, int] = {}
    samples: dict[str, Sample] = {}
    for row in rows:
        name = row.file("image")
        text = row.text("text")
        label = row.cells["label"]
        if label not in {"0", "1"}:
            raise VievalError(
                f"{row.where}: label must be 0 or 1, got {label!r}; correct the line"
            )
        group = str(texts.setdefault(text, len(texts)))
        uid = f"{group}#{name}"
        if uid in samples:
            raise VievalError(
                f"{row.where}: {name} with this text is already in an earlier line; remove one of "
                "the lines"
            )
        samples[uid] = Sample(
            SampleId(NAME, part, UNNAMED, uid),
            {"output": image_file(folder / "images", name)},
            {"prompt": text},
            {ASPECT: (float(label),)},
            kind=KIND,
            group=group,
        )
    return list(samples.values())


_FOLDER = DataFolder(
    NAME,
    {
        "drawbench": 1312,
        "editbench": 3827,
        "coco_t2i": 1791,
    },
    read,
    ADVICE,
)

BENCHMARK = _FOLDER.benchmark(
    WithLabels(("auroc",)),
    kinds=dict.fromkeys(_FOLDER.parts, KIND),
    title="SeeTRUE",
    source=(
        "Yarom et al., What You See is What You Read? (2023), arXiv 2305.10400; "
        "yonatanbitton/SeeTRUE on the Hugging Face Hub, labels also in "
        "github.com/linzhiqiu/t2v_metrics"
    ),
    licence=(
        "CC BY 4.0; by its Hugging Face terms only for research and as a test set, "
        "not for training"
    ),
)
