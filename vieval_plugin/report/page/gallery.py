"""Selection of samples and contests for a page's tiles: the largest disagreements with people,
and a random sample.
"""

from __future__ import annotations

import math
import random
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import TypeAlias

from vieval_plugin.judges.protocol import Status
from vieval_plugin.report.page.disagreement import GalleryItem
from vieval_plugin.stats.bootstrap import grouped

MOST_TILES = 400
#: Of `MOST_TILES`, how many are drawn at random, so that a reader sees what is usual as well.
SAMPLED = 100

#: Verdicts on all tiles together: with many judges there are fewer tiles, so that a browser opens
#: the page at once.
MOST_VERDICTS = 2000

#: Benchmark and judge.
_JudgeKey: TypeAlias = tuple[str, str]
_UNASKED = (Status.MISSING, Status.NOT_APPLICABLE)
_BEFORE_A_FAILURE = 4


def tile_limits(items: Sequence[GalleryItem]) -> tuple[int, int]:
    """Number of tiles, and how many of them are drawn at random, by how many judges there are.

    >>> tile_limits([])
    (400, 100)
    """
    judges = max((len(item.judgements) for item in items), default=1)
    tiles = min(MOST_TILES, MOST_VERDICTS // judges)
    sampled = tiles * SAMPLED // MOST_TILES
    return tiles, sampled


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
    turns = _alternate(_queues(items))
    in_turn = list(islice(turns, tiles - sampled))
    selected = {item.id for item in in_turn}
    unselected = [item for item in items if item.id not in selected]
    room = tiles - len(in_turn)
    sample = random.Random(seed).sample(unselected, room)
    return alternate_benchmarks([*in_turn, *sample])


def alternate_benchmarks(items: Iterable[GalleryItem]) -> list[GalleryItem]:
    """Items by how far apart they are, those of each benchmark in turn."""
    ordered = sorted(items, key=order)
    by_benchmark = grouped((item.id.benchmark, item) for item in ordered)
    queues = list(by_benchmark.values())
    return list(_alternate(queues))


def order(item: GalleryItem) -> tuple[float, int, str]:
    """The furthest apart first; of equals no benchmark or kind before others."""
    name = str(item.id)
    return -item.disagreement, zlib.crc32(name.encode()), name


def _queues(items: Sequence[GalleryItem]) -> list[list[GalleryItem]]:
    """For each benchmark and judge: its items by disagreement, with one of its failures after every
    four.
    """
    judged = defaultdict[_JudgeKey, list[tuple[float, GalleryItem]]](list)
    failed = defaultdict[_JudgeKey, list[GalleryItem]](list)
    for item in sorted(items, key=order):
        for judgement in item.judgements:
            key = (item.id.benchmark, judgement.label)
            status = judgement.record.verdict.status
            if status.usable:
                distance = judgement.disagreement
                if math.isnan(distance):
                    distance = item.disagreement
                judged[key].append((distance, item))
            elif status not in _UNASKED:
                failed[key].append(item)
    keys = dict.fromkeys((*judged, *failed))
    return [_queue(judged[key], failed[key]) for key in keys]


def _queue(
    judged: Sequence[tuple[float, GalleryItem]],
    failed: Sequence[GalleryItem],
) -> list[GalleryItem]:
    """A judge's items, the furthest first, with a failure after every four."""
    by_distance = sorted(judged, key=lambda pair: -pair[0])
    furthest = [item for _, item in by_distance]
    turns = math.ceil(len(furthest) / _BEFORE_A_FAILURE)
    queue = list[GalleryItem]()
    for turn in range(max(turns, len(failed))):
        start = turn * _BEFORE_A_FAILURE
        end = start + _BEFORE_A_FAILURE
        queue += furthest[start:end]
        queue += failed[turn : turn + 1]
    return queue


def _alternate(queues: Sequence[Sequence[GalleryItem]]) -> Iterator[GalleryItem]:
    """Generate items of each queue in turn, each item once."""
    yielded_ids = set()
    for turn in zip_longest(*queues):
        for item in filter(None, turn):
            if item.id not in yielded_ids:
                yielded_ids.add(item.id)
                yield item
