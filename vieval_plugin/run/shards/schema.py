"""Schema of a file of verdicts on a shard. It depends only on the judge.

A folder of shards has `plan.json` and, in `verdicts/`, a parquet file a shard, named by a hash.
Each row is a verdict:

| column | type | what it holds |
|---|---|---|
| `file` | string | the input file, relative to the plan's root |
| `row` | int64 | the row in that file, or the sample in that tar, from 0; with `file` and `prompt` it is the key |
| `prompt` | int32 | index of the prompt if the row has a list of prompts, else 0 |
| `uid`, `image_model`, `kind`, `category` | string | as the row has them; without a uid, `FILE:ROW` |
| `group` | string | as the row has it, such as the template of its prompt; empty if the prompt is its own group |
| `draw` | int32 | index among the model's images for the same conditions |
| `digest` | binary(32) | SHA-256 of the output's file; null for a contest, and without a file |
| `status` | string | `ok`, `api_error`, ... as `Status` has them |
| `reason` | string | why there is no score; empty if there is a score |
| `scores` | struct of doubles | a field an aspect, then further scores, null where not rated; if the judge scores |
| `bounds` | struct of double pairs | the ends of a score that is known to an interval; only of judges with such |
| `sub_scores` | list of structs | `question`, and its `scores`, a list of doubles |
| `choice` | struct | of a contest lists of `votes`, `preferences` and `scores`, the last by candidate; else null |
| `rationale` | string | the judge's words |
| `findings` | list of strings | what is counted over a run |
| `calls` | int32 | number of model answers used |
| `tokens` | struct of int64 | `input` and `output`, as far as the server told |
| `seconds` | double | from its first question to the verdict |
| `trace` | string | on request: the steps, as JSON in the form of a verdict's line |

The file's metadata has, under the key `vieval`, a JSON object: `version` of VIEval, `run` (the hash
of what an answer depends on), `provenance`, `shard` (`name`, `file`, `group`, `first`, `rows`),
`verdicts`, `statuses` by number, `reasons` of failures by status and number, `calls`, `from_store`
and `repeated` (answers from the store, and to questions that were asked once with others, since the
worker's shard before this ended), `tokens`, and `began` and `ended` in seconds since 1970. In a
file that `vieval shards --compact` made, it has `shards` instead: a list of such objects, a shard
and a row group each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vieval_plugin.readers.places import arrow
from vieval_plugin.text.yaml_json import JsonObject, read_json

if TYPE_CHECKING:
    from vieval_plugin.run.prepare import PreparedJudge

#: Metadata key of VIEval.
METADATA = b"vieval"
#: Columns that differ between two runs of the same.
COSTS = ("calls", "tokens", "seconds")
_MOST_REASONS = 20  # of a shard, in its metadata
_LONGEST_REASON = 200


@dataclass(frozen=True)
class VerdictSchema:
    """The columns of a judge's verdicts."""

    scores: tuple[str, ...]
    #: Scores may be intervals.
    intervals: bool = False
    #: Traces are kept.
    trace: bool = False

    def arrow(self) -> Any:
        """The schema in Arrow's terms; VievalError where pyarrow is not installed."""
        pyarrow = arrow()
        text = pyarrow.string()
        number = pyarrow.float64()
        scores = {"scores": pyarrow.struct([(name, number) for name in self.scores])}
        numbers = pyarrow.list_(number)
        bounds = {"bounds": pyarrow.struct([(name, numbers) for name in self.scores])}
        candidates = {"scores": pyarrow.list_(scores["scores"])}
        if not self.scores:  # of a struct without fields there can be no column
            scores = bounds = candidates = {}
        sub_score = pyarrow.struct([("question", text), ("scores", numbers)])
        count = pyarrow.int64()
        columns = {
            "file": text,
            "row": count,
            "prompt": pyarrow.int32(),
            "uid": text,
            "image_model": text,
            "kind": text,
            "category": text,
            "group": text,
            "draw": pyarrow.int32(),
            "digest": pyarrow.binary(32),
            "status": text,
            "reason": text,
            **scores,
            **(bounds if self.intervals else {}),
            "sub_scores": pyarrow.list_(sub_score),
            "choice": _choice_type(pyarrow, candidates),
            "rationale": text,
            "findings": pyarrow.list_(text),
            "calls": pyarrow.int32(),
            "tokens": pyarrow.struct([("input", count), ("output", count)]),
            "seconds": number,
            **({"trace": text} if self.trace else {}),
        }
        return pyarrow.schema(list(columns.items()))


