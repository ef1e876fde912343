"""What the parts of `vieval_small` learn beside the score, and how far what they tell is from the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from bench.vieval_small.pieces import LOOKS
from bench.vieval_small.world import TRAINED
from vieval_plugin.benchmarks.vieval_demo.drawing import HUES

_THINGS = (len(HUES), 3, len(TRAINED.things))
_TOYS = (len(TRAINED.animals), len(TRAINED.patterns), len(TRAINED.garments), 9)
FACTS: dict[str, tuple[int, ...]] = {
    "generation": _THINGS,
    "edits": _THINGS,
    "subjects": _TOYS,
    "control": (),
    "quality": (),
}
"""What each part learns beside: of things how many of each hue there are, their colours, and which they are; of toys
which animal, belly and garment, and three colours."""
# how much what is asked for and what is shown count beside the score: counting is only these
_WEIGHTS = {"generation": {"asked": 8.0, "shown": 8.0}}
_USUAL = {"asked": 0.5, "shown": 1.0}


def placed(things: Any, side: int = 12) -> Any:
    """What is where: (n, 1 + hues + colours + things, side, side), each thing shared out among the four nearest places.

    The first is how much of a thing is at a place, by which all but the hues are multiplied; the hues are also by opacity.
    """
    number, opacity = len(things), things[..., 2:3]
    which = np.eye(_THINGS[2], dtype=np.float32)[things[..., -1].astype(int)]
    hues = things[..., 6:-1] * opacity
    told = np.concatenate([np.ones_like(opacity), hues, things[..., 3:6], which], -1)
    placed = np.zeros((number, side, side, told.shape[-1]), np.float32)
    at = np.clip(things[..., :2] * side - 0.5, 0, side - 1.001)
    first, share = at.astype(int), at % 1
    rows = np.arange(number)[:, None]
    for right in (0, 1):
        for down in (0, 1):
            x, y = (share[..., i] if step else 1 - share[..., i] for i, step in enumerate((right, down)))
            weight = (x * y * (things[..., 3:6].sum(-1) > 0))[..., None]  # no thing is black, and no row is none
            np.add.at(placed, (rows, first[..., 1] + down, first[..., 0] + right), told * weight)
    return np.ascontiguousarray(placed.transpose(0, 3, 1, 2))


def loss_of(part: str, told: Mapping[str, Tensor], truth: Mapping[str, Tensor]) -> Tensor:
    """The mean loss over the samples of a kind: of the score, which defect there is, and what is asked for, shown and where.

    What is told of samples whose inputs are another's (`own` 0) counts for the score only.
    """
    own = truth["own"]
    if part == "quality":  # the median of what may be, and not the mean: what shows no defect has most often none.
        # Three times, since its slope is that of a sigmoid, which cross entropy's is not
        loss = 3 * F.l1_loss(told["score"].sigmoid(), truth["score"])
    else:
        loss = F.binary_cross_entropy_with_logits(told["score"], truth["score"])
    wrong = F.binary_cross_entropy_with_logits(told["wrong"], truth["wrong"], reduction="none").sum(1)
    loss = loss + 0.2 * (wrong * own).mean()
    for name, weight in _WEIGHTS.get(part, _USUAL).items():
        if name in told:
            away = _of_toys if part == "subjects" else _of_hues
            loss = loss + weight * (away(told[name], truth[name]) * own).mean()
    if "places" in told:
        loss = loss + 0.5 * (_of_places(told["places"], truth["places"]) * own).mean()
    return loss


def _of_hues(told: Tensor, truth: Tensor) -> Tensor:
    return (told - truth).square().sum(1)


def _of_toys(told: Tensor, truth: Tensor) -> Tensor:
    """How far toys are from those that there are: one of each group, and colours."""
    away = torch.zeros(len(told))
    for toy, true in zip(torch.split(told, LOOKS, 1), torch.split(truth, LOOKS, 1), strict=True):
        *features, colours = zip(torch.split(toy, [*_TOYS], 1), torch.split(true, [*_TOYS], 1), strict=True)
        away = away + 4 * (colours[0] - colours[1]).square().sum(1)
        for one, other in features:
            away = away + 0.2 * F.cross_entropy(one, other, reduction="none")
    return away


def _of_places(told: Tensor, truth: Tensor) -> Tensor:
    """How far what is told of the places is from what is there: hues, and where there are things their colours and which."""
    there, hues, colours, things = torch.split(truth, [1, *_THINGS], 1)
    as_hues, as_colours, as_things = torch.split(told, [*_THINGS], 1)
    away = (F.softplus(as_hues - 3) - hues).square().sum((1, 2, 3))
    away = away + (as_colours * there - colours).square().sum((1, 2, 3))
    return away - 0.1 * (things * as_things.log_softmax(1)).sum((1, 2, 3))
