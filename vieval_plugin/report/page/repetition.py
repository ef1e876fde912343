"""Words that stand on every card of a gallery, taken off the cards to be said once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from vieval_plugin.report.page.tiles import GalleryTile


def _without_numbers(rationale: str) -> set[str]:
    """Lines of a rationale, that on a contest without the numbers of its candidates."""
    return {re.sub(r"^\d+: ", "", line) for line in rationale.split("\n")}


def said_once(tiles: Sequence[GalleryTile]) -> tuple[list[GalleryTile], list[str]]:
    """Tiles without the note, and without the rationale of a judge, that all of them have; and these as sentences.

    >>> said_once([])
    ([], [])
    """
    notes = {tile.note for tile in tiles}
    rationales: dict[str, set[str]] = {}
    for verdict in (verdict for tile in tiles for verdict in tile.verdicts):
        rationales.setdefault(verdict.judge, set()).update(_without_numbers(verdict.rationale))
    repeated = {judge: next(iter(texts)) for judge, texts in rationales.items() if len(texts) == 1 and texts != {""}}
    if len(tiles) < 2:
        return list(tiles), []
    note = notes.pop() if len(notes) == 1 else ""
    trimmed = [
        replace(
            tile,
            note="" if note else tile.note,
            verdicts=tuple(replace(v, rationale="") if v.judge in repeated else v for v in tile.verdicts),
        )
        for tile in tiles
    ]
    return trimmed, [*([note] if note else []), *(f"{judge} says of each: {text}" for judge, text in repeated.items())]
