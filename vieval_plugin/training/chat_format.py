"""Conversations as lines of JSON, the way TRL, ms-swift and LLaMA-Factory read them.

TRL wants the parts of a message as a list and the images beside it. ms-swift and LLaMA-Factory want a text in which
`<image>` stands where an image belongs, and of ms-swift's messages each may say whether it is trained on.

What trainers and chat templates take for a place or a turn must not come from what a user wrote or a model said.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias

from vieval_plugin.judges.conversation import TrainingExample
from vieval_plugin.judges.protocol import Image, Message
from vieval_plugin.media.files import write_whole

Trainer: TypeAlias = Literal["trl", "ms-swift", "llama-factory"]
_MARK = "<image>"
# of LLaMA-Factory and ms-swift; of the templates of Qwen, LLaVA, InternVL, Llama, Gemma, DeepSeek, Mistral and Pixtral
_PLACES = "image|images|video|videos|audio|img|vid|box|bbox|ref|quad|ref-object|cls|speech|point|file|ImageHere|mask"
_TOKENS = "s|bos|eos|pad|unk|sep|start_of_turn|end_of_turn|start_of_image|end_of_image|image_soft_token|IMG_CONTEXT"
_BRACKETED = "INST|IMG|IMG_BREAK|IMG_END|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS"
_SPECIAL = re.compile(
    rf"<(?=/?(?:{_PLACES}|{_TOKENS})(?:_?\d+)?>|[|\uff5c][^<>\n]{{0,80}}[|\uff5c]>|<SYS>>|</SYS>>)"
    rf"|\[(?=/?(?:{_BRACKETED})\])",
    re.IGNORECASE,
)


def write(path: Path, examples: Sequence[TrainingExample], trainer: Trainer) -> None:
    """Write one example a line; images that are no files go to a folder beside it. VievalError if that cannot be done."""
    folder = path.with_name(f"{path.stem}_images")
    write_whole(path, (f"{json.dumps(row, ensure_ascii=False)}\n" for row in _rows(examples, trainer, folder)))


def _rows(examples: Iterable[TrainingExample], trainer: Trainer, folder: Path) -> Iterable[dict[str, Any]]:
    for example in examples:
        images = [part for message in example.messages for part in message.parts if isinstance(part, Image)]
        messages = [
            _message(message, trainer, place in example.trained) for place, message in enumerate(example.messages)
        ]
        yield {
            "id": example.id,
            "sub_task": example.sub_task,
            "messages": messages,
            "images": [_file(image, folder) for image in images],
            # of the three, TRL alone says nowhere which turns are learnt: `vieval train sft` does
            **({"trained": example.trained} if trainer == "trl" else {}),
        }


def _message(message: Message, trainer: Trainer, trained: bool) -> dict[str, Any]:
    if trainer == "trl":
        parts = [
            {"type": "image", "text": None} if part is None else {"type": "text", "text": part}
            for part in _parts(message)
        ]
        return {"role": message.role, "content": parts}
    texts = [_MARK if part is None else part for part in _parts(message)]
    row = {"role": message.role, "content": "".join(texts)}
    return {**row, "loss": trained} if trainer == "ms-swift" and message.role == "assistant" else row


def _parts(message: Message) -> Iterable[str | None]:
    """The texts of a message, defused, and None for each image; texts side by side are one, as templates join them."""
    for is_image, parts in groupby(message.parts, lambda part: isinstance(part, Image)):
        if is_image:
            yield from (None for _ in parts)
        else:
            yield defused("".join(map(str, parts)))


def defused(text: str) -> str:
    """A text in which nothing stands for an image, a video, a sound or a turn: a space behind each such bracket.

    >>> defused("an <image> of <|im_start|>")
    'an < image> of < |im_start|>'
    """
    return _SPECIAL.sub(r"\g<0> ", text)


def _file(image: Image, folder: Path) -> str:
    if isinstance(image.source, Path):
        return str(image.source.absolute())
    file = folder / f"{hashlib.sha256(image.source).hexdigest()[:32]}.{_suffix(image.source)}"
    if not file.exists():
        write_whole(file, image.source)
    return str(file.absolute())


def _suffix(data: bytes) -> str:
    return "jpg" if data.startswith(b"\xff\xd8") else "png"
