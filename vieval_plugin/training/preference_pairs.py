"""Preference pairs for generators: a prompt with a better and a worse image of it, in the columns that trainers read.

`trl` has the names of TRL's preference data sets (prompt, chosen, rejected), `diffusers` those of Pick-a-Pic, which the
example for Diffusion-DPO of diffusers reads (caption, jpg_0, jpg_1, label_0).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeAlias

from vieval_plugin.errors import VievalError, install_advice
from vieval_plugin.images import name_of, read_bytes
from vieval_plugin.judges.protocol import Image, Sample
from vieval_plugin.media.files import write_whole
from vieval_plugin.meta_evaluation.candidates import Candidate, candidates_by_prompt
from vieval_plugin.readers.absent_images import absent_image
from vieval_plugin.results.lookup import Lookup, require_as_judged
from vieval_plugin.results.prompt_differences import prompt_difference
from vieval_plugin.training.export import require_trainable

Columns: TypeAlias = Literal["trl", "diffusers"]
PARQUET = ".parquet"
_TEXTS = ("prompt", "instruction")
_AT_ONCE = 64  # pairs of a row group, whose images are in memory together
_OUTPUT = "output"


@dataclass(frozen=True)
class PreferencePair:
    """Two images of one prompt, with the judge's score of each; `conditions` are the images that both were made from."""

    uid: str
    prompt: str
    chosen: Image
    rejected: Image
    chosen_score: float
    rejected_score: float
    conditions: Mapping[str, Image]


def preference_pairs(lookup: Lookup, margin: float | None) -> list[PreferencePair]:
    """The best and the worst image of each prompt or, with a margin, each two that are so far apart.

    Images of equal score are no pair, and one whose file is gone is in none.

    Args:
        lookup: verdicts of one judge on images, and where to find them.
        margin: the least difference of scores, in [0, 1]; None for the best and the worst.

    Raises:
        VievalError: verdicts of several judges or without scores, a sample that cannot be found or is not what was
            judged, two prompts of one uid, or data that may not train a model.
    """
    require_trainable(lookup.records)
    pairs = []
    for candidates in candidates_by_prompt(lookup.records).values():
        found = [(candidate, lookup.sample(candidate.record)) for candidate in candidates]
        there = [(candidate, sample) for candidate, sample in found if isinstance(sample, Sample) and _is_there(sample)]
        _require_judged(there)
        best_and_worst = [(there[0], there[-1])] if there else []
        for (better, chosen), (worse, rejected) in best_and_worst if margin is None else combinations(there, 2):
            if better.score > worse.score and better.score - worse.score >= (margin or 0) - 1e-9:
                pairs.append(_pair(better, chosen, worse, rejected))
    return pairs


def write_pairs(path: Path, pairs: Sequence[PreferencePair], columns: Columns) -> None:
    """Write pairs as JSONL with the paths of images or, where the file is called `.parquet`, with the images themselves.

    Raises:
        VievalError: the file cannot be written, or cannot hold these columns.
    """
    if path.suffix.lower() == PARQUET:
        write_whole(path, _parquet(pairs, columns))
        return
    if columns == "diffusers":
        raise VievalError(f"{path}: diffusers reads the bytes of images, which JSONL cannot hold; name a .parquet file")
    write_whole(path, (f"{json.dumps(_row(pair, _path), ensure_ascii=False)}\n" for pair in pairs))


def _is_there(sample: Sample) -> bool:
    return _OUTPUT in sample.images and not absent_image(sample)


def _require_judged(there: Sequence[tuple[Candidate, Sample]]) -> None:
    """VievalError for images that changed since they were judged, or of which the prompts differ."""
    for candidate, sample in there:
        require_as_judged(candidate.record, sample)
        if difference := prompt_difference(there[0][1], sample):
            first, other = there[0][0].record.id, candidate.record.id
            raise VievalError(
                f"{first} and {other} are not of one prompt ({difference}); give each prompt a uid of its own"
            )


