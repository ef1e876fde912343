"""Label edits without annotators, from editing sequences and from outputs with a CLIP.

Source: ADIEE, automatic dataset creation and scorer for instruction-guided image
editing evaluation (ICCV 2025), section on its data. The paper does not state how often
each sequence is sampled.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tqdm import tqdm

from vieval_plugin.backends.metrics.encoders import Encoder, encoder_inputs
from vieval_plugin.backends.metrics.networks.clip import clip_direction
from vieval_plugin.benchmarks.sequences import EditingSequence, label, triples
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Image, Sample
from vieval_plugin.text.errors import VievalError

_HALFWAY = 0.5  # the label of a strong editor's output that may not be right
#: CLIP-D below which an output of a weak editor is a failure.
FAILED = 0.0
#: CLIP-D above which an output of a strong editor is right.
SUCCEEDED = 0.2


@dataclass(frozen=True)
class LabelledEdit:
    """An edit to train on."""

    #: Name of the edit.
    uid: str
    #: Scene of the edit; edits of one scene are held out together.
    group: str
    #: Image before the edit.
    source: Path
    #: Image after it.
    output: Path
    #: Instruction of the edit.
    instruction: str
    #: How well the output follows the instruction, in [0, 1].
    label: float
    #: Origin of the label: j1, j2 and k of a sequence, or the editor and its CLIP-D.
    origin: Mapping[str, float | str] = field(default_factory=dict)


Edits: TypeAlias = Sequence[LabelledEdit]


def sequence_labels(
    sequence: EditingSequence, number: int, seed: int
) -> list[LabelledEdit]:
    """Draw edits of a sequence without replacement.

    Args:
        sequence: images I_0 to I_l with l instructions.
        number: largest number of edits.
        seed: the draw depends only on it and on the sequence's uid.

    Returns:
        Edits from I_j1 to I_k by the instructions j1 + 1 to j2 in one text, for 0 <= j1 < j2 <= l
        and j1 <= k <= l.
    """
    candidates = triples(len(sequence.instructions))
    rng = random.Random(f"{seed}/{sequence.uid}")
    size = min(number, len(candidates))
    sampled = rng.sample(candidates, size)
    return [_sequence_edit(sequence, j1, j2, k) for j1, j2, k in sampled]


def _sequence_edit(
    sequence: EditingSequence,
    j1: int,
    j2: int,
    k: int,
) -> LabelledEdit:
    instructions = sequence.instructions[j1:j2]
    return LabelledEdit(
        uid=f"{sequence.uid}/{j1}-{j2}-{k}",
        group=sequence.uid,
        source=sequence.images[j1],
        output=sequence.images[k],
        instruction=" ".join(text.strip() for text in instructions),
        label=label(j1, j2, k),
        origin={"j1": j1, "j2": j2, "k": k},
    )


@dataclass(frozen=True)
class Editors:
    """Labels of outputs, by their editor and their CLIP-D."""

    #: Editor whose outputs follow the instruction.
    truth: str
    #: Editors whose outputs are failures if CLIP-D is below `FAILED`, and are left out
    #: otherwise.
    weak: frozenset[str]
    #: Editors whose outputs are right if CLIP-D is above `SUCCEEDED`, otherwise halfway.
    strong: frozenset[str]

    def label(self, editor: str, direction: float) -> float | None:
        """Label of an editor's output, None if it is left out.

        >>> editors = Editors("people", frozenset({"old"}), frozenset({"new"}))
        >>> editors.label("people", -1.0), [editors.label("old", d) for d in (-0.1, 0.1)], editors.label("new", 0.1)
        (1.0, [0.0, None], 0.5)
        """
        if editor == self.truth:
            return 1.0
        if editor in self.weak:
            return 0.0 if direction < FAILED else None
        return 1.0 if direction > SUCCEEDED else _HALFWAY


def spread(edits: Iterable[LabelledEdit]) -> dict[str, int]:
    """Number of edits with each label, with labels rounded to two decimals."""
    counts = Counter(f"{edit.label:.2f}" for edit in edits)
    return dict(sorted(counts.items()))


#: Keys of a sample's texts that describe its source, and its intended output.
SOURCE_CAPTION_KEY = "source_caption"
OUTPUT_CAPTION_KEY = "output_caption"


@dataclass(frozen=True)
class Pair:
    """An edit whose images are files."""

    #: The edit.
    sample: Sample
    #: File of its source.
    source: Path
    #: File of its output.
    output: Path


def pairs_of(samples: Sequence[Sample], editors: Editors) -> list[Pair]:
    """Check samples as edits to label, before a CLIP is loaded.

    Args:
        samples: edits with `source` and `output`, an instruction, and captions of both images in
            their texts.
        editors: with the labels of their outputs.

    Raises:
        VievalError: a sample lacks an image, a text or a known editor.
    """
    return [_pair(sample, editors) for sample in samples]


def output_labels(
    pairs: Sequence[Pair], editors: Editors, encoder: Encoder
) -> list[LabelledEdit]:
    """Label edits by their outputs, and add each source as an unedited output.

    Raises:
        VievalError: an image cannot be read.
    """
    labelled = []
    unedited: dict[str, LabelledEdit] = {}
    for pair in tqdm(pairs, desc="CLIP-D", unit="edit", disable=None):
        value = _direction(pair, encoder)
        source_pixels = decode(Image(pair.source)).tobytes()
        output_pixels = decode(Image(pair.output)).tobytes()
        editor = pair.sample.id.image_model
        label = editors.label(editor, value)
        if source_pixels == output_pixels:
            label = 0.0
        if label is not None:
            origin: dict[str, float | str] = {
                "editor": editor,
                "clip_d": round(value, 6),
            }
            labelled.append(_edit(pair, pair.output, label, origin))
        edit = _edit(pair, pair.source, 0.0, {"editor": ""})
        unedited.setdefault(pair.sample.id.uid, edit)
    return [*labelled, *unedited.values()]


def _edit(
    pair: Pair,
    output: Path,
    label: float,
    origin: Mapping[str, float | str],
) -> LabelledEdit:
    uid = pair.sample.id.uid
    return LabelledEdit(
        f"{uid}/{origin['editor'] or 'unedited'}",
        uid,
        pair.source,
        output,
        pair.sample.texts["instruction"],
        label,
        origin,
    )


def _pair(sample: Sample, editors: Editors) -> Pair:
    texts = ("instruction", SOURCE_CAPTION_KEY, OUTPUT_CAPTION_KEY)
    images = ("source", "output")
    missing = [name for name in texts if not sample.texts.get(name, "").strip()]
    missing += [role for role in images if role not in sample.images]
    if missing:
        needed = ", ".join((*images, *texts))
        raise VievalError(
            f"{sample.id}: {missing[0]} is missing; CLIP-D requires {needed}"
        )
    editor = sample.id.image_model
    if editor not in {editors.truth, *editors.weak, *editors.strong}:
        raise VievalError(
            f"{sample.id}: unknown editor {editor!r}; pass it as --truth, --weak or "
            "--strong"
        )
    source, output = (sample.images[role].source for role in images)
    if isinstance(source, bytes) or isinstance(output, bytes):
        raise VievalError(f"{sample.id}: images must be files, got images in memory")
    return Pair(sample, source, output)


def _direction(pair: Pair, encoder: Encoder) -> float:
    texts = pair.sample.texts
    inputs = encoder_inputs(
        encoder,
        {"image": decode(Image(pair.output)), "source": decode(Image(pair.source))},
        {
            "output_text": texts[OUTPUT_CAPTION_KEY],
            "source_text": texts[SOURCE_CAPTION_KEY],
        },
    )
    batch = {role: [value] for role, value in inputs.tensors.items()}
    return float(clip_direction(encoder, batch)[0])
