"""The rows of shards as samples, read in one pass over their row group."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, groupby
from operator import attrgetter
from pathlib import Path

from vieval_plugin.images import digest, images_of
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import Choice, Image, Sample, Verdict
from vieval_plugin.readers.columns import ColumnMap, rows_of
from vieval_plugin.readers.places import Place
from vieval_plugin.readers.samples import SampleRow, samples_in_rows
from vieval_plugin.records import verdict_document
from vieval_plugin.run.addresses import allowed_hosts, fetched_rows
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.run.shards.inputs import rows_in_group
from vieval_plugin.run.shards.plan import Plan, Shard
from vieval_plugin.run.shards.schema import VerdictSchema
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import remove_secrets
from vieval_plugin.text.yaml_json import JsonObject

_OVERHEAD = 2048  # bytes that a row takes beside its images


@dataclass(frozen=True)
class ShardRow:
    """A sample of a shard."""

    shard: Shard
    #: Number of the row in the file.
    number: int
    #: Number among the row's prompts.
    prompt: int
    row: SampleRow
    #: Digest of the output; None before it is computed, or without an output file.
    digest: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes that it takes in memory."""
        sources = (image.source for image in images_of(self.row.sample))
        return _OVERHEAD + sum(
            len(source) for source in sources if isinstance(source, bytes)
        )


def rows_of_shards(
    plan: Plan,
    root: Place,
    indexes: Path,
    shards: Sequence[Shard],
) -> Iterator[ShardRow]:
    """The samples of shards of one row group, in order, without digests.

    Args:
        plan: that the shards are of.
        root: the folder that the paths of files start at.
        indexes: the folder of the indexes of tar files.
        shards: in order.

    Raises:
        VievalError: the row group cannot be read, or not to its end.
    """
    file = plan.by_path[shards[0].path]
    table = rows_in_group(
        file,
        root,
        indexes,
        shards[0].group,
        [shard.numbers for shard in shards],
    )
    remaining = iter(shards)
    shard = next(remaining)
    for number, row in rows_of(table, ColumnMap(plan.columns), prefix=f"{file.path}:"):
        while number - 1 not in shard.numbers:
            shard = next(remaining)
        samples = samples_in_rows(
            [(number, row)],
            table.folder,
            plan.kind or None,
            table.unit,
        )
        for prompt, sample in zip(count(), samples):
            yield ShardRow(shard, number - 1, prompt, sample)


def fetch_images(rows: Iterator[ShardRow], hosts: Sequence[str]) -> Iterator[ShardRow]:
    """Rows with the images that are addresses of allowed hosts; one that cannot be had is its row's
    status.

    The files of a shard lie in a folder of their own until the row that they are of is handed on.
    """
    if not hosts:
        yield from rows
        return
    allowed = allowed_hosts(hosts)
    for _, shard_rows in groupby(rows, key=attrgetter("shard")):
        read_rows = list(shard_rows)
        with tempfile.TemporaryDirectory(prefix="vieval-") as folder:
            samples = fetched_rows(
                [row.row for row in read_rows],
                allowed,
                Path(folder),
            )
            for row, sample in zip(read_rows, samples, strict=True):
                yield replace(row, row=_load_images(sample))


def _load_images(row: SampleRow) -> SampleRow:
    """A row whose fetched images are bytes."""
    if not row.addresses or row.verdict or not isinstance(row.sample, Sample):
        return row
    images = dict(row.sample.images)
    for role, image in row.sample.images.items():
        if role in row.addresses and isinstance(image.source, Path):
            images[role] = Image(image.source.read_bytes(), image.origin)
    return replace(row, sample=replace(row.sample, images=images))


def output_digest(row: SampleRow) -> bytes | None:
    """SHA-256 of the judged file; None for a contest or an unreadable file."""
    if isinstance(row.sample, Contest) or "output" not in row.sample.images:
        return None
    output = row.sample.images["output"]
    if isinstance(output.source, bytes):
        return hashlib.sha256(output.source).digest()
    with suppress(VievalError):
        return bytes.fromhex(digest(output))
    return None


def verdict_row(row: ShardRow, outcome: Outcome, schema: VerdictSchema) -> JsonObject:
    """A verdict as the columns of its file have it."""
    judged = row.row.sample
    verdict = outcome.verdict
    reason, rationale, findings = remove_secrets(
        [verdict.reason, verdict.rationale, verdict.findings]
    )
    texts = {
        "file": row.shard.path,
        "uid": judged.id.uid,
        "image_model": judged.id.image_model,
        "kind": judged.kind,
        "category": "" if isinstance(judged, Contest) else judged.category,
        "group": judged.group if judged.group != judged.id.uid else "",
        "status": str(verdict.status),
        "reason": " ".join(reason.split()),
        "rationale": rationale,
    }
    if schema.trace:
        texts["trace"] = json.dumps(verdict_document(verdict)["trace"], allow_nan=False)
    all_findings = dict.fromkeys((*findings, *row.row.findings))
    return {
        **{name: _encodable(text) for name, text in texts.items()},
        "row": row.number,
        "prompt": row.prompt,
        "draw": judged.id.draw,
        "digest": row.digest,
        "findings": list(map(_encodable, all_findings)),
        "scores": dict(verdict.scores),
        "bounds": {name: list(ends) for name, ends in verdict.bounds.items()},
        "sub_scores": _sub_scores(verdict, schema),
        "choice": _choice(verdict.choice),
        "calls": outcome.calls,
        "tokens": {"input": outcome.input_tokens, "output": outcome.output_tokens},
        "seconds": outcome.seconds,
    }


def _sub_scores(verdict: Verdict, schema: VerdictSchema) -> list[JsonObject]:
    scores_by_name = {
        step.label: list(step.scores) for step in verdict.trace if step.scores
    }
    for name, score in verdict.scores.items():
        if name not in schema.scores:
            scores_by_name[name] = [score]
    scores_by_question = {
        _encodable(name): scores for name, scores in scores_by_name.items()
    }
    return [
        {"question": question, "scores": scores}
        for question, scores in scores_by_question.items()
    ]


def _choice(choice: Choice | None) -> JsonObject | None:
    if choice is None:
        return None
    votes = [{"order": order, "vote": vote} for order, vote in choice.votes.items()]
    preferences = [
        {"order": order, "preference": preference}
        for order, preference in choice.preferences.items()
    ]
    return {
        "votes": votes,
        "preferences": preferences,
        "scores": list(map(dict, choice.scores)),
    }


def _encodable(text: str) -> str:
    """A text without lone surrogates, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode(errors="replace").decode()
