"""Flickr8K: photos with captions that people rated (Hodosh et al., 2013).

The file is that of the CLIPScore authors, which the VQAScore authors use: `flickr8k.json` holds
three experts' ratings from 1 to 4; their `crowdflower_flickr8k.json` (the share of people who said
yes, from 0 to 1) has the same form.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.readers.rows import (
    ASPECT,
    GRADED,
    KIND,
    UNNAMED,
    Row,
    image_file,
    read_object,
)
from vieval_plugin.readers.tables import are_objects
from vieval_plugin.text.errors import VievalError

NAME = "flickr8k"
ADVICE = (
    "put the CLIPScore authors' flickr8k.json and the photos that it lists into the "
    "benchmark folder"
)
LOWEST = 0.0
HIGHEST = 4.0


def read(folder: Path, part: str) -> list[Sample]:
    """A sample for each caption of a photo, `<photo>#<number>`, with the ratings it got in the
    file's order.

    Spaces and the full stop around a caption are taken away, as the VQAScore authors do before they
    ask. Captions of a photo are a group.
    """
    path = folder / "flickr8k.json"
    samples = []
    for key, cells in read_object(path, ADVICE).items():
        photo = Row(
            f"{path}: {key}",
            cells if isinstance(cells, dict) else {},
        )
        images = {"output": image_file(folder, photo.file("image_path"))}
        uid = Row(photo.where, {"key": key}).uid("key")
        for number, (text, ratings) in enumerate(_captions(photo).items()):
            sample_id = SampleId(NAME, part, UNNAMED, f"{uid}#{number}")
            rated = {ASPECT: tuple(ratings)}
            samples.append(
                Sample(
                    sample_id,
                    images,
                    {"prompt": text},
                    rated,
                    kind=KIND,
                    group=uid,
                )
            )
    return samples


def _captions(photo: Row) -> dict[str, list[float]]:
    judgements: Any = photo.cells.get("human_judgement")
    if not are_objects(judgements):
        raise VievalError(
            f"{photo.where}: human_judgement must be a list of objects; {ADVICE}"
        )
    captions: dict[str, list[float]] = {}
    for number, judgement in enumerate(judgements, start=1):
        row = Row(f"{photo.where}, judgement {number}", judgement)
        caption_words = row.text("caption").split()
        text = " ".join(caption_words).strip(".").strip()
        if not text:
            raise row.error("the caption must contain words, got only a full stop")
        captions.setdefault(text, []).append(row.rating("rating", LOWEST, HIGHEST))
    return captions


_FOLDER = DataFolder(NAME, {"all": None}, read, ADVICE)

BENCHMARK = _FOLDER.benchmark(
    WithLabels(GRADED),
    KIND,
    title="Flickr8K",
    source=(
        "Hodosh et al., Framing Image Description as a Ranking Task (2013); files "
        "made by download.py in github.com/jmhessel/clipscore"
    ),
    licence="unknown (ask its authors); photos: property of Flickr users",
)
