"""The card of a trained model: what it was made of, so that a report can say where it had seen what it judged."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vieval_plugin.media.files import write_whole
from vieval_plugin.results.training_records import CARD

_PACKAGES = ("vieval", "torch", "transformers", "peft", "accelerate", "trl")


def write_card(folder: Path, told: Mapping[str, Any]) -> None:
    """Write the card into a model's folder, with the versions of what trained it; VievalError where that cannot be done."""
    document = {**told, "versions": {name: version for name in _PACKAGES if (version := _version(name))}}
    write_whole(folder / CARD, [json.dumps(document, indent=1, ensure_ascii=False)])


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
