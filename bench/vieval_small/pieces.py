"""Drawings on disk: a file a piece, each drawn from its own seed, so that an interrupted run draws what is missing only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from bench.vieval_small.synthetic.instructions import DrawnInstruction, Placed
from bench.vieval_small.synthetic.quality import spoil
from bench.vieval_small.synthetic.samples import drawn_strength, several
from bench.vieval_small.world import TRAINED
from vieval_plugin.backends.metrics.networks.vieval_small import KINDS, conditions, full, small, tokens_of
from vieval_plugin.benchmarks.vieval_demo.drawing import COLOURS, HUES, Picture, Rgb
from vieval_plugin.benchmarks.vieval_demo.toys import Toy

CASES, EACH = 200, 4
"""Instructions in a piece, and outputs of each."""
CROP = 192
"""Pixels of a side of the crop of an output that quality is learnt from."""
CONTENT = tuple(sorted({name for kinds in TRAINED.defects.values() for name in kinds}))
DEFECTS = {defect.__name__: defect for defect in TRAINED.quality}
QUALITY = tuple(DEFECTS)
# four of five crops have what `vieval_demo` has, each kind of which must be told finely; watermarks are learnt slowest
_SPOILING = (*QUALITY, *["noise"] * 16, *["blur"] * 22, *["watermark"] * 31)
LOOKS = len(TRAINED.animals) + len(TRAINED.patterns) + len(TRAINED.garments) + 9
PLACES = 9
"""Things at most that an output shows: rows of `things`, each x, y and opacity, red, green and blue, hues, and which thing."""

Piece = dict[str, "np.ndarray[Any, Any]"]


def draw(folder: Path, numbers: Mapping[str, Sequence[int]], workers: int = 2, cases: int = CASES) -> None:
    """Pieces in a folder, by kind those of the given numbers; those that are there are left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [(path(folder, kind, number), kind, number, cases) for kind, some in numbers.items() for number in some]
    absent = [one for one in wanted if not one[0].exists()]
    bar = tqdm(total=len(absent) * cases * EACH, desc="drawing", unit=" outputs", mininterval=10)
    with bar, ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for _ in pool.map(_drawn, absent):
            bar.update(cases * EACH)


def path(folder: Path, kind: str, number: int) -> Path:
    """The file of a piece."""
    return folder / f"{kind}_{number:03d}.npz"


def _drawn(what: tuple[Path, str, int, int]) -> None:
    whole, kind, number, cases = what
    part = whole.with_suffix(".part.npz")
    arrays: dict[str, Any] = dict(piece(kind, number, cases))
    np.savez(part, **arrays)
    part.replace(whole)


def piece(kind: str, number: int, cases: int = CASES) -> Piece:
    """Instructions of a kind with their outputs, as arrays; the seed is the kind's and the piece's number."""
    found: dict[str, list[Any]] = {}
    seed = number * len(KINDS) + KINDS.index(kind)
    for place, (asked, outputs) in enumerate(several(TRAINED, kind, seed, cases, EACH)):
        rng = np.random.RandomState([seed, place, 1])
        # an output, and what it might have been drawn on alone
        shown = outputs[0].drawn.picture, TRAINED.ground(rng, 0.6)
        spoilt = [_spoilt(picture, rng) for picture in shown]
        row = {
            "condition": conditions(kind, asked.conditions),
            "words": " ".join(tokens_of(kind, asked.texts)),
            "asked": _facts(asked),
            "output": np.stack([small(one.picture) for one in outputs]),
            "sc": [1 - one.content_strength for one in outputs],
            "shown": np.stack([_facts(one.drawn) for one in outputs]),
            "things": np.stack([_things(one.drawn.things) for one in outputs]),
            "wrong": [CONTENT.index(one.content) for one in outputs],
            "full": np.stack([shown for shown, _, _ in spoilt]),
            "pq": [1 - strength for _, strength, _ in spoilt],
            "spoilt": [QUALITY.index(name) for _, _, name in spoilt],
        }
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in found.items()}


def _spoilt(picture: Picture, rng: np.random.RandomState) -> tuple[Any, float, str]:
    """A crop of a picture spoilt anew, how strongly, and by what."""
    name, strength = _SPOILING[rng.randint(len(_SPOILING))], drawn_strength(rng)
    top, left = rng.randint(0, 256 - CROP + 1, 2)
    whole = full(spoil(picture, DEFECTS[name], strength, rng))
    return whole[top : top + CROP, left : left + CROP], strength, name


def _facts(of: DrawnInstruction | Any) -> Any:
    """What is asked for, or shown: how many things of each hue, or what up to two toys look like; zeros for the rest."""
    hues = sum((_hues(one) for one in of.colours), np.zeros(len(HUES))) / 4
    looks = [*map(_looks, of.toys), np.zeros(LOOKS), np.zeros(LOOKS)][:2]
    return np.concatenate([hues, *looks]).astype(np.float32)


def _things(things: Sequence[Placed]) -> Any:
    rows = np.zeros((PLACES, 7 + len(HUES)), np.float32)
    for row, one in zip(rows, things, strict=False):
        x, y = (at / 256 for at in one.centre)
        row[:] = [x, y, one.opacity, *(v / 255 for v in one.ink), *_hues(one.ink), TRAINED.things.index(one.thing)]
    return rows


def _hues(ink: Rgb) -> Any:
    away = np.array([sum((a - b) ** 2 for a, b in zip(ink, COLOURS[hue], strict=True)) for hue in HUES], float)
    near = np.exp(-away / (2 * 40.0**2)) + 1e-9
    return near / near.sum()


def _looks(toy: Toy) -> Any:
    features = ((toy.animal, TRAINED.animals), (toy.belly, TRAINED.patterns), (toy.wear, TRAINED.garments))
    chosen = [np.array([one == name for one in names], float) for name, names in features]
    return np.concatenate([*chosen, np.array([*toy.body, *toy.belly_colour, *toy.wear_colour]) / 255])
