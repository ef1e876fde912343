"""Drawn outputs with their truth, one after another from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from bench.vieval_small.synthetic import edit_cases, generation_cases, subject_cases
from bench.vieval_small.synthetic.instructions import Drawn, DrawnInstruction, Random
from bench.vieval_small.synthetic.quality import spoil
from bench.vieval_small.synthetic.worlds import World, pick
from vieval_plugin.benchmarks.vieval_demo.drawing import Picture
from vieval_plugin.benchmarks.vieval_demo.plan import quarters

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


@dataclass(frozen=True)
class Output:
    """An output: the picture as it is judged, what was in it before it was spoilt, and which defects it has how
    strongly.
    """

    picture: Picture
    drawn: Drawn
    content: str
    content_strength: float
    quality: str
    quality_strength: float


def outputs(world: World, kind: str, rng: np.random.RandomState, number: int) -> tuple[DrawnInstruction, list[Output]]:
    """An instruction of a kind and several outputs of it, each with one defect of content and one of quality.

    A fifth of the strengths are 0, as most image models get some things right, and the others are spread evenly.
    """
    instruction = case(world, kind, rng)
    return instruction, [_output(world, instruction, rng) for _ in range(number)]


def _output(world: World, instruction: DrawnInstruction, rng: np.random.RandomState) -> Output:
    content, quality = pick(instruction.defects, rng), pick(world.quality, rng)
    drawing, content_strength = draw_with_defect(instruction, content, drawn_strength(rng), rng)
    quality_strength = drawn_strength(rng)
    picture = spoil(drawing.picture, quality, quality_strength, rng)
    return Output(picture, drawing, content, content_strength, quality.__name__, quality_strength)


def drawn_strength(rng: np.random.RandomState) -> float:
    """Strength of a defect: none in a fifth, and otherwise as often weak as strong."""
    return 0.0 if rng.random_sample() < 0.2 else float(rng.uniform(0.03, 1))


def several(
    world: World, kind: str, seed: int, cases: int, outputs_each: int
) -> Iterator[tuple[DrawnInstruction, list[Output]]]:
    """Draw so many instructions, each with as many outputs; the same for the same seed."""
    for number in range(cases):
        yield outputs(world, kind, np.random.RandomState([seed, number]), outputs_each)
