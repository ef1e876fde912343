"""Read records from the JSON of verdicts and targets.

A document of another version raises VievalError. A document with malformed fields
raises ValueError, KeyError, TypeError or AttributeError, which the readers of files
report with the file and the line.
"""

from __future__ import annotations

import marshal
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vieval_plugin.config.section import redacted_options
from vieval_plugin.judges.contests import Votes
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Verdict
from vieval_plugin.records import SCHEMA, Generation, Provenance, Record, Unjudged
from vieval_plugin.text.errors import UPGRADE, VievalError
from vieval_plugin.text.untrusted import overlong, path_of
from vieval_plugin.text.yaml_json import JsonObject, read_json

#: What a malformed document raises while it is read.
MALFORMED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    VievalError,
)
_ID = TypeAdapter(SampleId)
_VERDICT = TypeAdapter(Verdict)
_PROVENANCE = TypeAdapter(Provenance)
_VOTES = TypeAdapter(Votes)
_GENERATION_ADAPTER = TypeAdapter(Generation)
_DEEPEST = 60  # as of JSON


def read_response(text: str) -> tuple[SampleId, Verdict, Provenance]:
    """Read what `records.response_json` writes; VievalError for any other text."""
    return _response(_document(text, "verdict"))


def read_record(
    response: str,
    target: str,
    tokens: int | None = None,
    summary: Path | None = None,
) -> Record:
    """Read a record from a host's response and target, with the host's token count and
    summary; VievalError if either is not from VIEval or their sample ids differ.
    """
    responded = _document(response, "verdict")
    targeted, conditions, fields = _target(target)
    identity, verdict, provenance = _response(responded)
    _require_same_id(identity, targeted, conditions is not None)
    generation = sample = None
    if conditions and "made" in responded:
        generation = _GENERATION_ADAPTER.validate_python(responded["made"])
        sample = _generated_sample(conditions, identity, generation)
    return plain(
        Record(
            identity,
            verdict,
            provenance,
            fingerprint=str(responded.get("sample", "")),
            generation=generation,
            sample=sample,
            tokens=tokens,
            summary=summary,
            **fields,
        )
    )


def _require_same_id(
    identity: SampleId,
    targeted: SampleId,
    is_generated: bool,
) -> None:
    wanted = replace(identity, image_model="", draw=0) if is_generated else identity
    if targeted != wanted:
        raise VievalError(
            f"response and target must have the same sample id, got {identity} and "
            f"{targeted}"
        )


def plain(record: Record) -> Record:
    """Return the record; VievalError if it has an overlong name, or a step deeper than
    any judge asks.
    """
    verdict = record.verdict
    source = record.provenance
    # a group may be a prompt of any length: it is compared and never shown
    labels = (
        record.kind,
        record.category,
        *record.tags,
        *verdict.findings,
        *verdict.scores,
    )
    by = (
        source.judge,
        source.backbone,
        source.label,
        source.pack,
        *source.settings,
        *source.aspects,
    )
    names = (
        name
        for sample in (record.id, *record.candidates)
        for name in (sample.part, sample.image_model, sample.uid)
    )
    paths = [step.path for step in verdict.trace]
    path_parts = chain(*paths)
    reason = overlong(*names, *labels, *by, *path_parts)
    if reason:
        raise VievalError(reason)
    deep = max(map(len, paths), default=0)
    if deep > _DEEPEST:
        raise VievalError(
            f"a step must be nested at most {_DEEPEST} levels deep, got {deep}"
        )
    return record


def read_target(text: str) -> tuple[SampleId, JsonObject]:
    """Read the sample id and the record fields of a target; VievalError if it is not a
    target.
    """
    identity, _, fields = _target(text)
    return identity, fields


@lru_cache(maxsize=1 << 14)
def _target(text: str) -> tuple[SampleId, Sample | None, JsonObject]:
    """Read the sample id of a target, the generator's conditions if present, and the
    record fields.

    Cached, because all judges of a benchmark have the same targets.
    """
    document = _document(text, "ratings")
    identity = _ID.validate_python(document["id"])
    votes = _VOTES.validate_python(document["votes"]) if "votes" in document else None
    fields = {
        "ratings": _ratings(document["ratings"]),
        "rated": tuple(map(_ratings, document.get("rated", ()))),
        **_labels(document),
        "place": tuple(map(int, document["place"])),
        "votes": votes,
        "candidates": tuple(map(_ID.validate_python, document.get("candidates", ()))),
    }
    conditions = _conditions(identity, document) if "texts" in document else None
    return identity, conditions, fields


