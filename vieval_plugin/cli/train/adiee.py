"""`vieval train adiee`: a scorer of edits from labelled edits."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Commands = _SubParsersAction[argparse.ArgumentParser]


def add(actions: Commands) -> None:
    parser = actions.add_parser("adiee", help="ADIEE's scorer: a token and a head on an image-text model")
    parser.add_argument("data", type=Path, help="folder that `vieval data adiee` wrote")
    parser.add_argument("--base", required=True, help="image-text model: a folder or a name on the hub")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of the scorer; one that is begun is gone on with"
    )
    parser.add_argument(
        "--tune", choices=["lora", "full"], default="lora", help="adapters or every weight (default: %(default)s)"
    )
    parser.add_argument(
        "--answer",
        choices=["token", "number"],
        default="token",
        help="what is learnt: the token and its head, or to say a number, the paper's ablation (default: %(default)s)",
    )
    parser.add_argument(
        "--images", choices=["two", "joined"], default="two", help="how both are shown (default: %(default)s)"
    )
    parser.add_argument("--pack", default="adiee/v1", help="prompt pack (default: %(default)s)")
    for name, kind, default, told in (
        ("--steps", int, 1000, "optimisation steps"),
        ("--batch-size", int, 8, "edits at once, in each process"),
        ("--accumulate", int, 1, "batches to a step"),
        ("--learning-rate", float, 1e-4, "the highest"),
        ("--held-out", float, 0.05, "share of scenes kept for measuring"),
        ("--seed", int, 0, "of everything random"),
    ):
        parser.add_argument(name, type=kind, default=default, help=f"{told} (default: %(default)s)")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.errors import VievalError
    from vieval_plugin.files import require_writable
    from vieval_plugin.harmless import say
    from vieval_plugin.results.cards import CARD
    from vieval_plugin.training.adiee import dataset, folder, loop
    from vieval_plugin.training.adiee.held_out import figures
    from vieval_plugin.training.adiee.recipe import Recipe, split

    for name in ("steps", "batch_size", "accumulate"):
        if getattr(options, name) < 1:
            raise VievalError(f"--{name.replace('_', '-')} {getattr(options, name)}: give 1 or more")
    if not 0 < options.learning_rate < math.inf:
        raise VievalError(f"--learning-rate {options.learning_rate:g}: give a number above 0")
    if not 0 <= options.held_out < 1:
        raise VievalError(f"--held-out {options.held_out:g}: give a share from 0 on and below 1")
    edits, manifest = dataset.read(options.data)
    require_writable(options.out / CARD)
    recipe = Recipe(
        options.base,
        options.tune,
        options.answer,
        options.images,
        options.pack,
        options.steps,
        options.batch_size,
        options.accumulate,
        options.learning_rate,
        options.held_out,
        options.seed,
    )
    learnt, held_out = split(edits, recipe)
    if not learnt:
        raise VievalError(f"--held-out {options.held_out:g} leaves nothing to learn from; give less")
    trained, conversations, curves = loop.train(recipe, learnt, held_out, options.out)
    found = figures(trained, conversations, held_out, options.batch_size)
    folder.write(options.out, trained, recipe)
    folder.card(options.out, recipe, manifest, (learnt, held_out), curves, found)
    (options.out / loop.CHECKPOINT).unlink(missing_ok=True)
    say(f"seed {recipe.seed}", f"learnt from {len(learnt)} edits, {len(held_out)} held out")
    if found:
        agreed = found.agreement
        say(
            f"held out: rho {agreed.spearman:.3f}, mean error {agreed.error:.3f} (n {agreed.n}); "
            f"over the questions it moves {found.moved:.3f}",
            f"done as asked {found.whole:.3f}, with the source of another scene {found.another_source:.3f}, "
            f"nothing done {found.unedited:.3f}",
        )
    say(f"wrote {options.out}")
    return 0
