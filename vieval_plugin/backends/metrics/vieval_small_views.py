"""What `vieval_small` is shown: an output and its conditions as small arrays, and its words as numbers."""

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
    shown = picture.convert("L" if channels == 1 else "RGB").resize((SIDE, SIDE), PIL.Image.Resampling.BOX)
    return np.asarray(shown).reshape(SIDE, SIDE, channels)


def full(picture: Picture) -> Pixels:
    """A picture as (256, 256, 3)."""
    shown = picture.convert("RGB")
    if shown.size != (FULL, FULL):
        shown = shown.resize((FULL, FULL), PIL.Image.Resampling.BILINEAR)
    return np.asarray(shown)


def conditions(kind: str, images: Mapping[str, Picture]) -> Pixels:
    """The condition images of a kind as (96, 96, channels), side by side in the order of `CONDITIONS`."""
    shown = [small(images[role], channels) for role, channels in CONDITIONS[kind]]
    return np.concatenate(shown, -1) if shown else np.zeros((SIDE, SIDE, 0), np.uint8)


def words(kind: str, texts: Mapping[str, str]) -> list[str]:
    """The words of a sample's texts, in lower case, with a dot between texts."""
    return re.findall(r"[a-z]+|[.,|]", " . ".join(texts.get(name, "") for name in TEXTS[kind]).lower())[:LENGTH]


def mirrored(found: Sequence[str]) -> list[str]:
    """The words that say of a mirrored picture what these say of the picture."""
    other = {"left": "right", "right": "left"}
    return [other.get(word, word) for word in found]


def numbered(found: Sequence[str], vocabulary: Mapping[str, int]) -> list[int]:
    """Words as their numbers in a vocabulary, 1 for those that are not in it, and 0 for none up to `LENGTH`."""
    numbers = [vocabulary.get(word, UNKNOWN) for word in found]
    return numbers + [0] * (LENGTH - len(numbers))
