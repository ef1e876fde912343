"""Cards of trained models: which samples they were trained on, and which verdicts are on such samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vieval_plugin.errors import VievalError
from vieval_plugin.records import Provenance, Record
from vieval_plugin.text.untrusted import isdir, isfile, path_of
from vieval_plugin.text.yaml_json import read_json

CARD = "card.json"
"""What the card in a model's folder is called."""


def trained_on(card: Path) -> frozenset[str]:
    """The uids of what a model learnt from.

    Args:
        card: a folder that `vieval train` wrote, or the card in it.

    Raises:
        VievalError: there is no card, or what is there is none.
    """
    file = card / CARD if isdir(card) else card
    try:
        uids = read_json(file.read_bytes())["uids"]
        if not isinstance(uids, list) or not all(isinstance(uid, str) for uid in uids):
            raise ValueError("uids is no list of texts")
    except OSError as error:
        raise VievalError(f"{file}: the card cannot be read ({error.strerror}); `vieval train` writes one") from None
    except (ValueError, KeyError, TypeError) as error:
        raise VievalError(f"{file}: no card of a trained model ({' '.join(str(error).split())[:100]})") from None
    return frozenset(uids)


def own_cards(source: Provenance) -> list[Path]:
    """The cards in the folders of models that the options of a run name, as far as they are on this machine."""
    parts = [source.options.get(part) for part in ("backbones", "scorers")]
    models = [
        model for part in parts if isinstance(part, Mapping) for model in part.values() if isinstance(model, Mapping)
    ]
    cards = [path_of(str(model["model"])) / CARD for model in models if model.get("model")]
    files = source.options.get("judge_files")
    cards += [path_of(str(file)).parent / CARD for file in files] if isinstance(files, list) else []
    return [card for card in cards if isfile(card)]


def was_trained_on(record: Record, uids: frozenset[str]) -> bool:
    """Tell whether a record's sample or its group is among the uids; of a contest, any candidate's."""
    names = [str(record.id), record.group, *map(str, record.candidates)]
    return not uids.isdisjoint(names)
