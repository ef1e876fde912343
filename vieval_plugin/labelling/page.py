"""The labelling page: one HTML file that contains everything, loads no resources and
shows no model names.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup
from tqdm import tqdm

from vieval_plugin import images
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import Image, Sample
from vieval_plugin.labelling.choice import swapped
from vieval_plugin.labelling.questions import (
    QUESTIONS,
    RATINGS,
    TASKS,
    PageQuestion,
    vote,
)
from vieval_plugin.labelling.sources import ToLabel
from vieval_plugin.media.thumbnails import encoded
from vieval_plugin.records import fingerprint
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.html_page import policy, style_sheet, template

#: Size in bytes from which a page warns that it may be slow.
LARGE = 64 << 20

_HOME = Path(__file__).parent
_SIDE = 768
_QUALITY = 90
_OUTPUT_ROLE_PREFIXES = (
    "output",
    "frame_",
    "view_",
)  # the roles of what an image model made begin so


@dataclass(frozen=True)
class LabelPicture:
    """Image on the page."""

    #: Role of the image.
    role: str
    #: Number among the embedded images.
    number: int


@dataclass(frozen=True)
class LabelCard:
    """Sample or contest on the page."""

    #: Words of the task.
    task: str
    texts: tuple[tuple[str, str], ...]
    #: Images that the image model was given.
    conditions: tuple[LabelPicture, ...]
    #: Outputs of each side.
    sides: tuple[tuple[LabelPicture, ...], ...]


def label_page(to_label: Sequence[ToLabel], seed: int) -> bytes:
    """Build the page for samples or contests, in their order.

    The models' names are in the page only in encoded form, for the answer file. In a
    contest, either side may be shown first; the answer file restores the order. Images
    are at most 768 pixels wide and high, and each is embedded once. Every text is
    escaped, and the page's content policy prevents the browser from loading anything
    and from running other scripts.

    Args:
        to_label: all samples, or all contests with votes of one scheme.
        seed: of the choice; the page shows it, and it also determines the sides.

    Raises:
        VievalError: a sample has no output, a contest has more than two candidates, or an image
            cannot be read; the message names the row.
    """
    sides = swapped([labelled.judged for labelled in to_label], seed)
    embedded = _Embedded()
    labelled_sides = list(zip(to_label, sides, strict=True))
    bar = tqdm(labelled_sides, desc="images", unit="sample", disable=None)
    cards = [_card(labelled, swap, embedded) for labelled, swap in bar]
    keys = [_key(labelled, swap) for labelled, swap in labelled_sides]
    questions = _questions(to_label)
    fingerprints = [fingerprint(labelled.judged) for labelled in to_label]
    identity = json.dumps([seed, keys, fingerprints])
    name = hashlib.sha256(identity.encode()).hexdigest()[:12]
    answers = {
        question.aspect: {answer.key: answer.value for answer in question.answers}
        for question in questions
    }
    script = (_HOME / "label_page.js").read_text(encoding="utf-8")
    style = style_sheet(_HOME / "label_page.css")
    page = template(_HOME / "label_page.html.jinja").render(
        name=name,
        seed=seed,
        cards=cards,
        contests=isinstance(to_label[0].judged, Contest),
        questions=questions,
        large=embedded.size > LARGE and f"{embedded.size >> 20} MB",
        script=Markup(script),
        style=Markup(style),
        policy=policy(style, script),
        data=_json(
            {
                "name": name,
                "keys": _hidden(keys),
                "answers": answers,
                "images": embedded.images,
            }
        ),
    )
    return page.encode(errors="replace")


@dataclass
class _Embedded:
    """Images of a page, each embedded once."""

    images: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Size of the embedded images in bytes."""
        return sum(map(len, self.images))

    def picture(self, role: str, image: Image) -> LabelPicture:
        digest = images.digest(image)
        if digest not in self.numbers:
            small = images.decode(image)
            file = encoded(
                small,
                _SIDE,
                "WEBP",
                quality=_QUALITY,
                icc_profile=small.info.get("icc_profile", b""),
            )
            self.numbers[digest] = len(self.images)
            self.images.append(base64.b64encode(file).decode())
        return LabelPicture(role.replace("_", " "), self.numbers[digest])


def _card(labelled: ToLabel, swap: bool, embedded: _Embedded) -> LabelCard:
    judged = labelled.judged
    samples = list(judged.candidates) if isinstance(judged, Contest) else [judged]
    if len(samples) > 2:
        raise VievalError(
            f"{labelled.where}: a contest must have two candidates, got "
            f"{len(samples)}; leave this contest out"
        )
    try:
        conditions, *_ = (
            _pictures(sample, embedded, are_outputs=False) for sample in samples
        )
        sides = [_pictures(sample, embedded, are_outputs=True) for sample in samples]
    except VievalError as error:
        raise VievalError(f"{labelled.where}: {error}") from None
    if not all(sides):
        raise VievalError(
            f"{labelled.where}: the sample has no output image; leave the sample out, "
            "or generate the image"
        )
    texts = tuple(
        (name.replace("_", " "), text) for name, text in samples[0].texts.items()
    )
    task = (TASKS if isinstance(judged, Contest) else QUESTIONS).get(judged.kind, "")
    return LabelCard(
        task=task,
        texts=texts,
        conditions=conditions,
        sides=tuple(reversed(sides) if swap else sides),
    )


def _pictures(
    sample: Sample, embedded: _Embedded, are_outputs: bool
) -> tuple[LabelPicture, ...]:
    """Images that an image model made, or those that it was given."""
    roles = sample.images.items()
    return tuple(
        embedded.picture(role, image)
        for role, image in roles
        if role.startswith(_OUTPUT_ROLE_PREFIXES) is are_outputs
    )


def _key(labelled: ToLabel, swap: bool) -> list[Any]:
    """Identity of a sample or contest in the answer file's columns, and whether its
    sides are swapped.
    """
    identity = labelled.judged.id
    contest = isinstance(labelled.judged, Contest)
    return [
        identity.benchmark,
        identity.part,
        identity.uid,
        identity.image_model,
        "" if contest else identity.draw,
        contest and swap,
    ]


def _questions(to_label: Sequence[ToLabel]) -> tuple[PageQuestion, ...]:
    schemes = {
        labelled.judged.votes.scheme
        for labelled in to_label
        if isinstance(labelled.judged, Contest)
    }
    return (vote(schemes.pop()),) if schemes else RATINGS


def _hidden(keys: object) -> str:
    """Encode keys so that they are not readable or searchable in the page's source."""
    return base64.b64encode(json.dumps(keys).encode()).decode()


def _json(data: Mapping[str, Any]) -> Markup:
    """Serialise JSON for a script element, so that no text can end the element."""
    return Markup(json.dumps(data).replace("<", "\\u003c"))
