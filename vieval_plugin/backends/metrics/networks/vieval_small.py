"""The networks of the judge `vieval_small`, whose weights lie in the package: consistency and quality of drawings.

They are computed in NumPy, on this machine's processors, so that the judge needs no further package.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import PIL.Image
from safetensors import safe_open
from threadpoolctl import threadpool_limits

from vieval_plugin.backends.metrics.network_metrics import NetworkInputs, NetworkMetric, Picture
from vieval_plugin.backends.metrics.vieval_small_network import PARTS, Layer, View
from vieval_plugin.backends.weights import Origin
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import path_of

#: The weights that are shipped.
WEIGHTS = Path(__file__).with_name("vieval_small.safetensors")
#: End of the name of a tensor (rows, 1, ...) by which the rows of another, in eight bits, are multiplied.
SCALE = ".scale"
Pixels: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

#: Pixels of a side of what consistency is judged by.
SIDE = 96
#: Pixels of a side of what quality is judged by: that of the drawings, so that blur and noise have the size it learnt.
FULL = 256
#: Words that are read of a sample's texts.
LENGTH = 32
UNKNOWN = 1

#: For each kind, the condition images that are looked at and how many channels of each.
CONDITIONS: dict[str, tuple[tuple[str, int], ...]] = {
    "tig": (),
    "mie": (("source", 3), ("mask", 1)),
    "tie": (("source", 3),),
    "sdig": (("subject", 3),),
    "sdie": (("source", 3), ("subject", 3)),
    "mcic": (("concept_1", 3), ("concept_2", 3)),
    "cig": (("control", 1),),
}
KINDS = tuple(CONDITIONS)
#: For each kind, the texts that are read, one after another.
TEXTS: dict[str, tuple[str, ...]] = {
    "tig": ("prompt",),
    "mie": ("instruction",),
    "tie": ("instruction",),
    "sdig": ("prompt", "subject"),
    "sdie": ("subject",),
    "mcic": ("prompt",),
    "cig": ("prompt",),
}


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


def tokens_of(kind: str, texts: Mapping[str, str]) -> list[str]:
    """The words of a sample's texts, in lower case, with a dot between texts."""
    return re.findall(r"[a-z]+|[.,|]", " . ".join(texts.get(name, "") for name in TEXTS[kind]).lower())[:LENGTH]


def mirrored(tokens: Sequence[str]) -> list[str]:
    """The words that say of a mirrored picture what these say of the picture."""
    opposites = {"left": "right", "right": "left"}
    return [opposites.get(token, token) for token in tokens]


def numbered(tokens: Sequence[str], vocabulary: Mapping[str, int]) -> list[int]:
    """Words as their numbers in a vocabulary, 1 for those that are not in it, and 0 for none up to `LENGTH`."""
    numbers = [vocabulary.get(token, UNKNOWN) for token in tokens]
    return numbers + [0] * (LENGTH - len(numbers))


@dataclass(frozen=True)
class TrainedPart:
    """A trained network."""

    #: Its weights.
    layer: Layer
    #: Its words as numbers.
    vocabulary: Mapping[str, int]
    #: Sizes of the groups of facts that it learnt beside scores.
    facts: Sequence[int]


@dataclass(frozen=True)
class SmallJudge:
    """The loaded networks."""

    #: Name in results.
    by: str
    #: Digest of their weights.
    identity: str
    #: The networks by part.
    parts: Mapping[str, TrainedPart]


