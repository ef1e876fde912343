"""`vieval train adiee`: a scorer of edits from labelled edits."""

from __future__ import annotations

import argparse
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command
from vieval_plugin.cli.train import add_tuning, tuning_of

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


def add(actions: Commands) -> None:
    parser = add_command(
        actions,
        "adiee",
        "train ADIEE's scorer: a token and a head on an image-text model",
        "Score with it by `vieval score --judge FOLDER`.",
        ("with adapters", "vieval train adiee data --base Qwen/Qwen2.5-VL-7B-Instruct --out scorer"),
        (
            "in batches of 4, 8 to a step",
            "vieval train adiee data --base Qwen/Qwen2.5-VL-7B-Instruct --out scorer --batch-size 4 --accumulate 8",
        ),
    )
    parser.add_argument("data", type=Path, help="the folder that `vieval data adiee` wrote")
    add_tuning(parser, "edits", "scenes")
    parser.add_argument(
        "--answer",
        choices=["token", "number"],
        default="token",
        help="train the token and its head, or to say a number, the paper's ablation (default: %(default)s)",
    )
    parser.add_argument(
        "--images",
        choices=["two", "joined"],
        default="two",
        help="show source and output as two images, or joined (default: %(default)s)",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.results.training_records import TRAINING_RECORD
    from vieval_plugin.text.escaping import say
    from vieval_plugin.training.adiee import dataset, folder, loop
    from vieval_plugin.training.adiee.held_out import figures
    from vieval_plugin.training.adiee.loop import Recipe
    from vieval_plugin.training.tuning import split

    tuning = tuning_of(options)
    edits, manifest = dataset.read(options.data)
    require_writable(options.out / TRAINING_RECORD)
    recipe = Recipe(tuning, options.answer, options.images)
    learnt, held_out = split(edits, attrgetter("group"), tuning)
    trained, conversations, curves = loop.train(recipe, learnt, held_out, options.out)
    held_out_figures = figures(trained, conversations, held_out, tuning.batch_size)
    folder.write(options.out, trained, recipe)
    folder.training_record(options.out, recipe, manifest, (learnt, held_out), curves, held_out_figures)
    (options.out / loop.CHECKPOINT).unlink(missing_ok=True)
    say(f"seed {tuning.seed}", f"learnt from {len(learnt)} edits, {len(held_out)} held out")
    if held_out_figures:
        agreed = held_out_figures.agreement
        say(
            f"held out: rho {agreed.spearman:.3f}, mean error {agreed.error:.3f} (n {agreed.n}); "
            f"over the questions it moves {held_out_figures.question_range:.3f}",
            f"done as asked {held_out_figures.done_as_asked:.3f}, with the source of another scene {held_out_figures.another_source:.3f}, "
            f"nothing done {held_out_figures.unedited:.3f}",
        )
    say(f"wrote {options.out}")
    return 0
