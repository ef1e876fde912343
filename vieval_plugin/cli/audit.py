"""`vieval audit`: what a judge is fooled by, found without anybody's ratings."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import EXAMPLE_BACKBONE, add_backbone, add_columns, add_command, add_judge
from vieval_plugin.cli.score import DEFAULT_JUDGE
from vieval_plugin.cli.score.backbone import named_backbone, options_in_force

if TYPE_CHECKING:
    from vieval_plugin.audit.audit import Audit, AuditPlan
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
        "--limit", type=int, default=100, metavar="N", help="audit N samples, chosen at random (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, help="folder for the numbers as CSV and JSON")
    add_judge(parser, DEFAULT_JUDGE)
    add_backbone(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.audit.audit import audit
    from vieval_plugin.audit.material import random_judgeable_samples
    from vieval_plugin.audit.tables import lines, plan_lines, protocol
    from vieval_plugin.errors import VievalError
    from vieval_plugin.labelling.sources import read_to_label
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.run.prepare import prepare
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.text.escaping import say

    if options.limit < 1:
        raise VievalError(f"--limit {options.limit} leaves nothing to judge; give 1 or more")
    current = options_in_force(options)
    backbone = named_backbone(options, current)
    seed, resamples = current.statistics.seed, current.statistics.draws
    judges = [
        prepare(name, options.setting, current, backbone) for name in dict.fromkeys(options.judge or [DEFAULT_JUDGE])
    ]
    if options.out:
        require_writable(options.out / _FILES[-1])
    audited = []
    for judge in judges:
        labelled = read_to_label(
            [options.samples or _SYNTHETIC[judge.spec.rates]], options.kind, columns=parse_columns(options.columns)
        )
        audited.append(random_judgeable_samples([sample.judged for sample in labelled], judge, options.limit, seed))
    progress = Progress()
    audits: list[Audit] = []
    try:
        for judge, judged in zip(judges, audited, strict=True):

            def show_plan(plan: AuditPlan, name: str = judge.spec.name) -> None:
                say(*plan_lines(name, plan, seed, current.store.use), file=sys.stderr)

            audits.append(asyncio.run(audit(judged, judge, current, backbone, seed, progress, show_plan)))
    finally:
        say(*progress.lines(), file=sys.stderr)
    for result in audits:
        say(*lines(result))
    say(protocol(resamples, seed))
    if options.out:
        _write(audits, options.out, resamples, seed)
    return 1 if progress.failed_calls else 0


def _write(audits: list[Audit], folder: Path, resamples: int, seed: int) -> None:
    import json

    from vieval_plugin.audit.tables import document, table
    from vieval_plugin.media.files import write_whole
    from vieval_plugin.report.rendering import csv_text
    from vieval_plugin.text.escaping import say

    texts = (csv_text(table(audits)), json.dumps(document(audits, resamples, seed), indent=1, allow_nan=False))
    for name, text in zip(_FILES, texts, strict=True):
        write_whole(folder / name, [text])
        say(f"wrote {folder / name}")
