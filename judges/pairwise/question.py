"""Question about a contest: its conditions once, and each candidate under a letter, in one order or
the other.

A template says where pictures stand, so that a model sees which frames belong to which candidate.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from vieval_plugin.judges.contests import REVERSE, Contest
from vieval_plugin.judges.protocol import Image, Message, Sample, outputs
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.text.errors import VievalError

#: What is asked for: a word of one of the schemes, a ranking, or a letter alone.
Form: TypeAlias = Literal["four_way", "two_way", "ranking", "letter"]

LETTERS = string.ascii_uppercase

# what Unicode has where an object stands in a text
_OBJECT = "\ufffc"
_MEDIA = {"output": "picture", "frame_": "video", "view_": "3D object"}


def presentation_order(order: str, number: int) -> tuple[int, ...]:
    """Candidates by place, each by its number from 1; the letters go by place.

    >>> presentation_order("forward", 3), presentation_order("reverse", 3)
    ((1, 2, 3), (3, 2, 1))
    """
    numbers = tuple(range(1, number + 1))
    return numbers[::-1] if order == REVERSE else numbers


def _medium(candidate: Sample) -> str:
    first_role = outputs(candidate)[0][0]
    return next(
        medium for prefix, medium in _MEDIA.items() if first_role.startswith(prefix)
    )


def message(contest: Contest, order: str, form: Form, wording: Pack) -> Message:
    """The question about a contest, with every picture where the template has its place.

    The template has the texts of the contest and

    - `form`: what is asked for;
    - `medium`: picture, video or 3D object;
    - `places`: by role, where a picture of the conditions stands; the roles are those of the
      manifest;
    - `candidates`, in the order shown: each with its `name` (a letter), its `place`, and how many
      `pictures` it has.

    Raises:
        VievalError: the template does not show everything exactly once.
    """
    question = wording.questions[contest.kind]
    conditions = contest.candidates[0]
    pictures: dict[str, Sequence[Image]] = {
        role: (conditions.images[role],) for role in question.images
    }
    candidates = []
    for letter, number in zip(
        LETTERS, presentation_order(order, len(contest.candidates)), strict=False
    ):
        pictures[letter] = [
            image for _, image in outputs(contest.candidates[number - 1])
        ]
        candidates.append(
            {
                "name": letter,
                "place": _marker(letter),
                "pictures": len(pictures[letter]),
            }
        )
    variables = {
        # a text must not pass for a picture
        **{name: text.replace(_OBJECT, "") for name, text in conditions.texts.items()},
        "form": form,
        "medium": _medium(conditions),
        "places": {role: _marker(role) for role in question.images},
        "candidates": candidates,
    }
    pieces = re.split(
        f"{_OBJECT}(.*?){_OBJECT}", wording.render(question.template, variables)
    )
    placed = pieces[1::2]
    if sorted(placed) != sorted(pictures):
        raise VievalError(
            f"prompt pack {wording.name}, template {question.template}: must have one "
            f"place for each of {', '.join(pictures)}, got "
            f"{', '.join(placed) or 'none'}"
        )
    return Message("user", tuple(_parts(pieces, pictures)))


def _marker(name: str) -> str:
    return f"{_OBJECT}{name}{_OBJECT}"


def _parts(
    pieces: Sequence[str], pictures: Mapping[str, Sequence[Image]]
) -> Iterator[str | Image]:
    """Texts and pictures in turn; servers refuse a text of nothing."""
    for turn, piece in enumerate(pieces):
        if turn % 2:
            yield from pictures[piece]
        elif piece.strip():
            yield piece
