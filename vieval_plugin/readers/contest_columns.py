"""Rows whose column of outputs holds a list -> contests: the outputs are the candidates, made under the row's conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.readers.sample_rows import addresses_among, samples_of_row
from vieval_plugin.readers.tables import BadLine


def has_candidates(row: Mapping[str, Any]) -> bool:
    """Return whether a row stands for a contest."""
    images = row.get("images")
    return isinstance(images, Mapping) and isinstance(images.get("output"), list)


def contest_of_row(folder: Path, number: int, row: Mapping[str, Any], kind: str | None, benchmark: str) -> Contest:
    """The contest of a row; its candidates' image models are in a list too, or they are numbered.

    Args:
        folder: where relative paths of images begin.
        number: the row's, which is the uid of one that has none.
        row: as a line of a samples file has it, but for the list of outputs.
        kind: that of rows which name none.
        benchmark: what the contest is identified with.

    Raises:
        BadLine: it says something else than a row may.
    """
    candidates = tuple(_candidates(folder, number, row, kind, benchmark))
    if len(candidates) < 2:
        raise BadLine(f"a contest has two outputs or more, and this one {len(candidates)}", row)
    first = candidates[0].id
    return Contest(SampleId(benchmark, first.part, "", first.uid), candidates, tags=candidates[0].tags)


def _candidates(
    folder: Path, number: int, row: Mapping[str, Any], kind: str | None, benchmark: str
) -> Iterator[Sample]:
    outputs, models = row["images"]["output"], row.get("image_model", "")
    if isinstance(models, list) and len(models) != len(outputs):
        raise BadLine(f"{len(outputs)} outputs of {len(models)} image models; give as many of both", row)
    for place, output in enumerate(outputs):
        named = {"image_model": models[place]} if isinstance(models, list) else {"draw": place}
        candidate = {**row, "images": {**row["images"], "output": output}, **named}
        for sample, files in samples_of_row(folder, number, candidate, kind, benchmark):
            if addresses_among(files):
                raise BadLine("images of a contest are fetched for nobody; save them as bytes or files", row)
            yield sample
