"""Winoground: two photos and two captions of the same words an example (Thrush et al., 2022).

The layout is that of the hub's `facebook/winoground`.
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.benchmarks.loading.two_by_two import STATISTICS, read_two_by_two
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.readers.rows import KIND, read_lines

NAME = "winoground"
ADVICE = "put examples.jsonl and images/ of the hub's facebook/winoground there"


def read(folder: Path, part: str) -> list[Sample]:
    """Four samples an example: each image with each caption."""
    return read_two_by_two(folder, NAME, part, read_lines(folder / "examples.jsonl", ADVICE))


_FOLDER = DataFolder(NAME, {"all": 1600}, read, ADVICE)

BENCHMARK = _FOLDER.benchmark(
    WithLabels(STATISTICS),
    kinds=dict.fromkeys(_FOLDER.parts, KIND),
    title="Winoground",
    source="Thrush et al., Winoground (2022), arXiv 2204.03162; the hub's facebook/winoground",
    licence=(
        "the authors' own, in the dataset's files behind the hub's login: for research only, an evaluation set; images by "
        "Getty Images"
    ),
)
