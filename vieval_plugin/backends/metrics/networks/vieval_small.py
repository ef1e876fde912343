"""The networks of the judge `vieval_small`, whose weights lie in the package: consistency and quality of drawings.

They are computed in NumPy, on this machine's processors, so that the judge needs no further package.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from threadpoolctl import threadpool_limits

from vieval_plugin.backends.metrics import vieval_small_views as views
from vieval_plugin.backends.metrics.network_metrics import NetworkInputs, NetworkMetric, Picture
from vieval_plugin.backends.metrics.vieval_small_network import PARTS, Layer, View
from vieval_plugin.backends.weights import Origin
from vieval_plugin.errors import VievalError
from vieval_plugin.text.untrusted import path_of

WEIGHTS = Path(__file__).with_name("vieval_small.safetensors")
"""The weights that are shipped."""


@dataclass(frozen=True)
class TrainedPart:
    """A network's weights, its words as numbers, and the sizes of the groups of facts that it learnt beside scores."""

    layer: Layer
    words: Mapping[str, int]
    facts: Sequence[int]


@dataclass(frozen=True)
class SmallJudge:
    """The loaded networks by part."""

    by: str
    identity: str
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
            for name in opened.keys():  # noqa: SIM118
                part, _, below = name.partition(".")
                layers[part][below] = opened.get_tensor(name).astype(np.float32)
        parts = {
            part: TrainedPart(
                layer, {word: n for n, word in enumerate(description[part]["words"], 2)}, description[part]["facts"]
            )
            for part, layer in layers.items()
        }
    except FileNotFoundError:
        raise VievalError(f"{path}: no such file of weights") from None
    except Exception as error:  # of a file that anyone may have written
        raise VievalError(f"{path} is no file of vieval_small's weights ({type(error).__name__})") from None
    network = SmallJudge(f"{path.stem}@sha256:{digest[:16]}, trained on its own drawings only", digest, parts)
    try:
        _try_all(network)
    except (LookupError, TypeError, ValueError):
        raise VievalError(
            f"{path} holds no weights of vieval_small as this version has it; install VIEval anew"
        ) from None
    return network


def _try_all(network: SmallJudge) -> None:
    """Score black pictures of each kind, for which all weights have to be there and of the right shapes."""
    black = np.zeros((views.SIDE, views.SIDE, 1), np.uint8)
    none = np.zeros(views.LENGTH, int)
    for kind, roles in views.CONDITIONS.items():
        condition = np.repeat(black, sum(channels for _, channels in roles), -1)
        sample = {"output": np.repeat(black, 3, -1), "condition": condition, "words": none, "mirrored": none}
        vieval_small_sc(network, {role: [array] for role, array in {**sample, "kind": kind}.items()})
    vieval_small_pq(network, {"full": [np.zeros((views.FULL, views.FULL, 3), np.uint8)]})


def show_consistency(network: SmallJudge, images: Mapping[str, Picture], texts: Mapping[str, str]) -> NetworkInputs:
    """Output and conditions at 96 pixels, and the words; `texts` has the sample's kind as `kind`."""
    kind = texts["kind"]
    known = network.parts[_part_of(kind)].words
    words = views.words(kind, texts)
    return NetworkInputs(
        {
            "output": views.small(images["output"]),
            "condition": views.conditions(kind, images),
            "words": np.array(views.numbered(words, known)),
            "mirrored": np.array(views.numbered(views.mirrored(words), known)),
            "kind": kind,
        }
    )


def show_quality(network: SmallJudge, images: Mapping[str, Picture], texts: Mapping[str, str]) -> NetworkInputs:
    """The output at 256 pixels."""
    return NetworkInputs({"full": views.full(images["output"])})


def vieval_small_sc(network: SmallJudge, batch: Mapping[str, Sequence[Any]]) -> Any:
    """Semantic consistency of an output, in [0, 1]: 1 less the strength of its defect, as a drawing's would be."""
    scores = np.empty(len(batch["kind"]), np.float32)
    for kind in sorted(set(batch["kind"])):
        rows = [row for row, other in enumerate(batch["kind"]) if other == kind]
        output, condition, words, mirrored = (
            np.stack([batch[role][row] for row in rows]) for role in ("output", "condition", "words", "mirrored")
        )
        plain = {"output": _floats(output), "condition": _floats(condition), "words": words}
        flipped = {role: plain[role][:, :, ::-1] for role in ("output", "condition")} | {"words": mirrored}
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


def _score(network: SmallJudge, part: str, kind: str, views_of_it: Sequence[View]) -> Any:
    """The mean of a part's scores for samples as they are and mirrored, which are as good."""
    compute, of_part = PARTS[part][0], network.parts[part]
    # matrices this small are multiplied no faster by several threads, and forty times slower where processors are busy
    with threadpool_limits(1, "blas"):
        return sum(compute(of_part.layer, of_part.facts, kind, view) for view in views_of_it) / len(views_of_it)


METRICS = (
    NetworkMetric("vieval_small_sc", load, "", show_consistency, vieval_small_sc),
    NetworkMetric("vieval_small_pq", load, "", show_quality, vieval_small_pq),
)
