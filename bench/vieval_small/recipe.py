"""`make train-small`: drawings, training, one file of weights and its learning curve, in a folder where it can be interrupted."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from bench.vieval_small import pieces
from bench.vieval_small.export import export
from bench.vieval_small.learn import Plan, loaded, train
from bench.vieval_small.network import PARTS
from vieval_plugin.backends.metrics.networks.vieval_small import KINDS

PIECES = {"generation": 24, "subjects": 16}
"""Pieces of each kind that a part is trained on, where they are not `USUAL`: of prompts more, since each says something else."""
USUAL = 14
HELD_BACK, CHECKED = 2500, 60
"""The number of the piece of each kind that the learning curve is of, and its instructions."""
PLANS = {
    "subjects": Plan((3300,)),
    "quality": Plan((16_000,)),
    "edits": Plan((3300, 1500)),
    "generation": Plan((7000,)),
    "control": Plan((1700,)),
}
"""The parts, those that take longest first."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Train all parts and write `vieval_small.safetensors` and `curve.json` to the folder."""
    parser = argparse.ArgumentParser(prog="python -m bench.vieval_small", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="of drawings, states and weights; what is there is not done again")
    parser.add_argument("--workers", type=int, default=2, help="processes, of one thread each (2)")
    parser.add_argument("--share", type=float, default=1.0, help="of the steps and drawings, for a try (1)")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    used = {part: max(1, round(PIECES.get(part, USUAL) * options.share)) for part in PLANS}
    print(f"vieval_small: seed 0, {options.workers} processes, in {folder}", flush=True)
    pieces.draw(folder / "drawn", {kind: [HELD_BACK] for kind in KINDS}, options.workers, CHECKED)
    drawn = {kind: range(max(used[part] for part in PLANS if kind in PARTS[part][1])) for kind in KINDS}
    pieces.draw(folder / "drawn", drawn, options.workers)
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for part in [
            pool.submit(_trained, folder, part, used[part], _share(plan, options.share)) for part, plan in PLANS.items()
        ]:
            part.result()
    weights = folder / "vieval_small.safetensors"
    (folder / "curve.json").write_text(json.dumps(export(folder, weights), indent=1) + "\n")
    print(f"wrote {weights}, sha256 {hashlib.sha256(weights.read_bytes()).hexdigest()}")


def _share(plan: Plan, share: float) -> Plan:
    return replace(plan, cycles=tuple(max(1, round(steps * share)) for steps in plan.cycles))


def _trained(folder: Path, part: str, number: int, plan: Plan) -> None:
    learnt, checked = (loaded(folder / "drawn", part, some) for some in (range(number), [HELD_BACK]))
    train(part, learnt, checked, plan, folder)
