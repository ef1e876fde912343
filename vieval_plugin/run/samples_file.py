"""A user's own samples from a file, their verdicts to a file, and what is said of them at the end."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.files import write_whole
from vieval_plugin.images import examine
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Verdict
from vieval_plugin.judges.spec import JudgeSpec, lacking
from vieval_plugin.records import SCHEMA, Provenance, fingerprint, verdict_document
from vieval_plugin.run.evaluate import OWN
from vieval_plugin.run.prepare import unjudged
from vieval_plugin.run.runner import absent_image
from vieval_plugin.text_table import text_table
from vieval_plugin.yaml_json import read_json

_KEYS = ("uid", "image_model", "draw", "kind", "task", "images", "texts", "tags", "category")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass
class Given:
    """The samples of a file in order, the line of each, and the verdicts on those whose line is bad, by their number."""

    samples: list[Sample] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    decided: dict[int, Verdict] = field(default_factory=dict)


class _BadLine(Exception):
    """What is wrong with a line."""


def read_samples(path: Path, kind: str | None = None) -> Given:
    """Samples from a JSONL file, one object a line.

    `images` maps roles to paths (relative ones start at the file's folder); `texts` has the conditions, a list of prompts
    standing for as many samples (`<uid>#0`, ...); `kind` (or `task`) is one of the seven codes unless given for all;
    `draw` numbers the images that one image model made under the same conditions; `tags` and a `category` are free;
    all of these and `uid` and `image_model` may be left out. A line that is no such object is a sample whose verdict is decided, called
    `line N` where it has no readable uid; so is one that names an image file which is not there.

    Raises:
        VievalError: the file cannot be read, holds no samples, or holds two of one uid, image model, draw and kind.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise VievalError(f"{path}: the samples cannot be read ({error.strerror})") from None
    given = Given()
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), start=1):
        for sample, verdict in _samples(path.parent, number, line.strip(), kind) if line.strip() else ():
            if verdict is not None:
                given.decided[len(given.samples)] = verdict
            given.samples.append(sample)
            given.lines.append(number)
    if not given.samples:
        raise VievalError(f"{path}: no samples in it; each line is an object with images, texts and kind")
    _require_distinct(path, given)
    return given


def require_good(path: Path, given: Given, spec: JudgeSpec) -> None:
    """VievalError with the number of the first line that is bad, lacks what the judge needs, or has a broken image."""

    def wrong(number: int) -> str:
        sample = given.samples[number]
        if number in given.decided:
            return given.decided[number].trace[0].reason
        if reason := lacking(spec, sample):
            return reason
        try:
            for image in sample.images.values():
                examine(image)
        except VievalError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(thread_name_prefix="look") as pool:
        for number, reason in enumerate(pool.map(wrong, range(len(given.samples)))):
            if reason:
                pool.shutdown(cancel_futures=True)
                raise VievalError(f"{path}: line {given.lines[number]}: {reason}")


def _require_distinct(path: Path, given: Given) -> None:
    first: dict[SampleId, int] = {}
    for sample, line in zip(given.samples, given.lines, strict=True):
        before = first.setdefault(sample.id, line)
        if before != line:
            of = f" of {sample.id.image_model}" if sample.id.image_model else ""
            kind = f" ({sample.kind})" if sample.kind else ""
            raise VievalError(
                f"{path}: lines {before} and {line} are both {sample.id.uid!r}{of}{kind}; give each a uid of its own, or "
                "a draw where they are images of one prompt"
            )


def _samples(folder: Path, number: int, line: bytes, kind: str | None) -> Iterator[tuple[Sample, Verdict | None]]:
    """The samples of a line, each with its verdict where that is decided."""
    row: dict[str, Any] = {}
    try:
        row = _row(line)
        yield from _read(folder, number, row, kind)
    except _BadLine as bad:
        named = row.get("uid"), row.get("image_model"), row.get("kind", row.get("task", kind))
        uid, model, code = (one if isinstance(one, str) else "" for one in named)
        draw = drawn if isinstance(drawn := row.get("draw", 0), int) else 0
        sample = Sample(SampleId(OWN, code, model, uid or f"line {number}", draw), {})
        yield sample, unjudged(Status.PARSE_FAILURE, str(bad))


def _row(line: bytes) -> dict[str, Any]:
    try:
        row = read_json(line.decode())
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _BadLine("a text in it has half of a character (a lone surrogate)") from None
    except UnicodeDecodeError:
        raise _BadLine("not UTF-8") from None
    except ValueError as error:
        raise _BadLine("nested too deeply" if "deeply" in str(error) else "not a JSON object") from None
    if not isinstance(row, dict):
        raise _BadLine("not a JSON object")
    return row


