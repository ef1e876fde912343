"""Labelled edits from the outputs of editors, by their CLIP-D."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from vieval_plugin.backends.metrics.encoders import Tower
from vieval_plugin.errors import VievalError
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Image, Sample
from vieval_plugin.training.adiee.labels import Editors, LabelledEdit, direction

BEFORE, AFTER = "source_caption", "output_caption"
"""What the texts of a sample are called that say what its source shows, and what its output is to show."""


@dataclass(frozen=True)
class Pair:
    """An edit whose files are known to be files."""

    sample: Sample
    source: Path
    output: Path


def pairs_of(samples: Sequence[Sample], editors: Editors) -> list[Pair]:
    """Samples as edits that can be labelled, found out before a CLIP is loaded.

    Args:
        samples: edits with `source` and `output`, an instruction, and captions of both images in their texts.
        editors: whose outputs are labelled how.

    Raises:
        VievalError: a sample lacks an image, a text or a known editor.
    """
    return [_checked(sample, editors) for sample in samples]


def from_outputs(pairs: Sequence[Pair], editors: Editors, tower: Tower) -> list[LabelledEdit]:
    """The labelled edits of outputs that have a label, and of each source as the output that nobody edited.

    Raises:
        VievalError: an image cannot be read.
    """
    found: list[LabelledEdit] = []
    unedited: dict[str, LabelledEdit] = {}
    for pair in tqdm(pairs, desc="CLIP-D", unit="edit", disable=None):
        texts = pair.sample.texts
        value = _direction(pair, texts[BEFORE], texts[AFTER], tower)
        same = decode(Image(pair.source)).tobytes() == decode(Image(pair.output)).tobytes()
        label = 0.0 if same else editors.label(pair.sample.id.image_model, value)
        made: dict[str, float | str] = {"editor": pair.sample.id.image_model, "clip_d": round(value, 6)}
        if label is not None:
            found.append(_edit(pair, pair.output, label, made))
        unedited.setdefault(pair.sample.id.uid, _edit(pair, pair.source, 0.0, {"editor": ""}))
    return [*found, *unedited.values()]


def _edit(pair: Pair, output: Path, label: float, made: dict[str, float | str]) -> LabelledEdit:
    uid = pair.sample.id.uid
    return LabelledEdit(
        f"{uid}/{made['editor'] or 'unedited'}", uid, pair.source, output, pair.sample.texts["instruction"], label, made
    )


def _checked(sample: Sample, editors: Editors) -> Pair:
    missing = [name for name in ("instruction", BEFORE, AFTER) if not sample.texts.get(name, "").strip()]
    missing += [role for role in ("source", "output") if role not in sample.images]
    if missing:
        raise VievalError(
            f"{sample.id} has no {missing[0]}; CLIP-D needs source, output, instruction, {BEFORE}, {AFTER}"
        )
    if sample.id.image_model not in {editors.truth, *editors.weak, *editors.strong}:
        raise VievalError(
            f"{sample.id}: {sample.id.image_model!r} is neither the truth nor among the weak or strong editors; name it"
        )
    source, output = (sample.images[role].source for role in ("source", "output"))
    if isinstance(source, bytes) or isinstance(output, bytes):
        raise VievalError(f"{sample.id}: its images are in memory; training examples name files")
    return Pair(sample, source, output)


def _direction(pair: Pair, before: str, after: str, tower: Tower) -> float:
    images = tower.images([tower.pixels(decode(Image(path))) for path in (pair.source, pair.output)])
    texts = tower.texts([tower.tokens(text)[0] for text in (before, after)])
    source, output = (tuple(vector) for vector in images.double().cpu().tolist())
    first, second = (tuple(vector) for vector in texts.double().cpu().tolist())
    return direction((source, output), (first, second))
