"""Train a judge, or tune its backbone.

Models of useful size require a GPU.

Examples:
    # train ADIEE's scorer
    vieval train adiee data --base Qwen/Qwen2.5-VL-7B-Instruct --out scorer
    # tune a backbone
    vieval train sft train.jsonl --base Qwen/Qwen2.5-VL-7B-Instruct --out tuned
"""

from __future__ import annotations

import math
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vieval_plugin.cli import (
    Count,
    Options,
    OutputPath,
    Seed,
    argument,
    flag,
)
from vieval_plugin.text.errors import VievalError

if TYPE_CHECKING:
    from vieval_plugin.training.adiee.held_out import Figures
    from vieval_plugin.training.tuning import Tuning


class TuningOptions(Options):
    """Options shared by all training commands."""

    base: str = flag(
        "image-text model to train: a folder, or a name on the Hugging Face Hub"
    )
    out: OutputPath = flag(
        "folder for the model; interrupted training resumes from it",
    )
    tune: Literal["lora", "full"] = flag(
        "train adapters or all weights (default: %(default)s)", "lora"
    )
    steps: Count = flag(
        "number of optimisation steps (default: %(default)s)",
        1000,
    )
    batch_size: Count = flag(
        "examples per batch, in each process (default: %(default)s)",
        8,
    )
    accumulate: Count = flag("batches per step (default: %(default)s)", 1)
    learning_rate: float = flag("peak learning rate (default: %(default)s)", 1e-4)
    held_out: float = flag(
        "share of scenes or samples held out for evaluation (default: %(default)s)",
        0.05,
    )
    seed: Seed = flag("random seed (default: %(default)s)", 0)


class AdieeOptions(TuningOptions):
    """Options of `vieval train adiee`."""

    data: Path = argument("folder from `vieval data adiee`")
    answer: Literal["token", "number"] = flag(
        "answer with the token and its head, or with a number as in the paper's "
        "ablation (default: %(default)s)",
        "token",
    )
    images: Literal["two", "joined"] = flag(
        (
            "show the source and the output as two images, or joined into one "
            "(default: %(default)s)"
        ),
        "two",
    )


class ConversationOptions(TuningOptions):
    """Options of `vieval train sft`."""

    data: list[Path] = argument("files from `vieval export`")


def train_adiee(options: AdieeOptions) -> int:
    """Train ADIEE's scorer: a token and a head on an image-text model.

    To score with it, run `vieval score --judge FOLDER`.

    Examples:
        # train adapters
        vieval train adiee data --base Qwen/Qwen2.5-VL-7B-Instruct --out scorer
        # train with 8 batches of 4 examples per step
        vieval train adiee data --base Qwen/Qwen2.5-VL-7B-Instruct --out scorer --batch-size 4 --accumulate 8
    """
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.results.training_records import TRAINING_RECORD
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural
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
    say(f"seed {tuning.seed}")
    say(f"trained on {plural(len(learnt), 'edit')}, {len(held_out)} held out")
    if held_out_figures:
        say(*_held_out_lines(held_out_figures))
    say(f"wrote {options.out}")
    return 0


def _held_out_lines(figures: Figures) -> list[str]:
    agreed = figures.agreement
    return [
        f"held out: rho {agreed.spearman:.3f}, mean error {agreed.error:.3f} (n {agreed.n}); "
        f"mean score range across questions {figures.question_range:.3f}",
        f"mean score: edit as instructed {figures.done_as_asked:.3f}, "
        f"source of a different scene {figures.another_source:.3f}, "
        f"no edit {figures.unedited:.3f}",
    ]


def tune_backbone(options: ConversationOptions) -> int:
    """Tune a judge's backbone on conversations that you exported.

    Examples:
        # train adapters
        vieval train sft train.jsonl --base Qwen/Qwen2.5-VL-7B-Instruct --out tuned
        # train all weights
        vieval train sft train.jsonl --base Qwen/Qwen2.5-VL-7B-Instruct --out tuned --tune full
    """
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.results.training_records import TRAINING_RECORD
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural
    from vieval_plugin.training.chat_format import read
    from vieval_plugin.training.sft import tune
    from vieval_plugin.training.tuning import split

    tuning = _tuning_of(options)
    turns = read(options.data)
    require_writable(options.out / TRAINING_RECORD)
    learnt, held_out = split(turns, attrgetter("sample"), tuning)
    losses = tune(learnt, held_out, tuning, options.out)
    say(f"seed {tuning.seed}")
    say(f"trained on {plural(len(learnt), 'turn')}, {len(held_out)} held out")
    say(f"loss {losses.first:.3f} in the first tenth, {losses.last:.3f} in the last")
    if losses.held_out_after is not None:
        before = "-"
        if losses.held_out_before is not None:
            before = f"{losses.held_out_before:.3f}"
        say(f"held out: loss {before} before, {losses.held_out_after:.3f} after")
    say(f"wrote {options.out}")
    return 0


def _tuning_of(options: TuningOptions) -> Tuning:
    """Tuning settings from the command line.

    Raises:
        VievalError: an option is invalid.
    """
    from vieval_plugin.training.tuning import Tuning

    if not 0 < options.learning_rate < math.inf:
        raise VievalError(
            f"--learning-rate must be above 0, got {options.learning_rate:g}"
        )
    if not 0 <= options.held_out < 1:
        raise VievalError(
            f"--held-out must be at least 0 and below 1, got {options.held_out:g}"
        )
    return Tuning(
        **{field.name: getattr(options, field.name) for field in fields(Tuning)}
    )


ACTIONS = {"adiee": train_adiee, "sft": tune_backbone}
