"""Drawn outputs with their truth, one after another from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vieval_plugin.benchmarks.synthetic.cases import case, draw_with_defect
from vieval_plugin.benchmarks.synthetic.chance import pick
from vieval_plugin.benchmarks.synthetic.drawing import Picture
from vieval_plugin.benchmarks.synthetic.instructions import Drawn, DrawnInstruction
from vieval_plugin.benchmarks.synthetic.quality import spoil
from vieval_plugin.benchmarks.synthetic.worlds import World


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