def load(origin: Origin) -> SmallJudge:
    """The networks, of the shipped weights or of a file that `make train-small` wrote.

    Raises:
        VievalError: the file is not there, is damaged, or holds something else.
    """
    if origin.revision:
        raise VievalError(f"revision {origin.revision}: these weights are a file, which has none")
    path = path_of(origin.model) if origin.model else WEIGHTS
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        with safe_open(path, "np") as opened:
            description = json.loads((opened.metadata() or {})["parts"])
            layers: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
            names = set(opened.keys())
            for name in (name for name in names if not name.endswith(SCALE)):
                part, _, key = name.partition(".")
                scale = opened.get_tensor(f"{name}{SCALE}").astype(np.float32) if f"{name}{SCALE}" in names else 1
                layers[part][key] = opened.get_tensor(name).astype(np.float32) * scale
        parts = {}
        for part, layer in layers.items():
            vocabulary = {token: number for number, token in enumerate(description[part]["words"], UNKNOWN + 1)}
            parts[part] = TrainedPart(layer, vocabulary, description[part]["facts"])
    except FileNotFoundError:
        raise VievalError(f"{path}: no such file of weights") from None
    except Exception as error:  # of a file that anyone may have written
        raise VievalError(f"{path} is no file of vieval_small's weights ({type(error).__name__})") from None
    return SmallJudge(f"{path.stem}@sha256:{digest[:16]}, trained on its own drawings only", digest, parts)


def show_consistency(network: SmallJudge, images: Mapping[str, Picture], texts: Mapping[str, str]) -> NetworkInputs:
    """Output and conditions at 96 pixels, and the words; `texts` has the sample's kind as `kind`."""
    kind = texts["kind"]
    vocabulary, tokens = network.parts[_part_of(kind)].vocabulary, tokens_of(kind, texts)
    return NetworkInputs(
        {
            "output": small(images["output"]),
            "condition": conditions(kind, images),
            "words": np.array(numbered(tokens, vocabulary)),
            "mirrored": np.array(numbered(mirrored(tokens), vocabulary)),
            "kind": kind,
        }
    )


def show_quality(network: SmallJudge, images: Mapping[str, Picture], texts: Mapping[str, str]) -> NetworkInputs:
    """The output at 256 pixels."""
    return NetworkInputs({"full": full(images["output"])})


def vieval_small_sc(network: SmallJudge, batch: Mapping[str, Sequence[Any]]) -> Any:
    """Semantic consistency of an output, in [0, 1]: 1 less the strength of its defect, as a drawing's would be."""
    scores = np.empty(len(batch["kind"]), np.float32)
    for kind in sorted(set(batch["kind"])):
        rows = [row for row, kind_of_row in enumerate(batch["kind"]) if kind_of_row == kind]
        output, condition, tokens, mirrored_tokens = (
            np.stack([batch[role][row] for row in rows]) for role in ("output", "condition", "words", "mirrored")
        )
        plain = {"output": _floats(output), "condition": _floats(condition), "words": tokens}
        flipped = {role: plain[role][:, :, ::-1] for role in ("output", "condition")} | {"words": mirrored_tokens}
        scores[rows] = _score(network, _part_of(kind), kind, (plain, flipped))
    return scores


def vieval_small_pq(network: SmallJudge, batch: Mapping[str, Sequence[Any]]) -> Any:
    """Perceptual quality of an output, in [0, 1]: 1 less the strength of its defect, as a drawing's would be."""
    pictures = _floats(np.stack(batch["full"]))
    return _score(network, "quality", "", ({"full": pictures}, {"full": pictures[:, :, ::-1]}))


def _floats(pixels: Any) -> Any:
    return pixels.astype(np.float32) / 255


def _part_of(kind: str) -> str:
    """The part that scores the consistency of a kind."""
    return next(part for part, (_, kinds) in PARTS.items() if kind in kinds)


def _score(network: SmallJudge, part: str, kind: str, views: Sequence[View]) -> Any:
    """The mean of a part's scores for samples as they are and mirrored, which are as good."""
    compute, of_part = PARTS[part][0], network.parts[part]
    # matrices this small are multiplied no faster by several threads, and forty times slower where processors are busy
    with threadpool_limits(1, "blas"):
        return sum(compute(of_part.layer, of_part.facts, kind, view) for view in views) / len(views)


METRICS = (
    NetworkMetric("vieval_small_sc", load, "", show_consistency, vieval_small_sc),
    NetworkMetric("vieval_small_pq", load, "", show_quality, vieval_small_pq),
)
