"""Labels of edits without people, from editing sequences and from outputs with a CLIP.

Source: ADIEE, automatic dataset creation and scorer for instruction-guided image editing evaluation (ICCV 2025), section
on its data; how often each sequence is drawn from is not said there.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vieval_plugin.benchmarks.sequences import EditingSequence, label, triples

_HALFWAY = 0.5  # the label of a strong editor's output that may not be right


@dataclass(frozen=True)
class LabelledEdit:
    """An edit to learn from: the label, in [0, 1], says how far `output` is what `instruction` makes of `source`.

    Edits of one `group` are of the same scene and are held out together. `made` says how the label came about: j1, j2 and
    k of a sequence, or the editor and its CLIP-D.
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
    drawn = triples(len(sequence.instructions))
    chosen = random.Random(f"{seed}/{sequence.uid}").sample(drawn, min(most, len(drawn)))
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
        for j1, j2, k in chosen
    ]


@dataclass(frozen=True)
class Editors:
    """How outputs are labelled: by whom they are and by their CLIP-D.

    `truth` names whose outputs are what the instruction asks for. Those of `weak` editors are failures where CLIP-D is
    below `failed` and are left out otherwise; those of `strong` ones are right where it is above `succeeded`, else halfway.
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
    change, wanted = ([b - a for a, b in zip(*pair, strict=True)] for pair in (images, texts))
    lengths = math.hypot(*change) * math.hypot(*wanted)
    return math.fsum(a * b for a, b in zip(change, wanted, strict=True)) / lengths if lengths else 0.0


def spread(edits: Iterable[LabelledEdit]) -> dict[str, int]:
    """How many edits have each label, the labels to two decimals."""
    found: dict[str, int] = {}
    for edit in edits:
        found[f"{edit.label:.2f}"] = found.get(f"{edit.label:.2f}", 0) + 1
    return dict(sorted(found.items()))
