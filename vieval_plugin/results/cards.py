"""Cards of trained models: which samples they were trained on, and which verdicts are on such samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.records import Provenance, Record
from vieval_plugin.yaml_json import read_json

CARD = "card.json"
"""What the card in a model's folder is called."""


def trained_on(card: Path) -> frozenset[str]:
    """The uids of what a model learnt from.

    Args:
        card: a folder that `vieval train` wrote, or the card in it.

    Raises:
        VievalError: there is no card, or what is there is none.
    """
    file = card / CARD if card.is_dir() else card
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
    """The cards in those folders that the options of a run name and that are on this machine."""
    return [Path(text) / CARD for text in _texts(source.options) if (Path(text).expanduser() / CARD).is_file()]


def was_trained_on(record: Record, uids: frozenset[str]) -> bool:
    """Whether a record is of a sample, or of its group, that is among the uids; of a contest, any candidate's."""
    names = [str(record.id), record.group, *map(str, record.candidates)]
    return not uids.isdisjoint(names)


def _texts(value: Any) -> Iterator[str]:
    held: Sequence[Any] = []
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        held = list(value.values())
    elif isinstance(value, (list, tuple)):
        held = value
    for one in held:
        yield from _texts(one)
