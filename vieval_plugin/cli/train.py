"""`vieval train`: judges from training data."""

from __future__ import annotations

import argparse
import math
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command, number_between, output_path
from vieval_plugin.text.errors import VievalError

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands
    from vieval_plugin.training.tuning import Tuning


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "train",
        "train a judge, or tune its backbone",
        "You need a GPU for models of useful size.",
        (
            "ADIEE's scorer",
            "vieval train adiee data --base Qwen/Qwen2.5-VL-7B-Instruct --out scorer",
        ),
        (
            "a backbone",
            "vieval train sft train.jsonl --base Qwen/Qwen2.5-VL-7B-Instruct --out tuned",
        ),
    )
    actions = parser.add_subparsers(required=True, metavar="RECIPE")
    _add_adiee(actions)
    _add_sft(actions)


def _add_adiee(actions: Commands) -> None:
    parser = add_command(
        actions,
        "adiee",
        "train ADIEE's scorer: a token and a head on an image-text model",
        "Score with it by `vieval score --judge FOLDER`.",
        (
            "with adapters",
            "vieval train adiee data --base Qwen/Qwen2.5-VL-7B-Instruct --out scorer",
        ),
        (
            "in batches of 4, 8 to a step",
            (
                "vieval train adiee data --base Qwen/Qwen2.5-VL-7B-Instruct --out scorer "
                "--batch-size 4 --accumulate 8"
            ),
        ),
    )
    parser.add_argument(
        "data", type=Path, help="the folder that `vieval data adiee` wrote"
    )
    _add_tuning(parser, "edits", "scenes")
    parser.add_argument(
        "--answer",
        choices=["token", "number"],
        default="token",
        help=(
            "train the token and its head, or to say a number, the paper's ablation (default: "
            "%(default)s)"
        ),
    )
    parser.add_argument(
        "--images",
        choices=["two", "joined"],
        default="two",
        help="show source and output as two images, or joined (default: %(default)s)",
    )
    parser.set_defaults(run=_train_adiee)


def _train_adiee(options: argparse.Namespace) -> int:
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.results.training_records import TRAINING_RECORD
    from vieval_plugin.text.escaping import say
    from vieval_plugin.training.adiee import dataset, folder, loop
    from vieval_plugin.training.adiee.held_out import figures
    from vieval_plugin.training.adiee.loop import Recipe
    from vieval_plugin.training.tuning import split

    tuning = _tuning_of(options)
    edits, manifest = dataset.read(options.data)
    require_writable(options.out / TRAINING_RECORD)
    recipe = Recipe(tuning, options.answer, options.images)
    learnt, held_out = split(edits, attrgetter("group"), tuning)
    trained, conversations, curves = loop.train(recipe, learnt, held_out, options.out)
    held_out_figures = figures(trained, conversations, held_out, tuning.batch_size)
    folder.write(options.out, trained, recipe)
    folder.training_record(
        options.out, recipe, manifest, (learnt, held_out), curves, held_out_figures
    )
    (options.out / loop.CHECKPOINT).unlink(missing_ok=True)
    say(
        f"seed {tuning.seed}",
        f"learnt from {len(learnt)} edits, {len(held_out)} held out",
    )
    if held_out_figures:
        agreed = held_out_figures.agreement
        say(
            f"held out: rho {agreed.spearman:.3f}, mean error {agreed.error:.3f} (n {agreed.n}); "
            f"over the questions it moves {held_out_figures.question_range:.3f}",
            f"done as asked {held_out_figures.done_as_asked:.3f}, with the source of another "
            f"scene {held_out_figures.another_source:.3f}, "
            f"nothing done {held_out_figures.unedited:.3f}",
        )
    say(f"wrote {options.out}")
    return 0


def _add_sft(actions: Commands) -> None:
    parser = add_command(
        actions,
        "sft",
        "tune a judge's backbone on conversations that you exported",
        "",
        (
            "with adapters",
            "vieval train sft train.jsonl --base Qwen/Qwen2.5-VL-7B-Instruct --out tuned",
        ),
        (
            "all weights",
            (
                "vieval train sft train.jsonl --base Qwen/Qwen2.5-VL-7B-Instruct --out tuned "
                "--tune full"
            ),
        ),
    )
    parser.add_argument("data", nargs="+", type=Path, help="files of `vieval export`")
    _add_tuning(parser, "turns", "samples")
    parser.set_defaults(run=_tune)


def _tune(options: argparse.Namespace) -> int:
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.results.training_records import TRAINING_RECORD
    from vieval_plugin.text.escaping import say
    from vieval_plugin.training.chat_format import read
    from vieval_plugin.training.sft import tune
    from vieval_plugin.training.tuning import split

    tuning = _tuning_of(options)
    turns = read(options.data)
    require_writable(options.out / TRAINING_RECORD)
    learnt, held_out = split(turns, attrgetter("sample"), tuning)
    losses = tune(learnt, held_out, tuning, options.out)
    say(
        f"seed {tuning.seed}",
        f"learnt from {len(learnt)} turns, {len(held_out)} held out",
    )
    say(f"loss {losses.first:.3f} in the first tenth, {losses.last:.3f} in the last")
    if losses.held_out_after is not None:
        held_out_before_text = (
            "-" if losses.held_out_before is None else f"{losses.held_out_before:.3f}"
        )
        say(
            f"held out: loss {held_out_before_text} before, {losses.held_out_after:.3f} after"
        )
    say(f"wrote {options.out}")
    return 0


def _add_tuning(parser: argparse.ArgumentParser, examples: str, groups: str) -> None:
    """The options of every training; `examples` are what a step sees, `groups` what is held out
    whole.
    """
    parser.add_argument(
        "--base",
        required=True,
        help="the image-text model to train: a folder, or a name on the hub",
    )
    parser.add_argument(
        "--out",
        type=output_path,
        required=True,
        help="folder for the model; a training that was stopped goes on there",
    )
    parser.add_argument(
        "--tune",
        choices=["lora", "full"],
        default="lora",
        help="train adapters or all weights (default: %(default)s)",
    )
    for name, kind, default, meaning in (
        ("--steps", number_between(1), 1000, "number of optimisation steps"),
        (
            "--batch-size",
            number_between(1),
            8,
            f"{examples} in a batch, in each process",
        ),
        ("--accumulate", number_between(1), 1, "batches in a step"),
        ("--learning-rate", float, 1e-4, "highest learning rate"),
        (
            "--held-out",
            float,
            0.05,
            f"share of {groups} that are held out to measure on",
        ),
        ("--seed", int, 0, "seed of everything random"),
    ):
        parser.add_argument(
            name, type=kind, default=default, help=f"{meaning} (default: %(default)s)"
        )


def _tuning_of(options: argparse.Namespace) -> Tuning:
    """The options as they were given.

    Raises:
        VievalError: one of them cannot be.
    """
    from vieval_plugin.training.tuning import Tuning

    if not 0 < options.learning_rate < math.inf:
        raise VievalError(
            f"--learning-rate {options.learning_rate:g}: give a number above 0"
        )
    if not 0 <= options.held_out < 1:
        raise VievalError(
            f"--held-out {options.held_out:g}: give a share from 0 on and below 1"
        )
    return Tuning(
        **{field.name: getattr(options, field.name) for field in fields(Tuning)}
    )
