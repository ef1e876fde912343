"""Images that a generator made for a task of the host's own -> samples, from the host's samples file."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.results.host_samples import responses_of
from vieval_plugin.run.evaluate import OWN
from vieval_plugin.run.generated import MadeImage, made_images, read_answer
from vieval_plugin.text.untrusted import isfile, path_of, real
from vieval_plugin.text.yaml_json import read_json

_DATA = re.compile(r"data:image/[a-z]+;base64,", re.IGNORECASE)
_EDITS = ("tie", "mie")


def is_foreign(row: Mapping[str, Any]) -> bool:
    """Tell whether a row of a samples file is of a task that is none of VIEval."""
    try:
        target = read_json(str(row.get("target")))
    except (ValueError, RecursionError):
        return True
    return not (isinstance(target, dict) and "vieval" in target)


def made_of_row(row: Mapping[str, Any], file: Path, kind: str | None, trusted: Sequence[Path]) -> Iterator[MadeImage]:
    """The images that the answers of a row name, made of its prompt and of the image that it shows.

    Args:
        row: a row of the host's, with `arguments` (the prompt first), `filtered_resps` and perhaps `input_media`.
        file: the samples file; its folder is what the image model is called by.
        kind: what the task asks of a generator, which no row says.
        trusted: folders below which the files that answers name must lie.

    Raises:
        VievalError: no kind is named, or the row has no prompt.
    """
    if not kind:
        raise VievalError(
            "it is of a task that says no kind; name what its generator was asked for with --kind, such as tig"
        )
    prompt = next(
        (argument for argument in row.get("arguments", ()) if isinstance(argument, str) and argument.strip()), ""
    )
    if not prompt:
        raise VievalError("it has no prompt among its arguments")
    number = row["doc_id"] if isinstance(row.get("doc_id"), int) else 0
    task = re.sub(r"^.*_samples_", "", file.stem)
    text = "instruction" if kind in _EDITS else "prompt"
    conditions = Sample(SampleId(OWN, kind, "", f"{task}-{number}"), _source_images(row), {text: prompt})
    answers = [read_answer(answer, number) for answer in responses_of(row)]
    image_count = max((len(answer.images) for answer in answers), default=0)
    yield from made_images(conditions, real(file).parent.name, answers, max(image_count, 1), trusted)


def _source_images(row: Mapping[str, Any]) -> dict[str, Image]:
    """The image that a generator was shown, where the row has it: as a file that is there, or in it."""
    media = row.get("input_media")
    for image in media if isinstance(media, list) else ():
        if isinstance(image, str) and (head := _DATA.match(image)):
            try:
                return {"source": Image(base64.b64decode(image[head.end() :], validate=True))}
            except (binascii.Error, ValueError):
                continue
        if isinstance(image, str) and isfile(image):
            return {"source": Image(path_of(image).absolute())}
    return {}
