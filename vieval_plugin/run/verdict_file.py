"""Verdicts on a user's own samples, written to a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from vieval_plugin.judges.contests import Contest, Judged
from vieval_plugin.judges.protocol import Sample, Verdict
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import SCHEMA, Provenance, fingerprint, verdict_document


def write_verdicts(path: Path, samples: Sequence[Sample], verdicts: Sequence[Verdict], source: Provenance) -> None:
    """Write one JSON object a line, in the samples' order: identity, scores, status, rationale, trace, provenance."""
    write_all(path, samples, [(verdicts, source)])


def write_all(path: Path, samples: Sequence[Judged], judged: Sequence[tuple[Sequence[Verdict], Provenance]]) -> None:
    """`write_verdicts` of several judges, one after another in one file."""
    lines = (line for verdicts, source in judged for line in verdict_lines(samples, verdicts, source))
    write_whole(path, (f"{line}\n" for line in lines))


def verdict_lines(samples: Sequence[Judged], verdicts: Sequence[Verdict], source: Provenance) -> Iterator[str]:
    """A verdict a line, as JSON; that on a contest names its candidates."""
    by = asdict(source)
    for sample, verdict in zip(samples, verdicts, strict=True):
        identity = {"uid": sample.id.uid, "image_model": sample.id.image_model, "kind": sample.kind}
        extras = {"draw": sample.id.draw, "tags": sample.tags}
        if isinstance(sample, Contest):
            named = [(candidate.id.image_model, candidate.id.uid, candidate.id.draw) for candidate in sample.candidates]
            extras |= {"group": sample.group, "candidates": named}
        else:
            extras |= {"category": sample.category}
        row = {
            "vieval": SCHEMA,
            **identity,
            **{name: value for name, value in extras.items() if value},
            **verdict_document(verdict),
            "sample": fingerprint(sample),
            "provenance": by,
        }
        yield json.dumps(row, allow_nan=False)
