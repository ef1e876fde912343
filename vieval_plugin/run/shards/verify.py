"""Verification of a folder of shards: each input row has its verdict once, and was the row that
is there now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vieval_plugin.readers.places import place_at
from vieval_plugin.run.shards.folder import ShardFolder
from vieval_plugin.run.shards.inputs import (
    InputFile,
    hidden_images,
    map_in_threads,
    require_same,
)
from vieval_plugin.run.shards.plan import Plan, Shard
from vieval_plugin.run.shards.rows import output_digest, rows_of_shards
from vieval_plugin.text.errors import VievalError

#: Images whose digests are computed again, each of another shard.
_DIGESTS = 32
_IDENTITY = ("uid", "image_model", "kind", "draw")


@dataclass
class Verified:
    """Findings on a folder."""

    #: Lines on what makes it incomplete or wrong.
    problems: list[str] = field(default_factory=list)
    #: Lines on what is as it was given.
    notes: list[str] = field(default_factory=list)
    #: Images whose digests were computed again.
    digests: int = 0
    #: Hashes of the names of samples, a shard each.
    identities: list[NDArray[np.int64]] = field(default_factory=list)


def verify(folder: ShardFolder, plan: Plan) -> Verified:
    """Compare a folder with its plan and its inputs.

    Args:
        folder: whose files are read.
        plan: its plan.

    Raises:
        VievalError: a file of verdicts cannot be read.
    """
    verified = Verified()
    planned = {shard.name: shard for shard in plan.shards()}
    rng = np.random.default_rng(0)
    looked_at = set(rng.permutation(sorted(planned))[:_DIGESTS].tolist())
    changed_files = set(_changed_files(verified, plan))
    verified_names = set()
    for file, names in folder.counted():
        for document, table in folder.tables(
            file, ["row", "prompt", "digest", *_IDENTITY]
        ):
            name = document["shard"]["name"]
            if name not in planned:
                verified.problems.append(f"{file}: not a shard of the plan; remove it")
            elif name in names:
                verified_names.add(name)
                _check_rows(verified, file, planned[name], table)
                if name in looked_at and planned[name].path not in changed_files:
                    _check_digest(
                        verified,
                        folder,
                        plan,
                        planned[name],
                        table,
                        rng,
                    )
    _note_missing(verified, planned, verified_names)
    verified.problems += hidden_images(plan.files, plan.columns.values())
    _note_duplicates(verified)
    return verified


def _note_missing(
    verified: Verified,
    planned: Mapping[str, Shard],
    verified_names: Collection[str],
) -> None:
    if missing_shards := [
        shard for name, shard in planned.items() if name not in verified_names
    ]:
        first = missing_shards[0]
        verified.problems.append(
            f"no verdicts in {len(missing_shards):,} of {len(planned):,} shards "
            f"(first: {first.path}, rows {first.first} to {first.first + first.rows - 1})"
        )


def _changed_files(verified: Verified, plan: Plan) -> Iterator[str]:
    root = place_at(plan.root)

    def problem_of(file: InputFile) -> str:
        try:
            require_same(file, root)
        except VievalError as error:
            return str(error)
        return ""

    for file, problem in zip(
        plan.files,
        map_in_threads(problem_of, plan.files),
        strict=True,
    ):
        if problem:
            verified.problems.append(problem)
            yield file.path


def _check_rows(
    verified: Verified,
    file: str,
    shard: Shard,
    table: Any,
) -> None:
    rows, prompts = (table.column(name).to_numpy() for name in ("row", "prompt"))
    if not np.array_equal(
        np.unique(rows), np.arange(shard.first, shard.first + shard.rows)
    ):
        verified.problems.append(
            f"{file}: must contain exactly rows {shard.first} to "
            f"{shard.first + shard.rows - 1}"
        )
    if len(np.unique(np.stack([rows, prompts]), axis=1).T) != len(rows):
        verified.problems.append(f"{file}: contains the same row several times")
    identities = zip(
        *(table.column(name).to_pylist() for name in _IDENTITY), strict=True
    )
    verified.identities.append(np.fromiter(map(hash, identities), np.int64, len(rows)))


def _check_digest(
    verified: Verified,
    folder: ShardFolder,
    plan: Plan,
    shard: Shard,
    table: Any,
    rng: np.random.Generator,
) -> None:
    """Compute the digest of one image of a shard again."""
    verdict = table.slice(int(rng.integers(max(table.num_rows, 1))), 1).to_pylist()[0]
    samples = rows_of_shards(
        plan,
        place_at(plan.root),
        folder.indexes,
        [replace(shard, first=verdict["row"], rows=1)],
    )
    rows = [row for row in samples if row.prompt == verdict["prompt"]]
    if verdict["digest"] is None or not rows or rows[0].row.addresses:
        return
    verified.digests += 1
    if output_digest(rows[0].row) != verdict["digest"]:
        verified.problems.append(
            f"{shard.path}: the image of row {verdict['row']} has changed since "
            "it was judged"
        )


def _note_duplicates(verified: Verified) -> None:
    """Note how many samples are called as others are: rows tell them apart."""
    if not verified.identities:
        return
    _, counts = np.unique(np.concatenate(verified.identities), return_counts=True)
    if repeated := int(counts[counts > 1].sum()):
        verified.notes.append(
            f"{repeated:,} rows have the same uid, image model, kind and draw as "
            "another row; all are kept"
        )
