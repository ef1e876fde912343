"""A CLIP with a scale and a text template as a described scorer: PickScore and HPSv2 are of this
form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from vieval_plugin.backends.metrics.encoders import Encoder
from vieval_plugin.backends.metrics.network_metrics import NetworkMetric
from vieval_plugin.backends.metrics.networks.clip import clip_score, image_and_text
from vieval_plugin.backends.metrics.networks.clip import load as load_clip
from vieval_plugin.backends.weights import Origin
from vieval_plugin.prompts import packs
from vieval_plugin.prompts.schema import StrictModel
from vieval_plugin.text.errors import VievalError


class DualEncoder(StrictModel):
    """The section `network` of a description; the scale is a number, or the one that the weights
    have learnt.
    """

    base: str
    revision: str | None = None
    processor: str = ""
    scale: float | Literal["learnt"] = 1.0


def load(origin: Origin) -> Encoder:
    """The CLIP of a description, which `origin` names.

    Raises:
        VievalError: the description has an unknown key, is about several images, or what it names
            is not there, of another architecture, or holds more than tensors.
    """
    described = packs.load(origin.model)
    settings = packs.network_settings(described, DualEncoder)
    if described.most_images != 1:
        raise VievalError(
            f"{described.path}: a dual encoder compares a text with one image, and images has more"
        )
    base = described.resolved(settings.base)
    clip = Origin(base, origin.revision or settings.revision, origin.device)
    encoder = load_clip(clip, described.resolved(settings.processor) or base)
    scale = encoder.scale if settings.scale == "learnt" else settings.scale
    name, identity = (
        f"{described.name} on {encoder.by}",
        f"{encoder.identity} times {scale!r}",
    )
    return replace(encoder, by=name, identity=identity, scale=scale)


def dual_encoder(encoder: Encoder, batch: Mapping[str, Sequence[Any]]) -> Any:
    """The scale times the cosine of the embeddings of image and text, in [-scale, scale].

    Kirstain et al., Pick-a-Pic (NeurIPS 2023), equation of the scoring function; Wu et al., HPSv2
    (2023), without a scale.
    """
    return encoder.scale * clip_score(encoder, batch)


METRIC = NetworkMetric("dual_encoder", load, "", image_and_text, dual_encoder)
