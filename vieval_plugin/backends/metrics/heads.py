"""Heads: the few layers that turn a vector of a network into a number, read from weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from vieval_plugin.backends.weights import library, state_dict
from vieval_plugin.errors import VievalError

ACTIVATIONS = {"relu": "ReLU", "gelu": "GELU", "tanh": "Tanh", "silu": "SiLU", "none": "Identity"}
"""What may stand between two linear layers, by the name that descriptions use."""


def load_head(path: Path, prefix: str, activation: str, size: int) -> Any:
    """A head of linear layers with an activation between each two, their number and shapes as in the weights.

    Args:
        path: safetensors or a state dict, which may hold other weights too.
        prefix: what the head's names begin with, empty where the file holds the head alone.
        activation: one of `ACTIVATIONS`.
        size: how long the vectors are that it is given.

    Returns:
        A module from vectors (n, size) to numbers (n, outputs).

    Raises:
        VievalError: the weights are not there, hold more than tensors, or are no chain of linear layers from `size` on.
    """
    torch = library("torch")
    start = f"{prefix}." if prefix else ""
    found = {name[len(start) :]: tensor for name, tensor in state_dict(path, start).items()}
    if not found:
        raise VievalError(f"{path} holds no weights under {prefix!r} (network.prefix)")
    strays = sorted(name for name in found if name.rpartition(".")[2] not in ("weight", "bias"))
    if strays:
        raise VievalError(f"{path}: {strays[0]} belongs to no linear layer; name the head by network.prefix")
    layers: list[Any] = []
    for name in sorted((name for name in found if name.endswith("weight")), key=_natural):
        weight, bias = found[name], found.pop(f"{name[: -len('weight')]}bias", None)
        if weight.dim() != 2 or weight.shape[1] != size or (bias is not None and bias.shape != weight.shape[:1]):
            raise VievalError(
                f"{path}: {name} of shape {tuple(weight.shape)} does not follow on vectors of {size}; the head of another "
                "network, or no chain of linear layers"
            )
        linear = torch.nn.Linear(size, weight.shape[0], bias=bias is not None)
        linear.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
        layers += [linear, getattr(torch.nn, ACTIVATIONS[activation])()]
        size = weight.shape[0]
    if stray := next((name for name in found if name.endswith("bias")), ""):
        raise VievalError(f"{path}: {stray} has no weight beside it")
    return torch.nn.Sequential(*layers[:-1]).float().eval()


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Layers in the order of their numbers: 2 before 10, and numbers before names."""
    return [(not part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"[._]", name)]