def _read(
    folder: Path, number: int, row: Mapping[str, Any], kind: str | None
) -> Iterator[tuple[Sample, Verdict | None]]:
    if unknown := sorted(set(row) - set(_KEYS)):
        raise _BadLine(f"unknown key {unknown[0]!r}; the keys are {', '.join(_KEYS)}")
    images, texts, code = row.get("images"), row.get("texts", {}), row.get("kind", row.get("task", kind or ""))
    prompts = texts.get("prompt") if isinstance(texts, dict) else None
    if isinstance(prompts, list) and not (prompts and all(isinstance(prompt, str) for prompt in prompts)):
        raise _BadLine("a list of prompts must hold texts, one or more")
    if not isinstance(images, dict) or not _texts_only(images):
        raise _BadLine("images must map roles (output, source, ...) to paths")
    if not isinstance(texts, dict) or not _texts_only({**texts, "prompt": ""} if isinstance(prompts, list) else texts):
        raise _BadLine("texts must map names (prompt, instruction, subject) to texts")
    if not isinstance(code, str):
        raise _BadLine(f"kind {code!r} is no text")
    model, uid = (_name(row, key, default) for key, default in (("image_model", ""), ("uid", str(number))))
    about: dict[str, Any] = {"tags": _tags(row), "category": _name(row, "category", "")}
    draw = row.get("draw", 0)
    if isinstance(draw, bool) or not isinstance(draw, int) or draw < 0:
        raise _BadLine("draw must be a whole number from 0")
    shown = {role: Image(folder / file) for role, file in images.items()}
    verdict = _unshown(images, shown)
    if not isinstance(prompts, list):
        yield Sample(SampleId(OWN, code, model, uid, draw), shown, texts, **about), verdict
        return
    for place, prompt in enumerate(prompts):
        identity = SampleId(OWN, code, model, f"{uid}#{place}", draw)
        yield Sample(identity, shown, {**texts, "prompt": prompt}, group=uid, place=(place,), **about), verdict


def _tags(row: Mapping[str, Any]) -> tuple[str, ...]:
    tags = row.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise _BadLine("tags must be a list of texts")
    return tuple(tags)


def _name(row: Mapping[str, Any], key: str, default: str) -> str:
    """A name that is a text or a number."""
    given = row.get(key)
    if given is not None and (isinstance(given, bool) or not isinstance(given, (str, int, float))):
        raise _BadLine(f"{key} must be a text")
    return default if given is None else str(given)


def _unshown(images: Mapping[str, str], shown: Mapping[str, Image]) -> Verdict | None:
    """The verdict on a sample with an image that is not there."""
    for role, file in images.items():
        if _ADDRESS.match(file):
            reason = f"the image {role} is an address, not a file on this machine: {file[:200]}"
            return unjudged(Status.TOOL_ERROR, reason)
    reason = absent_image(Sample(SampleId(OWN, "", "", ""), shown))
    return unjudged(Status.TOOL_ERROR, reason) if reason else None


def _texts_only(value: dict[Any, Any]) -> bool:
    """Whether the values of a mapping are texts."""
    return all(isinstance(one, str) for one in value.values())


def write_verdicts(path: Path, samples: Sequence[Sample], verdicts: Sequence[Verdict], source: Provenance) -> None:
    """Write one JSON object a line, in the samples' order: identity, scores, status, rationale, trace, provenance."""
    by = asdict(source)

    def lines() -> Iterator[str]:
        for sample, verdict in zip(samples, verdicts, strict=True):
            identity = {"uid": sample.id.uid, "image_model": sample.id.image_model, "kind": sample.id.part}
            about = {"draw": sample.id.draw, "tags": sample.tags, "category": sample.category}
            row = {
                "vieval": SCHEMA,
                **identity,
                **{name: value for name, value in about.items() if value},
                **verdict_document(verdict),
                "sample": fingerprint(sample),
                "provenance": by,
            }
            yield f"{json.dumps(row, allow_nan=False)}\n"

    write_whole(path, lines())


def summary(samples: Sequence[Sample], verdicts: Sequence[Verdict], aspects: Sequence[str]) -> list[str]:
    """A table line an image model: number of samples, mean of each aspect over those scored, failures by status."""
    rows = [("image model", "samples", *aspects, "failed")]
    by_model: dict[str, list[Verdict]] = {}
    for sample, verdict in zip(samples, verdicts, strict=True):
        by_model.setdefault(sample.id.image_model or "-", []).append(verdict)
    for model, found in by_model.items():
        means = [_mean([v.scores[a] for v in found if a in v.scores]) for a in aspects]
        failed = Counter(str(v.status) for v in found if not v.status.usable)
        rows.append((model, str(len(found)), *means, ", ".join(f"{s} {n}" for s, n in failed.items()) or "0"))
    return text_table(rows)


def failures(samples: Sequence[Sample], verdicts: Sequence[Verdict]) -> list[str]:
    """For each status that is a failure, a line with how many there are and what befell the first.

    Of samples that could not be judged every reason has a line: it says what to put into the file.
    """
    first: dict[tuple[str, str], str] = {}
    counted: Counter[tuple[str, str]] = Counter()
    for sample, verdict in zip(samples, verdicts, strict=True):
        if not verdict.status.usable:
            reason = next((step.reason for step in verdict.trace if not step.status.usable), "")
            told = " ".join(reason.split())[:200]
            key = str(verdict.status), told if verdict.status is Status.NOT_APPLICABLE else ""
            counted[key] += 1
            first.setdefault(key, f"{sample.id}: {told}")
    return [f"{key[0]} {n}, the first: {first[key]}" for key, n in counted.items()]


def _mean(values: Sequence[float]) -> str:
    return f"{math.fsum(values) / len(values):.4f} (n {len(values)})" if values else "-"
