"""A user's own samples from a file, their verdicts to a file, and what is said of them at the end."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from vieval_plugin.data.reading.sample_rows import BadLine, address_among, lines_of_file, samples_of_line
from vieval_plugin.errors import VievalError
from vieval_plugin.files import write_whole
from vieval_plugin.images import examine
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.judges.spec import JudgeSpec, lacking
from vieval_plugin.records import SCHEMA, Provenance, fingerprint, verdict_document
from vieval_plugin.run.evaluate import OWN
from vieval_plugin.run.prepare import unjudged
from vieval_plugin.run.runner import absent_image
from vieval_plugin.text_table import text_table


@dataclass
class Given:
    """The samples of a file in order, the line of each, and by their number the verdicts on
    those whose line is bad or that were never made, and what was found when they were."""

    samples: list[Sample] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    decided: dict[int, Verdict] = field(default_factory=dict)
    findings: dict[int, tuple[str, ...]] = field(default_factory=dict)


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
    given = Given()
    for number, line in lines_of_file(path):
        for sample, verdict in _samples(path.parent, number, line, kind):
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
    try:
        for sample, files in samples_of_line(folder, number, line, kind, OWN):
            yield sample, _unshown(files, sample)
    except BadLine as bad:
        row = bad.row
        named = row.get("uid"), row.get("image_model"), row.get("kind", row.get("task", kind))
        uid, model, code = (one if isinstance(one, str) else "" for one in named)
        draw = drawn if isinstance(drawn := row.get("draw", 0), int) else 0
        sample = Sample(SampleId(OWN, code, model, uid or f"line {number}", draw), {})
        yield sample, unjudged(Status.PARSE_FAILURE, str(bad))


def _unshown(files: Mapping[str, str], sample: Sample) -> Verdict | None:
    """The verdict on a sample with an image that is not there; `files` are its images as the line has them."""
    reason = address_among(files) or absent_image(sample)
    return unjudged(Status.TOOL_ERROR, reason) if reason else None


def write_verdicts(path: Path, samples: Sequence[Sample], verdicts: Sequence[Verdict], source: Provenance) -> None:
    """Write one JSON object a line, in the samples' order: identity, scores, status, rationale, trace, provenance."""
    by = asdict(source)

    def lines() -> Iterator[str]:
        for sample, verdict in zip(samples, verdicts, strict=True):
            identity = {"uid": sample.id.uid, "image_model": sample.id.image_model, "kind": sample.kind}
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
