"""EqBen-Mini: two images and two captions an example, in the subset of 140 that the VQAScore
authors chose.

Source: Wang et al., Equivariant Similarity for Vision-Language Foundation Models (2023).
"""

from __future__ import annotations

import io
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.benchmarks.loading.two_by_two import STATISTICS, read_two_by_two
from vieval_plugin.images import files_of
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.readers.rows import KIND, Row, read_lines, read_objects

NAME = "eqben_mini"
ADVICE = (
    "put all_select.json and images/ from the VQAScore authors' eqben_vllm.zip into "
    f"the benchmark folder, then run `vieval prepare {NAME}`"
)

_ALL = "all"


def read(folder: Path, part: str) -> list[Sample]:
    """Four samples an example, from `examples.jsonl` or from the authors' `all_select.json`.

    In the latter, an example's id is its position and its tag the folder of its first image. An
    image that is there as a NumPy array (`.npy`) is named as the PNG that `convert_arrays` makes of
    it.
    """
    examples = folder / "examples.jsonl"
    selection = folder / "all_select.json"
    if examples.exists() or not selection.exists():
        return read_two_by_two(
            folder,
            NAME,
            part,
            read_lines(examples, ADVICE),
        )
    rows = []
    for number, row in enumerate(read_objects(selection, ADVICE)):
        tag = row.file("image0").split("/")[0]
        cells = {"id": number, "tag": tag}
        for k in (0, 1):
            cells[f"image_{k}"] = row.file(f"image{k}")
            cells[f"caption_{k}"] = row.text(f"caption{k}")
        rows.append(Row(row.where, cells))
    return read_two_by_two(folder, NAME, part, rows)


def convert_arrays(folder: Path, preparing: Preparing) -> list[str]:
    """Makes the PNG files that the samples name out of `.npy` arrays (blue first, as OpenCV has
    it).

    What is there is kept. Returns a line for each array that cannot be converted.
    """
    import numpy as np
    import PIL.Image

    problems = []
    for path in dict.fromkeys(files_of(read(folder, _ALL))):
        array = path.with_suffix(".npy")
        if path.exists() or not array.exists():
            continue
        try:
            pixels = np.load(array, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            problems.append(
                f"{array}: not a readable NumPy array ({error}); unpack it again"
            )
            continue
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
            problems.append(
                f"{array}: must be an image (uint8, height x width x 3), got {pixels.dtype} of "
                f"shape {pixels.shape}; unpack it again"
            )
            continue
        body = io.BytesIO()
        rgb = np.ascontiguousarray(pixels[:, :, ::-1])
        PIL.Image.fromarray(rgb).save(body, "PNG")
        write_whole(path, body.getvalue(), "folder")
    return problems


_FOLDER = DataFolder(
    NAME,
    {_ALL: 560},
    read,
    ADVICE,
    convert_arrays,
)

BENCHMARK = _FOLDER.benchmark(
    WithLabels(STATISTICS),
    KIND,
    title="EqBen-Mini",
    source=(
        "Wang et al., Equivariant Similarity for Vision-Language Foundation Models (2023), arXiv "
        "2303.14465; the VQAScore "
        "authors' eqben_vllm.zip (link in dataset.py of github.com/linzhiqiu/t2v_metrics)"
    ),
    licence="unknown (ask its authors)",
)
