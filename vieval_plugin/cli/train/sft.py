"""`vieval train sft`: a backbone tuned on a judge's conversations."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Commands = _SubParsersAction[argparse.ArgumentParser]


def add(actions: Commands) -> None:
    parser = actions.add_parser("sft", help="a judge's backbone, on conversations that were exported")
    parser.add_argument("data", nargs="+", type=Path, help="JSONL of `vieval export --trainer trl`")
    parser.add_argument("--base", required=True, help="image-text model: a folder or a name on the hub")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of the model; one that is begun is gone on with"
    )
    parser.add_argument(
        "--tune", choices=["lora", "full"], default="lora", help="adapters or every weight (default: %(default)s)"
    )
    for name, kind, default, told in (
        ("--steps", int, 1000, "optimisation steps"),
        ("--batch-size", int, 8, "turns at once, in each process"),
        ("--accumulate", int, 1, "batches to a step"),
        ("--learning-rate", float, 1e-4, "the highest"),
        ("--held-out", float, 0.05, "share of samples kept for measuring"),
        ("--seed", int, 0, "of everything random"),
    ):
        parser.add_argument(name, type=kind, default=default, help=f"{told} (default: %(default)s)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.errors import VievalError
    from vieval_plugin.files import require_writable
    from vieval_plugin.harmless import say
    from vieval_plugin.results.cards import CARD
    from vieval_plugin.training.conversations_file import read
    from vieval_plugin.training.sft import Tuning, split, tune

    for name in ("steps", "batch_size", "accumulate"):
        if getattr(options, name) < 1:
            raise VievalError(f"--{name.replace('_', '-')} {getattr(options, name)}: give 1 or more")
    if not 0 < options.learning_rate < math.inf:
        raise VievalError(f"--learning-rate {options.learning_rate:g}: give a number above 0")
    if not 0 <= options.held_out < 1:
        raise VievalError(f"--held-out {options.held_out:g}: give a share from 0 on and below 1")
    turns = read(options.data)
    require_writable(options.out / CARD)
    tuning = Tuning(
        options.base,
        options.tune,
        options.steps,
        options.batch_size,
        options.accumulate,
        options.learning_rate,
        options.held_out,
        options.seed,
    )
    learnt, held_out = split(turns, tuning)
    if not learnt:
        raise VievalError(f"--held-out {options.held_out:g} leaves nothing to learn from; give less")
    losses = tune(learnt, held_out, tuning, options.out)
    say(f"seed {tuning.seed}", f"learnt from {len(learnt)} turns, {len(held_out)} held out")
    say(f"loss {losses.first:.3f} in the first tenth, {losses.last:.3f} in the last")
    if losses.held_out_after is not None:
        before = "-" if losses.held_out_before is None else f"{losses.held_out_before:.3f}"
        say(f"held out: loss {before} before, {losses.held_out_after:.3f} after")
    say(f"wrote {options.out}")
    return 0
