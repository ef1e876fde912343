"""Question about a contest: its conditions once, and each candidate under a letter, in one order or
the other.

A template says where pictures stand, so that a model sees which frames belong to which candidate.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from vieval_plugin.judges.contests import REVERSE, Contest
from vieval_plugin.judges.protocol import Image, Message, Sample, outputs
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.text.errors import VievalError

#: What is asked for: a word of one of the schemes, a ranking, or a letter alone.
Form: TypeAlias = Literal["four_way", "two_way", "ranking", "letter"]

LETTERS = string.ascii_uppercase

# what Unicode has where an object stands in a text
_OBJECT = "\ufffc"
_MEDIA = {
    "output": "picture",
    "frame_": "video",
    "view_": "3D object",
}


def presentation_order(order: str, number: int) -> tuple[int, ...]:
    """Candidates by place, each by its number from 1; the letters go by place.

    >>> presentation_order("forward", 3), presentation_order("reverse", 3)
    ((1, 2, 3), (3, 2, 1))
    """
    numbers = tuple(range(1, number + 1))
    return numbers[::-1] if order == REVERSE else numbers


def _medium(candidate: Sample) -> str:
    first_role, _ = outputs(candidate)[0]
    prefix = next(filter(first_role.startswith, _MEDIA))
    return _MEDIA[prefix]


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
    candidates: list[dict[str, Any]] = []
    numbers = presentation_order(order, len(contest.candidates))
    for letter, number in zip(LETTERS, numbers, strict=False):
        candidate = contest.candidates[number - 1]
        images = [image for _, image in outputs(candidate)]
        pictures[letter] = images
        candidates.append(
            {
                "name": letter,
                "place": _marker(letter),
                "pictures": len(images),
            }
        )
    variables: dict[str, Any] = {}
    for name, text in conditions.texts.items():
        # a text must not pass for a picture
        variables[name] = text.replace(_OBJECT, "")
    variables["form"] = form
    variables["medium"] = _medium(conditions)
    variables["places"] = {role: _marker(role) for role in question.images}
    variables["candidates"] = candidates
    rendered = wording.render(question.template, variables)
    template = f"prompt pack {wording.name}, template {question.template}"
    pieces = _split_at_places(rendered, pictures, template)
    return Message("user", tuple(_parts(pieces, pictures)))


def _split_at_places(
    rendered: str, pictures: Collection[str], template: str
) -> list[str]:
    """Texts and roles in turn; raises VievalError unless each role has one place."""
    pieces = re.split(f"{_OBJECT}(.*?){_OBJECT}", rendered)
    placed = pieces[1::2]
    if sorted(placed) != sorted(pictures):
        needed = ", ".join(pictures)
        got = ", ".join(placed) or "none"
        raise VievalError(
            f"{template}: must contain each of {needed} exactly once, got {got}"
        )
    return pieces


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
