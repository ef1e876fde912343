"""`vieval compare`: which judge is better."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vieval_plugin.cli import (
    add_benchmark,
    add_command,
    add_label_option,
    add_partial,
    number_between,
    output_path,
    tell_unreadable,
)

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "compare",
        "test which of several judges is better",
        "Paired tests on the samples that all of them judged, corrected for their number.",
        ("two runs on the same benchmark", "vieval compare out/first out/second"),
        ("two cards", "vieval compare card-first card-second"),
    )
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        help="folders of runs (lmms-eval's --output_path, with --log_samples), or cards",
    )
    add_label_option(parser)
    add_benchmark(parser)
    add_partial(parser)
    parser.add_argument(
        "--out", type=output_path, help="folder for the numbers as CSV and JSON"
    )
    parser.add_argument(
        "--draws",
        type=number_between(1, 100_000),
        help=(
            "resamples of the bootstrap and of the test, at most 100000 (default: "
            "statistics.draws of the options)"
        ),
    )
    parser.add_argument(
        "--seed",
        type=number_between(0),
        help="seed of everything random (default: statistics.seed of the options)",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin import api
    from vieval_plugin.card.read import is_card, results_of_cards
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.report.files import FINDING_FILES
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    if options.out:
        require_writable(options.out / FINDING_FILES[-1])
    inputs: list[Any] = options.results
    cards = [path for path in options.results if is_card(path)]
    if cards and (further := [path for path in options.results if path not in cards]):
        raise VievalError(
            f"{further[0]}: no card of a model, and {cards[0]} is one; cards are compared with "
            "cards, which `vieval card` makes"
        )
    if cards:
        inputs = [results_of_cards(options.results, options.label)]
    conclusion = api.compare(
        *inputs,
        label=options.label,
        partial=options.partial,
        benchmarks=options.benchmark,
        draws=options.draws,
        seed=options.seed,
    )
    say(*conclusion.lines, answer=True)
    if options.out:
        say(*(f"wrote {path}" for path in conclusion.write_tables(options.out)))
    tell_unreadable(conclusion.unreadable)
    return conclusion.outcome
