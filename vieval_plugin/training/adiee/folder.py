"""What a training leaves: the model, its head, the description that a scorer is loaded by, and a card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vieval_plugin.backends.weights import library
from vieval_plugin.training.adiee.held_out import Figures
from vieval_plugin.training.adiee.labels import LabelledEdit
from vieval_plugin.training.adiee.loop import Curve
from vieval_plugin.training.adiee.network import Trained, merged
from vieval_plugin.training.adiee.recipe import Recipe
from vieval_plugin.training.card import write_card

HEAD = "head.safetensors"


def write(folder: Path, trained: Trained) -> None:
    """Write model, processor and head; of adapters, the model with them in it."""
    network = merged(trained.network)
    network.save_pretrained(folder)
    trained.processor.save_pretrained(folder)
    if trained.head is not None:
        held = {name: tensor.detach().contiguous().cpu() for name, tensor in trained.head.state_dict().items()}
        library("safetensors.torch").save_file(held, folder / HEAD)


def card(
    folder: Path,
    recipe: Recipe,
    manifest: Mapping[str, Any],
    parts: tuple[Sequence[LabelledEdit], Sequence[LabelledEdit]],
    curves: Sequence[Curve],
    figures: Figures | None,
) -> None:
    """Write the card: data and licences, the recipe with its seed, which groups were learnt and which held out, curves."""
    learnt, held_out = parts
    told = {
        "recipe": asdict(recipe),
        "data": manifest["data"],
        "data_seed": manifest["seed"],
        "edits": {"learnt": len(learnt), "held_out": len(held_out)},
        "uids": list(dict.fromkeys(edit.group for edit in learnt)),
        "held_out_uids": list(dict.fromkeys(edit.group for edit in held_out)),
        "curves": [asdict(curve) for curve in curves],
        "held_out": asdict(figures) if figures else None,
    }
    write_card(folder, _without_nan(told))


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: what is not known is null."""
    if isinstance(value, dict):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value
