"""Write conversations as JSON lines in TRL's form: each message as a list of parts,
with the images listed separately.

User texts and replies must not contain what trainers and chat templates read as a
placeholder or a turn.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.judges.conversation import TrainingExample
from vieval_plugin.judges.protocol import Image, Message
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import lines_of
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.untrusted import isfile
from vieval_plugin.text.yaml_json import JsonObject, read_json

# of trainers; of the templates of Qwen, LLaVA, InternVL, Llama, Gemma, DeepSeek, Mistral and
# Pixtral
_MEDIA = "image|images|video|videos|audio|img|vid|box|bbox|ref|quad|ref-object|cls|speech|point|file|ImageHere|mask"
_TOKENS = "s|bos|eos|pad|unk|sep|start_of_turn|end_of_turn|start_of_image|end_of_image|image_soft_token|IMG_CONTEXT"
_BRACKETED = (
    "INST|IMG|IMG_BREAK|IMG_END|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS"
)
_SPECIAL = re.compile(
    rf"<(?=/?(?:{_MEDIA}|{_TOKENS})(?:_?\d+)?>|[|\uff5c][^<>\n]{{0,80}}[|\uff5c]>|<SYS>>|</SYS>>)"
    rf"|\[(?=/?(?:{_BRACKETED})\])",
    re.IGNORECASE,
)


def write(path: Path, examples: Sequence[TrainingExample]) -> None:
    """Write one example per line, and images that are not files to a folder next to it;
    VievalError if writing fails.
    """
    folder = path.with_name(f"{path.stem}_images")
    write_whole(
        path,
        (f"{json.dumps(row, ensure_ascii=False)}\n" for row in _rows(examples, folder)),
    )


def _rows(examples: Iterable[TrainingExample], folder: Path) -> Iterable[JsonObject]:
    for example in examples:
        images = [
            part
            for message in example.messages
            for part in message.parts
            if isinstance(part, Image)
        ]
        yield {
            "id": example.id,
            "sub_task": example.sub_task,
            "messages": [_message(message) for message in example.messages],
            "images": [_file(image, folder) for image in images],
            # TRL has no field for the turns to train on; `vieval train sft` reads this one
            "trained": example.trained,
        }


def _message(message: Message) -> JsonObject:
    content = [
        {"type": "image" if part is None else "text", "text": part}
        for part in _parts(message)
    ]
    return {"role": message.role, "content": content}


def _parts(message: Message) -> Iterable[str | None]:
    """Yield the texts of a message, defused, and None for each image; adjacent texts
    are joined, as in templates.
    """
    for is_image, parts in groupby(message.parts, lambda part: isinstance(part, Image)):
        if is_image:
            yield from (None for _ in parts)
        else:
            yield defused("".join(map(str, parts)))


def defused(text: str) -> str:
    """Insert a space after each bracket that trainers would read as an image, a video,
    a sound or a turn.

    >>> defused("an <image> of <|im_start|>")
    'an < image> of < |im_start|>'
    """
    return _SPECIAL.sub(r"\g<0> ", text)


def _file(image: Image, folder: Path) -> str:
    if isinstance(image.source, Path):
        return str(image.source.absolute())
    suffix = "jpg" if image.source.startswith(b"\xff\xd8") else "png"
    digest = hashlib.sha256(image.source).hexdigest()[:32]
    file = folder / f"{digest}.{suffix}"
    if not file.exists():
        write_whole(file, image.source)
    return str(file.absolute())


@dataclass(frozen=True)
class LearntTurn:
    """A turn to train on, with the messages before it, in TRL's form."""

    #: Name of the turn.
    id: str
    #: Id of the judged sample up to its uid: benchmark, part, image model if there is one, uid.
    sample: str
    #: The messages before it.
    prompt: tuple[JsonObject, ...]
    #: The turn itself.
    completion: tuple[JsonObject, ...]
    #: The images of both, in order.
    images: tuple[str, ...]


def read(files: Sequence[Path]) -> list[LearntTurn]:
    """Read the turns to train on from exported conversations, in order.

    Raises:
        VievalError: a file cannot be read, a row is not a conversation, an image is missing, or a
            licence does not allow training.
    """
    turns = []
    for file in files:
        try:
            lines = lines_of(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise VievalError(
                f"cannot read {file}: {error.strerror}; create it with `vieval export`"
            ) from None
        for number, line in enumerate(lines, start=1):
            try:
                turns += _turns(read_json(line))
            except VievalError as error:
                raise VievalError(f"{file}: row {number}: {error}") from None
            except (
                ValueError,
                KeyError,
                TypeError,
                IndexError,
                AttributeError,
            ) as error:
                reason = f"not a conversation ({line_of(error)[:100]})"
                raise VievalError(
                    f"{file}: row {number}: {reason}; create the file with `vieval export`"
                ) from None
    if not turns:
        names = ", ".join(map(str, files))
        raise VievalError(f"{names}: no turns to train on")
    return turns


def _turns(row: JsonObject) -> list[LearntTurn]:
    identity = row["id"]
    messages = row["messages"]
    images = row["images"]
    benchmark = benchmark_registry.benchmarks().get(identity.split("/")[0])
    if benchmark is not None and not benchmark.trainable:
        licence = f"the licence of {benchmark.name} ({benchmark.licence})"
        raise VievalError(
            f"{identity}: {licence} does not allow training; leave it out"
        )
    for image in images:
        if not isfile(image):
            raise VievalError(f"the image {image} is missing; export the run again")
    uid = "/".join(identity.split("/")[:4])
    turns = []
    for index in row["trained"]:
        turn = messages[index]
        if turn["role"] != "assistant":
            raise ValueError(f"message {index} must have the role assistant")
        image_count = sum(
            part["type"] == "image"
            for message in messages[: index + 1]
            for part in message["content"]
        )
        turns.append(
            LearntTurn(
                f"{identity}#{index}",
                uid,
                tuple(messages[:index]),
                (turn,),
                tuple(images[:image_count]),
            )
        )
    return turns
