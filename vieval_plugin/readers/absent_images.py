"""Images that are not where their samples say."""

from __future__ import annotations

from collections.abc import Iterable

from vieval_plugin.errors import VievalError
from vieval_plugin.images import images_of, is_there, name_of
from vieval_plugin.judges.contests import Judged, candidates_of


def absent_image(judged: Judged) -> str:
    """The image of a sample or contest that is not there, in words; empty where all are."""
    for sample in candidates_of(judged):
        for role, image in sample.images.items():
            if not is_there(image):
                return f"the image {role} is not there: {name_of(image)}"
    return ""


def require_images(judged: Iterable[Judged], remedy: str) -> None:
    """VievalError naming the first image file that is absent and how many are, with what to do about it."""
    absent = (image for sample in judged for image in images_of(sample) if not is_there(image))
    missing = list(dict.fromkeys(map(name_of, absent)))
    if missing:
        more = f" (and {len(missing) - 1} more images)" if len(missing) > 1 else ""
        raise VievalError(f"{missing[0]}: no such image{more}; {remedy}")
