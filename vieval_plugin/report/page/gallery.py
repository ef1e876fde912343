"""Selection of samples and contests for a page's tiles: the largest disagreements with people,
and a random sample.
"""

from __future__ import annotations

import math
import random
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest

from vieval_plugin.judges.protocol import Status
from vieval_plugin.report.page.disagreement import GalleryItem
from vieval_plugin.stats.bootstrap import grouped

MOST_TILES = 400
#: Of `MOST_TILES`, how many are drawn at random, so that a reader sees what is usual as well.
SAMPLED = 100

#: Verdicts on all tiles together: with many judges there are fewer tiles, so that a browser opens
#: the page at once.
MOST_VERDICTS = 2000


def tile_limits(items: Sequence[GalleryItem]) -> tuple[int, int]:
    """Number of tiles, and how many of them are drawn at random, by how many judges there are.

    >>> tile_limits([])
    (400, 100)
    """
    judges = max((len(item.judgements) for item in items), default=1)
    tiles = min(MOST_TILES, MOST_VERDICTS // judges)
    return tiles, tiles * SAMPLED // MOST_TILES


def select_items(
    items: Sequence[GalleryItem],
    seed: int,
    tiles: int = MOST_TILES,
    sampled: int = SAMPLED,
) -> list[GalleryItem]:
    """Select the items of a page's tiles, the largest disagreements first, those of each benchmark
    in turn.

    Every judge has its own among them, and failures have, in turn: what one judge of many gets
    wrong is not crowded out.

    Args:
        items: all samples and contests, of all benchmarks.
        seed: decides which are drawn at random.
        tiles: number of tiles.
        sampled: number of these that are drawn at random.

    >>> select_items([], 0)
    []
    """
    if len(items) <= tiles:
        return alternate_benchmarks(items)
    in_turn = list(_alternate(_queues(items)))[: tiles - sampled]
    selected = {item.id: item for item in in_turn}
    unselected = [item for item in items if item.id not in selected]
    sample = random.Random(seed).sample(unselected, tiles - len(in_turn))
    return alternate_benchmarks([*in_turn, *sample])


def alternate_benchmarks(items: Iterable[GalleryItem]) -> list[GalleryItem]:
    """Items by how far apart they are, those of each benchmark in turn."""
    ordered = sorted(items, key=order)
    by_benchmark = grouped((item.id.benchmark, item) for item in ordered)
    return list(_alternate([*by_benchmark.values()]))


def order(item: GalleryItem) -> tuple[float, int, str]:
    """The furthest apart first; of equals no benchmark or kind before others."""
    name = str(item.id)
    return -item.disagreement, zlib.crc32(name.encode()), name


def _queues(items: Sequence[GalleryItem]) -> list[list[GalleryItem]]:
    """For each benchmark and judge: its items by disagreement, with one of its failures after every
    four.
    """
    by_judge: dict[tuple[str, str], list[tuple[float, GalleryItem]]] = defaultdict(list)
    failed: dict[tuple[str, str], list[GalleryItem]] = defaultdict(list)
    for item in sorted(items, key=order):
        for judgement in item.judgements:
            key = (item.id.benchmark, judgement.label)
            status = judgement.record.verdict.status
            if status.usable:
                has_ratings = not math.isnan(judgement.disagreement)
                by_judge[key].append(
                    (judgement.disagreement if has_ratings else item.disagreement, item)
                )
            elif status not in (Status.MISSING, Status.NOT_APPLICABLE):
                failed[key].append(item)
    queues = []
    for key in dict.fromkeys((*by_judge, *failed)):
        pairs = sorted(by_judge[key], key=lambda pair: -pair[0])
        ordered = [item for _, item in pairs]
        starts = range(0, len(ordered), 4)
        fours = [ordered[n : n + 4] for n in starts]
        failures = ([item] for item in failed[key])
        mixed = zip_longest(fours, failures, fillvalue=list[GalleryItem]())
        queues.append([*chain.from_iterable(chain.from_iterable(mixed))])
    return queues


def _alternate(queues: Sequence[Sequence[GalleryItem]]) -> Iterator[GalleryItem]:
    """Generate items of each queue in turn, each item once."""
    yielded_ids = set()
    for index in range(max(map(len, queues), default=0)):
        for queue in queues:
            if index < len(queue) and queue[index].id not in yielded_ids:
                yielded_ids.add(queue[index].id)
                yield queue[index]
