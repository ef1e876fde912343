"""Selection of samples and contests for a page's tiles: the largest disagreements with people, and a random sample."""

from __future__ import annotations

import math
import random
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from vieval_plugin.judges.protocol import Status
from vieval_plugin.report.page.disagreement import GalleryItem

MOST_TILES = 400
SAMPLED = 100
"""Of `MOST_TILES`, how many are drawn at random, so that a reader sees what is usual as well."""

MOST_VERDICTS = 2000
"""Verdicts on all tiles together: with many judges there are fewer tiles, so that a browser opens the page at once."""

_MOST_SIBLINGS_PER_PROMPT = 5
"""A prompt with at most so many further outputs is shown with all of them, beside one that is worth a look."""
_MOST_SIBLINGS_PER_PAGE = 75
"""How many cards may be there for being beside another."""


def tile_limits(items: Sequence[GalleryItem]) -> tuple[int, int]:
    """Number of tiles, and how many of them are drawn at random, by how many judges there are.

    >>> tile_limits([])
    (400, 100)
    """
    judges = max((len(item.judgements) for item in items), default=1)
    tiles = min(MOST_TILES, MOST_VERDICTS // judges)
    return tiles, tiles * SAMPLED // MOST_TILES


def select_items(
    items: Sequence[GalleryItem], seed: int, tiles: int = MOST_TILES, sampled: int = SAMPLED
) -> list[GalleryItem]:
    """Select the items of a page's tiles, the largest disagreements first, those of each benchmark in turn.

    Every judge has its own among them, and failures have, in turn: what one judge of many gets wrong is not crowded
    out.

    Args:
        items: all samples and contests, of all benchmarks.
        seed: decides which are drawn at random.
        tiles: number of tiles.
        sampled: number of these that are drawn at random.

    >>> select_items([], 0)
    []
    """
    if len(items) <= tiles:
        return by_benchmark_in_turn(items)
    groups: dict[tuple[str, str, str], list[GalleryItem]] = defaultdict(list)
    for item in items:
        groups[_prompt(item)].append(item)
    selected: dict[object, GalleryItem] = {}
    added_sibling_count = 0
    for item in _in_turn(_queues(items)):
        if len(selected) >= tiles - sampled:
            break
        selected[item.id] = item
        siblings = [sibling for sibling in groups[_prompt(item)] if sibling.id not in selected]
        if len(siblings) <= _MOST_SIBLINGS_PER_PROMPT and added_sibling_count + len(siblings) <= min(
            _MOST_SIBLINGS_PER_PAGE, tiles - sampled - len(selected)
        ):
            selected |= {sibling.id: sibling for sibling in siblings}
            added_sibling_count += len(siblings)
    unselected = [item for item in items if item.id not in selected]
    selected |= {item.id: item for item in random.Random(seed).sample(unselected, tiles - len(selected))}
    return by_benchmark_in_turn(selected.values())


def by_benchmark_in_turn(items: Iterable[GalleryItem]) -> list[GalleryItem]:
    """Items by how far apart they are, those of each benchmark in turn."""
    by_benchmark: dict[str, list[GalleryItem]] = defaultdict(list)
    for item in sorted(items, key=order):
        by_benchmark[item.id.benchmark].append(item)
    return list(_in_turn(list(by_benchmark.values())))


def order(item: GalleryItem) -> tuple[float, int, str]:
    """The furthest apart first; of equals no benchmark or kind before others."""
    return -item.disagreement, zlib.crc32(str(item.id).encode()), str(item.id)


def _prompt(item: GalleryItem) -> tuple[str, str, str]:
    return item.id.benchmark, item.id.part, item.record.group or item.id.uid


def _queues(items: Sequence[GalleryItem]) -> list[list[GalleryItem]]:
    """For each benchmark and judge: its items by how far apart they are, and a quarter as many of its failures."""
    by_disagreement: dict[tuple[str, str], list[tuple[float, GalleryItem]]] = defaultdict(list)
    failed: dict[tuple[str, str], list[GalleryItem]] = defaultdict(list)
    for item in items:
        for judgement in item.judgements:
            key = item.id.benchmark, judgement.label
            status = judgement.record.verdict.status
            if not status.usable and status not in (Status.MISSING, Status.NOT_APPLICABLE):
                failed[key].append(item)
            elif status.usable:
                by_disagreement[key].append(
                    (item.disagreement if math.isnan(judgement.disagreement) else judgement.disagreement, item)
                )
    queues = []
    for key in dict.fromkeys((*by_disagreement, *failed)):
        ordered = [item for _, item in sorted(by_disagreement[key], key=lambda pair: (-pair[0], *order(pair[1])))]
        queues.append(_mixed(ordered, sorted(failed[key], key=lambda item: str(item.id))))
    return queues


def _mixed(by_disagreement: Sequence[GalleryItem], failures: Sequence[GalleryItem]) -> list[GalleryItem]:
    mixed: list[GalleryItem] = []
    failure_iterator = iter(failures)
    for number, item in enumerate(by_disagreement):
        mixed.append(item)
        if number % 4 == 3:
            mixed += [failure for failure in [next(failure_iterator, None)] if failure]
    return [*mixed, *failure_iterator]


def _in_turn(queues: Sequence[Sequence[GalleryItem]]) -> Iterator[GalleryItem]:
    """Generate items of each queue in turn, each item once."""
    yielded_ids = set()
    for index in range(max(map(len, queues), default=0)):
        for queue in queues:
            if index < len(queue) and queue[index].id not in yielded_ids:
                yielded_ids.add(queue[index].id)
                yield queue[index]