def schema_of(
    prepared: PreparedJudge,
    judge_options: Any,
    trace: bool,
) -> VerdictSchema:
    """The schema of a judge's verdicts."""
    spec = prepared.spec
    calibrated = prepared.provenance.calibrated_scores
    scores = dict.fromkeys(
        (
            *spec.aspects,
            *spec.dimensions,
            *spec.grades(judge_options),
            *calibrated,
        )
    )
    return VerdictSchema(tuple(scores), spec.intervals, trace)


@dataclass
class Tally:
    """Counts over the verdicts of a shard, for its metadata, or of several."""

    verdicts: int = 0
    #: Verdicts by status.
    statuses: Counter[str] = field(default_factory=Counter)
    #: Failures by status and reason.
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Answers of a model.
    calls: int = 0
    #: Those that came from the store.
    from_store: int = 0
    #: Those to questions that were asked once with others.
    repeated: int = 0
    #: Tokens in and out.
    tokens: Counter[str] = field(default_factory=Counter)

    def add(self, row: JsonObject) -> None:
        """Count a verdict in the form of `verdict_row`."""
        self.verdicts += 1
        self.statuses[row["status"]] += 1
        if row["reason"]:
            self.reasons[row["status"], row["reason"][:_LONGEST_REASON]] += 1
        self.calls += row["calls"]
        self.tokens.update(row["tokens"])

    def document(self) -> JsonObject:
        """The counts as JSON values; of the reasons those that are there most often."""
        reasons: dict[str, dict[str, int]] = {}
        for (status, reason), times in self.reasons.most_common():
            if len(by_reason := reasons.setdefault(status, {})) < _MOST_REASONS:
                by_reason[reason] = times
        return {**vars(self), "reasons": reasons}

    def add_document(self, document: JsonObject) -> None:
        """Count what another tally's `document` says."""
        self.verdicts += document["verdicts"]
        self.statuses.update(document["statuses"])
        for status, reasons in document["reasons"].items():
            self.reasons.update(
                {(status, reason): times for reason, times in reasons.items()}
            )
        self.calls += document["calls"]
        self.from_store += document["from_store"]
        self.repeated += document["repeated"]
        self.tokens.update(document["tokens"])


def encoded_tables(tables: Iterable[Any], metadata: JsonObject) -> bytes:
    """A file of the verdicts in tables, a row group each, with what its metadata is to say."""
    pyarrow = arrow()
    sink = pyarrow.BufferOutputStream()
    writer = None
    described = {METADATA: json.dumps(metadata, allow_nan=False).encode()}
    for table in (table.replace_schema_metadata(described) for table in tables):
        writer = writer or pyarrow.parquet.ParquetWriter(
            sink,
            table.schema,
            compression="zstd",
        )
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
    if writer:
        writer.close()
    return bytes(sink.getvalue())


def metadata_in(footer: bytes) -> JsonObject | None:
    """The metadata in the footer of a parquet file; None if it is not a verdicts file.

    It is found by its key, a text of Thrift's compact protocol that another text follows: a folder
    has a hundred thousand footers, and reading one whole takes twenty times as long.
    """
    field = b"\x18"
    key = bytes([len(METADATA)]) + METADATA
    position = footer.rfind(field + key + field)
    if position < 0:
        return None
    position += len(METADATA) + 3
    length = shift = 0
    while True:
        byte = footer[position]
        length |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            break
    try:
        document = read_json(footer[position : position + length])
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _choice_type(pyarrow: Any, candidates: JsonObject) -> Any:
    """The type of a choice: lists of structs and no maps, which Hugging Face datasets cannot
    read.
    """
    text = pyarrow.string()
    vote = pyarrow.struct([("order", text), ("vote", text)])
    preference = pyarrow.struct([("order", text), ("preference", pyarrow.float64())])
    fields = {"votes": pyarrow.list_(vote), "preferences": pyarrow.list_(preference)}
    return pyarrow.struct([*fields.items(), *candidates.items()])
