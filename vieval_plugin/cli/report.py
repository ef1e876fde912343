"""Make a page and tables of results.

The page compares judges with annotators, or generators with each other, and shows images with
their verdicts.

Examples:
    # report your verdicts
    vieval report verdicts.jsonl --out report
    # report a run of lmms-eval
    vieval report out/my-run --out report
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.cli import (
    OutputPath,
    argument,
    flag,
    tell_unreadable,
)
from vieval_plugin.cli.options import (
    BenchmarkOptions,
    CalibrationOptions,
    LabelOptions,
    PartialOptions,
    human_flag,
)


class ReportOptions(LabelOptions, BenchmarkOptions, CalibrationOptions, PartialOptions):
    """Options of `vieval report`."""

    results: list[Path] = argument(
        "verdicts from vieval score, or folders of runs: lmms-eval's --output_path (which "
        "requires --log_samples) or VLMEvalKit's --work-dir"
    )
    human: list[Path] = human_flag(" of your samples")
    out: OutputPath = flag(
        "folder for report.html, report.md, numbers.csv, pairs.csv and tables",
    )
    expect: Path | None = flag("compare with the published cells in this CSV file")
    training_record: list[Path] = flag(
        "folders of models that you trained, to mark their training samples",
        metavar="FOLDER",
        nargs="*",
    )
    order: Path | None = flag(
        "compare rankings with the image models in this file, one per line, best first",
    )
    traces: bool = flag("also write pages that show each step of multi-step judges")


def run(options: ReportOptions) -> int:
    from vieval_plugin import api
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.report.writing import PAGE
    from vieval_plugin.text.escaping import say

    for name in ("report.md", PAGE):
        require_writable(options.out / name)
    conclusion = api.report(
        *options.results,
        folder=options.out,
        label=options.label,
        partial=options.partial,
        benchmarks=options.benchmark,
        human=options.human,
        calibration=options.calibration,
        expect=options.expect,
        order=options.order,
        training_records=options.training_record,
    )
    say(*conclusion.lines, answer=True)
    say(
        f"wrote {options.out / PAGE} (open it in a browser) and {options.out / 'report.md'}"
    )
    tell_unreadable(conclusion.unreadable)
    if options.traces:
        from vieval_plugin.report.traces import write_pages
        from vieval_plugin.results.lookup import open_results

        lookup = open_results(options.results, options.partial)
        for page in write_pages(lookup, options.out):
            say(f"wrote {page}")
    if conclusion.comparison:
        say(*conclusion.comparison.lines())
    return conclusion.outcome
