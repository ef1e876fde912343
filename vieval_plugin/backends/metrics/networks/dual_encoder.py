"""A CLIP with a scale and a text template as a described scorer: PickScore and HPSv2 are of this form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vieval_plugin.backends.metrics.encoders import Tower
from vieval_plugin.backends.metrics.network_metrics import NetworkMetric, Picture, Shown
from vieval_plugin.backends.metrics.networks.clip import load as load_clip
from vieval_plugin.backends.weights import Origin
from vieval_plugin.errors import VievalError
from vieval_plugin.prompts import descriptions
from vieval_plugin.prompts.descriptions import Part


class DualEncoder(Part):
    """What a description says under `network`; the scale is a number, or the one that the weights have learnt."""

    base: str
    revision: str | None = None
    processor: str = ""
    scale: float | Literal["learnt"] = 1.0


@dataclass(frozen=True)
class Scaled:
    """A loaded CLIP, what its cosines are multiplied with, and what both are called."""

    by: str
    identity: str
    tower: Tower
    scale: float


def load(origin: Origin) -> Scaled:
    """The CLIP of a description, which `origin` names.

    Raises:
        VievalError: the description has an unknown key, is about several images, or what it names is not there, of
            another architecture, or holds more than tensors.
    """
    described = descriptions.load(origin.model)
    written = described.parsed(DualEncoder)
    if len(described.images) != 1:
        raise VievalError(f"{described.path}: a dual encoder compares a text with one image, and images has more")
    base = described.place(written.base)
    tower = load_clip(
        Origin(base, origin.revision or written.revision, origin.device), described.place(written.processor) or base
    )
    scale = tower.learnt_scale if written.scale == "learnt" else written.scale
    return Scaled(f"{described.name} on {tower.by}", f"{tower.identity} times {scale!r}", tower, scale)


def show(scaled: Scaled, images: Mapping[str, Picture], texts: Mapping[str, str]) -> Shown:
    """The image and the text as the CLIP takes them."""
    tokens, notes = scaled.tower.tokens(texts["text"])
    return Shown({"image": scaled.tower.pixels(images["image_0"]), "text": tokens}, notes)


def dual_encoder(scaled: Scaled, batch: Mapping[str, Sequence[Any]]) -> Any:
    """The scale times the cosine of the embeddings of image and text, in [-scale, scale].

    Kirstain et al., Pick-a-Pic (NeurIPS 2023), equation of the scoring function; Wu et al., HPSv2 (2023), without a scale.
    """
    return scaled.scale * (scaled.tower.images(batch["image"]) * scaled.tower.texts(batch["text"])).sum(-1)


METRIC = NetworkMetric("dual_encoder", load, "", show, dual_encoder)
