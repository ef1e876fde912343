"""`vieval train sft`: a backbone tuned on a judge's conversations."""

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
        "sft",
        "tune a judge's backbone on conversations that you exported",
        "",
        ("with adapters", "vieval train sft train.jsonl --base Qwen/Qwen2.5-VL-7B-Instruct --out tuned"),
        ("all weights", "vieval train sft train.jsonl --base Qwen/Qwen2.5-VL-7B-Instruct --out tuned --tune full"),
    )
    parser.add_argument("data", nargs="+", type=Path, help="files of `vieval export --trainer trl`")
    add_tuning(parser, "turns", "samples")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.results.training_records import TRAINING_RECORD
    from vieval_plugin.text.escaping import say
    from vieval_plugin.training.chat_format import read
    from vieval_plugin.training.sft import tune
    from vieval_plugin.training.tuning import split

    tuning = tuning_of(options)
    turns = read(options.data)
    require_writable(options.out / TRAINING_RECORD)
    learnt, held_out = split(turns, attrgetter("sample"), tuning)
    losses = tune(learnt, held_out, tuning, options.out)
    say(f"seed {tuning.seed}", f"learnt from {len(learnt)} turns, {len(held_out)} held out")
    say(f"loss {losses.first:.3f} in the first tenth, {losses.last:.3f} in the last")
    if losses.held_out_after is not None:
        held_out_before_text = "-" if losses.held_out_before is None else f"{losses.held_out_before:.3f}"
        say(f"held out: loss {held_out_before_text} before, {losses.held_out_after:.3f} after")
    say(f"wrote {options.out}")
    return 0
