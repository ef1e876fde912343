"""Summarise a folder of shards for reports: counts over all its verdicts, and a random
sample of its prompts as records.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vieval_plugin import config
from vieval_plugin.judges.contests import candidates_of
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.records import Record
from vieval_plugin.results.shard_verdicts import (
    VerdictFolder,
    input_sample,
    open_shards,
    record_of_row,
    score_columns,
    verdict_tables,
)
from vieval_plugin.text.wording import plural

#: Largest number of prompts read as records; larger folders are sampled.
MOST_PROMPTS = 200_000
#: Equal bins of a histogram, from 0 to 1.
BINS = 10
_MOST_MODELS = 1000
#: Label for all image models beyond the first thousand of a folder.
OTHER_MODELS = "(others)"


@dataclass
class ScoreTotals:
    """Totals of a score."""

    #: Number of scores.
    scored: int = 0
    sum: float = 0.0
    #: Scores by bin; the first bin is below 0.
    histogram: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(BINS + 1, np.int64)
    )

    def add(self, scores: NDArray[np.float64]) -> None:
        """Count scores, ignoring NaN."""
        scores = scores[~np.isnan(scores)]
        self.scored += len(scores)
        self.sum += float(scores.sum())
        # a score such as .3 is in the bin that begins with it
        floors = np.floor(scores * BINS + 1e-9).astype(np.int64)
        bins = np.clip(floors + 1, 0, BINS)
        self.histogram += np.bincount(bins, minlength=BINS + 1)


@dataclass
class ModelTotals:
    """Totals of an image model."""

    #: Verdicts by status.
    statuses: Counter[str] = field(default_factory=Counter)
    scores: dict[str, ScoreTotals] = field(default_factory=dict)


@dataclass(frozen=True)
class FolderTotals:
    """Counts over all verdicts of a folder of shards."""

    #: The folder.
    path: Path
    #: Totals by image model.
    by_model: dict[str, ModelTotals]

    @property
    def verdicts(self) -> int:
        """The number of verdicts."""
        return sum(model.statuses.total() for model in self.by_model.values())


@dataclass(frozen=True)
class ShardSample:
    """A random sample of a folder of shards."""

    #: Records of the sample.
    records: tuple[Record, ...]
    #: Counts over all verdicts.
    totals: FolderTotals
    #: Notes on how the records were sampled.
    notes: tuple[str, ...]


def sample_shards(
    path: Path,
    partial: bool = False,
    max_prompts: int = MOST_PROMPTS,
) -> ShardSample:
    """Count all verdicts of a folder of shards, and read those on a random sample of its prompts.

    Prompts are drawn by a hash of their uid and the seed of the options. The sample
    therefore contains all images of a prompt or none, even across several folders.

    Args:
        path: the folder.
        partial: read incomplete runs too.
        max_prompts: size of the sample.

    Raises:
        VievalError: a file cannot be read, or the run is not complete, unless `partial` is given.
    """
    opened = open_shards(path, partial)
    seed = config.current().statistics.seed
    totals = FolderTotals(path, {})
    draw = _Draw(max_prompts)
    names = opened.plan.schema.scores
    columns = ["uid", "image_model", "status", *(["scores"] if names else [])]
    for _, table in verdict_tables(opened, columns):
        _count(totals, table, names)
        draw.add(_random_keys(table, seed))
    records, repeated = _distinct(_sampled_records(opened, seed, draw.last))
    notes = _notes(
        opened,
        totals,
        draw,
        seed,
        repeated,
    )
    return ShardSample(
        tuple(records),
        totals,
        tuple(notes),
    )


class _Draw:
    """The lowest hashes seen so far: those of the sampled prompts."""

    def __init__(self, max_prompts: int) -> None:
        self._max_prompts = max_prompts
        self._lowest = np.empty(0, np.uint64)
        self.is_all = True
        self.last = np.uint64(2**64 - 1)

    def add(self, keys: NDArray[np.uint64]) -> None:
        lowest = np.union1d(self._lowest, keys[keys <= self.last])
        if len(lowest) > self._max_prompts:
            self.is_all = False
            lowest = lowest[: self._max_prompts]
            self.last = lowest[-1]
        self._lowest = lowest

    @property
    def prompts(self) -> int:
        return len(self._lowest)


def _random_keys(table: Any, seed: int) -> NDArray[np.uint64]:
    """Return a random hash for each row of a table, the same for the same uid."""
    key = str(seed).encode()
    digests = (
        hashlib.blake2b(uid.encode(), digest_size=8, key=key).digest()
        for uid in table["uid"].to_pylist()
    )
    return np.frombuffer(b"".join(digests), np.uint64)


def _count(
    totals: FolderTotals,
    table: Any,
    names: Sequence[str],
) -> None:
    from pyarrow import compute

    columns = list(score_columns(table, names))
    for model in compute.unique(table["image_model"]).to_pylist():
        is_named = model in totals.by_model or len(totals.by_model) < _MOST_MODELS
        label = model if is_named else OTHER_MODELS
        is_model = compute.equal(table["image_model"], model)
        model_totals = totals.by_model.setdefault(label, ModelTotals())
        model_totals.statuses.update(table["status"].filter(is_model).to_pylist())
        for name, column in columns:
            scores = column.filter(is_model.combine_chunks())
            values = scores.to_numpy(zero_copy_only=False).astype(float)
            model_totals.scores.setdefault(name, ScoreTotals()).add(values)


def _sampled_records(
    opened: VerdictFolder,
    seed: int,
    last: np.uint64,
) -> Iterator[Record]:
    for _, table in verdict_tables(opened):
        rows = np.nonzero(_random_keys(table, seed) <= last)[0]
        sampled_rows = table.take(rows).to_pylist()
        yield from (_add_candidates(record_of_row(row, opened)) for row in sampled_rows)


def _add_candidates(record: Record) -> Record:
    """Add the ids of a contest's candidates, which only the input has, to its record;
    other records are unchanged.
    """
    if record.votes is None or record.row is None:
        return record
    candidates = candidates_of(input_sample(record.row))
    return replace(record, candidates=tuple(sample.id for sample in candidates))


def _distinct(records: Iterator[Record]) -> tuple[list[Record], int]:
    """Make the ids of records unique by adding the row to repeated ones; return the
    records and the number of repeats.
    """
    ids = set[SampleId]()
    distinct = list[Record]()
    repeated = 0
    for record in records:
        identity = record.id
        if identity in ids and record.row:
            repeated += 1
            uid = f"{identity.uid} ({record.row.file}:{record.row.row})"
            identity = replace(identity, uid=uid)
        ids.add(identity)
        distinct.append(replace(record, id=identity))
    return distinct, repeated


def _notes(
    opened: VerdictFolder,
    totals: FolderTotals,
    draw: _Draw,
    seed: int,
    repeated: int,
) -> Iterator[str]:
    if opened.note:
        yield f"{opened.note}, so the final numbers may differ"
    if not draw.is_all:
        yield (
            f"{opened.folder.name}: counts use all {totals.verdicts:,} verdicts; "
            f"intervals, tests and pictures use those on {draw.prompts:,} randomly "
            "sampled prompts "
            f"(seed {seed})"
        )
    if repeated:
        yield (
            f"{opened.folder.name}: {plural(repeated, 'verdict')} with the same id as an "
            "earlier one, distinguished by row"
        )
