"""Which samples and contests a page shows as cards: those on which judge and people are furthest apart, and a sample."""

from __future__ import annotations

import math
import random
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from vieval_plugin.judges.protocol import Status
from vieval_plugin.report.page.disagreement import GalleryItem

MOST = 400
SAMPLED = 100
"""Of `MOST`, how many are drawn at random, so that a reader sees what is usual as well."""

_SIBLINGS = 5
"""A prompt with at most so many further outputs is shown with all of them, beside one that is worth a look."""
_BESIDE = 75
"""How many cards may be there for being beside another."""


def chosen(items: Sequence[GalleryItem], seed: int, most: int = MOST, sampled: int = SAMPLED) -> list[GalleryItem]:
    """The cards of a page, those furthest apart first, those of each benchmark in turn.

    Every judge has its own among them, and failures have, in turn: what one judge of many gets wrong is not crowded out.

    Args:
        items: all samples and contests, of all benchmarks.
        seed: what decides which are drawn at random.
        most: how many cards.
        sampled: how many of these are drawn at random.

    >>> chosen([], 0)
    []
    """
    if len(items) <= most:
        return _ordered(items)
    groups: dict[tuple[str, str, str], list[GalleryItem]] = defaultdict(list)
    for item in items:
        groups[_prompt(item)].append(item)
    found: dict[object, GalleryItem] = {}
    beside = 0
    for item in _in_turn(_queues(items)):
        if len(found) >= most - sampled:
            break
        found[item.id] = item
        others = [one for one in groups[_prompt(item)] if one.id not in found]
        if len(others) <= _SIBLINGS and beside + len(others) <= min(_BESIDE, most - sampled - len(found)):
            found |= {one.id: one for one in others}
            beside += len(others)
    rest = [item for item in items if item.id not in found]
    found |= {item.id: item for item in random.Random(seed).sample(rest, most - len(found))}
    return _ordered(found.values())


def _ordered(items: Iterable[GalleryItem]) -> list[GalleryItem]:
    by_benchmark: dict[str, list[GalleryItem]] = defaultdict(list)
    for item in sorted(items, key=order):
        by_benchmark[item.id.benchmark].append(item)
    return list(_in_turn(list(by_benchmark.values())))


def order(item: GalleryItem) -> tuple[float, int, str]:
    """The furthest apart first; of equals no benchmark or kind before others."""
    return -item.apart, zlib.crc32(str(item.id).encode()), str(item.id)


def _prompt(item: GalleryItem) -> tuple[str, str, str]:
    return item.id.benchmark, item.id.part, item.record.group or item.id.uid


def _queues(items: Sequence[GalleryItem]) -> list[list[GalleryItem]]:
    """For each benchmark and judge: its items by how far apart they are, and a quarter as many of its failures."""
    apart: dict[tuple[str, str], list[tuple[float, GalleryItem]]] = defaultdict(list)
    failed: dict[tuple[str, str], list[GalleryItem]] = defaultdict(list)
    for item in items:
        for one in item.judgements:
            key = item.id.benchmark, one.label
            status = one.record.verdict.status
            if not status.usable and status not in (Status.MISSING, Status.NOT_APPLICABLE):
                failed[key].append(item)
            elif status.usable:
                apart[key].append((item.apart if math.isnan(one.apart) else one.apart, item))
    queues = []
    for key in dict.fromkeys((*apart, *failed)):
        ordered = [item for _, item in sorted(apart[key], key=lambda pair: (-pair[0], *order(pair[1])))]
        queues.append(_mixed(ordered, sorted(failed[key], key=lambda item: str(item.id))))
    return queues


def _mixed(many: Sequence[GalleryItem], few: Sequence[GalleryItem]) -> list[GalleryItem]:
    mixed: list[GalleryItem] = []
    rest = iter(few)
    for number, item in enumerate(many):
        mixed.append(item)
        if number % 4 == 3:
            mixed += [one for one in [next(rest, None)] if one]
    return [*mixed, *rest]


def _in_turn(queues: Sequence[Sequence[GalleryItem]]) -> Iterator[GalleryItem]:
    """One of each queue after another, each item once."""
    seen = set()
    for place in range(max(map(len, queues), default=0)):
        for queue in queues:
            if place < len(queue) and queue[place].id not in seen:
                seen.add(queue[place].id)
                yield queue[place]
