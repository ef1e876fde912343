"""The trained parts as one file of weights: matrices in eight bits with a scale a row, the rest in 16-bit floats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from bench.vieval_small.learn import defects_of
from bench.vieval_small.losses import FACTS
from bench.vieval_small.network import PARTS
from vieval_plugin.backends.metrics.networks.vieval_small import SCALE


def export(states: Path, file: Path) -> dict[str, Any]:
    """Write the weights of all parts; what is returned is the learning curve of each part."""
    tensors: dict[str, Any] = {}
    told: dict[str, Any] = {}
    curves: dict[str, Any] = {}
    for part in PARTS:
        state = torch.load(states / f"{part}.pt", weights_only=True)
        for name, tensor in state["network"].items():
            tensors |= quantised(f"{part}.{name}", tensor)
        told[part] = {"words": json.loads(state["words"]), "defects": defects_of(part), "facts": FACTS[part]}
        curves[part] = json.loads(state["curve"])
    written = file.with_suffix(".part")
    save_file(tensors, written, _metadata(told))
    written.replace(file)
    return curves


def quantised(name: str, tensor: Any) -> dict[str, Any]:
    """A tensor by its name, and for a matrix of floats its scales: that of a row makes its largest weight 127."""
    if not tensor.is_floating_point() or tensor.dim() < 2:
        return {name: (tensor.half() if tensor.is_floating_point() else tensor).contiguous()}
    largest = tensor.float().abs().amax(dim=tuple(range(1, tensor.dim())), keepdim=True)
    scale = (largest / 127).clamp(min=2**-24).half()
    whole = (tensor.float() / scale.float()).round().clamp(-127, 127).to(torch.int8)
    return {name: whole.contiguous(), f"{name}{SCALE}": scale.contiguous()}


def _metadata(told: Mapping[str, Any]) -> dict[str, str]:
    return {"parts": json.dumps(told), "trained": "on drawings of VIEval only"}
