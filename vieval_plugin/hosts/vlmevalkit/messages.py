"""A question as the host's models take it: one list of texts and of files of images, made anew for each call."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from vieval_plugin.backends.http.image_encoding import encode
from vieval_plugin.judges.protocol import Chat, Image, Message
from vieval_plugin.media.files import write_whole
from vieval_plugin.text.untrusted import exists

_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg"}
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def interleaved(chat: Chat, images: Path) -> list[dict[str, str]]:
    """The parts of a conversation in order; of several messages each begins with whose it is.

    Images are written to the folder `images`, once each and without anything that their files say beside the picture.
    VievalError for one that cannot be read.
    """
    several = len(chat.messages) > 1
    parts: list[dict[str, str]] = []
    for message in chat.messages:
        parts += [{"type": "text", "value": f"{message.role}:\n"}] if several else []
        parts += _parts(message, images)
    return parts


def _parts(message: Message, images: Path) -> list[dict[str, str]]:
    return [
        {"type": "image", "value": str(_file(part, images))}
        if isinstance(part, Image)
        else {"type": "text", "value": _unlike_a_file(part)}
        for part in message.parts
    ]


def _file(image: Image, folder: Path) -> Path:
    """A file with the picture as it may leave this machine, named by its content."""
    head, _, body = encode(image).url.partition(",")
    data = base64.b64decode(body)
    suffix = _SUFFIXES[head.removeprefix("data:").removesuffix(";base64")]
    path = folder / f"{hashlib.sha256(data).hexdigest()}{suffix}"
    if not path.is_file():
        write_whole(path, data, "LMUData")
    return path


def _unlike_a_file(text: str) -> str:
    """The text, after a line end where the host would take it for a file or an address, and open that."""
    is_ambiguous = exists(text) or text.startswith("data:image/") or _ADDRESS.match(text)
    return f"\n{text}" if is_ambiguous else text
