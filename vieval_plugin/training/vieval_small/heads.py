"""A second stage of training: the heads of a part alone, on features that no longer change, over and over.

It costs a fiftieth of a step of the whole network, and heads are what is last to be learnt.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vieval_plugin.training.vieval_small.learn import Drawings, agreement, build, joined, samples_of
from vieval_plugin.training.vieval_small.pieces import Piece

PASSES, STEPS, BATCH = 4, 1000, 256
"""How often each instruction is looked at, with one of its outputs each time; steps; samples in a step."""


def refine(
    part: str, pieces: Mapping[str, Sequence[Piece]], held_back: Mapping[str, Sequence[Piece]], states: Path
) -> None:
    """Train the heads of a part whose steps are done, and write those that agree better into its state, once.

    Args:
        part: a part of consistency.
        pieces: what is trained on, by kind, and `held_back` what the learning curve is of.
        states: the folder of the state.
    """
    kept = states / f"{part}.pt"
    state = torch.load(kept, weights_only=True)
    if state.get("refined"):
        return
    torch.set_num_threads(1)
    torch.manual_seed(0)
    words = json.loads(state["words"])
    known = {word: number for number, word in enumerate(words, start=2)}
    network = build(part, len(known) + 2)
    network.load_state_dict(state["network"])
    checked = {kind: joined(several, known) for kind, several in held_back.items()}
    before = agreement(part, network, checked)
    for kinds in _sharing_a_head(network, list(pieces)):
        head = _head_of(network, kinds[0])
        as_it_was = {name: tensor.clone() for name, tensor in head.state_dict().items()}
        seen = [_features(network, kind, joined(pieces[kind], known)) for kind in kinds]
        _fit(head, *(torch.cat(some) for some in zip(*seen, strict=True)))
        # few instructions can be learnt by heart, which the validation set tells
        now = agreement(part, network, {kind: checked[kind] for kind in kinds})
        if sum(now.values()) <= sum(before[kind] for kind in kinds):
            head.load_state_dict(as_it_was)
    curve = [*json.loads(state["curve"]), {"step": "heads", **agreement(part, network, checked)}]
    written = kept.with_suffix(".part")
    torch.save({**state, "network": network.state_dict(), "curve": json.dumps(curve), "refined": True}, written)
    written.replace(kept)


def _sharing_a_head(network: Any, kinds: Sequence[str]) -> list[list[str]]:
    return [[kind] for kind in kinds] if hasattr(network, "heads") else [list(kinds)]


def _head_of(network: Any, kind: str) -> nn.Sequential:
    found: nn.Sequential = network.heads[kind] if hasattr(network, "heads") else network.head
    return found


def _features(network: nn.Module, kind: str, held: Drawings) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the head is given, and the score and defects that it should tell."""
    network.eval()
    seen: list[Tensor] = []
    hook = _head_of(network, kind).register_forward_pre_hook(lambda _, given: seen.append(given[0].float()))
    rng = np.random.RandomState([1, zlib.crc32(kind.encode()) % 2**16])
    truths = []
    for _ in range(PASSES):
        order = rng.permutation(len(held))
        for start in range(0, len(order), 48):
            given, truth = samples_of(kind, held, order[start : start + 48], rng)
            with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
                network(kind, given)
            truths.append(truth)
    hook.remove()
    score, wrong, own = (torch.cat([truth[name] for truth in truths]) for name in ("score", "wrong", "own"))
    return torch.cat(seen).clone(), score, wrong, own


def _fit(head: nn.Sequential, features: Tensor, score: Tensor, wrong: Tensor, own: Tensor) -> None:
    """A head from its weights as they are, on features made comparable for the while and then folded back."""
    mean, spread = features.mean(0), features.std(0) + 1e-2
    first = head[0]
    assert isinstance(first, nn.Linear)
    with torch.no_grad():
        first.bias.add_(first.weight @ mean)
        first.weight.mul_(spread)
    scaled = (features - mean) / spread
    optimiser = torch.optim.AdamW(head.parameters(), 1e-3, weight_decay=0.05)
    rng = np.random.RandomState(2)
    for step in range(STEPS):
        optimiser.param_groups[0]["lr"] = 1e-3 * 0.5 * (1 + float(np.cos(np.pi * step / STEPS)))
        rows = torch.from_numpy(rng.randint(0, len(score), BATCH))
        told = head(F.dropout(scaled[rows], 0.3))
        loss = F.binary_cross_entropy_with_logits(told[:, 0], score[rows])
        more = F.binary_cross_entropy_with_logits(told[:, 1:], wrong[rows], reduction="none").sum(1)
        optimiser.zero_grad()
        (loss + 0.1 * (more * own[rows]).mean()).backward()
        optimiser.step()
    with torch.no_grad():
        first.weight.div_(spread)
        first.bias.sub_(first.weight @ mean)
