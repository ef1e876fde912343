"""AGIQA-3K: images of six generators in ten settings, with mean opinion scores of quality and of how well they fit
their prompt.

Source: Li et al., AGIQA-3K (2023). Each score is the mean of some twenty people's, normalised by its authors, from 0
to 5.
"""

from __future__ import annotations

import re
from pathlib import Path

from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.readers.rows import KIND, read_table

NAME = "agiqa3k"
LOWEST, HIGHEST = 0.0, 5.0
ASPECTS = {"SC": "mos_align", "PQ": "mos_quality"}
ADVICE = (
    "take data.csv from github.com/lcysyzxdxc/AGIQA-3k-Database, and the images, to which its README has links, into "
    "images/"
)

_TAGS = ("adj1", "adj2", "style")
_COLUMNS = ("name", "prompt", *_TAGS, *ASPECTS.values())


def read(folder: Path, part: str) -> list[Sample]:
    """A sample a row; a name is the image model with its setting, and the number of the prompt."""
    samples, image_names = [], set()
    for row in read_table(folder / "data.csv", _COLUMNS, ADVICE):
        name = row.file("name")
        named = re.fullmatch(r"([\w.-]+)_(\d+)\.\w+", name)
        if not named:
            raise VievalError(f"{row.where}: name is {name[:40]!r}, not <image model>_<number>.jpg; correct the line")
        if named.groups() in image_names:
            raise VievalError(f"{row.where} repeats the image {named[1]}_{named[2]}; remove one of the lines")
        image_names.add(named.groups())
        samples.append(
            Sample(
                SampleId(NAME, part, named[1], named[2]),
                {"output": Image(folder / "images" / name)},
                {"prompt": row.text("prompt")},
                {aspect: (row.number(column, LOWEST, HIGHEST),) for aspect, column in ASPECTS.items()},
                tuple(dict.fromkeys(word for column in _TAGS if (word := row.cells[column].strip()))),
                KIND,
                group=row.text("prompt"),
            )
        )
    return samples


_FOLDER = DataFolder(NAME, {"all": 2982}, read, ADVICE)

BENCHMARK = _FOLDER.benchmark(
    WithLabels(("spearman", "pearson", "kendall"), tuple(ASPECTS)),
    kinds=dict.fromkeys(_FOLDER.parts, KIND),
    title="AGIQA-3K",
    source="Li et al., AGIQA-3K (2023), arXiv 2306.04717; scores of github.com/lcysyzxdxc/AGIQA-3k-Database",
    licence="scores: MIT (the repository); images: made by the image models, on no stated terms",
)
