"""Preference pairs for generators: a prompt with a better and a worse image, in the
columns of trainers.

`trl` has the names of TRL's preference data sets (prompt, chosen, rejected), `diffusers` those of
Pick-a-Pic, which the example for Diffusion-DPO of diffusers reads (caption, jpg_0, jpg_1, label_0).
The pull requests for DPO of kohya's sd-scripts (kohya-ss/sd-scripts#1427) and of OneTrainer
(Nerogar/OneTrainer#1403), neither of which is merged, read two folders of images with captions,
paired by the names of their files.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeAlias

from vieval_plugin.images import format_of, name_of, pixels, read_bytes
from vieval_plugin.judges.protocol import Image, Sample
from vieval_plugin.media.files import unfinished_file, write_whole
from vieval_plugin.media.png import encode
from vieval_plugin.meta_evaluation.candidates import Candidate, candidates_by_prompt
from vieval_plugin.readers.absent_images import absent_image
from vieval_plugin.readers.places import arrow
from vieval_plugin.results.lookup import Lookup, require_as_judged
from vieval_plugin.results.prompt_differences import prompt_difference
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import JsonObject
from vieval_plugin.training.export import require_trainable

Columns: TypeAlias = Literal["trl", "diffusers"]
PARQUET = ".parquet"
_TEXTS = ("prompt", "instruction")
_AT_ONCE = 64  # pairs of a row group, whose images are in memory together
_OUTPUT = "output"
#: By trainer, the folder of better images and that of worse ones.
FOLDERS = {"kohya": ("w", "l"), "onetrainer": ("chosen", "rejected")}
_SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp"}


@dataclass(frozen=True)
class PreferencePair:
    """Two images of one prompt."""

    #: Uid of the prompt.
    uid: str
    #: The prompt, or the instruction of an edit.
    prompt: str
    #: The image with the higher score.
    preferred: Image
    #: The image with the lower score.
    rejected: Image
    #: The judge's score of the first.
    preferred_score: float
    #: The judge's score of the second.
    rejected_score: float
    #: The images that both were made from, by role.
    conditions: Mapping[str, Image]


def preference_pairs(lookup: Lookup, margin: float | None) -> list[PreferencePair]:
    """Pair the best and the worst image of each prompt or, with a margin, any two
    images that differ by at least the margin.

    Images with equal scores and images whose file is missing are not paired.

    Args:
        lookup: verdicts of one judge on images.
        margin: the least difference of scores, in [0, 1]; None for the best and the worst.

    Raises:
        VievalError: verdicts come from several judges or lack scores, a sample is missing or has
            changed since it was judged, a uid has two prompts, or a licence does not allow
            training.
    """
    require_trainable(lookup.records)
    pairs = []
    for candidates in candidates_by_prompt(lookup.records).values():
        judged = []
        for candidate in candidates:
            sample = lookup.sample(candidate.record)
            if not isinstance(sample, Sample) or _OUTPUT not in sample.images:
                continue
            if not absent_image(sample):
                judged.append((candidate, sample))
        _require_judged(judged)
        ends = (judged[0], judged[-1]) if judged else ()
        compared = ends if margin is None else judged
        for (better, preferred), (worse, rejected) in combinations(compared, 2):
            difference = better.score - worse.score
            if difference > 0 and difference >= (margin or 0) - 1e-9:
                pairs.append(_pair(better, preferred, worse, rejected))
    return pairs


def write_pairs(path: Path, pairs: Sequence[PreferencePair], columns: Columns) -> None:
    """Write pairs as JSONL with the paths of images or, for a `.parquet` file, with the
    images themselves.

    Raises:
        VievalError: the file cannot be written, or cannot hold these columns.
    """
    if path.suffix.lower() == PARQUET:
        write_whole(path, _parquet(pairs, columns))
        return
    if columns == "diffusers":
        raise VievalError(
            f"{path}: --trainer diffusers requires image bytes, which JSONL cannot "
            "hold; use a .parquet file"
        )
    write_whole(
        path,
        (f"{json.dumps(_row(pair, _path), ensure_ascii=False)}\n" for pair in pairs),
    )


def _require_judged(judged: Sequence[tuple[Candidate, Sample]]) -> None:
    """Raise VievalError for images that changed since they were judged, or whose
    prompts differ.
    """
    for candidate, sample in judged:
        require_as_judged(candidate.record, sample)
        if difference := prompt_difference(judged[0][1], sample):
            samples = f"{judged[0][0].record.id} and {candidate.record.id}"
            raise VievalError(
                f"{samples} have the same uid but different prompts ({difference}); "
                "use one uid per prompt"
            )


def _pair(
    better: Candidate,
    preferred: Sample,
    worse: Candidate,
    rejected: Sample,
) -> PreferencePair:
    texts = preferred.texts
    prompts = (texts[name] for name in _TEXTS if name in texts)
    images = preferred.images
    return PreferencePair(
        uid=better.record.id.uid,
        prompt=next(prompts, " ".join(texts.values())),
        preferred=images[_OUTPUT],
        rejected=rejected.images[_OUTPUT],
        preferred_score=better.score,
        rejected_score=worse.score,
        conditions={role: images[role] for role in images if role != _OUTPUT},
    )


def _row(pair: PreferencePair, image_value: Any) -> JsonObject:
    images = {
        "chosen": pair.preferred,
        "rejected": pair.rejected,
        **pair.conditions,
    }
    return {
        "uid": pair.uid,
        "prompt": pair.prompt,
        **{name: image_value(image) for name, image in images.items()},
        "chosen_score": pair.preferred_score,
        "rejected_score": pair.rejected_score,
    }


def _row_for_diffusers(pair: PreferencePair) -> JsonObject:
    return {
        "uid": pair.uid,
        "caption": pair.prompt,
        "jpg_0": read_bytes(pair.preferred),
        "jpg_1": read_bytes(pair.rejected),
        "label_0": 1.0,
        "score_0": pair.preferred_score,
        "score_1": pair.rejected_score,
    }


def _path(image: Image) -> str:
    if isinstance(image.source, bytes):
        raise VievalError(
            f"{name_of(image)} is not a file, so JSONL cannot refer to it; set --out "
            "to a .parquet file"
        )
    return str(image.source.absolute())


def _embedded(image: Image) -> JsonObject:
    """Encode an image like the feature `Image` of the library datasets."""
    path = None if isinstance(image.source, bytes) else image.source.name
    return {"bytes": read_bytes(image), "path": path}


class _Pieces(io.BytesIO):
    """A file whose bytes can be taken in pieces while it is written."""

    def __init__(self) -> None:
        super().__init__()
        self._yielded = 0

    def tell(self) -> int:
        return self._yielded + super().tell()

    def new_bytes(self) -> bytes:
        """Take the bytes written since the last call."""
        data = self.getvalue()
        self._yielded += len(data)
        self.seek(0)
        self.truncate()
        return data


def _parquet(pairs: Sequence[PreferencePair], columns: Columns) -> Iterator[bytes]:
    """Yield the bytes of a parquet file, one row group at a time."""
    pyarrow = arrow()
    schema = _schema(pyarrow, pairs, columns)
    pieces = _Pieces()
    with pyarrow.parquet.ParquetWriter(pieces, schema) as writer:
        for start in range(0, len(pairs), _AT_ONCE):
            group = pairs[start : start + _AT_ONCE]
            rows = [
                _row_for_diffusers(p) if columns == "diffusers" else _row(p, _embedded)
                for p in group
            ]
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
            yield pieces.new_bytes()
    yield pieces.new_bytes()


def _schema(pyarrow: Any, pairs: Sequence[PreferencePair], columns: Columns) -> Any:
    text = pyarrow.string()
    number = pyarrow.float64()
    if columns == "diffusers":
        return pyarrow.schema(
            {
                **dict.fromkeys(("uid", "caption"), text),
                **dict.fromkeys(("jpg_0", "jpg_1"), pyarrow.binary()),
                **dict.fromkeys(("label_0", "score_0", "score_1"), number),
            }
        )
    image = pyarrow.struct([("bytes", pyarrow.binary()), ("path", text)])
    roles = [role for pair in pairs for role in pair.conditions]
    types = {
        **dict.fromkeys(("uid", "prompt"), text),
        **dict.fromkeys(("chosen", "rejected", *roles), image),
        **dict.fromkeys(("chosen_score", "rejected_score"), number),
    }
    descriptions = {
        text: {"dtype": "string", "_type": "Value"},
        image: {"_type": "Image"},
        number: {"dtype": "float64", "_type": "Value"},
    }
    features = {name: descriptions[type] for name, type in types.items()}
    info = json.dumps({"info": {"features": features}})
    return pyarrow.schema(types, metadata={"huggingface": info})


def write_pair_folders(
    folder: Path, pairs: Sequence[PreferencePair], trainer: str
) -> None:
    """Write both images of each pair under one name, each with the prompt in a `.txt`
    file.

    Args:
        folder: that will hold the two folders; it appears when it is complete.
        pairs: of images made from a prompt alone.
        trainer: one of `FOLDERS`.

    Raises:
        VievalError: the folder exists or cannot be written, or an image was made from another
            image or cannot be read.
    """
    if folder.exists():
        raise VievalError(f"{folder} already exists; choose another --out")
    if edits := [pair.uid for pair in pairs if pair.conditions]:
        raise VievalError(
            f"--trainer {trainer} requires images made from a prompt alone, got "
            f"{edits[0]} with a source or another condition; use --trainer trl"
        )
    unfinished = unfinished_file(folder)
    try:
        for number, pair in enumerate(pairs):
            _write_pair(unfinished, f"{number:06}", pair, FOLDERS[trainer])
        os.replace(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write_pair(
    folder: Path,
    name: str,
    pair: PreferencePair,
    sides: Sequence[str],
) -> None:
    files = [read_bytes(pair.preferred), read_bytes(pair.rejected)]
    preferred, rejected = (_SUFFIXES.get(format_of(file)) for file in files)
    suffix = preferred if preferred == rejected else None
    if suffix is None:  # one name for both files means one format
        suffix = ".png"
        files = [encode(pixels(image)) for image in (pair.preferred, pair.rejected)]
    # trainers read a caption's first line
    caption = " ".join(pair.prompt.split()).encode()
    for side, file in zip(sides, files, strict=True):
        write_whole(folder / side / f"{name}{suffix}", file)
        write_whole(folder / side / f"{name}.txt", caption)