def _pair(better: Candidate, chosen: Sample, worse: Candidate, rejected: Sample) -> PreferencePair:
    texts = chosen.texts
    return PreferencePair(
        better.record.id.uid,
        next((texts[name] for name in _TEXTS if name in texts), " ".join(texts.values())),
        chosen.images[_OUTPUT],
        rejected.images[_OUTPUT],
        better.score,
        worse.score,
        {role: image for role, image in chosen.images.items() if role != _OUTPUT},
    )


def _row(pair: PreferencePair, of_image: Any) -> dict[str, Any]:
    scores = {"chosen_score": pair.chosen_score, "rejected_score": pair.rejected_score}
    images = {"chosen": pair.chosen, "rejected": pair.rejected, **pair.conditions}
    return {"uid": pair.uid, "prompt": pair.prompt, **{name: of_image(i) for name, i in images.items()}, **scores}


def _row_for_diffusers(pair: PreferencePair) -> dict[str, Any]:
    return {
        "uid": pair.uid,
        "caption": pair.prompt,
        "jpg_0": read_bytes(pair.chosen),
        "jpg_1": read_bytes(pair.rejected),
        "label_0": 1.0,
        "score_0": pair.chosen_score,
        "score_1": pair.rejected_score,
    }


def _path(image: Image) -> str:
    if isinstance(image.source, bytes):
        raise VievalError(f"{name_of(image)} is no file that JSONL could name; name a .parquet file with --out")
    return str(image.source.absolute())


def _embedded(image: Image) -> dict[str, Any]:
    """An image in the form of the feature `Image` of the library datasets."""
    return {"bytes": read_bytes(image), "path": None if isinstance(image.source, bytes) else image.source.name}


class _Pieces:
    """A file that is handed on in pieces while it is written."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._position = 0

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        self.closed = True

    def taken(self) -> list[bytes]:
        pieces, self._pieces = self._pieces, []
        return pieces


def _parquet(pairs: Sequence[PreferencePair], columns: Columns) -> Iterator[bytes]:
    """The bytes of a parquet file, a row group at a time."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise VievalError(f"a parquet file needs pyarrow; {install_advice('tables')}") from None
    schema = _schema(pyarrow, pairs, columns)
    pieces = _Pieces()
    with pyarrow.parquet.ParquetWriter(pieces, schema) as writer:
        for several in _groups(pairs):
            rows = [_row_for_diffusers(p) if columns == "diffusers" else _row(p, _embedded) for p in several]
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
            yield from pieces.taken()
    yield from pieces.taken()


def _groups(pairs: Sequence[PreferencePair]) -> Iterable[Sequence[PreferencePair]]:
    return (pairs[start : start + _AT_ONCE] for start in range(0, len(pairs), _AT_ONCE))


def _schema(pyarrow: Any, pairs: Sequence[PreferencePair], columns: Columns) -> Any:
    if columns == "diffusers":
        types = {
            "uid": pyarrow.string(),
            "caption": pyarrow.string(),
            "jpg_0": pyarrow.binary(),
            "jpg_1": pyarrow.binary(),
        }
        return pyarrow.schema({**types, **dict.fromkeys(("label_0", "score_0", "score_1"), pyarrow.float64())})
    roles = ["chosen", "rejected", *dict.fromkeys(role for pair in pairs for role in pair.conditions)]
    image = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    fields = [("uid", pyarrow.string()), ("prompt", pyarrow.string()), *((role, image) for role in roles)]
    fields += [("chosen_score", pyarrow.float64()), ("rejected_score", pyarrow.float64())]
    texts = {name: {"dtype": "string", "_type": "Value"} for name in ("uid", "prompt")}
    numbers = {name: {"dtype": "float64", "_type": "Value"} for name in ("chosen_score", "rejected_score")}
    features = {**texts, **{role: {"_type": "Image"} for role in roles}, **numbers}
    return pyarrow.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})
