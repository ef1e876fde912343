"""Stratified random choice of the samples or contests to label, prompt by prompt: the same for
the same seed.
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
    """The numbers of those to be labelled, in a random order of prompts; images of one prompt
    follow each other.

    Prompts of one group follow each other too. So the first prompts of the order, how many they may
    be, are a random part of all of each image model and kind.

    Each image model, or pair of them in contests, gets as many labels as the others, where it has
    as many outputs. Within one, kinds are drawn in proportion to their numbers, so that the mean
    over its labels is an unbiased estimate of the mean over its outputs. Which outputs are drawn
    depends on their uid and draw alone: image models that made images under the same conditions are
    labelled on the same ones, as far as their numbers allow, which makes differences between them
    paired.

    Args:
        judged: samples, or contests, in any order.
        count: how many are wanted, from 1; all are chosen where there are no more.
        seed: of everything random; the order of `judged` has no influence.

    Raises:
        VievalError: there is nothing to label.
    """
    if not judged:
        raise VievalError("there are no samples to label")
    by_makers = _numbers_by_makers(judged)
    sizes = {
        makers: sum(map(len, kinds.values())) for makers, kinds in by_makers.items()
    }
    chosen_numbers = []
    for makers, share in _split_evenly(sizes, count, seed).items():
        kinds = by_makers[makers]
        for kind, number_of_kind in _split_proportionally(
            {k: len(numbers) for k, numbers in kinds.items()}, share, seed
        ).items():
            candidates = sorted(
                kinds[kind],
                key=lambda n: _chance(
                    seed, "drawn", judged[n].id.uid, judged[n].id.draw
                ),
            )
            chosen_numbers += candidates[:number_of_kind]

    def sort_key(number: int) -> tuple[str, ...]:
        identity = judged[number].id
        group = judged[number].group
        prompts = [
            (identity.benchmark, identity.part, name) for name in (group, identity.uid)
        ]
        return *(_chance(seed, "prompt", *prompt) for prompt in prompts), _chance(
            seed, "shown", str(identity)
        )

    return sorted(chosen_numbers, key=sort_key)


def _numbers_by_makers(
    judged: Sequence[Judged],
) -> dict[tuple[str, ...], dict[str, list[int]]]:
    """The numbers of samples by image model, or pair of them, and kind."""
    by_makers: dict[tuple[str, ...], dict[str, list[int]]] = {}
    for number, sample in enumerate(judged):
        by_kind = by_makers.setdefault(_makers(sample), {})
        by_kind.setdefault(sample.kind, []).append(number)
    return by_makers


def strata(judged: Sequence[Judged]) -> Counter[tuple[str, tuple[str, ...]]]:
    """Count samples by kind and image model, or pair of them."""
    return Counter((sample.kind, _makers(sample)) for sample in judged)


def swapped(judged: Sequence[Judged], seed: int) -> list[bool]:
    """Draw the contests whose second candidate is shown first: half of them, rounded down; True
    for these.
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
    """Split a count as evenly as the sizes allow; who gets one more is drawn."""
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
    """Split a count in proportion to the sizes by largest remainders; equal ones are drawn."""
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
    """A random place in an order, the same for the same names."""
    return hashlib.sha256(json.dumps([seed, *names]).encode()).hexdigest()
