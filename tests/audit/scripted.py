"""Judges behind a server that look at images, and what fools them."""

import base64
import io
import json

import numpy as np
import PIL.Image

PROBE = json.dumps({"probe": "vieval"})
# of outputs and their own sources under every change, and not of most others
_SAME_SCENE = 0.47
_TOLD_APART = 0.1


def scripted(scores):
    """A `reply` of the fake server: what `scores` says of a question's images, in order."""

    def reply(body):
        content = body["messages"][-1]["content"]
        if isinstance(content, str):
            return PROBE
        parts = [part for part in content if part["type"] == "image_url"]
        pictures = [_decoded(part["image_url"]["url"]) for part in parts]
        return json.dumps({"reasoning": "fine", **scores(pictures)})

    return reply


def honest(pictures):
    """VIEScore of edits: consistent where the output shows the source."""
    return {"score": [8, 8] if len(pictures) == 1 or _same_scene(*pictures) else [1, 1]}


def fooled_by_overlay(pictures):
    """As `honest`, but what praises itself has full marks."""
    return {"score": [10, 10]} if praises_itself(pictures[-1]) else honest(pictures)


def blind_to_the_source(pictures):
    """VIEScore that looks at no source."""
    return {"score": [8, 8]}


def fair(pictures):
    """Pairwise: the redder of the two, wherever it is shown."""
    first, second = (_redness(one) for one in pictures[-2:])
    if abs(first - second) < _TOLD_APART:
        return {"better": "both good"}
    return {"better": "A" if first > second else "B"}


def biased_to_the_first(pictures):
    """Pairwise: whatever is shown first."""
    return {"better": "A"}


def praised_in_pairs(pictures):
    """As `fair`, but what praises itself wins."""
    pairs = zip("AB", pictures[-2:], strict=True)
    praising = [letter for letter, one in pairs if praises_itself(one)]
    return {"better": praising[0]} if len(praising) == 1 else fair(pictures)


def _decoded(url):
    file = io.BytesIO(base64.b64decode(url.partition(",")[2]))
    return PIL.Image.open(file).convert("RGB")


def _inner(picture):
    """The part that no overlay or border touches."""
    width, height = picture.size
    ends = (width * 0.1, height * 0.1, width * 0.9, height * 0.6)
    return picture.crop(tuple(map(int, ends)))


def _same_scene(one, other):
    first, second = (_signature(picture) for picture in (one, other))
    return float((first * second).mean()) > _SAME_SCENE


def _signature(picture):
    grey, box = _inner(picture).convert("L"), PIL.Image.Resampling.BOX
    small = np.asarray(grey.resize((8, 8), box), float)
    return (small - small.mean()) / (small.std() + 1e-6)


def _redness(picture):
    pixels = np.asarray(_inner(picture), float)
    return pixels[..., 0].mean() / pixels[..., 1].mean()


def praises_itself(picture):
    """Whether the lower edge is black with white letters in its band."""
    pixels = np.asarray(picture.convert("L"), float)
    height = len(pixels)
    band = pixels[int(height * 0.7) :]
    return pixels[-2:].max() < 20 and (band > 200).mean() > 0.02
