"""CLIP as a described scorer: with a scale and a text template (PickScore, HPSv2), or with linear
layers on the embedding of the image (LAION's aesthetic predictor).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from vieval_plugin.backends.metrics.encoders import (
    Activation,
    Encoder,
    described_file,
    description,
    load_head,
)
from vieval_plugin.backends.metrics.network_metrics import (
    Batch,
    NetworkInputs,
    NetworkMetric,
    Picture,
    Pictures,
)
from vieval_plugin.backends.metrics.networks.clip import clip_score, image_and_text
from vieval_plugin.backends.metrics.networks.clip import load as load_clip
from vieval_plugin.backends.weights import (
    Origin,
    Tensors,
    identity,
    library,
    renamed,
    state_dict,
)
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.prompts.schema import StrictModel
from vieval_plugin.text.untrusted import exists, path_of

# names of open_clip's CLIP, with its fused attention, as transformers' CLIP has them
_BLOCK = r"^((?:text|vision)_model\.encoder\.layers\.\d+)\."
_OPEN_CLIP = (
    (r"^visual\.transformer\.resblocks\.", "vision_model.encoder.layers."),
    (r"^transformer\.resblocks\.", "text_model.encoder.layers."),
    (_BLOCK + r"attn\.in_proj_", r"\1.self_attn.fused."),
    (_BLOCK + r"attn\.", r"\1.self_attn."),
    (_BLOCK + r"ln_", r"\1.layer_norm"),
    (_BLOCK + r"mlp\.c_fc\.", r"\1.mlp.fc1."),
    (_BLOCK + r"mlp\.c_proj\.", r"\1.mlp.fc2."),
    (r"^visual\.conv1\.", "vision_model.embeddings.patch_embedding."),
    (r"^visual\.class_embedding$", "vision_model.embeddings.class_embedding"),
    (
        r"^visual\.positional_embedding$",
        "vision_model.embeddings.position_embedding.weight",
    ),
    (r"^visual\.ln_pre\.", "vision_model.pre_layrnorm."),
    (r"^visual\.ln_post\.", "vision_model.post_layernorm."),
    (r"^visual\.proj$", "visual_projection.weight"),
    (r"^token_embedding\.", "text_model.embeddings.token_embedding."),
    (r"^positional_embedding$", "text_model.embeddings.position_embedding.weight"),
    (r"^ln_final\.", "text_model.final_layer_norm."),
    (r"^text_projection$", "text_projection.weight"),
)
_PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
_TRANSPOSED = ("visual_projection.weight", "text_projection.weight")


class DualEncoder(StrictModel):
    """The section `network` of a description; the scale is a number, or the one that the weights
    have learnt.
    """

    base: str
    revision: str | None = None
    processor: str = ""
    scale: float | Literal["learnt"] = 1.0
    open_clip: str = ""
    digest: str = ""
    fit: Literal["processor", "pad"] = "processor"


class EmbeddingHead(StrictModel):
    """The section `network` of a description with linear layers on an image's embedding."""

    base: str
    revision: str | None = None
    processor: str = ""
    head: str
    digest: str = ""
    prefix: str = ""
    activation: Activation = "relu"


@dataclass(frozen=True)
class PaddingProcessor:
    """Image processor that fits the longer side to `size` and pads the other with black."""

    size: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __call__(self, images: Picture, return_tensors: str) -> Tensors:
        torch = library("torch")
        pixels = torch.from_numpy(np.array(images.convert("RGB"))).permute(2, 0, 1)
        scale = self.size / max(images.size)
        size = [round(length * scale) for length in (images.height, images.width)]
        fitted = torch.nn.functional.interpolate(
            pixels[None].float() / 255,
            size,
            mode="bicubic",
            antialias=True,
        )
        high, wide = (self.size - length for length in size)
        padding = wide // 2, wide - wide // 2, high // 2, high - high // 2
        padded = torch.nn.functional.pad(fitted, padding)
        mean, deviation = (
            torch.tensor(channels)[:, None, None]
            for channels in (self.mean, self.deviation)
        )
        return {"pixel_values": (padded - mean) / deviation}


@dataclass(frozen=True)
class LoadedEmbeddingHead:
    """A CLIP with linear layers that read an image's embedding."""

    #: Name in results.
    by: str
    #: Name of its weights, which no others have.
    identity: str
    encoder: Encoder
    #: The linear layers.
    head: Any


