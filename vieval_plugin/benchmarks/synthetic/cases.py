"""Instructions without end: for each kind, a random one, and an output of it with a defect."""

from __future__ import annotations

from collections.abc import Callable

from vieval_plugin.benchmarks.synthetic import edit_cases, generation_cases, subject_cases
from vieval_plugin.benchmarks.synthetic.instructions import Drawn, DrawnInstruction, Random
from vieval_plugin.benchmarks.synthetic.strength import quarters
from vieval_plugin.benchmarks.synthetic.worlds import World

BY_QUARTERS = {"wrong_count", "missing_object", "wrong_thing", "extra_thing", "wrong_subject", "twins"}
"""Defects that are there in whole things, or in whole features of a subject, only."""
_CASES: dict[str, Callable[[World, Random], DrawnInstruction]] = {
    "tig": generation_cases.tig,
    "mie": edit_cases.mie,
    "tie": edit_cases.tie,
    "sdig": subject_cases.sdig,
    "sdie": subject_cases.sdie,
    "mcic": subject_cases.mcic,
    "cig": generation_cases.cig,
}
KINDS = tuple(_CASES)


def case(world: World, kind: str, rng: Random) -> DrawnInstruction:
    """A random instruction of a kind."""
    return _CASES[kind](world, rng)


def draw_with_defect(case: DrawnInstruction, defect: str, strength: float, rng: Random) -> tuple[Drawn, float]:
    """An output with a defect of content, and the strength that it has: to the quarter where it goes by whole things."""
    if defect in BY_QUARTERS:
        strength = quarters(strength) / 4
    return case.draw(defect, strength, rng), strength
