"""Towers: networks of transformers that turn an image, or a text, into a vector of length 1."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import PIL.Image

from vieval_plugin.backends.metrics.network_metrics import Picture, Shown
from vieval_plugin.backends.weights import library
from vieval_plugin.errors import VievalError

TRUNCATED = "text truncated to the length that the scorer reads"
"""What verdicts take note of where a network was given the beginning of a text only."""

# whether a tokenizer cuts is a state of it, which a call in another thread would change under this one
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Tower:
    """A loaded network; `by` is what results call it, `identity` tells its weights from all others.

    `embed` turns pixels (images, 3, height, width) into vectors (images, size). `embed_texts` does so from token ids and
    mask (texts, tokens), where the network knows texts, of `longest` tokens each at most; `learnt_scale` is what its cosines were
    multiplied with in training.
    """

    by: str
    identity: str
    processor: Any
    embed: Callable[[Any], Any]
    device: Any
    tokenizer: Any = None
    longest: int = 0
    embed_texts: Callable[[Any], Any] | None = None
    learnt_scale: float = 1.0

    def pixels(self, image: PIL.Image.Image) -> Any:
        """An image as the network takes it: a tensor (3, height, width)."""
        return self.processor(images=image, return_tensors="pt")["pixel_values"][0]

    def tokens(self, text: str) -> tuple[list[int], tuple[str, ...]]:
        """A text as token ids, and the finding where only its beginning goes in."""
        with _one_at_a_time:
            whole = self.tokenizer(text).input_ids
            if len(whole) <= self.longest:
                return whole, ()
            return self.tokenizer(text, truncation=True, max_length=self.longest).input_ids, (TRUNCATED,)

    def images(self, pixels: Sequence[Any]) -> Any:
        """Vectors of length 1, a tensor (images, size)."""
        return _unit(self.embed(library("torch").stack(list(pixels)).to(self.device)))

    def texts(self, tokens: Sequence[list[int]]) -> Any:
        """Vectors of length 1, a tensor (texts, size)."""
        if self.embed_texts is None:
            raise VievalError(f"{self.by} knows images only")
        padded = self.tokenizer.pad({"input_ids": list(tokens)}, return_tensors="pt")
        return _unit(self.embed_texts(padded.to(self.device)))


def pair(tower: Tower, images: Mapping[str, Picture], texts: Mapping[str, str]) -> Shown:
    """`image` and `reference` as a tower takes them."""
    return Shown({role: tower.pixels(images[role]) for role in ("image", "reference")})


def alike(tower: Tower, batch: Mapping[str, Sequence[Any]]) -> Any:
    """Cosines of the vectors of `image` and `reference`, a tensor (asks,)."""
    both = tower.images([*batch["image"], *batch["reference"]])
    half = len(batch["image"])
    return (both[:half] * both[half:]).sum(-1)


def _unit(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=-1, keepdim=True)
