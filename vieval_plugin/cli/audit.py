"""`vieval audit`: what a judge is fooled by, found without anybody's ratings."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import (
    EXAMPLE_BACKBONE,
    add_backbone,
    add_columns,
    add_command,
    add_judge,
    number_between,
    output_path,
)
from vieval_plugin.cli.score import DEFAULT_JUDGE
from vieval_plugin.cli.score.backbone import named_backbone, options_in_force

if TYPE_CHECKING:
    from vieval_plugin.audit.audit import Audit, PlannedCalls
    from vieval_plugin.cli import Commands

_SYNTHETIC = {"sample": "vieval_demo", "contest": "vieval_demo_contests"}
_FILES = ("audit.csv", "audit.json")


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "audit",
        "find what a judge is fooled by",
        "Images are changed in known ways, such as with a border or another sample's source, and the shift of the scores is "
        "measured. You need no human ratings.",
        ("on synthetic images", f"vieval audit --judge viescore {EXAMPLE_BACKBONE}"),
        ("on your own images", f"vieval audit images.csv --limit 50 --out audit {EXAMPLE_BACKBONE}"),
    )
    parser.add_argument(
        "samples",
        nargs="?",
        help="samples as vieval score takes them, a file of contests, or BENCHMARK or BENCHMARK/PART (default: synthetic)",
    )
    parser.add_argument("--kind", help="the task type of samples that name none, such as tie")
    add_columns(parser)
    parser.add_argument(
        "--limit",
        type=number_between(1),
        default=100,
        metavar="N",
        help="audit N samples, chosen at random (default: %(default)s)",
    )
    parser.add_argument("--out", type=output_path, help="folder for the numbers as CSV and JSON")
    add_judge(parser, DEFAULT_JUDGE)
    add_backbone(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.audit.audit import audit
    from vieval_plugin.audit.material import random_judgeable_samples
    from vieval_plugin.labelling.sources import read_to_label
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.run.prepare import prepare
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.text.escaping import say

    current = options_in_force(options)
    backbone = named_backbone(options, current)
    seed, resamples = current.statistics.seed, current.statistics.draws
    names = dict.fromkeys(options.judge or [DEFAULT_JUDGE])
    judges = [prepare(name, options.setting, current, backbone) for name in names]
    if options.out:
        require_writable(options.out / _FILES[-1])
    audited = []
    for judge in judges:
        sources, columns = [options.samples or _SYNTHETIC[judge.spec.rates]], parse_columns(options.columns)
        judged = [sample.judged for sample in read_to_label(sources, options.kind, columns=columns)]
        audited.append(random_judgeable_samples(judged, judge, options.limit, seed))
    progress = Progress()
    audits: list[Audit] = []
    try:
        for judge, judged in zip(judges, audited, strict=True):

            def show_plan(plan: PlannedCalls) -> None:
                say(f"audit of {plan}", file=sys.stderr)

            audits.append(asyncio.run(audit(judged, judge, current, backbone, seed, progress, show_plan)))
    finally:
        say(*progress.lines(), file=sys.stderr)
    for result in audits:
        say(*_lines(result))
    say(_protocol(resamples, seed))
    if options.out:
        _write(audits, options.out, resamples, seed)
    return 1 if progress.failed_calls else 0


def _lines(result: Audit) -> list[str]:
    """Lines for a terminal: what was flagged first, then the table."""
    from vieval_plugin.audit.audit import ORDER
    from vieval_plugin.audit.effects import effects_table
    from vieval_plugin.meta_evaluation.tables import with_interval
    from vieval_plugin.text.tables import text_table

    answers = list[str]()
    for effect in result.effects:
        value = effect.difference.value
        flag, _, verb = effect.finding.partition(": ")
        text = f"{effect.change}: {effect.aspect} {verb} ({value:+.2f})"
        if effect.change == ORDER:
            position = "first" if value > 0 else "second"
            text = f"{ORDER}: what is shown {position} is preferred, by {abs(value):.2f}"
        answers += [f"{result.judge}: flagged: {text}"] if flag == "FLAGGED" else []
    effects = effects_table([effect.row for effect in result.effects])
    table = text_table([effects.header, *effects.rows], "--out FOLDER has them")
    lines = [*(answers or [f"{result.judge}: nothing flagged"]), "", *table, ""]
    if result.left_out:
        lines.append(f"left out, as they apply to no sample with a score: {', '.join(result.left_out)}")
    if result.inconsistent:
        share = with_interval(result.inconsistent)
        lines.append(f"order: {share} of the contests have different answers in the two orders")
    elif any(effect.change == ORDER for effect in result.effects):
        lines.append("order: no contest has answers in two orders, so nothing is known of it")
    return [*lines, *([f"no score even unchanged: {result.unscored}"] if result.unscored else []), ""]


def _protocol(resamples: int, seed: int) -> str:
    from vieval_plugin.audit.effects import LEAST_EFFECT
    from vieval_plugin.meta_evaluation.comparison import LEVEL

    return (
        f"Differences are changed less unchanged, of samples that have both scores. Intervals: 95%, of differences those of the "
        f"test, of shares {resamples} bootstrap draws of groups. p: paired permutation test, {resamples} draws, adjusted by Holm over the judge's rows. What ought to be the "
        f"same, or not higher, is flagged where adjusted p <= {LEVEL} and the difference is above {LEAST_EFFECT}; what ought to be lower, "
        f"where its interval rules out a fall of {LEAST_EFFECT}. Seed {seed}."
    )


def _write(audits: list[Audit], folder: Path, resamples: int, seed: int) -> None:
    import json

    from vieval_plugin.audit.effects import LEAST_EFFECT
    from vieval_plugin.media.files import write_whole
    from vieval_plugin.meta_evaluation.comparison import LEVEL
    from vieval_plugin.text.escaping import csv_text, say

    lines, judges = list[tuple[str, ...]](), []
    for result in audits:
        rows = [effect.row for effect in result.effects]
        lines += [] if lines else [("judge", *rows[0])]
        lines += [(result.judge, *map(_cell, row.values())) for row in rows]
        share = result.inconsistent
        inconsistent = {"share": share.value, "low": share.low, "high": share.high} if share else None
        judge = {"judge": result.judge, "unscored": result.unscored}
        judges.append({**judge, "inconsistent": inconsistent, "effects": rows})
    document = {"seed": seed, "draws": resamples, "least": LEAST_EFFECT, "level": LEVEL, "judges": judges}
    for name, text in zip(_FILES, (csv_text(lines), json.dumps(document, indent=1, allow_nan=False)), strict=True):
        write_whole(folder / name, [text])
        say(f"wrote {folder / name}")


def _cell(value: object) -> str:
    return "undefined" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
