"""The trained parts as one file of weights, in 16-bit floats."""

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


def export(states: Path, file: Path) -> dict[str, Any]:
    """Write the weights of all parts; what is returned is the learning curve of each part."""
    tensors: dict[str, Any] = {}
    told: dict[str, Any] = {}
    curves: dict[str, Any] = {}
    for part in PARTS:
        state = torch.load(states / f"{part}.pt", weights_only=True)
        for name, tensor in state["network"].items():
            found = tensor.half() if tensor.is_floating_point() else tensor
            tensors[f"{part}.{name}"] = found.contiguous()
        told[part] = {"words": json.loads(state["words"]), "defects": defects_of(part), "facts": FACTS[part]}
        curves[part] = json.loads(state["curve"])
    written = file.with_suffix(".part")
    save_file(tensors, written, _metadata(told))
    written.replace(file)
    return curves


def _metadata(told: Mapping[str, Any]) -> dict[str, str]:
    return {"parts": json.dumps(told), "trained": "on drawings of VIEval only"}
