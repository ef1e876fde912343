"""Labels of edits without people, from editing sequences and from outputs with a CLIP.

Source: ADIEE, automatic dataset creation and scorer for instruction-guided image editing evaluation (ICCV 2025),
section on its data; how often each sequence is drawn from is not said there.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from vieval_plugin.backends.metrics.encoders import Encoder
from vieval_plugin.benchmarks.sequences import EditingSequence, label, triples
from vieval_plugin.errors import VievalError
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Image, Sample

_HALFWAY = 0.5  # the label of a strong editor's output that may not be right


@dataclass(frozen=True)
class LabelledEdit:
    """An edit to learn from: the label, in [0, 1], says how far `output` is what `instruction` makes of `source`.

    Edits of one `group` are of the same scene and are held out together. `made` says how the label came about: j1, j2
    and k of a sequence, or the editor and its CLIP-D.
    """

    uid: str
    group: str
    source: Path
    output: Path
    instruction: str
    label: float
    made: Mapping[str, float | str] = field(default_factory=dict)


def from_sequence(sequence: EditingSequence, most: int, seed: int) -> list[LabelledEdit]:
    """Edits of a sequence, drawn without replacement from all that there are of it.

    Args:
        sequence: images I_0 to I_l with l instructions.
        most: how many edits at most.
        seed: what is drawn depends on it and on the sequence's uid alone.

    Returns:
        Edits from I_j1 to I_k by the instructions j1 + 1 to j2 in one text, for 0 <= j1 < j2 <= l and j1 <= k <= l.
    """
    candidates = triples(len(sequence.instructions))
    sampled = random.Random(f"{seed}/{sequence.uid}").sample(candidates, min(most, len(candidates)))
    return [
        LabelledEdit(
            f"{sequence.uid}/{j1}-{j2}-{k}",
            sequence.uid,
            sequence.images[j1],
            sequence.images[k],
            " ".join(text.strip() for text in sequence.instructions[j1:j2]),
            label(j1, j2, k),
            {"j1": j1, "j2": j2, "k": k},
        )
        for j1, j2, k in sampled
    ]


@dataclass(frozen=True)
class Editors:
    """The labelling of outputs: by whom they are and by their CLIP-D.

    `truth` names whose outputs are what the instruction asks for. Those of `weak` editors are failures where CLIP-D is
    below `failed` and are left out otherwise; those of `strong` ones are right where it is above `succeeded`, else
    halfway.
    """

    truth: str
    weak: frozenset[str]
    strong: frozenset[str]
    failed: float = 0.0
    succeeded: float = 0.2

    def label(self, editor: str, direction: float) -> float | None:
        """The label of an editor's output, None where it is left out.

        >>> editors = Editors("people", frozenset({"old"}), frozenset({"new"}))
        >>> [editors.label(*one) for one in (("people", -1), ("old", -0.1), ("old", 0.1), ("new", 0.1), ("new", 0.3))]
        [1.0, 0.0, None, 0.5, 1.0]
        """
        if editor == self.truth:
            return 1.0
        if editor in self.weak:
            return 0.0 if direction < self.failed else None
        return 1.0 if direction > self.succeeded else _HALFWAY


def direction(images: tuple[Sequence[float], Sequence[float]], texts: tuple[Sequence[float], Sequence[float]]) -> float:
    """CLIP-D: the cosine between the change of the image's embedding and that of its caption's, in [-1, 1]; 0 for no change.

    Gal et al., StyleGAN-NADA (SIGGRAPH 2022). Each pair is before and after; embeddings are vectors of length 1.

    >>> round(direction(([1, 0], [0, 1]), ([0.6, 0.8], [0.8, 0.6])), 6)
    -1.0
    """
    change, expected = ([b - a for a, b in zip(*pair, strict=True)] for pair in (images, texts))
    lengths = math.hypot(*change) * math.hypot(*expected)
    return math.fsum(a * b for a, b in zip(change, expected, strict=True)) / lengths if lengths else 0.0


def spread(edits: Iterable[LabelledEdit]) -> dict[str, int]:
    """The number of edits with each label, the labels to two decimals."""
    counts: dict[str, int] = {}
    for edit in edits:
        counts[f"{edit.label:.2f}"] = counts.get(f"{edit.label:.2f}", 0) + 1
    return dict(sorted(counts.items()))


SOURCE_CAPTION_KEY, OUTPUT_CAPTION_KEY = "source_caption", "output_caption"
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


def from_outputs(pairs: Sequence[Pair], editors: Editors, encoder: Encoder) -> list[LabelledEdit]:
    """The labelled edits of outputs that have a label, and of each source as the output that nobody edited.

    Raises:
        VievalError: an image cannot be read.
    """
    labelled: list[LabelledEdit] = []
    unedited: dict[str, LabelledEdit] = {}
    for pair in tqdm(pairs, desc="CLIP-D", unit="edit", disable=None):
        texts = pair.sample.texts
        value = _direction(pair, texts[SOURCE_CAPTION_KEY], texts[OUTPUT_CAPTION_KEY], encoder)
        is_unchanged = decode(Image(pair.source)).tobytes() == decode(Image(pair.output)).tobytes()
        label = 0.0 if is_unchanged else editors.label(pair.sample.id.image_model, value)
        origin: dict[str, float | str] = {"editor": pair.sample.id.image_model, "clip_d": round(value, 6)}
        if label is not None:
            labelled.append(_edit(pair, pair.output, label, origin))
        unedited.setdefault(pair.sample.id.uid, _edit(pair, pair.source, 0.0, {"editor": ""}))
    return [*labelled, *unedited.values()]


def _edit(pair: Pair, output: Path, label: float, origin: dict[str, float | str]) -> LabelledEdit:
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


def _checked(sample: Sample, editors: Editors) -> Pair:
    missing = [
        name
        for name in ("instruction", SOURCE_CAPTION_KEY, OUTPUT_CAPTION_KEY)
        if not sample.texts.get(name, "").strip()
    ]
    missing += [role for role in ("source", "output") if role not in sample.images]
    if missing:
        raise VievalError(
            f"{sample.id} has no {missing[0]}; CLIP-D needs source, output, instruction, {SOURCE_CAPTION_KEY}, {OUTPUT_CAPTION_KEY}"
        )
    if sample.id.image_model not in {editors.truth, *editors.weak, *editors.strong}:
        raise VievalError(
            f"{sample.id}: {sample.id.image_model!r} is neither the truth nor among the weak or strong editors; name it"
        )
    source, output = (sample.images[role].source for role in ("source", "output"))
    if isinstance(source, bytes) or isinstance(output, bytes):
        raise VievalError(f"{sample.id}: its images are in memory; training examples name files")
    return Pair(sample, source, output)


def _direction(pair: Pair, source_caption: str, output_caption: str, encoder: Encoder) -> float:
    images = encoder.images([encoder.pixels(decode(Image(path))) for path in (pair.source, pair.output)])
    texts = encoder.texts([encoder.tokens(text)[0] for text in (source_caption, output_caption)])
    source, output = (tuple(vector) for vector in images.double().cpu().tolist())
    first, second = (tuple(vector) for vector in texts.double().cpu().tolist())
    return direction((source, output), (first, second))
