"""Places in words without end: with colours that are not those of things, and with names that nobody knows.

So who counts what a prompt asks for must tell things from the place that they are in.
"""

from __future__ import annotations

import numpy as np

from bench.vieval_small.synthetic.worlds import pick
from vieval_plugin.benchmarks.vieval_demo.drawing import HUES

_BEFORE = ("in", "on", "by", "near", "under", "before", "behind", "at", "inside", "across")
_LIKE = ("wide", "old", "quiet", "tall", "broken", "painted", "empty", "wet", "narrow", "bright", "dark", "round")
_NOUNS = (
    *("field", "wall", "valley", "garden", "market", "harbour", "bridge", "cave", "stage", "carpet", "roof", "river"),
    *("square", "tent", "cellar", "yard", "tunnel", "ladder", "fence", "island", "path", "kitchen"),
)
_TIMES = ("at dawn", "in winter", "at noon", "in the rain", "after the storm", "by moonlight")
_SYLLABLES = ("ba", "lo", "mi", "ru", "te", "sha", "vo", "ki", "den", "ar", "pul", "so", "gra", "nel", "tis", "wo")


def somewhere(rng: np.random.RandomState) -> str:
    """A place as a prompt names it."""
    place = f"{pick(_BEFORE, rng)} {pick(('a', 'a', 'the'), rng)} {_like(rng)} {_noun(rng)}"
    turn = rng.random_sample()
    if turn < 0.2:
        return f"{pick(_BEFORE, rng)} {_name(rng)}"
    if turn < 0.35:
        return f"{place} {pick(_TIMES, rng)}"
    if turn < 0.5:
        return f"{place} with a {_like(rng)} {_noun(rng)}"
    if turn < 0.6:
        return f"{pick(_BEFORE, rng)} the {_noun(rng)} of {_name(rng)}"
    return place


def _like(rng: np.random.RandomState) -> str:
    turn = rng.random_sample()
    return pick(HUES, rng) if turn < 0.45 else _name(rng) if turn < 0.6 else pick(_LIKE, rng)


def _noun(rng: np.random.RandomState) -> str:
    return _name(rng) if rng.random_sample() < 0.45 else pick(_NOUNS, rng)


def _name(rng: np.random.RandomState) -> str:
    return "".join(pick(_SYLLABLES, rng) for _ in range(rng.randint(2, 5)))
