"""An image-text model with a value head: a few linear layers that read the hidden state at one
token as a number.

Reward models such as HPSv3 and EditReward are of this form, and so is ADIEE's scorer. A description
(docs/guides/judges.md) says which base, which head, and where it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import PIL.Image
from pydantic import Field, model_validator

from vieval_plugin.backends.metrics.encoders import (
    Activation,
    described_file,
    load_head,
)
from vieval_plugin.backends.metrics.image_text import ImageTextModel
from vieval_plugin.backends.metrics.image_text import load as load_base
from vieval_plugin.backends.metrics.network_metrics import (
    Batch,
    NetworkInputs,
    NetworkMetric,
    Picture,
    Pictures,
)
from vieval_plugin.backends.weights import (
    Origin,
    Tensors,
    identity,
    library,
    state_dict,
    weights_name,
)
from vieval_plugin.prompts import packs
from vieval_plugin.prompts.schema import StrictModel
from vieval_plugin.text.errors import VievalError, line_of

_PAGE_BREAK = "\f"  # between the texts of several heads
_INDEX = "token_index"  # among the inputs of the network
# settings that say where weights and the processor are, which an identity has itself
_WEIGHTS = {
    "base",
    "base_weights",
    "revision",
    "processor",
    "adapter",
    "head",
    "prefix",
    "weights",
    "digest",
}


class Position(StrictModel):
    """The hidden state that the head reads: at a token, one before it, which is the one that
    predicts it, or at the last.
    """

    at: str = ""
    before: str = ""

    @model_validator(mode="before")
    @classmethod
    def _last(cls, position: Any) -> Any:
        return {} if position == "last" else position

    @model_validator(mode="after")
    def _check_at_or_before(self) -> Position:
        if self.at and self.before:
            raise ValueError("set exactly one of `at`, `before` and `last`")
        return self

    @property
    def token(self) -> str:
        return self.at or self.before


class ValueHead(StrictModel):
    """The section `network` of a description."""

    base: str
    base_weights: str = ""
    revision: str | None = None
    weights: str = ""
    digest: str = ""
    processor: str = ""
    min_pixels: int | None = Field(None, ge=1)
    max_pixels: int | None = Field(None, ge=1)
    fit: Literal["processor", "pillow"] = "processor"
    added_tokens: tuple[str, ...] = ()
    adapter: str = ""
    head: str = ""
    prefix: str | tuple[str, ...] = ""
    activation: Activation = "relu"
    output: int = Field(0, ge=0)
    position: Position = Position()
    system: str = ""
    frame: str = ""
    answer: str = ""
    side_by_side: bool = False
    dtype: Literal["float32", "bfloat16"] = "float32"
    positions: Literal["own", "sequential"] = "own"

    @model_validator(mode="after")
    def _check_head_or_weights(self) -> ValueHead:
        if bool(self.head) == bool(self.weights):
            raise ValueError("set exactly one of `head` and `weights`")
        return self

    @property
    def bounds(self) -> dict[str, int]:
        """Bounds of an image's pixels, by their names in transformers."""
        bounds = {"min_pixels": self.min_pixels, "max_pixels": self.max_pixels}
        return {name: bound for name, bound in bounds.items() if bound is not None}

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Prefix of the names of each head's weights."""
        return (self.prefix,) if isinstance(self.prefix, str) else self.prefix


@dataclass(frozen=True)
class LoadedValueHead:
    """A loaded value head on its base."""

    #: Name in results.
    by: str
    #: Name of its weights and settings, which no others have.
    identity: str
    #: Its description.
    settings: ValueHead
    base: ImageTextModel
    #: The linear layers of each head.
    heads: Any
    #: The token that it reads at or before, None for the last one.
    token: int | None

    def token_index(self, tokens: Sequence[int]) -> int:
        """The index of the token of a prompt that the head reads."""
        if self.token is None:
            return len(tokens) - 1
        position = self.settings.position
        number = tokens.count(self.token)
        if number != 1:
            raise VievalError(
                f"the prompt must contain the token {position.token} exactly once, got {number}"
            )
        index = tokens.index(self.token) - bool(position.before)
        if index < 0:
            raise VievalError(f"the prompt must not begin with {position.token}")
        return index


