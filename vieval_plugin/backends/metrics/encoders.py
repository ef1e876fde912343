"""Encoders, networks that turn an image or a text into a vector of length 1, and heads, which
turn one into a number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import PIL.Image

from vieval_plugin.backends.metrics.network_metrics import (
    Batch,
    NetworkInputs,
    Pictures,
)
from vieval_plugin.backends.weights import (
    Origin,
    library,
    require_digest,
    state_dict,
    weights_file,
)
from vieval_plugin.prompts import packs
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.prompts.schema import P
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import natural

#: Note of verdicts where a network was given only the beginning of a text.
TRUNCATED = "text truncated to the scorer's maximum length"

# whether a tokenizer cuts is a state of it, which a call in another thread would change under this
# one
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Encoder:
    """A loaded network."""

    #: Name in results.
    by: str
    #: Name of its weights, which no others have.
    identity: str
    #: Turns an image into pixels.
    processor: Any
    #: Turns pixels (images, 3, height, width) into vectors (images, size).
    embed: Callable[[Any], Any]
    device: Any
    #: Turns a text into tokens, where the network knows texts.
    tokenizer: Any = None
    #: Most tokens of a text.
    longest: int = 0
    #: Turns token ids and mask (texts, tokens) into vectors (texts, size).
    embed_texts: Callable[[Any], Any] | None = None
    #: Factor of its cosines where a metric scales them: from training, or from a description.
    scale: float = 1.0
    #: Length of its vectors, where a head reads them.
    size: int = 0

    def pixels(self, image: PIL.Image.Image) -> Any:
        """An image as the network takes it: a tensor (3, height, width)."""
        return self.processor(images=image, return_tensors="pt")["pixel_values"][0]

    def tokens(self, text: str) -> tuple[list[int], tuple[str, ...]]:
        """A text as token ids, and the finding where only its beginning goes in."""
        with _one_at_a_time:
            token_ids = self.tokenizer(text).input_ids
            if len(token_ids) <= self.longest:
                return token_ids, ()
            cut = self.tokenizer(text, truncation=True, max_length=self.longest)
            return cut.input_ids, (TRUNCATED,)

    def images(self, pixels: Sequence[Any]) -> Any:
        """Vectors of length 1, a tensor (images, size)."""
        batch = library("torch").stack(list(pixels))
        return _unit(self.embed(batch.to(self.device)))

    def texts(self, tokens: Sequence[list[int]]) -> Any:
        """Vectors of length 1, a tensor (texts, size)."""
        if self.embed_texts is None:
            raise VievalError(f"{self.by} supports images only")
        padded = self.tokenizer.pad({"input_ids": list(tokens)}, return_tensors="pt")
        return _unit(self.embed_texts(padded.to(self.device)))


def encoder_inputs(
    encoder: Encoder, images: Pictures, texts: Mapping[str, str]
) -> NetworkInputs:
    """Images and texts as an encoder takes them, by role."""
    tensors = {role: encoder.pixels(image) for role, image in images.items()}
    notes: list[str] = []
    for role, text in texts.items():
        tensors[role], found = encoder.tokens(text)
        notes += found
    return NetworkInputs(tensors, tuple(dict.fromkeys(notes)))


def cosines(encoder: Encoder, batch: Batch) -> Any:
    """Cosines of the vectors of `image` and `reference`, a tensor (asks,)."""
    vectors = encoder.images([*batch["image"], *batch["reference"]])
    half = len(batch["image"])
    return (vectors[:half] * vectors[half:]).sum(-1)


def _unit(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=-1, keepdim=True)


def description(origin: Origin, model: type[P]) -> tuple[Pack, P]:
    """The description that `origin` names, and its settings in their form.

    Raises:
        VievalError: it has an unknown key, or is about several images.
    """
    described = packs.load(origin.model)
    settings = packs.network_settings(described, model)
    if described.most_images != 1:
        raise VievalError(f"{described.path}: `images` must list exactly one image")
    return described, settings


def described_file(described: Pack, origin: Origin, name: str, digest: str) -> Path:
    """The file of weights that a description names, or the one that replaces it, which may be of
    any digest; VievalError says where to get it.
    """
    if origin.replacement:
        name = origin.replacement
        digest = ""
    try:
        path = weights_file(described.resolved(name))
    except VievalError as error:
        raise VievalError(f"{described.name}: {error}, or pass --scorer FILE") from None
    require_digest(path, digest)
    return path


#: Layers between two linear layers, by the name that descriptions use.
ACTIVATIONS = {
    "relu": "ReLU",
    "gelu": "GELU",
    "tanh": "Tanh",
    "silu": "SiLU",
    "none": "Identity",
}


Activation: TypeAlias = Literal["relu", "gelu", "tanh", "silu", "none"]


def load_head(path: Path, prefix: str, activation: str, size: int) -> Any:
    """A head of linear layers with an activation between each two, their number and shapes as in
    the weights.

    Args:
        path: safetensors or a state dict, which may hold other weights too.
        prefix: what the head's names begin with, empty where the file holds the head alone.
        activation: one of `ACTIVATIONS`.
        size: how long the vectors are that it is given.

    Returns:
        A module from vectors (n, size) to numbers (n, outputs).

    Raises:
        VievalError: the weights are not there, hold more than tensors, or are not a chain of
            linear layers from `size` on.
    """
    torch = library("torch")
    start = f"{prefix}." if prefix else ""
    tensors = {
        name[len(start) :]: tensor for name, tensor in state_dict(path, start).items()
    }
    if not tensors:
        raise VievalError(
            f"{path} has no weights under {prefix!r}; correct network.prefix"
        )
    for name in sorted(tensors):
        if name.rpartition(".")[2] not in ("weight", "bias"):
            raise VievalError(
                f"{path}: {name} is not part of a linear layer; set network.prefix to the "
                "prefix of the head"
            )
    layers = []
    names = [name for name in tensors if name.endswith("weight")]
    for name in sorted(names, key=natural):
        weight = tensors[name]
        bias = tensors.pop(f"{name.removesuffix('weight')}bias", None)
        if weight.dim() != 2 or weight.shape[1] != size:
            shape = tuple(weight.shape)
            raise VievalError(
                f"{path}: {name} must accept vectors of length {size}, got shape {shape}; use "
                "the head of this network, which must be a chain of linear layers"
            )
        if bias is not None and bias.shape != weight.shape[:1]:
            raise VievalError(
                f"{path}: the bias of {name} must have length {weight.shape[0]}, got shape "
                f"{tuple(bias.shape)}; use the head of this network"
            )
        linear = torch.nn.Linear(
            size,
            weight.shape[0],
            bias=bias is not None,
        )
        state = {"weight": weight, **({} if bias is None else {"bias": bias})}
        linear.load_state_dict(state)
        layers += [linear, getattr(torch.nn, ACTIVATIONS[activation])()]
        size = weight.shape[0]
    if stray := next((name for name in tensors if name.endswith("bias")), ""):
        raise VievalError(
            f"{path}: {stray} has no matching weight; use the head of this network"
        )
    return torch.nn.Sequential(*layers[:-1]).float().eval()
