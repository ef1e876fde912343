"""The prompts of a benchmark as files for a generator: conditions, and the names of the images
expected back.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.benchmarks.loading.conditions import conditions_of
from vieval_plugin.images import is_jpeg, read_bytes
from vieval_plugin.judges.protocol import Image, Sample
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.image_names import expected_name
from vieval_plugin.text.errors import VievalError

PROMPTS_FILE = "prompts.jsonl"
EXPECTED_FILE = "expected.csv"
CONDITIONS = "conditions"


def export_prompts(benchmark: Benchmark, part: str, root: Path, folder: Path) -> int:
    """Write a part's prompts, and the images that they name, for a generator.

    `prompts.jsonl` has one object a line, as `vieval score FOLDER --prompts` reads it;
    `expected.csv` has for each uid the file name of the image that is expected back; `conditions/`
    has the images that a prompt shows.

    Args:
        benchmark: whose samples are read; what several image models were asked, in samples or in
            contests, comes once.
        part: one of its parts; empty for all, of a benchmark with `prompts`.
        root: the data folder.
        folder: where to write; made where it is not there.

    Returns:
        How many prompts there are.

    Raises:
        VievalError: the data is absent or has no prompts, a file cannot be written there, or others
            of these names are there.
    """
    load = benchmark.prompts or benchmark.load
    samples = conditions_of(load(root, part), benchmark.name)
    empty = [sample for sample in samples if not sample.texts and not sample.images]
    if empty:
        have = "has" if len(empty) == 1 else "have"
        raise VievalError(
            f"{benchmark.name}/{part}: {len(empty)} of {len(samples)} prompts {have} no text in the "
            f"local data; run `vieval prepare {benchmark.name}`, or export another part"
        )
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(
        [
            ("uid", "file"),
            *((sample.id.uid, expected_name(sample.id.uid)) for sample in samples),
        ]
    )
    rows = [_row(sample, folder) for sample in samples]
    lines = (f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    texts = {PROMPTS_FILE: "".join(lines), EXPECTED_FILE: table.getvalue()}
    for name, text in texts.items():
        _require_own(folder / name, text)
    for name, text in texts.items():
        write_whole(folder / name, [text])
    return len(samples)


def _require_own(path: Path, text: str) -> None:
    """Raise VievalError if another file is there than an earlier export of the same
    left.
    """
    try:
        if path.read_bytes() == text.encode(errors="replace"):
            return
    except FileNotFoundError:
        return
    except OSError:
        pass
    raise VievalError(
        f"{path} already exists and is not from this export; move it, or choose another --out"
    )


def _row(sample: Sample, folder: Path) -> dict[str, object]:
    images = {
        role: _copy(image, folder / CONDITIONS) for role, image in sample.images.items()
    }
    row: dict[str, object] = {"uid": sample.id.uid, "kind": sample.kind}
    row |= {"texts": dict(sample.texts), "images": images}
    labels = {
        "tags": list(sample.tags),
        "category": sample.category,
    }
    return row | {name: value for name, value in labels.items() if value}


def _copy(image: Image, folder: Path) -> str:
    """Write an image under a name by its content; returns its path from the folder of the
    prompts.
    """
    content = read_bytes(image)
    suffix = ".jpg" if is_jpeg(image) else ".png"
    digest = hashlib.sha256(content).hexdigest()[:32]
    path = folder / f"{digest}{suffix}"
    if not path.is_file():
        write_whole(path, content)
    return f"{folder.name}/{path.name}"
