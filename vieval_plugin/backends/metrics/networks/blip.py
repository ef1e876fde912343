"""BLIP with linear layers on its text encoder, which looks at the image: ImageReward's form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import PIL.Image
from pydantic import Field

from vieval_plugin.backends.metrics.encoders import (
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
from vieval_plugin.backends.metrics.networks.clip import image_and_text
from vieval_plugin.backends.weights import (
    Origin,
    Tensors,
    device,
    identity,
    library,
    load_strictly,
    pretrained_tokenizer,
    renamed,
    state_dict,
)
from vieval_plugin.prompts.schema import StrictModel
from vieval_plugin.text.errors import VievalError

# the authors' names as transformers' vision and text model have them
_NAMES = (
    (r"^blip\.visual_encoder\.", "vision."),
    (r"^blip\.text_encoder\.", "text."),
    (r"^vision\.cls_token$", "vision.embeddings.class_embedding"),
    (r"^vision\.pos_embed$", "vision.embeddings.position_embedding"),
    (r"^vision\.patch_embed\.proj\.", "vision.embeddings.patch_embedding."),
    (r"^vision\.norm\.", "vision.post_layernorm."),
    (r"^vision\.blocks\.(\d+)\.norm", r"vision.encoder.layers.\1.layer_norm"),
    (r"^vision\.blocks\.(\d+)\.attn\.proj\.", r"vision.blocks.\1.attn.projection."),
    (r"^vision\.blocks\.(\d+)\.attn\.", r"vision.encoder.layers.\1.self_attn."),
    (r"^vision\.blocks\.", "vision.encoder.layers."),
)
# of BLIP's contrastive training, which no score goes through
_UNUSED = ("blip.vision_proj.", "blip.text_proj.")
_HEAD = "mlp.layers"


class Blip(StrictModel):
    """The section `network` of a description; `vision` and `text` are keys of transformers'
    configurations.
    """

    weights: str
    digest: str = ""
    tokenizer: str
    vision: dict[str, int | float | str]
    text: dict[str, int | float | str]
    longest: int = Field(35, ge=1)
    mean: float = 0.0
    deviation: float = Field(1.0, gt=0)


@dataclass(frozen=True)
class CroppingProcessor:
    """Image processor that fits the shorter side to `size` and crops the middle."""

    size: int

    def __call__(self, images: Picture, return_tensors: str) -> Tensors:
        short = min(images.size)
        wide, high = (int(self.size * length / short) for length in images.size)
        fitted = images.convert("RGB").resize(
            (wide, high), PIL.Image.Resampling.BICUBIC
        )
        left, top = (round((length - self.size) / 2) for length in (wide, high))
        cropped = fitted.crop((left, top, left + self.size, top + self.size))
        pixels = (np.asarray(cropped, dtype=np.float32) / 255 - _MEAN) / _DEVIATION
        torch = library("torch")
        return {"pixel_values": torch.from_numpy(pixels).permute(2, 0, 1)[None]}


# of CLIP's images, which BLIP takes over
_MEAN = np.array([0.48145466, 0.4578275, 0.40821073], dtype=np.float32)
_DEVIATION = np.array([0.26862954, 0.26130258, 0.27577711], dtype=np.float32)


@dataclass(frozen=True)
class LoadedBlip:
    """A loaded BLIP with linear layers."""

    #: Name in results.
    by: str
    #: Name of its weights and settings, which no others have.
    identity: str
    settings: Blip
    #: Prepares images and texts.
    encoder: Encoder
    #: The vision model, the text model and the linear layers.
    network: Any


def load(origin: Origin) -> LoadedBlip:
    """The BLIP of a description, which `origin` names.

    Raises:
        VievalError: the description has an unknown key, or what it names is not there, is of
            another architecture, or holds more than tensors.
    """
    described, settings = description(origin, Blip)
    path = described_file(described, origin, settings.weights, settings.digest)
    network = _network(settings)
    load_strictly(
        network,
        _tensors(path),
        str(path),
    )
    network["head"] = load_head(
        path,
        _HEAD,
        "none",
        network["text"].config.hidden_size,
    )
    network = network.to(device(origin.device)).eval()
    tokenizer = pretrained_tokenizer(described.resolved(settings.tokenizer))
    digest = identity(network, tokenizer.backend_tokenizer.to_str(), repr(settings))
    name = f"{described.name}@sha256:{digest[:16]}"
    encoder = Encoder(
        name,
        digest,
        CroppingProcessor(network["vision"].config.image_size),
        network["vision"],
        next(network.parameters()).device,
        tokenizer,
        settings.longest,
    )
    return LoadedBlip(
        name,
        digest,
        settings,
        encoder,
        network,
    )


def _network(settings: Blip) -> Any:
    """The two models with random weights; VievalError for a key that they do not have."""
    transformers = library("transformers")
    configs = {}
    for part, name in (("vision", "BlipVisionConfig"), ("text", "BlipTextConfig")):
        kind = getattr(transformers, name)
        keys = getattr(settings, part)
        if unknown := sorted(set(keys) - set(kind().to_dict())):
            raise VievalError(f"unknown key network.{part}.{unknown[0]}")
        configs[part] = kind(**keys)
    vision = transformers.BlipVisionModel(configs["vision"])
    return library("torch").nn.ModuleDict(
        {
            "vision": vision,
            "text": transformers.BlipTextModel(
                configs["text"], add_pooling_layer=False
            ),
        }
    )


def _tensors(path: Any) -> Tensors:
    """The weights of both models in a file of the authors, under transformers' names."""
    tensors = state_dict(path)
    for name in list(tensors):
        is_other = name.startswith((*_UNUSED, f"{_HEAD}."))
        if is_other or name.endswith(".position_ids"):
            del tensors[name]
    return renamed(tensors, _NAMES)


def show(
    loaded: LoadedBlip, images: Pictures, texts: Mapping[str, str]
) -> NetworkInputs:
    """The one image and the text as BLIP takes them."""
    return image_and_text(loaded.encoder, images, texts)


def blip(loaded: LoadedBlip, batch: Batch) -> Any:
    """The number that linear layers read at the first token of a text encoder that looks at the
    image, less the training's mean and divided by its standard deviation.

    Xu et al., ImageReward (NeurIPS 2023).
    """
    torch = library("torch")
    encoder = loaded.encoder
    pixels = torch.stack(list(batch["image"])).to(encoder.device)
    seen = loaded.network["vision"](pixel_values=pixels).last_hidden_state
    tokens = encoder.tokenizer.pad(
        {"input_ids": list(batch["text"])}, return_tensors="pt"
    ).to(encoder.device)
    output = loaded.network["text"](
        input_ids=tokens["input_ids"],
        attention_mask=tokens["attention_mask"],
        encoder_hidden_states=seen,
        encoder_attention_mask=torch.ones(
            seen.shape[:2],
            dtype=torch.long,
            device=encoder.device,
        ),
    )
    first_states = output.last_hidden_state[:, 0]
    value = loaded.network["head"](first_states)[:, 0]
    return (value - loaded.settings.mean) / loaded.settings.deviation


METRIC = NetworkMetric(
    "blip",
    load,
    "",
    show,
    blip,
)
