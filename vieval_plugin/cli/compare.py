"""Test which of several judges is better.

It runs paired tests on the samples that all of them judged, corrected for multiple testing.

Examples:
    # two runs on the same benchmark
    vieval compare out/first out/second
    # two cards
    vieval compare card-first card-second
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vieval_plugin.cli import (
    OutputPath,
    argument,
    flag,
    number_between,
    tell_unreadable,
)
from vieval_plugin.cli.options import (
    BenchmarkOptions,
    LabelOptions,
    PartialOptions,
    SeedOptions,
)


class CompareOptions(SeedOptions, LabelOptions, BenchmarkOptions, PartialOptions):
    """Options of `vieval compare`."""

    results: list[Path] = argument(
        "folders of runs (lmms-eval's --output_path, which requires --log_samples), or "
        "cards"
    )
    out: OutputPath | None = flag("folder for the numbers as CSV and JSON")
    draws: int | None = flag(
        "number of bootstrap and test resamples, at most 100000 (default: option "
        "statistics.draws)",
        type=number_between(1, 100_000),
    )


def run(options: CompareOptions) -> int:
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
    folders = [path for path in options.results if path not in cards]
    if cards and folders:
        raise VievalError(
            f"{folders[0]} is not a model card, but {cards[0]} is; compare cards only with "
            "cards (`vieval card` makes one)"
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
