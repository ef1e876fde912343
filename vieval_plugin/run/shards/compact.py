"""Compaction: the files of shards that are done, joined into few large ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vieval_plugin.run.shards.folder import JOINED, ShardFolder
from vieval_plugin.run.shards.plan import Plan
from vieval_plugin.run.shards.schema import encoded_tables
from vieval_plugin.run.shards.under_way import open_shards
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.versions import VERSION

MOST_BYTES = 256 << 20


def compact(folder: ShardFolder, plan: Plan) -> tuple[int, int]:
    """Join the files of single shards into files of about `MOST_BYTES`; how many were joined, and
    into how many.

    A file is removed when the one that it was joined into is there, so that whatever ends this
    loses nothing.

    Raises:
        VievalError: a worker has a shard open, or a file cannot be read or written.
    """
    if open_shards(folder.under_way):
        raise VievalError(
            f"{folder.name}: workers still have open shards; wait until they finish, "
            "then try again"
        )
    drop_outdated(folder)
    counted_files = [file for file, _ in folder.counted()]
    single = {file for file in counted_files if not file.startswith(JOINED)}
    order = {shard.name: number for number, shard in enumerate(plan.shards())}
    joinable = single & order.keys()
    sizes = {file: size for file, size in folder.sizes().items() if file in joinable}
    ordered_files = sorted(sizes, key=order.__getitem__)
    batches = [batch for batch in _batches(ordered_files, sizes) if len(batch) > 1]
    for batch in batches:
        pairs = [pair for file in batch for pair in folder.tables(file)]
        _join(folder, pairs, batch)
    # those whose removal an earlier compaction did not come to
    counted_names = {file for file, _ in folder.counted()}
    folder.remove(folder.sizes().keys() & order.keys() - counted_names)
    return sum(map(len, batches)), len(batches)


def _batches(files: Sequence[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Files one after another, of at most `MOST_BYTES` together, or one that is larger."""
    batch: list[str] = []
    size = 0
    for file in files:
        if batch and size + sizes[file] > MOST_BYTES:
            yield batch
            batch = []
            size = 0
        batch.append(file)
        size += sizes[file]
    if batch:
        yield batch


def drop_outdated(folder: ShardFolder) -> None:
    """Write joined files anew, less the shards that count elsewhere: those that were judged
    again.
    """
    for file, valid_names in list(folder.counted()):
        if file.startswith(JOINED) and valid_names != folder.joined(file):
            valid_shards = [
                (document, table)
                for document, table in folder.tables(file)
                if document["shard"]["name"] in valid_names
            ]
            if valid_shards:
                _join(folder, valid_shards, [file])
            else:
                folder.remove([file])


def _join(
    folder: ShardFolder,
    shards: Sequence[tuple[dict[str, Any], Any]],
    files: Sequence[str],
) -> None:
    """Write a file of shards that lay in other files, and remove those."""
    documents, tables = zip(*shards, strict=True)
    provenance = documents[0]["provenance"]
    described = [_drop_provenance(document) for document in documents]
    names = "".join(document["shard"]["name"] for document in documents)
    metadata = {
        "version": VERSION,
        "provenance": provenance,
        "shards": described,
    }
    digest = hashlib.sha256(names.encode()).hexdigest()
    folder.write(f"{JOINED}{digest[:24]}", encoded_tables(tables, metadata))
    folder.remove(files)


def _drop_provenance(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "provenance"}
