"""Images of shards that are addresses: fetched a shard at a time, and kept nowhere."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from vieval_plugin.judges.protocol import Image, Sample
from vieval_plugin.readers.samples import SampleRow
from vieval_plugin.run.addresses import allowed_hosts, fetched_rows
from vieval_plugin.run.shards.rows import ShardRow


def with_fetched(rows: Iterator[ShardRow], hosts: Sequence[str]) -> Iterator[ShardRow]:
    """Rows with the images that are addresses of allowed hosts; one that cannot be had is its row's status.

    The files of a shard lie in a folder of their own until the row that they are of is handed on.
    """
    allowed = allowed_hosts(hosts)
    for _, shard_rows in groupby(rows, key=attrgetter("shard")):
        of = list(shard_rows)
        with tempfile.TemporaryDirectory(prefix="vieval-") as folder:
            fetched = fetched_rows([row.row for row in of], allowed, Path(folder))
            for row, sample in zip(of, fetched, strict=True):
                yield replace(row, row=_in_memory(sample))


def _in_memory(row: SampleRow) -> SampleRow:
    """A row whose fetched images are bytes."""
    if not row.addresses or row.verdict or not isinstance(row.sample, Sample):
        return row
    images = {
        role: Image(image.source.read_bytes(), image.origin)
        if role in row.addresses and isinstance(image.source, Path)
        else image
        for role, image in row.sample.images.items()
    }
    return replace(row, sample=replace(row.sample, images=images))