def _labels(document: JsonObject) -> JsonObject:
    return {
        "kind": str(document["kind"]),
        "group": str(document["group"]),
        "tags": tuple(map(str, document["tags"])),
        "category": str(document.get("category", "")),
    }


def _ratings(by_aspect: JsonObject) -> Mapping[str, tuple[float, ...]]:
    return {
        aspect: tuple(math.nan if value is None else _rating(value) for value in values)
        for aspect, values in by_aspect.items()
    }


def _rating(value: Any) -> float:
    if type(value) not in (int, float) or math.isinf(value):
        raise ValueError(f"a rating must be a finite number or null, got {value!r}")
    return float(value)


def read_unjudged(response: str, target: str) -> Unjudged:
    """Read a generated but unjudged image from a host's response and target;
    VievalError for any other text.
    """
    responded = _document(response, "made")
    document = _document(target, "images")
    identity = _ID.validate_python(responded["id"])
    conditions = _conditions(_ID.validate_python(document["id"]), document)
    _require_same_id(identity, conditions.id, True)
    generation = _GENERATION_ADAPTER.validate_python(responded["made"])
    return Unjudged(
        _generated_sample(conditions, identity, generation),
        generation,
        judge=str(responded["judge"]),
        setting=str(responded["setting"]),
        reason=str(responded["reason"]),
        findings=tuple(map(str, responded["findings"])),
        status=Status(responded.get("status", Status.NO_IMAGE)),
    )


def _conditions(identity: SampleId, document: JsonObject) -> Sample:
    images = document["images"].items()
    texts = document["texts"].items()
    return Sample(
        identity,
        {str(role): Image(path_of(path)) for role, path in images},
        {str(name): str(text) for name, text in texts},
        **_labels(document),
    )


def _generated_sample(
    conditions: Sample,
    identity: SampleId,
    generation: Generation,
) -> Sample:
    """Build the sample that a generator made from conditions; without an output if it
    made no image.
    """
    output = {"output": Image(path_of(generation.image))} if generation.image else {}
    return replace(conditions, id=identity, images={**conditions.images, **output})


def _response(document: JsonObject) -> tuple[SampleId, Verdict, Provenance]:
    identity = _ID.validate_python(document["id"])
    return (
        identity,
        read_verdict(document["verdict"]),
        read_provenance(document["provenance"]),
    )


def read_verdict(document: JsonObject) -> Verdict:
    """Read a verdict from its JSON; pydantic's ValidationError if it is malformed,
    VievalError for impossible scores.
    """
    verdict = _VERDICT.validate_python(document)
    for aspect, score in document["scores"].items():
        # a cosine may be negative
        if type(score) not in (int, float) or not -1 <= score <= 1:
            raise VievalError(
                f"score {aspect} must be a number from -1 to 1, got {score!r}; "
                "restore the file"
            )
    return verdict


def read_provenance(document: JsonObject) -> Provenance:
    """Read a provenance from its JSON; pydantic's ValidationError if it is malformed."""
    return _provenance(marshal.dumps(document))


@lru_cache(maxsize=64)
def _provenance(document: bytes) -> Provenance:
    """Thousands of rows share one provenance, including its options. Marshalling is the
    fastest way to a cache key.
    """
    source = _PROVENANCE.validate_python(marshal.loads(document))
    # another version may have kept more
    return replace(source, options=redacted_options(source.options))


def _document(text: str, part: str) -> JsonObject:
    try:
        document = read_json(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or part not in document or "id" not in document:
        raise VievalError(f"not a VIEval {part}: {text[:60]!r}")
    return current(document)


def current(document: JsonObject) -> JsonObject:
    """Return a document in this version's form; VievalError if its version is later."""
    written = document.get("vieval")
    if written != SCHEMA:
        raise VievalError(
            f"unsupported schema version {written} (this VIEval reads {SCHEMA}); "
            f"{UPGRADE}"
        )
    return document
