"""`vieval train`: judges from training data, one module a recipe; here is what all of them are told."""

from __future__ import annotations

import argparse
import importlib
import math
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command
from vieval_plugin.errors import VievalError

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands
    from vieval_plugin.training.tuning import Tuning


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "train",
        "train a judge, or tune its backbone",
        "You need a GPU for models of useful size.",
        ("ADIEE's scorer", "vieval train adiee data --base Qwen/Qwen2.5-VL-7B-Instruct --out scorer"),
        ("a backbone", "vieval train sft train.jsonl --base Qwen/Qwen2.5-VL-7B-Instruct --out tuned"),
    )
    actions = parser.add_subparsers(required=True, metavar="RECIPE")
    for recipe in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{recipe.name}").add(actions)


def add_tuning(parser: argparse.ArgumentParser, examples: str, groups: str) -> None:
    """The options of every training; `examples` are what a step sees, `groups` what is held out whole."""
    parser.add_argument("--base", required=True, help="the image-text model to train: a folder, or a name on the hub")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the model; a training that was stopped goes on there"
    )
    parser.add_argument(
        "--tune", choices=["lora", "full"], default="lora", help="train adapters or all weights (default: %(default)s)"
    )
    for name, kind, default, meaning in (
        ("--steps", int, 1000, "number of optimisation steps"),
        ("--batch-size", int, 8, f"{examples} in a batch, in each process"),
        ("--accumulate", int, 1, "batches in a step"),
        ("--learning-rate", float, 1e-4, "highest learning rate"),
        ("--held-out", float, 0.05, f"share of {groups} that are held out to measure on"),
        ("--seed", int, 0, "seed of everything random"),
    ):
        parser.add_argument(name, type=kind, default=default, help=f"{meaning} (default: %(default)s)")


def tuning_of(options: argparse.Namespace) -> Tuning:
    """The options as they were given.

    Raises:
        VievalError: one of them cannot be.
    """
    from vieval_plugin.training.tuning import Tuning

    for name in ("steps", "batch_size", "accumulate"):
        if getattr(options, name) < 1:
            raise VievalError(f"--{name.replace('_', '-')} {getattr(options, name)}: give 1 or more")
    if not 0 < options.learning_rate < math.inf:
        raise VievalError(f"--learning-rate {options.learning_rate:g}: give a number above 0")
    if not 0 <= options.held_out < 1:
        raise VievalError(f"--held-out {options.held_out:g}: give a share from 0 on and below 1")
    return Tuning(
        base=options.base,
        tune=options.tune,
        steps=options.steps,
        batch_size=options.batch_size,
        accumulate=options.accumulate,
        learning_rate=options.learning_rate,
        held_out=options.held_out,
        seed=options.seed,
    )
