"""Choose the samples or contests to label: a random sample, stratified and by prompt,
that depends only on the seed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from vieval_plugin.judges.contests import Judged, candidates_of
from vieval_plugin.text.errors import VievalError


def choose(judged: Sequence[Judged], count: int, seed: int) -> list[int]:
    """Choose the numbers of the samples to label. Prompts are in random order; images
    of one prompt are consecutive.

    Prompts of one group are consecutive too. Any number of prompts from the start of
    the order is therefore a random sample of all, for each image model and kind.

    Each image model, or pair of them in contests, gets the same number of labels if it
    has enough outputs. Within a model, kinds are drawn in proportion to their numbers,
    so that the mean over its labels is an unbiased estimate of the mean over its
    outputs. The outputs drawn depend only on their uid and draw: image models with the
    same conditions are labelled on the same ones where possible, so that differences
    between them are paired.

    Args:
        judged: samples, or contests, in any order.
        count: number to choose, at least 1; all are chosen if there are fewer.
        seed: of all random choices; the order of `judged` has no influence.

    Raises:
        VievalError: there are no samples.
    """
    if not judged:
        raise VievalError("no samples to label")
    by_makers = _numbers_by_makers(judged)
    sizes = {
        makers: sum(map(len, kinds.values())) for makers, kinds in by_makers.items()
    }
    chosen_numbers = []

    def drawing_key(number: int) -> str:
        identity = judged[number].id
        return _chance(seed, "drawn", identity.uid, identity.draw)

    for makers, share in _split_evenly(sizes, count, seed).items():
        kinds = by_makers[makers]
        kind_sizes = {k: len(numbers) for k, numbers in kinds.items()}
        for kind, size in _split_proportionally(kind_sizes, share, seed).items():
            chosen_numbers += sorted(kinds[kind], key=drawing_key)[:size]

    def sort_key(number: int) -> tuple[str, ...]:
        identity = judged[number].id
        names = (judged[number].group, identity.uid)
        prompts = [(identity.benchmark, identity.part, name) for name in names]
        prompt_chances = (_chance(seed, "prompt", *prompt) for prompt in prompts)
        return *prompt_chances, _chance(seed, "shown", str(identity))

    return sorted(chosen_numbers, key=sort_key)


def _numbers_by_makers(
    judged: Sequence[Judged],
) -> dict[tuple[str, ...], dict[str, list[int]]]:
    """Numbers of samples by image model, or pair of models, and kind."""
    by_makers: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for number, sample in enumerate(judged):
        by_kind = by_makers.setdefault(_makers(sample), {})
        by_kind.setdefault(sample.kind, []).append(number)
    return by_makers


def strata(judged: Sequence[Judged]) -> Counter[tuple[str, tuple[str, ...]]]:
    """Count samples by kind and image model, or pair of models."""
    return Counter((sample.kind, _makers(sample)) for sample in judged)


def swapped(judged: Sequence[Judged], seed: int) -> list[bool]:
    """Return for each contest whether its candidates are shown in reverse order: True
    for a random half, rounded down.
    """
    order = sorted(
        range(len(judged)), key=lambda n: _chance(seed, "side", str(judged[n].id))
    )
    shown_first = set(order[: len(order) // 2])
    return [number in shown_first for number in range(len(judged))]


def _makers(judged: Judged) -> tuple[str, ...]:
    return tuple(
        sorted(candidate.id.image_model for candidate in candidates_of(judged))
    )


def _split_evenly(
    sizes: Mapping[tuple[str, ...], int], count: int, seed: int
) -> dict[tuple[str, ...], int]:
    """Split a count as evenly as the sizes allow, with remainders at random."""
    shares = {}
    remaining = count
    names = sorted(
        sizes, key=lambda name: (sizes[name], _chance(seed, "evenly", *name))
    )
    for number, name in enumerate(names):
        shares[name] = min(sizes[name], remaining // (len(names) - number))
        remaining -= shares[name]
    return shares


def _split_proportionally(
    sizes: Mapping[str, int], count: int, seed: int
) -> dict[str, int]:
    """Split a count in proportion to the sizes by largest remainders, with ties at
    random.
    """
    exact = {name: count * size / sum(sizes.values()) for name, size in sizes.items()}
    shares = {name: math.floor(share) for name, share in exact.items()}
    order = sorted(
        sizes,
        key=lambda name: (
            shares[name] - exact[name],
            _chance(seed, "in proportion", name),
        ),
    )
    for name in order[: count - sum(shares.values())]:
        shares[name] += 1
    return shares


def _chance(seed: int, *names: Hashable) -> str:
    """Random sort key, the same for the same names."""
    return hashlib.sha256(json.dumps([seed, *names]).encode()).hexdigest()
