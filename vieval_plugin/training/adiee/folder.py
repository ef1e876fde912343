"""Results of a training: the model, its head, the description from which a scorer is
loaded, and a training record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from vieval_plugin.backends.weights import identity, library
from vieval_plugin.judges.adiee.question import Form, answer_text, question_text
from vieval_plugin.media.files import write_whole
from vieval_plugin.prompts import packs
from vieval_plugin.text.wording import nan_to_none
from vieval_plugin.training.adiee.held_out import Figures
from vieval_plugin.training.adiee.labels import Edits
from vieval_plugin.training.adiee.loop import Curve, Recipe
from vieval_plugin.training.adiee.network import TOKEN, Trained, merged
from vieval_plugin.training.tuning import write_training_record

HEAD = "head.safetensors"


def write(folder: Path, trained: Trained, recipe: Recipe) -> None:
    """Write the model, its processor and head, and the description of the scorer;
    adapters are merged into the model.
    """
    torch = library("torch")
    network = merged(trained.network)
    # of one precision, as a scorer loads it
    types = {weight.dtype for weight in network.parameters()}
    dtype = "bfloat16" if torch.bfloat16 in types else "float32"
    network.to(getattr(torch, dtype))
    network.save_pretrained(folder)
    trained.processor.save_pretrained(folder)
    if trained.head is not None:
        tensors = {
            name: tensor.detach().contiguous().cpu()
            for name, tensor in trained.head.state_dict().items()
        }
        library("safetensors.torch").save_file(tensors, folder / HEAD)
        described = _description(folder, recipe, identity(network), dtype)
        text = yaml.safe_dump(described, sort_keys=False, allow_unicode=True)
        write_whole(folder / packs.MANIFEST, [text])


def _description(
    folder: Path,
    recipe: Recipe,
    weights: str,
    dtype: str,
) -> dict[str, Any]:
    """Describe the scorer: the first question with the first answer sentence, and a
    head that reads before the token.
    """
    wording = packs.load(recipe.pack)
    form = Form("question_1", "answer_1")
    instruction = "{{ instruction | trim }}"
    text = question_text(instruction, form, wording, recipe.images, "token")
    return {
        "name": "adiee_" + re.sub("[^a-z0-9]+", "_", folder.name.lower())[:40],
        "kinds": ["tie", "mie"],
        "questions": {
            "O": {
                "text": text,
                "images": ["source", "output"],
            }
        },
        "scale": [0.0, 1.0],
        "network": {
            "form": "value_head",
            "base": ".",
            "base_weights": weights,
            "head": HEAD,
            "position": {"before": TOKEN},
            "answer": answer_text(form.answer, TOKEN, wording),
            "dtype": dtype,
            "side_by_side": recipe.images == "joined",
        },
    }


def training_record(
    folder: Path,
    recipe: Recipe,
    manifest: Mapping[str, Any],
    parts: tuple[Edits, Edits],
    curves: Sequence[Curve],
    figures: Figures | None,
) -> None:
    """Write the training record: data and licences, the recipe with its seed, trained
    and held-out groups, and curves.
    """
    learnt, held_out = parts
    learnt_uids, held_out_uids = (
        list(dict.fromkeys(edit.group for edit in edits)) for edits in parts
    )
    record = {
        "recipe": recipe.options(),
        "data": manifest["data"],
        "data_seed": manifest["seed"],
        "edits": {"learnt": len(learnt), "held_out": len(held_out)},
        "uids": learnt_uids,
        "held_out_uids": held_out_uids,
        "curves": [asdict(curve) for curve in curves],
        "held_out": asdict(figures) if figures else None,
    }
    write_training_record(folder, _replace_nan(record))


def _replace_nan(value: Any) -> Any:
    """Replace NaN, which JSON does not have, by null."""
    if isinstance(value, dict):
        return {name: _replace_nan(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_replace_nan(member) for member in value]
    return nan_to_none(value) if isinstance(value, float) else value
