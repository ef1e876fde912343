"""Samples from what trainers send: an image, the prompt that it was made of, and the images that
were given with it.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass

from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.judges.spec import INPUTS
from vieval_plugin.records import OWN
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import is_encodable
from vieval_plugin.text.wording import plural

#: Characters of a prompt.
LONGEST_TEXT = 100_000


@dataclass(frozen=True)
class Conditions:
    """The role of images that come with the output."""

    #: Kind of every sample; without it a sample with conditions is an edit (`tie`) and any other is
    #: `tig`.
    kind: str = ""
    #: A role for each image, in their order.
    roles: tuple[str, ...] = ("source",)

    def __post_init__(self) -> None:
        if self.kind and self.kind not in INPUTS:
            raise VievalError(
                f"unknown kind {self.kind!r}; known kinds: {', '.join(INPUTS)}"
            )


#: What further images mean where nobody says: one is the source of an edit.
PLAIN = Conditions()


def sample_of(
    number: int,
    prompt: str,
    output: Image,
    images: Sequence[Image],
    conditions: Conditions,
) -> Sample:
    """The sample of one image.

    Args:
        number: its position in the request, which is its uid.
        prompt: what it was made of, or how it was to be edited.
        output: the image.
        images: the images that were given with the prompt.
        conditions: what these are.

    Raises:
        VievalError: they are not as many as there are roles, or the prompt is too long or has half
            of a character.
    """
    if images and len(images) != len(conditions.roles):
        roles = ", ".join(conditions.roles)
        raise VievalError(
            f"a prompt must have an image for each role ({roles}), got "
            f"{plural(len(images), 'image')}; set the roles (vieval serve: one --role each)"
        )
    require_good_texts(prompt)
    kind = conditions.kind or ("tie" if images else "tig")
    names = [text if isinstance(text, str) else text[0] for text in INPUTS[kind].texts]
    by_role = dict(zip(conditions.roles, images, strict=False))
    identity = SampleId(OWN, kind, "", str(number))
    return Sample(
        identity,
        {"output": output, **by_role},
        dict.fromkeys(names, prompt),
    )


def require_equally_many(
    prompts: Sized,
    images: Sized,
    conditions: Sized,
) -> None:
    """Raise VievalError for a batch without a prompt, an image and a list of condition images for
    each of its samples.
    """
    if not len(prompts) == len(images) == len(conditions):
        counts = f"{len(prompts)}, {len(images)} and {len(conditions)}"
        raise VievalError(
            f"prompts, images and condition images must have the same length, got {counts}"
        )


def require_good_texts(*texts: str) -> None:
    """Raise VievalError for a text that is longer than any prompt, or has half of a character,
    which no server can be sent.
    """
    for text in texts:
        if len(text) > LONGEST_TEXT:
            raise VievalError(
                f"a text may have at most {LONGEST_TEXT} characters, got {len(text)}"
            )
        if not is_encodable(text):
            raise VievalError(
                f"text {ascii(text)[:80]} contains a lone surrogate, which is not valid Unicode"
            )