def load(origin: Origin) -> LoadedValueHead:
    """The value head of a description, which `origin` names.

    Raises:
        VievalError: the description has an unknown key or says what cannot be; what it names is not
            there, does not fit together, or holds more than tensors.
    """
    described = packs.load(origin.model)
    settings = packs.network_settings(described, ValueHead)
    base = described.resolved(settings.base)
    pixels = settings.bounds if settings.fit == "processor" else {}
    file = Path(described.resolved(settings.head))
    tensors = None
    if settings.weights:
        file = described_file(described, origin, settings.weights, settings.digest)
        starts = tuple(f"{prefix}." for prefix in settings.prefixes)
        tensors = {
            name: tensor
            for name, tensor in state_dict(file).items()
            if not name.startswith(starts)
        }
    model = load_base(
        Origin(base, origin.revision or settings.revision, origin.device),
        described.resolved(settings.processor) or base,
        settings.added_tokens,
        described.resolved(settings.adapter),
        pixels,
        settings.dtype,
        tensors,
    )
    if settings.base_weights not in ("", identity(model.network)):
        raise VievalError(
            f"{described.path}: {base} is not the base that the head was trained on; set "
            f"network.base to the base used in training, or train a new head on {base}"
        )
    heads = library("torch").nn.ModuleList(
        load_head(file, prefix, settings.activation, model.size)
        for prefix in settings.prefixes
    )
    outputs = min(head[-1].out_features for head in heads)
    if settings.output >= outputs:
        raise VievalError(
            f"{described.path}: network.output must be less than {outputs}, the "
            f"number of outputs of the head, got {settings.output}"
        )
    position = settings.position
    token = model.token(position.token) if position.token else None
    # whatever else of the description changes a number
    reading = settings.model_dump(exclude=_WEIGHTS)
    digest = identity(
        library("torch").nn.ModuleDict({"base": model.network, "heads": heads}),
        model.processor.to_json_string(),
        str(model.processor.chat_template),
        model.tokenizer.backend_tokenizer.to_str(),
        repr(reading),
    )
    name = weights_name(
        Origin(described.name),
        None,
        digest,
    )
    loaded = LoadedValueHead(
        name,
        digest,
        settings,
        model,
        heads.to(model.device),
        token,
    )
    _require_images(loaded, described.most_images)
    return loaded


def _require_images(loaded: LoadedValueHead, count: int) -> None:
    """Raise VievalError if the processor does not take as many images as are asked
    about.
    """
    samples = [
        PIL.Image.new(
            "RGB",
            (112, 112),
            (90 * n, 80, 70),
        )
        for n in range(count)
    ]
    pictures = [join_side_by_side(samples)] if loaded.settings.side_by_side else samples
    config = loaded.base.network.config
    token = getattr(config, "image_token_id", None) or getattr(
        config,
        "image_token_index",
        None,
    )
    try:
        all_tokens = _token_ids(loaded, pictures)
        tokens_of_first = _token_ids(loaded, pictures[:1])
        required_count = len(pictures) * tokens_of_first.count(token)
        fits = token is None or all_tokens.count(token) == required_count
        reason = "its template or processor drops some"
    except Exception as error:  # processors raise anything
        fits = False
        reason = line_of(error)[:200]
    if not fits:
        remedy = "; set side_by_side: true to join them" if len(pictures) > 1 else ""
        raise VievalError(
            f"{loaded.settings.base} does not support {len(pictures)} images at once "
            f"({reason}){remedy}"
        )


def _token_ids(loaded: LoadedValueHead, pictures: Sequence[Picture]) -> Sequence[Any]:
    token_ids: list[Any] = _inputs(loaded, "?", pictures)["input_ids"]
    return token_ids


