"""`vieval rank`: which generator is best."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import (
    EXAMPLE_BACKBONE,
    add_backbone,
    add_columns,
    add_command,
    add_judge,
    add_label_option,
    add_partial,
    lines_by_reason,
    margin,
    tell_unreadable,
)
from vieval_plugin.cli.score import DEFAULT_JUDGE
from vieval_plugin.cli.score.backbone import named_backbone, options_in_force, require_model
from vieval_plugin.text.errors import ExitCode

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands
    from vieval_plugin.judges.protocol import Sample
    from vieval_plugin.report.answer import Answer
    from vieval_plugin.report.build_result import BuildResult
    from vieval_plugin.report.gate import Gate
    from vieval_plugin.report.ranking import RankReport
    from vieval_plugin.results.baseline import Baseline
    from vieval_plugin.results.runs import Results
    from vieval_plugin.stats.options import StatisticsOptions

BEST_OF = "best_of.csv"
KEY_VARIABLE = "VIEVAL_GENERATOR_API_KEY"
"""Environment variable of the key of the server that makes images."""
_OUTPUTS = {"summary": "Markdown", "junit": "JUnit XML", "json": "JSON, with all numbers"}
"""Flags of the files that a build reads, with what they are."""


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "rank",
        "find out which generator is better, and how sure that is",
        "Generators are compared on the prompts that they share, with ranks, intervals and paired tests.",
        ("folders of images", f"vieval rank mine theirs --prompts prompts.csv --judge pairwise {EXAMPLE_BACKBONE}"),
        ("verdicts, with a page", "vieval rank verdicts.jsonl --html rank.html"),
        ("fail if the new one is worse", "vieval rank new.jsonl --against last_build.jsonl --margin 0.02"),
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        type=Path,
        help="verdicts of vieval score, folders of runs (lmms-eval's --output_path, with --log_samples), or folders of images, "
        "with --prompts",
    )
    parser.add_argument("--prompts", type=Path, help="the prompts of images in folders: a .txt, .csv or .jsonl file")
    add_columns(parser)
    parser.add_argument("--kind", help="the task type of prompts that name none, such as tig")
    parser.add_argument("--out", type=Path, help="write the verdicts on folders here, a .jsonl file")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="verdicts of an earlier build on the same prompts by the same judge, or an anchor, as the other generator",
    )
    parser.add_argument(
        "--margin",
        type=margin,
        metavar="M",
        help="exit with 0 only if the first generator is worse than no other by more than M, in the unit of the difference, "
        "also with failures as the lowest score; with 3 if it is worse, with 4 if the data cannot tell, with 5 if the judge "
        "of an anchor has drifted",
    )
    for name, words in _OUTPUTS.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"write the decision of the gate as {words}")
    parser.add_argument(
        "--human",
        nargs="+",
        action="extend",
        type=Path,
        default=[],
        help="CSV files of human ratings, which correct the judge's means",
    )
    add_label_option(parser)
    add_partial(parser)
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="write all tables as Markdown, CSV and JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with images side by side")
    parser.add_argument("--best-of", action="store_true", help="only name the best image of each prompt and generator")
    add_judge(parser, DEFAULT_JUDGE)
    add_backbone(parser)
    made = parser.add_argument_group("generator", "a server that makes the images, kept in the folder named first")
    made.add_argument("--generator-url", metavar="URL", help=f"address ending in /v1; its key is in {KEY_VARIABLE}")
    made.add_argument("--generator-model", metavar="NAME", help="its name on the server")
    made.add_argument("--seed", type=int, default=0, help="seed of the first prompt, each further one has the next")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    """Rank, and write what a build reads, also of an error; what an earlier run left is removed, as it would mislead."""
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.report.answer import Answer
    from vieval_plugin.report.build_result import BuildResult
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.redaction import redacted

    reads = [*options.inputs, *options.human, *filter(None, [options.against, options.prompts])]
    for option, path in ((f"--{name}", path) for name in _OUTPUTS if (path := getattr(options, name))):
        if options.margin is None:
            raise VievalError(f"{option} is the decision of a gate: give a --margin too")
        require_writable(path, option, reads)
        path.unlink(missing_ok=True)
    try:
        return _rank(options, reads)
    except VievalError as error:
        _write_result(options, BuildResult(ExitCode.ERROR, [Answer("Nothing was decided.", redacted(str(error)))]))
        raise


def _write_result(options: argparse.Namespace, result: BuildResult) -> None:
    from vieval_plugin.media.files import write_whole
    from vieval_plugin.report.build_result import json_text, junit, summary

    for name, text_of in zip(_OUTPUTS, (summary, junit, json_text), strict=True):
        if path := getattr(options, name):
            write_whole(path, [text_of(result)], f"--{name}")
    if (of_step := os.environ.get("GITHUB_STEP_SUMMARY")) and options.margin is not None:
        with contextlib.suppress(OSError), open(of_step, "a", encoding="utf-8") as file:
            file.write(f"{summary(result)}\n")


def _rank(options: argparse.Namespace, reads: Sequence[Path]) -> int:
    from vieval_plugin.benchmarks.loading.ratings import read_ratings
    from vieval_plugin.images import files_of
    from vieval_plugin.judges.contests import candidates_of
    from vieval_plugin.report.build_result import BuildResult, falls_table
    from vieval_plugin.report.files import FINDINGS_JSON
    from vieval_plugin.report.gate import EXIT_CODES, Gate
    from vieval_plugin.report.ranking import (
        FILES,
        answers,
        lines,
        rank_results,
        ranking_files,
        tables_of,
        write_ranking,
    )
    from vieval_plugin.results.baseline import read_baseline, with_baseline
    from vieval_plugin.results.prompt_differences import without_different_prompts
    from vieval_plugin.results.runs import load_results
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    if options.generator_url:
        _make_images(options)
    of_images = options.prompts is not None or _are_of_images(options.inputs)
    _require_applicable(options, of_images)
    _require_outputs(options, reads)
    statistics = options_in_force(options).statistics.options()
    ratings = read_ratings(options.human) if options.human else None
    failed = list[str]()
    limits: tuple[str, ...] = ()
    baseline = read_baseline(options.against, options.partial) if options.against else None
    if baseline:
        baseline, limits, drift = _checked(baseline, options)
        if drift:
            say(*drift.lines)
            _write_result(options, BuildResult(ExitCode.JUDGE_DRIFTED, [drift]))
            return ExitCode.JUDGE_DRIFTED
    results = _judged(options, failed, baseline) if of_images else None
    results = results or load_results(options.inputs, options.label, options.partial)
    if isinstance(results, Gate):
        say(*results.answer.lines)
        _write_result(options, BuildResult(ExitCode.FINE, [results.answer]))
        return ExitCode.FINE
    if not of_images:
        judged = (r.sample for run in results.runs for r in chain(*chain(*run.records.values())) if r.sample)
        _require_outputs(options, [file for sample in judged for file in files_of(candidates_of(sample))])
    results = with_baseline(results, baseline) if baseline else results
    notes = results.notes
    results = without_different_prompts(results)
    if options.margin is not None and (differences := [note for note in results.notes if note not in notes]):
        raise VievalError(f"--margin compares the same prompts alone; {differences[0]}")
    if options.best_of:
        return _best_of(results, options.tables)
    report = rank_results(results, ratings, statistics)
    gate = _gate(report, options, of_images, statistics, limits)
    decision: list[Answer] = [gate.answer] if gate else []
    say(*lines(report, statistics, decision), answer=True)
    if options.tables:
        write_ranking(report, options.tables, statistics)
        say(*(f"wrote {options.tables / name}" for name in FILES))
    if options.html:
        from vieval_plugin.report.page.ranking import write_page

        write_page(report, options.html, statistics, gate)
        say(f"wrote {options.html} (open it in a browser)")
    if failed:
        raise VievalError("; ".join(failed))
    code = tell_unreadable(results.unreadable)
    if gate:
        exit_code = ExitCode(code) if code else EXIT_CODES[gate.decision]
        findings = json.loads(ranking_files(report, statistics)[FINDINGS_JSON])
        falls, texts = falls_table(gate.falls, report.runs), [*decision, *answers(report)]
        _write_result(options, BuildResult(exit_code, texts, falls, tables_of(report), findings))
        return exit_code
    return code or int(not report.any_means)


def _checked(baseline: Baseline, options: argparse.Namespace) -> tuple[Baseline, tuple[str, ...], Answer | None]:
    """A baseline, what limits it, and the answer that its judge has drifted.

    Of an anchor with its images the judge is asked again: where it is the same, the baseline has today's verdicts.
    """
    from vieval_plugin.audit.anchor import lines
    from vieval_plugin.cli.anchor import check_anchor
    from vieval_plugin.report.answer import Answer

    if not baseline.is_anchor or not baseline.has_images:
        lacks = "the anchor's images are not there" if baseline.is_anchor else f"{baseline.path} is no anchor"
        return baseline, (f"It was not checked whether the judge has drifted, as {lacks}.",), None
    anchor, verdicts, report, model = check_anchor(options.against, options)
    said = lines(report, anchor, model)[0]
    if report.decision == "drift":
        advice = "Restore the judge, or make a new anchor of a build that you trust."
        return baseline, (), Answer("The judge itself has drifted; nothing is said of your images.", said, next=advice)
    if report.decision == "no_drift":
        today = {judged.id: verdict for judged, verdict in zip(anchor.judged, verdicts, strict=True)}
        baseline = baseline.judged_anew(today)
    return baseline, (said,), None


def _make_images(options: argparse.Namespace) -> None:
    """Make the images of the prompts on the server that flags name, in the folder that is the only input."""
    from vieval_plugin.backends.http.server import ServerOptions
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.readers.prompt_rows import prompts_of
    from vieval_plugin.run.served_images import make_images
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    if not options.generator_model or not options.prompts or options.inputs[1:]:
        raise VievalError("--generator-url needs --prompts and --generator-model, and one folder for the images")
    server = ServerOptions((options.generator_url,), os.environ.get(KEY_VARIABLE, ""))
    prompts = prompts_of(options.prompts, parse_columns(options.columns))
    for line in make_images(options.generator_model, server, prompts, options.inputs[0], options.seed):
        say(f"vieval: {line}", file=sys.stderr)


def _are_of_images(inputs: Sequence[Path]) -> bool:
    """Return whether all inputs are folders of images, and none is of results; VievalError where no prompts are known."""
    from vieval_plugin.readers.image_folder import has_prompts, is_of_images
    from vieval_plugin.results.host_samples import SAMPLES
    from vieval_plugin.text.errors import VievalError

    if not all(is_of_images(path) and not any(path.rglob(SAMPLES)) for path in inputs):
        return False
    if not any(map(has_prompts, inputs)):
        folders = " and ".join(f"{path}/" for path in inputs)
        are = "are folders" if inputs[1:] else "is a folder"
        raise VievalError(f"{folders} {are} of images: pass --prompts FILE")
    return True


def _require_applicable(options: argparse.Namespace, of_images: bool) -> None:
    """VievalError for flags about judging, where nothing is judged."""
    from vieval_plugin.text.errors import VievalError

    if options.best_of and options.margin is not None:
        raise VievalError("--best-of decides nothing: leave out --margin, or --best-of")
    if of_images:
        if options.label[1:]:
            raise VievalError("--label is given once for folders: it names the judge's verdicts")
        return
    of_model = () if options.against else ("model", "base_url")  # an anchor's judge is asked again
    of_judging = ("out", "kind", "columns", "judge", "setting", "scorer", "fresh", *of_model, "aspects", "lazy")
    if used := next((name for name in of_judging if getattr(options, name)), None):
        raise VievalError(
            f"--{used.replace('_', '-')} is for folders of images, with --prompts; results are ranked as they are, "
            "and --tables and --html say where to"
        )


def _require_outputs(options: argparse.Namespace, reads: Sequence[Path]) -> None:
    """VievalError for a file that cannot be written, or is among those that are read for it."""
    from vieval_plugin.media.files import require_suffix, require_writable
    from vieval_plugin.report.ranking import FILES

    if options.out:
        require_suffix(options.out, (".jsonl",))
    names = [BEST_OF] if options.best_of else FILES
    tables = [("--tables", options.tables / name) for name in names if options.tables]
    for option, path in (*tables, ("--html", options.html), ("--out", options.out)):
        if path:
            require_writable(path, option, reads)


def _judged(options: argparse.Namespace, failed: list[str], baseline: Baseline | None) -> Results | Gate:
    """The verdicts on folders, written as they are asked for; a judge that cannot run is named in `failed`.

    The decision of a gate that needs none, as all pictures are the same files, where nothing is to be written.
    """
    from vieval_plugin.images import files_of
    from vieval_plugin.judges.protocol import Sample
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.readers.image_folder import read_folders
    from vieval_plugin.records import record_of
    from vieval_plugin.results.baseline import require_comparable
    from vieval_plugin.results.runs import results_of
    from vieval_plugin.run.evaluate import provenance_of
    from vieval_plugin.run.prepare import prepare
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.run.side_by_side import judge_folders
    from vieval_plugin.run.verdict_lines import inputs_of, write_runs
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    current = options_in_force(options)
    backbone = named_backbone(options, current)
    names = dict.fromkeys(options.judge or [DEFAULT_JUDGE])
    prepared = [prepare(name, options.setting, current, backbone) for name in names]
    for judge in prepared:
        if judge.asks_a_model:
            require_model(judge.spec.name, current, backbone)
    source = read_folders(options.inputs, options.prompts, options.kind, parse_columns(options.columns))
    say(*(f"vieval: {line}" for line in source.notes), file=sys.stderr)
    needed = options.margin is not None or baseline
    samples = [row.sample for row in source if isinstance(row.sample, Sample)] if needed else []
    if baseline:
        for judge in prepared:
            require_comparable(baseline, provenance_of(judge, current, backbone), samples)
        samples += baseline.named(samples[0].id.image_model).samples
    if options.margin is not None:
        gate, too_few = _foreseen(samples, list(names), options.margin, prepared[0].spec.rates == "contest")
        if gate and not (options.out or options.tables or options.html):
            return gate
        if too_few:
            say(f"vieval: {too_few}", file=sys.stderr)
    _require_outputs(options, list(files_of(row.sample for row in source)))
    judged, unable, progress = [], list[tuple[str, str]](), Progress()
    for judge in prepared:
        try:
            judged.append(asyncio.run(judge_folders(source, judge, current, backbone, progress, *options.label)))
        except VievalError as error:
            unable.append((judge.spec.name, str(error)))
    failed.extend(lines_by_reason(unable))
    if not judged:
        raise VievalError("; ".join(failed))
    say(*progress.lines(), file=sys.stderr)
    if options.out:
        runs = ((folders.judged, folders.verdicts, folders.provenance) for folders in judged)
        write_runs(options.out, inputs_of(source, options.command), runs)
        say(f"vieval: wrote {options.out}", file=sys.stderr)
    if progress.failed_calls and options.margin is None:
        failed.append("some calls failed (see above), and what they were about is left out")
    return results_of(
        record_of(sample, verdict, by.provenance)
        for by in judged
        for sample, verdict in zip(by.judged, by.verdicts, strict=True)
    )


def _foreseen(
    samples: Sequence[Sample], judges: Sequence[str], margin: float, are_contests: bool
) -> tuple[Gate | None, str]:
    """What is known of a gate before anything is judged.

    Returns:
        The decision where the pictures of the first generator are the very same files as all others', and a line that the
        prompts are too few for equal generators to pass, empty where they are not.

    Raises:
        VievalError: it could not decide, whatever is judged: there is one generator, or several judges.
    """
    from vieval_plugin.meta_evaluation.gate import digests_of, same_files
    from vieval_plugin.meta_evaluation.win_rates import EVEN
    from vieval_plugin.report.gate import NO_OTHER, same_files_gate, too_few_sentence
    from vieval_plugin.text.errors import VievalError

    prompts = defaultdict(set)
    for sample in samples:
        prompts[sample.id.image_model].add((sample.id.part, sample.id.uid))
    mine, *references = prompts
    if not references:
        raise VievalError(f"{NO_OTHER.format(mine)}; name the folder of its images too")
    if len(judges) > 1:
        raise VievalError(f"--margin decides by one judge, and here are {len(judges)} ({', '.join(judges)}); name one")
    pictures = [(sample.id, digests_of(sample)) for sample in samples]
    identical = all(same_files(pictures, mine, reference) for reference in references)
    common = min(len(prompts[mine] & prompts[reference]) for reference in references)
    too_few = too_few_sentence(common, "prompts", margin, EVEN if are_contests else 1.0)
    return same_files_gate(mine, references) if identical else None, too_few


def _again(options: argparse.Namespace, of_images: bool) -> str:
    """The commands that judge again what a call or a tool failed on."""
    from vieval_plugin.run.shards.folder import PLAN
    from vieval_plugin.run.verdict_lines import run_file
    from vieval_plugin.text.yaml_json import read_json

    if of_images:
        return "run the same command again"
    commands = []
    for path in options.inputs:
        if (path / PLAN).is_file():
            commands.append(f"`vieval shards {path} --rejudge api_error,tool_error`")
            continue
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if command := read_json(run_file(path).read_text(encoding="utf-8"))["inputs"]["command"]:
                commands.append(f"`{command}`")
    wrote = ", ".join(map(str, options.inputs))
    return "; ".join(dict.fromkeys(commands)) or f"with the command that wrote {wrote}"


def _gate(
    report: RankReport,
    options: argparse.Namespace,
    of_images: bool,
    statistics: StatisticsOptions,
    limits: Sequence[str],
) -> Gate | None:
    """The decision, with what limits it, and with the page as the place to look."""
    from vieval_plugin.meta_evaluation.win_rates import WIN_RATE
    from vieval_plugin.report.gate import gate
    from vieval_plugin.text.errors import VievalError

    margin: float | None = options.margin
    if margin is None:
        return None
    if (count := len(report.main)) != 1:
        judges = ", ".join(f"{ranking.benchmark} by {ranking.judge}" for ranking in report.main)
        raise VievalError(f"--margin decides by one ranking, and here are {count} ({judges}); name one judge")
    [ranking] = report.main
    bias = report.bias[ranking.key] if ranking.statistic == WIN_RATE else None
    [run] = [run for run in report.runs if (run.benchmark, run.name) == (ranking.benchmark, ranking.judge)]
    decided = gate(run, ranking, margin, statistics, bias, _again(options, of_images))
    look = f"The prompts on which it fell most are in {options.html}." if options.html and decided.falls else ""
    steps = " ".join(filter(None, [decided.answer.next, look]))
    return replace(decided, answer=replace(decided.answer, limits=tuple(limits), next=steps))


def _best_of(results: Results, folder: Path | None) -> int:
    """Say which image of each prompt is best."""
    from vieval_plugin.media.files import write_whole
    from vieval_plugin.meta_evaluation.candidates import candidates_by_prompt
    from vieval_plugin.report.rendering import csv_text
    from vieval_plugin.report.tables import best_of_table
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.tables import text_table

    records = (record for run in results.runs for record in chain(*chain(*run.records.values())))
    table = best_of_table(candidates_by_prompt(records))
    say(*text_table([table.header, *table.rows]), *(f"note: {line}" for line in results.notes))
    if folder:
        write_whole(folder / BEST_OF, [csv_text(table)])
        say(f"wrote {folder / BEST_OF}")
    return tell_unreadable(results.unreadable)
