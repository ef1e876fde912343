"""The inputs of `vieval_small`: an output and its conditions as small arrays, and its words as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import PIL.Image

Picture: TypeAlias = PIL.Image.Image
Pixels: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

SIDE = 96
"""Pixels of a side of what consistency is judged by."""
FULL = 256
"""Pixels of a side of what quality is judged by: that of the drawings, so that blur and noise have the size it learnt."""
LENGTH = 32
"""Words that are read of a sample's texts."""
UNKNOWN = 1

CONDITIONS: dict[str, tuple[tuple[str, int], ...]] = {
    "tig": (),
    "mie": (("source", 3), ("mask", 1)),
    "tie": (("source", 3),),
    "sdig": (("subject", 3),),
    "sdie": (("source", 3), ("subject", 3)),
    "mcic": (("concept_1", 3), ("concept_2", 3)),
    "cig": (("control", 1),),
}
"""For each kind, the condition images that are looked at and how many channels of each."""
KINDS = tuple(CONDITIONS)
TEXTS: dict[str, tuple[str, ...]] = {
    "tig": ("prompt",),
    "mie": ("instruction",),
    "tie": ("instruction",),
    "sdig": ("prompt", "subject"),
    "sdie": ("subject",),
    "mcic": ("prompt",),
    "cig": ("prompt",),
}
"""For each kind, the texts that are read, one after another."""


def small(picture: Picture, channels: int = 3) -> Pixels:
    """A picture as (96, 96, channels)."""
    resized = picture.convert("L" if channels == 1 else "RGB").resize((SIDE, SIDE), PIL.Image.Resampling.BOX)
    return np.asarray(resized).reshape(SIDE, SIDE, channels)


def full(picture: Picture) -> Pixels:
    """A picture as (256, 256, 3)."""
    resized = picture.convert("RGB")
    if resized.size != (FULL, FULL):
        resized = resized.resize((FULL, FULL), PIL.Image.Resampling.BILINEAR)
    return np.asarray(resized)


def conditions(kind: str, images: Mapping[str, Picture]) -> Pixels:
    """The condition images of a kind as (96, 96, channels), side by side in the order of `CONDITIONS`."""
    arrays = [small(images[role], channels) for role, channels in CONDITIONS[kind]]
    return np.concatenate(arrays, -1) if arrays else np.zeros((SIDE, SIDE, 0), np.uint8)


def words(kind: str, texts: Mapping[str, str]) -> list[str]:
    """The words of a sample's texts, in lower case, with a dot between texts."""
    return re.findall(r"[a-z]+|[.,|]", " . ".join(texts.get(name, "") for name in TEXTS[kind]).lower())[:LENGTH]


def mirrored(words: Sequence[str]) -> list[str]:
    """The words that say of a mirrored picture what these say of the picture."""
    other = {"left": "right", "right": "left"}
    return [other.get(word, word) for word in words]


def numbered(words: Sequence[str], vocabulary: Mapping[str, int]) -> list[int]:
    """Words as their numbers in a vocabulary, 1 for those that are not in it, and 0 for none up to `LENGTH`."""
    numbers = [vocabulary.get(word, UNKNOWN) for word in words]
    return numbers + [0] * (LENGTH - len(numbers))
