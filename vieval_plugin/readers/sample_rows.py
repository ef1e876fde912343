"""The rows of a samples file or a prompt file -> samples: the one format in which users describe images of their own."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.media.files import require_plain
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import overlong, path_of
from vieval_plugin.text.yaml_json import read_json

_KEYS = ("uid", "image_model", "draw", "kind", "task", "images", "texts", "tags", "category")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class BadLine(Exception):
    """Fault of a line; `row` is as much of it as could be read."""

    def __init__(self, reason: str, row: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.row = row or {}


GivenSample: TypeAlias = tuple[Sample, Mapping[str, str]]


def address_among(files: Mapping[str, str]) -> str:
    """Image that is an address instead of a file, in words; empty where none is."""
    for role, address in addresses_among(files).items():
        return f"the image {role} is an address, not a file on this machine: {redacted(address)[:200]}"
    return ""


def addresses_among(files: Mapping[str, str]) -> dict[str, str]:
    """Images, by role, that are addresses instead of files."""
    return {role: file for role, file in files.items() if _ADDRESS.match(file)}


def lines_of_file(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a JSONL file that are not blank, with their numbers from 1; VievalError if it cannot be read."""
    require_plain(path)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).strip()
                if text:
                    yield number, text
    except OSError as error:
        raise VievalError(f"{path}: the samples cannot be read ({error.strerror})") from None


def samples_of_line(folder: Path, number: int, line: bytes, kind: str | None, benchmark: str) -> list[GivenSample]:
    """The samples of a line: one, or one for each prompt of a list. Each comes with its images as the line has them.

    Args:
        folder: where relative paths of images begin.
        number: the line's, which is the uid of a line that has none.
        line: its bytes.
        kind: that of lines which name none.
        benchmark: what the samples are identified with; their part is their kind.

    Raises:
        BadLine: it is no such object.
    """
    return samples_of_row(folder, number, row_of_line(line), kind, benchmark)


def samples_of_row(
    folder: Path, number: int, row: Mapping[str, Any], kind: str | None, benchmark: str
) -> list[GivenSample]:
    """`samples_of_line` of what is read already; BadLine where it says something else than a line may."""
    try:
        return list(_read(folder, number, row, kind, benchmark))
    except BadLine as bad:
        raise BadLine(str(bad), row) from None


def row_of_line(line: bytes) -> dict[str, Any]:
    """The object of a line; BadLine where it is none."""
    try:
        row = read_json(line.decode())
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadLine("a text in it has half of a character (a lone surrogate)") from None
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None
    except ValueError as error:
        raise BadLine("nested too deeply" if "deeply" in str(error) else "not a JSON object") from None
    if not isinstance(row, dict):
        raise BadLine("not a JSON object")
    return row


def draw_of(row: Mapping[str, Any]) -> int:
    """Index of a row's image among those of its conditions; BadLine where it says so by no whole number."""
    draw = row.get("draw", 0)
    if isinstance(draw, bool) or not isinstance(draw, int) or draw < 0:
        raise BadLine("draw must be a whole number from 0")
    return draw


def _read(folder: Path, number: int, row: Mapping[str, Any], kind: str | None, benchmark: str) -> Iterator[GivenSample]:
    if {"provenance", "status"} <= row.keys():
        raise BadLine("a verdict, where a sample is needed; give the file of samples that was judged")
    if unknown := sorted(map(str, set(row) - set(_KEYS))):
        raise BadLine(f"unknown key {unknown[0][:80]!r}; the keys are {', '.join(_KEYS)}")
    images, texts, code = row.get("images", {}), row.get("texts", {}), row.get("kind", row.get("task", kind or ""))
    prompts = texts.get("prompt") if isinstance(texts, dict) else None
    if isinstance(prompts, list) and not (prompts and all(isinstance(prompt, str) for prompt in prompts)):
        raise BadLine("a list of prompts must hold texts, one or more")
    if not isinstance(images, dict) or not _texts_only(images):
        raise BadLine("images must map roles (output, source, ...) to paths")
    if not isinstance(texts, dict) or not _texts_only({**texts, "prompt": ""} if isinstance(prompts, list) else texts):
        raise BadLine("texts must map names (prompt, instruction, subject) to texts")
    if not isinstance(code, str):
        raise BadLine(f"kind {str(code)[:80]} is no text")
    model, uid = (_name(row, key, default) for key, default in (("image_model", ""), ("uid", str(number))))
    labels: dict[str, Any] = {"tags": _tags(row), "category": _name(row, "category", "")}
    if problem := overlong(model, uid, code, labels["category"], *labels["tags"], *images, *texts):
        raise BadLine(problem)
    draw = draw_of(row)
    image_files = {role: Image(path_of(file, folder)) for role, file in images.items()}
    if not isinstance(prompts, list):
        yield Sample(SampleId(benchmark, code, model, uid, draw), image_files, texts, **labels), images
        return
    for place, prompt in enumerate(prompts):
        identity = SampleId(benchmark, code, model, f"{uid}#{place}", draw)
        yield Sample(identity, image_files, {**texts, "prompt": prompt}, group=uid, place=(place,), **labels), images


def _tags(row: Mapping[str, Any]) -> tuple[str, ...]:
    tags = row.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise BadLine("tags must be a list of texts")
    return tuple(tags)


def _name(row: Mapping[str, Any], key: str, default: str) -> str:
    """A name that is a text or a number."""
    name = row.get(key)
    if name is not None and (isinstance(name, bool) or not isinstance(name, (str, int, float))):
        raise BadLine(f"{key} must be a text")
    return default if name is None else str(name)


def _texts_only(value: dict[Any, Any]) -> bool:
    """Return whether the values of a mapping are texts."""
    return all(isinstance(text, str) for text in value.values())
