"""What a generator is asked for, and what it answers with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.judges.protocol import Sample


@dataclass(frozen=True)
class Wanted:
    """`images` images under these conditions, `prompt` being the words for it.

    `turn` numbers the times that the same was asked before, so that the first image is number `turn * images`.
    """

    conditions: Sample
    prompt: str
    images: int = 1
    turn: int = 0

    @property
    def draws(self) -> range:
        """The numbers of the images wanted."""
        return range(self.turn * self.images, (self.turn + 1) * self.images)


def answer_json(images: Sequence[Path], text: str = "", seconds: float | None = None) -> str:
    """An answer in the form of a host: the files, a text where there is none, and the seconds that making them took.

    >>> answer_json([Path("a.png")], seconds=1.5)
    '{"text": "", "images": ["a.png"], "seconds": 1.5}'
    """
    told = {} if seconds is None else {"seconds": seconds}
    return json.dumps({"text": text, "images": [str(path) for path in images], **told})
