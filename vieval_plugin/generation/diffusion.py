"""Images from a diffusers pipeline in this process: from text, from image and text, inpainting,
ControlNet.
"""

from __future__ import annotations

import inspect
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import PIL.Image
from tqdm import tqdm

from vieval_plugin.generation.requests import (
    ImageRequest,
    answer_json,
    encode_png,
    file_for,
)
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Sample, Status
from vieval_plugin.media.files import write_whole
from vieval_plugin.text.errors import VievalError, install_advice, line_of

#: Roles of images by the argument of a pipeline, which is given the first that a sample has.
_ROLES: Mapping[str, tuple[str, ...]] = {
    "image": ("source", "control", "subject", "concepts"),
    "mask_image": ("mask",),
    "control_image": ("control",),
    "ip_adapter_image": ("subject",),
}


@dataclass(frozen=True)
class Diffusion:
    """A pipeline that is loaded, and how it is called.

    Each image has a generator of its own, seeded by `seed`, its prompt and its number, so that
    neither the batch nor the order changes an image.
    """

    #: The pipeline of diffusers.
    pipeline: Any
    #: Name that tells its weights from others in the names of files.
    name: str
    #: Folder for its images.
    folder: Path
    #: Further arguments of the pipeline.
    call: Mapping[str, Any] = field(default_factory=dict)
    #: Images that it makes at once.
    batch: int = 1
    #: Seed of the images' generators.
    seed: int = 0


@dataclass(frozen=True)
class _Image:
    request: ImageRequest
    number: int
    file: Path


def load(
    model: str,
    pipeline: str,
    device: str,
    dtype: str,
    arguments: Mapping[str, Any],
) -> Any:
    """A pipeline of diffusers by the name or folder of its weights.

    Args:
        model: the weights.
        pipeline: the class, such as `StableDiffusionInpaintPipeline`; empty for the one that the
            weights name.
        device: `auto`, `cpu`, `cuda`, ...
        dtype: `float32`, `float16` or `bfloat16`.
        arguments: further ones of `from_pretrained`.

    Raises:
        VievalError: diffusers is not installed, or the weights cannot be loaded.
    """
    try:
        import diffusers
        import torch
    except ImportError:
        raise VievalError(
            f"vieval_diffusers requires diffusers; {install_advice('generators')}"
        ) from None
    kind = getattr(diffusers, pipeline or "DiffusionPipeline", None)
    if kind is None:
        raise VievalError(
            f"diffusers has no pipeline {pipeline!r}; use the name of a diffusers "
            "pipeline class"
        )
    if not isinstance(precision := getattr(torch, dtype, None), torch.dtype):
        raise VievalError(
            f"torch has no dtype {dtype!r}; use float32, float16 or bfloat16"
        )
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        loaded = kind.from_pretrained(
            model,
            torch_dtype=precision,
            **arguments,
        )
        loaded = loaded.to(device)
    except Exception as error:
        reason = f"{type(error).__name__}: {line_of(error)}"
        raise VievalError(f"cannot load the pipeline {model}: {reason}") from None
    loaded.set_progress_bar_config(disable=True)
    return loaded


def _parameters(diffusion: Diffusion) -> Mapping[str, inspect.Parameter]:
    """The arguments of the pipeline; VievalError where it has none of a given name."""
    parameters = inspect.signature(diffusion.pipeline.__call__).parameters
    if unknown := sorted(set(diffusion.call) - set(parameters)):
        name = type(diffusion.pipeline).__name__
        raise VievalError(f"{name} has no argument {unknown[0]!r}")
    return parameters


def make(
    diffusion: Diffusion, requests: Sequence[ImageRequest], bar: bool = True
) -> list[str]:
    """Answers in the form of a host, in order; an image whose file is already there is
    not made again.

    Args:
        diffusion: who makes them.
        requests: what.
        bar: whether to show progress.

    Raises:
        VievalError: the pipeline does not know an argument of `call`.
    """
    parameters = _parameters(diffusion)
    reasons = [_unfit(parameters, request.conditions) for request in requests]
    images = [
        [
            _Image(request, number, _file(diffusion, request, number))
            for number in request.numbers
            if not reason
        ]
        for request, reason in zip(requests, reasons, strict=True)
    ]
    missing = [
        image for image in chain.from_iterable(images) if not image.file.is_file()
    ]
    failed = dict[Path, str]()
    seconds = dict[Path, float]()
    with tqdm(
        total=len(missing), desc="Generating", unit="image", disable=not bar
    ) as progress_bar:
        for batch in _batches(missing, diffusion.batch):
            files = [image.file for image in batch]
            started = time.monotonic()
            try:
                _make_batch(diffusion, parameters, batch)
            except VievalError:
                raise
            # one prompt that breaks a pipeline is no end of the run
            except Exception as error:
                reason = f"{type(error).__name__}: {line_of(error)[:200]}"
                failed |= dict.fromkeys(files, f"the pipeline failed ({reason})")
            seconds |= dict.fromkeys(files, (time.monotonic() - started) / len(batch))
            progress_bar.update(len(batch))
    return [
        _answer(request_images, reason, failed, seconds)
        for request_images, reason in zip(images, reasons, strict=True)
    ]