def load(origin: Origin) -> Encoder:
    """The CLIP of a description, which `origin` names.

    Raises:
        VievalError: the description has an unknown key, is about several images, or what it names
            is not there, of another architecture, or holds more than tensors.
    """
    described, settings = description(origin, DualEncoder)
    base = described.resolved(settings.base)
    tensors = None
    if settings.open_clip:
        tensors = _open_clip(described, settings, origin)
    elif origin.replacement:
        base = origin.replacement
    encoder = _clip(
        described,
        settings,
        base,
        origin,
        tensors,
    )
    if settings.fit == "pad":
        images = encoder.processor
        processor = PaddingProcessor(
            images.crop_size["height"],
            tuple(images.image_mean),
            tuple(images.image_std),
        )
        identity = f"{encoder.identity} padded"
        encoder = replace(encoder, processor=processor, identity=identity)
    scale = encoder.scale if settings.scale == "learnt" else settings.scale
    name = f"{described.name} on {encoder.by}"
    identity = f"{encoder.identity} times {scale!r}"
    return replace(encoder, by=name, identity=identity, scale=scale)


def _clip(
    described: Pack,
    settings: DualEncoder | EmbeddingHead,
    base: str,
    origin: Origin,
    tensors: Tensors | None = None,
) -> Encoder:
    """The CLIP of a base, with the processor that is named; a folder of the user's may have its
    own.
    """
    is_replaced = base == origin.replacement
    is_whole = is_replaced and any(
        exists(path_of(base) / name) for name in _PROCESSOR_FILES
    )
    named = "" if is_whole else described.resolved(settings.processor)
    revision = origin.revision or (None if is_replaced else settings.revision)
    return load_clip(Origin(base, revision, origin.device), named or base, tensors)


def _open_clip(described: Pack, settings: DualEncoder, origin: Origin) -> Tensors:
    """The weights in a file of open_clip's layout, under the names of transformers."""
    tensors = renamed(
        state_dict(
            described_file(described, origin, settings.open_clip, settings.digest)
        ),
        _OPEN_CLIP,
    )
    return {
        name: tensor.T.contiguous() if name in _TRANSPOSED else tensor
        for name, tensor in tensors.items()
    }


def load_embedding_head(origin: Origin) -> LoadedEmbeddingHead:
    """The linear layers of a description on its CLIP; VievalError as `load`."""
    described, settings = description(origin, EmbeddingHead)
    path = described_file(described, origin, settings.head, settings.digest)
    encoder = _clip(described, settings, described.resolved(settings.base), origin)
    head = load_head(
        path,
        settings.prefix,
        settings.activation,
        encoder.size,
    )
    digest = identity(
        head,
        encoder.identity,
        settings.activation,
    )
    return LoadedEmbeddingHead(
        f"{described.name}@sha256:{digest[:16]} on {encoder.by}",
        digest,
        encoder,
        head.to(encoder.device),
    )


def show_image(
    loaded: LoadedEmbeddingHead,
    images: Pictures,
    texts: Mapping[str, str],
) -> NetworkInputs:
    """The one image, whatever its role is called; its text is not read."""
    [image] = images.values()
    return NetworkInputs({"image": loaded.encoder.pixels(image)})


def embedding_head(loaded: LoadedEmbeddingHead, batch: Batch) -> Any:
    """The number that linear layers read from an image's embedding of length 1, in their unit.

    Schuhmann, improved-aesthetic-predictor (2022).
    """
    return loaded.head(loaded.encoder.images(batch["image"]))[:, 0]


def dual_encoder(encoder: Encoder, batch: Batch) -> Any:
    """The scale times the cosine of the embeddings of image and text, in [-scale, scale].

    Kirstain et al., Pick-a-Pic (NeurIPS 2023), equation of the scoring function; Wu et al., HPSv2
    (2023), without a scale.
    """
    return encoder.scale * clip_score(encoder, batch)


METRICS = (
    NetworkMetric(
        "dual_encoder",
        load,
        "",
        image_and_text,
        dual_encoder,
    ),
    NetworkMetric(
        "embedding_head",
        load_embedding_head,
        "",
        show_image,
        embedding_head,
    ),
)
