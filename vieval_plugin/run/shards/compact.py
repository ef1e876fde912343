"""Compaction: the files of shards that are done, joined into few large ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.run.shards.folder import JOINED, ShardFolder, joined_shards, read_shards, shard_files
from vieval_plugin.run.shards.plan import Plan
from vieval_plugin.run.shards.schema import encoded_tables, version
from vieval_plugin.run.shards.under_way import open_shards

MOST_BYTES = 256 << 20


def compact(folder: ShardFolder, plan: Plan, most: int = MOST_BYTES) -> tuple[int, int]:
    """Join the files of single shards into files of about so many bytes; how many were joined, and into how many.

    A file is removed when the one that it was joined into is there, so that whatever ends this loses nothing.

    Raises:
        VievalError: a worker has a shard open, or a file cannot be read or written.
    """
    if open_shards(folder.under_way):
        raise VievalError(f"{folder.path}: workers have shards open; join the files when they have ended")
    drop_outdated(folder)
    single = [file for file, _ in shard_files(folder) if not file.name.startswith(JOINED)]
    order = {shard.name: number for number, shard in enumerate(plan.shards())}
    files = sorted((file for file in single if file.stem in order), key=lambda file: order[file.stem])
    batches = [batch for batch in _batches(files, most) if len(batch) > 1]
    for batch in batches:
        _join(folder, [pair for file in batch for pair in read_shards(file)], batch)
    # those whose removal an earlier compaction did not come to
    folder.remove(
        {file.stem for file in folder.files()} & order.keys() - {file.stem for file, _ in shard_files(folder)}
    )
    return sum(map(len, batches)), len(batches)


def _batches(files: Sequence[Path], most: int) -> Iterator[list[Path]]:
    batch: list[Path] = []
    size = 0
    for file in files:
        own = file.stat().st_size
        if batch and size + own > most:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += own
    if batch:
        yield batch


def drop_outdated(folder: ShardFolder) -> None:
    """Write joined files anew, less the shards that count elsewhere: those that were judged again."""
    for file, counted in list(shard_files(folder)):
        if file.name.startswith(JOINED) and counted != joined_shards(file):
            left = [pair for pair in read_shards(file) if pair[0]["shard"]["name"] in counted]
            if left:
                _join(folder, left, [file])
            else:
                folder.remove([file.stem])


def _join(folder: ShardFolder, shards: Sequence[tuple[dict[str, Any], Any]], files: Sequence[Path]) -> None:
    """Write a file of shards that lay in other files, and remove those."""
    documents, tables = zip(*shards, strict=True)
    provenance = documents[0]["provenance"]
    described = [{name: value for name, value in document.items() if name != "provenance"} for document in documents]
    names = "".join(document["shard"]["name"] for document in documents)
    metadata = {"version": version(), "provenance": provenance, "shards": described}
    joined = f"{JOINED}{hashlib.sha256(names.encode()).hexdigest()[:24]}"
    folder.write(joined, encoded_tables(tables, metadata))
    folder.remove(file.stem for file in files)
