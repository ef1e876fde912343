"""The mode `head`: a trained network gives the number; what it is asked is worded as it was in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.adiee.question import Form, Images, question_text
from vieval_plugin.judges.auto_metrics import AutoMetric, verdict_of
from vieval_plugin.judges.protocol import Measure, Path, Program, Sample
from vieval_plugin.judges.wording import Wording

VALUE_HEAD = "value_head"
"""The form of a described scorer that has a head on an image-text model."""

_ROLES = {"image_0": ("source",), "image_1": ("output",)}


class DescribedHead(Protocol):
    """What is needed of the description of a trained scorer: its form, the images it takes, what it says of its network."""

    @property
    def form(self) -> str: ...

    @property
    def images(self) -> tuple[tuple[str, ...], ...]: ...

    @property
    def network(self) -> Mapping[str, Any]: ...


def images_of(described: DescribedHead) -> Images:
    """How a trained scorer shows source and edit to its network.

    Raises:
        VievalError: it is no value head that is shown a source and an output.
    """
    if described.form != VALUE_HEAD or described.images != tuple(_ROLES.values()):
        raise VievalError(
            f"adiee's scorer is a {VALUE_HEAD} that is shown source and output, and this one is a {described.form} of "
            f"{len(described.images)} images; name a folder that `vieval train adiee` made"
        )
    return "joined" if described.network.get("side_by_side") else "two"


def measured(sample: Sample, form: Form, wording: Wording, images: Images, path: Path, aspect: str) -> Program:
    """The program: one `Measure` of the scorer that is called as the judge is, whose value is the score."""
    text = question_text(sample.texts["instruction"], form, wording, images, "token")
    shown = {role: sample.images[held] for role, (held,) in _ROLES.items()}
    [reply] = yield [Measure(VALUE_HEAD, shown, path, {"text": text}, "adiee")]
    metric = AutoMetric(aspect, "ADIEE", aspect, _ROLES, (), lambda value: min(max(value, 0.0), 1.0))
    return verdict_of(metric, reply)
