"""The networks of the judge `vieval_small`, whose weights lie in the package: consistency and quality of drawings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vieval_plugin.backends.metrics import vieval_small_views as views
from vieval_plugin.backends.metrics.network_metrics import NetworkInputs, NetworkMetric, Picture
from vieval_plugin.backends.weights import Origin, device, identity, library, state_dict
from vieval_plugin.errors import VievalError
from vieval_plugin.text.untrusted import path_of

WEIGHTS = Path(__file__).with_name("vieval_small.safetensors")
"""The weights that are shipped."""


@dataclass(frozen=True)
class SmallJudge:
    """The loaded networks by part, and for each part its words as numbers."""

    by: str
    identity: str
    parts: Any
    words: Mapping[str, Mapping[str, int]]
    device: Any

    def part_of(self, kind: str) -> str:
        """The part that scores the consistency of a kind."""
        kinds = library("vieval_plugin.backends.metrics.vieval_small_network").PARTS
        part_name: str = next(part for part, (_, scored) in kinds.items() if kind in scored)
        return part_name


def load(origin: Origin) -> SmallJudge:
    """The networks, of the shipped weights or of a file that `make train-small` wrote.

    Raises:
        VievalError: the file is not there, is damaged, or holds something else.
    """
    if origin.revision:
        raise VievalError(f"revision {origin.revision}: these weights are a file, which has none")
    path = path_of(origin.model) if origin.model else WEIGHTS
    tensors, description = state_dict(path), _description(path)
    torch, network = library("torch"), library("vieval_plugin.backends.metrics.vieval_small_network")
    try:
        parts = torch.nn.ModuleDict(
            {
                part: network.PARTS[part][0](len(settings["words"]) + 2, settings["defects"], settings["facts"])
                for part, settings in description.items()
            }
        )
        parts.load_state_dict(
            {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
        )
    except (LookupError, TypeError, ValueError, RuntimeError):
        raise VievalError(
            f"{path} holds no weights of vieval_small as this version has it; install VIEval anew"
        ) from None
    parts = parts.to(device(origin.device)).eval()
    digest = identity(parts, json.dumps(description, sort_keys=True))
    words = {
        part: {word: n for n, word in enumerate(settings["words"], start=2)} for part, settings in description.items()
    }
    by = f"{path.stem}@sha256:{digest[:16]}, trained on drawings only"
    return SmallJudge(by, digest, parts, words, next(parts.parameters()).device)


def _description(path: Path) -> dict[str, Any]:
    """The description of a file's parts: words, and how many numbers each gives."""
    try:
        with library("safetensors").safe_open(path, "np") as opened:
            description = json.loads((opened.metadata() or {})["parts"])
    except Exception as error:  # of a file that anyone may have written
        raise VievalError(f"{path} is no file of vieval_small's weights ({type(error).__name__})") from None
    return dict(description)


def show_consistency(network: SmallJudge, images: Mapping[str, Picture], texts: Mapping[str, str]) -> NetworkInputs:
    """Output and conditions at 96 pixels, and the words; `texts` has the sample's kind as `kind`."""
    kind = texts["kind"]
    known = network.words[network.part_of(kind)]
    words = views.words(kind, texts)
    return NetworkInputs(
        {
            "output": _tensor(views.small(images["output"])),
            "condition": _tensor(views.conditions(kind, images)),
            "words": library("torch").tensor(views.numbered(words, known)),
            "mirrored": library("torch").tensor(views.numbered(views.mirrored(words), known)),
            "kind": library("torch").tensor(views.KINDS.index(kind)),
        }
    )


def show_quality(network: SmallJudge, images: Mapping[str, Picture], texts: Mapping[str, str]) -> NetworkInputs:
    """The output at 256 pixels."""
    return NetworkInputs({"full": _tensor(views.full(images["output"]))})


def _tensor(pixels: Any) -> Any:
    return library("torch").from_numpy(np.array(pixels)).permute(2, 0, 1)


def vieval_small_sc(network: SmallJudge, batch: Mapping[str, Sequence[Any]]) -> Any:
    """Semantic consistency of an output, in [0, 1]: 1 less the strength of its defect, as a drawing's would be."""
    torch = library("torch")
    kinds = [int(kind) for kind in batch["kind"]]
    scores = torch.empty(len(kinds))
    for kind in sorted(set(kinds)):
        rows = [row for row, other in enumerate(kinds) if other == kind]
        stacked = {
            role: torch.stack([batch[role][row] for row in rows]).to(network.device)
            for role in ("output", "condition", "words", "mirrored")
        }
        plain = {"output": stacked["output"] / 255, "condition": stacked["condition"] / 255, "words": stacked["words"]}
        flipped = {role: plain[role].flip(3) for role in ("output", "condition")} | {"words": stacked["mirrored"]}
        scores[rows] = _scored(network, network.part_of(views.KINDS[kind]), views.KINDS[kind], (plain, flipped))
    return scores


def vieval_small_pq(network: SmallJudge, batch: Mapping[str, Sequence[Any]]) -> Any:
    """Perceptual quality of an output, in [0, 1]: 1 less the strength of its defect, as a drawing's would be."""
    pictures = library("torch").stack(list(batch["full"])).to(network.device) / 255
    return _scored(network, "quality", "", ({"full": pictures}, {"full": pictures.flip(3)}))


def _scored(network: SmallJudge, part: str, name: str, views_of_it: Sequence[Mapping[str, Any]]) -> Any:
    """The mean of a part's scores for samples as they are and mirrored, which are as good."""
    scores = [network.parts[part]({name: view})[name]["score"].sigmoid() for view in views_of_it]
    return (sum(scores) / len(scores)).cpu()


METRICS = (
    NetworkMetric("vieval_small_sc", load, "", show_consistency, vieval_small_sc),
    NetworkMetric("vieval_small_pq", load, "", show_quality, vieval_small_pq),
)