def _answer(
    images: Sequence[_Image],
    reason: str,
    failed: Mapping[Path, str],
    seconds: Mapping[Path, float],
) -> str:
    if reason:
        return answer_json([], reason, status=Status.NO_IMAGE)
    files = [image.file for image in images]
    failures = [failed[file] for file in files if file in failed]
    if failures:
        return answer_json(
            [file for file in files if file not in failed],
            failures[0],
            status=Status.TOOL_ERROR,
        )
    spent = [seconds[file] for file in files if file in seconds]
    return answer_json(files, seconds=sum(spent) if len(spent) == len(files) else None)


def _file(diffusion: Diffusion, request: ImageRequest, number: int) -> Path:
    how = {
        "diffusers": diffusion.name,
        "pipeline": type(diffusion.pipeline).__name__,
        "call": dict(diffusion.call),
        "seed": diffusion.seed,
    }
    return file_for(
        diffusion.folder,
        request.conditions,
        request.prompt,
        number,
        how,
    )


def _unfit(parameters: Mapping[str, Any], conditions: Sample) -> str:
    """The reason why a pipeline cannot be given conditions, in words; empty if it can."""
    roles = _arguments(parameters, conditions)
    for role in conditions.images:
        if role in ("source", "control", "mask") and role not in roles.values():
            return f"the pipeline does not support {role} images; choose another with pipeline="
    for name in ("image", "mask_image", "control_image"):
        if name not in parameters:
            continue
        has_default = parameters[name].default is not inspect.Parameter.empty
        is_needed = name == "image" or not has_default
        if is_needed and name not in roles:
            return (
                f"the pipeline requires an image for {name}, but the conditions do not "
                "include one"
            )
    return ""


def _arguments(parameters: Mapping[str, Any], conditions: Sample) -> dict[str, str]:
    """The role of the image that each argument of a pipeline is given."""
    chosen_roles = {}
    for name in filter(parameters.__contains__, _ROLES):
        for role in reversed(_ROLES[name]):
            if role in conditions.images:
                chosen_roles[name] = role
    return chosen_roles


def _batches(images: Sequence[_Image], size: int) -> list[list[_Image]]:
    """Images together that one call can make: their conditions have the same roles and sizes."""
    alike: dict[object, list[_Image]] = {}
    for image in images:
        key: object = image.file
        if size > 1:
            conditions = sorted(image.request.conditions.images.items())
            key = tuple((role, decode(picture).size) for role, picture in conditions)
        alike.setdefault(key, []).append(image)
    return [
        group[start : start + size]
        for group in alike.values()
        for start in range(0, len(group), size)
    ]


def _make_batch(
    diffusion: Diffusion,
    parameters: Mapping[str, Any],
    batch: Sequence[_Image],
) -> None:
    import torch

    conditions = [image.request.conditions for image in batch]
    arguments = dict(diffusion.call)
    for name, role in _arguments(parameters, conditions[0]).items():
        arguments[name] = [decode(sample.images[role]) for sample in conditions]
    arguments["prompt"] = [image.request.prompt for image in batch]
    if "generator" in parameters:
        arguments["generator"] = [
            torch.Generator("cpu").manual_seed(_seed(diffusion, image))
            for image in batch
        ]
    outputs = diffusion.pipeline(**arguments).images
    if len(outputs) != len(batch):
        raise ValueError(
            f"the pipeline must return {len(batch)} images, got {len(outputs)}"
        )
    for output in outputs:
        if not isinstance(output, PIL.Image.Image):
            kind = type(output).__name__
            raise ValueError(f"the pipeline must return PIL images, got {kind}")
    for image, picture in zip(batch, outputs, strict=True):
        write_whole(image.file, encode_png(picture), "data")


def _seed(diffusion: Diffusion, image: _Image) -> int:
    identity = image.request.conditions.id
    sample = f"{identity.part}/{identity.uid}/{image.request.prompt}"
    return zlib.crc32(f"{diffusion.seed}/{sample}/{image.number}".encode())
