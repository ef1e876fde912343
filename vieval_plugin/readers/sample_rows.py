"""The rows of a samples file or a prompt file -> samples: the one format in which users describe images of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from vieval_plugin.judges.protocol import WANTED_TEXT, Image, Sample, SampleId
from vieval_plugin.readers.tables import BadLine
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import address_of, overlong, path_of

_KEYS = ("uid", "image_model", "draw", "kind", "task", "images", "texts", "tags", "category")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LIKE_ADDRESS, _AFTER_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[/\\]|[/\\]{2}"), re.compile(r"[?#]")


def is_address(file: str) -> bool:
    """Return whether a text that stands for an image is an address instead of a path."""
    return _ADDRESS.match(file) is not None


def stem_of(file: str) -> str:
    """The name without suffix of the file that a path or an address leads to; nothing of an address but its path.

    >>> stem_of("http://host/a/1.png?token=x"), stem_of("http:/host/1.png?token=x"), stem_of("a/what?.png")
    ('1', '1', 'what?')
    """
    address = address_of(file) if is_address(file) else None
    plain = _AFTER_PATH.split(redacted(file))[0] if _LIKE_ADDRESS.match(file) else file
    return PurePosixPath(address.path if address else plain).stem


def address_among(files: Mapping[str, str]) -> str:
    """Image that is an address instead of a file, in words; empty where none is."""
    for role, address in addresses_among(files).items():
        return f"the image {role} is an address, not a file on this machine: {redacted(address)[:200]}"
    return ""


def addresses_among(files: Mapping[str, str]) -> dict[str, str]:
    """Images, by role, that are addresses instead of files."""
    return {role: file for role, file in files.items() if is_address(file)}


def samples_of_row(
    folder: Path, number: int, row: Mapping[str, Any], kind: str | None, benchmark: str
) -> list[tuple[Sample, Mapping[str, str]]]:
    """The samples of a row: one, or one for each prompt of a list; each with the images that are paths or addresses.

    Args:
        folder: where relative paths of images begin.
        number: the row's, which is the uid of one that has none.
        row: as a line of a samples file has it; images may also be `Image`.
        kind: that of rows which name none.
        benchmark: what the samples are identified with; their part is their kind.

    Raises:
        BadLine: it says something else than a row may.
    """
    if unknown := sorted(map(str, set(row) - set(_KEYS))):
        raise BadLine(f"unknown key {unknown[0][:80]!r}; the keys are {', '.join(_KEYS)}")
    images, texts, code = row.get("images", {}), row.get("texts", {}), row.get("kind", row.get("task", kind or ""))
    prompts = texts.get("prompt") if isinstance(texts, dict) else None
    if isinstance(prompts, list) and not (prompts and all(isinstance(prompt, str) for prompt in prompts)):
        raise BadLine("a list of prompts must hold texts, one or more")
    if not isinstance(images, dict) or not all(isinstance(image, (str, Image)) for image in images.values()):
        raise BadLine("images must map roles (output, source, ...) to paths")
    if not isinstance(texts, dict):
        raise BadLine("texts must map names (prompt, instruction, subject) to texts")
    for name, text in texts.items():
        if not isinstance(text, str) and not (name == "prompt" and isinstance(text, list)):
            raise BadLine(
                "texts must map names (prompt, instruction, subject) to texts; "
                f"{str(name)[:80]} is no text ({type(text).__name__})"
            )
    if not isinstance(code, str):
        raise BadLine(f"kind {str(code)[:80]} is no text")
    model, uid, category = (
        _name(row, key, default) for key, default in (("image_model", ""), ("uid", str(number)), ("category", ""))
    )
    tags = row.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise BadLine("tags must be a list of texts")
    if problem := overlong(model, uid, code, category, *tags, *images, *texts):
        raise BadLine(problem)
    files = {role: file for role, file in images.items() if isinstance(file, str)}
    located = {**images, **{role: Image(path_of(file, folder)) for role, file in files.items()}}
    sample_id = SampleId(benchmark, code, model, uid, draw_of(row))
    labels: dict[str, Any] = {"tags": tuple(tags), "category": category}
    if not isinstance(prompts, list):
        return [(Sample(sample_id, located, texts, **labels), files)]
    samples: list[tuple[Sample, Mapping[str, str]]] = []
    for index, prompt in enumerate(prompts):
        prompt_id, prompt_texts = replace(sample_id, uid=f"{uid}#{index}"), {**texts, "prompt": prompt}
        samples.append((Sample(prompt_id, located, prompt_texts, group=uid, place=(index,), **labels), files))
    return samples


def kind_of(row: Mapping[str, Any]) -> str:
    """The kind that images and texts alone tell: a prompt and nothing shown is `tig`, an instruction and a source
    `tie`.

    >>> kind_of({"texts": {"prompt": "a cat"}}), kind_of({"images": {"mask": "m.png"}})
    ('tig', '')
    """
    images, texts = row.get("images", {}), row.get("texts", {})
    if not isinstance(images, Mapping) or not isinstance(texts, Mapping):
        return ""
    image_roles, text_names = set(images) - {"output"}, set(texts) - {WANTED_TEXT}
    if not image_roles and (text_names == {"prompt"} or (WANTED_TEXT in texts and not text_names)):
        return "tig"
    return "tie" if image_roles == {"source"} and text_names in ({"instruction"}, {"instruction", "prompt"}) else ""


def draw_of(row: Mapping[str, Any]) -> int:
    """Index of a row's image among those of its conditions; BadLine where it says so by no whole number."""
    draw = row.get("draw", 0)
    if isinstance(draw, bool) or not isinstance(draw, int) or draw < 0:
        raise BadLine("draw must be a whole number from 0")
    return draw


def _name(row: Mapping[str, Any], key: str, default: str) -> str:
    """A name that is a text or a number."""
    name = row.get(key)
    if name is not None and (isinstance(name, bool) or not isinstance(name, (str, int, float))):
        raise BadLine(f"{key} must be a text")
    return default if name is None else str(name)