def show(
    loaded: LoadedValueHead, images: Pictures, texts: Mapping[str, str]
) -> NetworkInputs:
    """Tensors of the conversations, one a head; what there is of each token as lists, which are
    made equally long in a batch.
    """
    pictures = [images[f"image_{number}"] for number in range(len(images))]
    if loaded.settings.side_by_side:
        pictures = [join_side_by_side(pictures)]
    if loaded.settings.fit == "pillow":
        pictures = [_fitted(loaded, picture) for picture in pictures]
    count = len(loaded.heads)
    parts = texts["text"].split(_PAGE_BREAK) if count > 1 else [texts["text"]]
    if len(parts) != count:
        raise VievalError(
            f"the text must have {count} parts, one per head, got {len(parts)}"
        )
    pages = [_inputs(loaded, part, pictures) for part in parts]
    tensors = {name: _joined([page[name] for page in pages]) for name in pages[0]}
    return NetworkInputs(
        {
            **tensors,
            _INDEX: [
                loaded.token_index(token_ids) for token_ids in tensors["input_ids"]
            ],
        }
    )


def _fitted(loaded: LoadedValueHead, picture: Picture) -> Picture:
    """An image within the bounds, resized by Pillow as Qwen's own package does."""
    images = loaded.base.processor.image_processor
    reader = library("transformers.models.qwen2_vl.image_processing_qwen2_vl")
    step = images.patch_size * images.merge_size
    high, wide = reader.smart_resize(
        picture.height,
        picture.width,
        step,
        **loaded.settings.bounds,
    )
    return picture.resize((wide, high), PIL.Image.Resampling.BICUBIC)


def _inputs(loaded: LoadedValueHead, text: str, images: Sequence[Picture]) -> Tensors:
    """The inputs of a conversation; what there is of each token as a list."""
    settings = loaded.settings
    prompt = loaded.base.prompt(
        settings.system,
        f"{settings.frame}{text}{settings.frame}",
        len(images),
        settings.answer,
    )
    inputs = loaded.base.inputs(prompt, images)
    tokens = inputs["input_ids"].shape
    return {
        name: value[0].tolist() if getattr(value, "shape", None) == tokens else value
        for name, value in inputs.items()
    }


def _joined(pages: list[Any]) -> Any:
    return pages if isinstance(pages[0], list) else library("torch").cat(pages)


def value_head(loaded: LoadedValueHead, batch: Batch) -> Any:
    """The mean of the heads' numbers at their position, without bounds, in the network's own
    unit.
    """
    torch = library("torch")
    count = len(loaded.heads)
    joined = {
        name: list(chain.from_iterable(rows))
        if isinstance(rows[0], list)
        else torch.cat(list(rows))
        for name, rows in batch.items()
    }
    indices = torch.tensor(joined.pop(_INDEX))
    inputs = {
        name: _padded(loaded, name, rows) if isinstance(rows, list) else rows
        for name, rows in joined.items()
    }
    hidden = loaded.base.hidden(inputs, loaded.settings.positions == "sequential")
    at = hidden[torch.arange(len(indices)), indices.to(hidden.device)].float()
    values = [head(at[n::count]) for n, head in enumerate(loaded.heads)]
    return torch.stack(values).mean(0)[:, loaded.settings.output]


def _padded(loaded: LoadedValueHead, name: str, rows: Sequence[list[int]]) -> Any:
    """Tokens after the end, where what reads from left to right does not see them."""
    tokenizer = loaded.base.tokenizer
    pad = 0
    if name == "input_ids":
        pad = tokenizer.pad_token_id or tokenizer.eos_token_id or 0
    longest = max(map(len, rows))
    padding = [pad] * longest
    padded = [[*row, *padding][:longest] for row in rows]
    return library("torch").tensor(padded)


def join_side_by_side(images: Sequence[Picture]) -> Picture:
    """Images side by side, first to last from the left, as high as the highest of them."""
    high = max(image.height for image in images)
    scaled = []
    for image in images:
        wide = max(1, round(image.width * high / image.height))
        scaled.append(
            image.resize(
                (wide, high),
                PIL.Image.Resampling.LANCZOS,
            )
        )
    canvas = PIL.Image.new("RGB", (sum(image.width for image in scaled), high))
    x = 0
    for image in scaled:
        canvas.paste(image, (x, 0))
        x += image.width
    return canvas


METRIC = NetworkMetric(
    "value_head",
    load,
    "",
    show,
    value_head,
)
