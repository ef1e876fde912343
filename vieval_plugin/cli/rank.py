"""`vieval rank`: which generator is best."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from vieval_plugin.cli import (
    EXAMPLE_BACKBONE,
    add_backbone,
    add_columns,
    add_command,
    add_human,
    add_judge,
    add_label_option,
    add_partial,
    lines_by_reason,
    number_between,
    output_path,
    tell_unreadable,
)
from vieval_plugin.cli.score import DEFAULT_JUDGE, Request, request_of, tell_plan
from vieval_plugin.cli.score.backbone import options_in_force
from vieval_plugin.text.errors import ExitCode

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands
    from vieval_plugin.judges.protocol import Sample
    from vieval_plugin.meta_evaluation.ratings import HumanRatings
    from vieval_plugin.readers.samples import SampleSource
    from vieval_plugin.records import Record
    from vieval_plugin.report.build_result import BuildResult
    from vieval_plugin.report.gate import Gate
    from vieval_plugin.results.baseline import Baseline
    from vieval_plugin.results.runs import Results

BEST_OF = "best_of.csv"
#: Margins are below one half, the most that a win rate can fall.
LARGEST_MARGIN = 0.499
#: Environment variable of the key of the server that makes images.
KEY_VARIABLE = "VIEVAL_GENERATOR_API_KEY"
#: Flags of the files that a build reads, with what they are.
_OUTPUTS = {
    "summary": "Markdown",
    "junit": "JUnit XML",
    "json": "JSON, with all numbers",
}
#: Flags of files that are written, with the suffix of their names.
_SUFFIXES = {
    "summary": ".md",
    "junit": ".xml",
    "json": ".json",
    "html": ".html",
    "out": ".jsonl",
}


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "rank",
        "find out which generator is better, and how sure that is",
        (
            "Generators are compared on the prompts that they share, with ranks, intervals and "
            "paired tests."
        ),
        (
            "folders of images",
            f"vieval rank mine theirs --prompts prompts.csv --judge pairwise {EXAMPLE_BACKBONE}",
        ),
        ("verdicts, with a page", "vieval rank verdicts.jsonl --html rank.html"),
        (
            "fail if the new one is worse",
            "vieval rank new.jsonl --against last_build.jsonl --margin 0.02",
        ),
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        type=Path,
        help="verdicts of vieval score, folders of runs (lmms-eval's --output_path, with "
        "--log_samples), or folders of images, with --prompts",
    )
    parser.add_argument(
        "--prompts",
        type=Path,
        help="the prompts of images in folders: a .txt, .csv or .jsonl file",
    )
    add_columns(parser)
    parser.add_argument(
        "--kind", help="the task type of prompts that name none, such as tig"
    )
    parser.add_argument(
        "--out",
        type=output_path,
        help="write the verdicts on folders here, a .jsonl file",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help=(
            "verdicts of an earlier build on the same prompts by the same judge, or an anchor, "
            "as the other generator"
        ),
    )
    parser.add_argument(
        "--margin",
        type=number_between(0, LARGEST_MARGIN, float),
        metavar="M",
        help="exit with 0 only if the first generator is worse than no other by more than M, in "
        "the unit of the difference, also with failures as the lowest score, and the judge sees "
        "spoilt images; with 3 if it is worse, with 4 if the data cannot tell, with 5 if the "
        "judge of an anchor has drifted, with 6 if --history shows a slow fall",
    )
    parser.add_argument(
        "--no-control",
        action="store_true",
        help="pass a build without asking whether the judge sees spoilt images",
    )
    parser.add_argument(
        "--history",
        type=output_path,
        metavar="FILE",
        help="append the night of a gate to FILE, .jsonl, and look for a slow fall",
    )
    parser.add_argument(
        "--plan",
        action="store_true",
        help="judge eight images, print what all would cost, and stop",
    )
    for name, words in _OUTPUTS.items():
        parser.add_argument(
            f"--{name}",
            type=output_path,
            metavar="FILE",
            help=f"write the decision of the gate as {words}",
        )
    add_human(parser, ", which correct the judge's means")
    add_label_option(parser)
    add_partial(parser)
    parser.add_argument(
        "--tables",
        type=output_path,
        metavar="FOLDER",
        help="write all tables as Markdown, CSV and JSON",
    )
    parser.add_argument(
        "--html",
        type=output_path,
        metavar="FILE",
        help="write a page with images side by side",
    )
    parser.add_argument(
        "--best-of",
        action="store_true",
        help="only name the best image of each prompt and generator",
    )
    add_judge(parser, DEFAULT_JUDGE)
    add_backbone(parser)
    made = parser.add_argument_group(
        "generator", "a server that makes the images, kept in the folder named first"
    )
    made.add_argument(
        "--generator-url",
        metavar="URL",
        help=f"address ending in /v1; its key is in {KEY_VARIABLE}",
    )
    made.add_argument(
        "--generator-model", metavar="NAME", help="its name on the server"
    )
    made.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed of the first prompt, each further one has the next",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    """Rank, and write what a build reads, also of an error."""
    from vieval_plugin.report.answer import Answer
    from vieval_plugin.report.build_result import BuildResult
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.redaction import redacted

    _require_outputs(options)
    try:
        result = _rank(options)
    except VievalError as error:
        _write_result(
            options,
            BuildResult(
                ExitCode.ERROR, [Answer("Nothing was decided.", redacted(str(error)))]
            ),
        )
        raise
    _write_result(options, result)
    return result.exit_code


def _require_outputs(options: argparse.Namespace) -> None:
    """VievalError for a file that cannot be written or is read; those of an earlier gate are
    removed, as they would mislead.
    """
    from vieval_plugin.media.files import require_suffix, require_writable
    from vieval_plugin.report.files import FINDING_FILES
    from vieval_plugin.report.writing import RANK_MD
    from vieval_plugin.text.errors import VievalError

    if options.margin is None and (options.history or options.no_control):
        name = "--history" if options.history else "--no-control"
        raise VievalError(f"{name} is part of a gate; pass --margin too")
    reads = [
        *options.inputs,
        *options.human,
        *filter(None, [options.against, options.prompts]),
    ]
    if options.history:
        require_suffix(options.history, (".jsonl",), "--history")
        require_writable(options.history, "--history", reads)
    for name in (
        ([BEST_OF] if options.best_of else [RANK_MD, *FINDING_FILES])
        if options.tables
        else ()
    ):
        require_writable(options.tables / name, "--tables", reads)
    for name, suffix in _SUFFIXES.items():
        if path := getattr(options, name):
            if name in _OUTPUTS and options.margin is None:
                raise VievalError(
                    f"--{name} is the decision of a gate: give a --margin too"
                )
            require_suffix(path, (suffix,), f"--{name}")  # so it is no image either
            require_writable(path, f"--{name}", reads)
            if options.margin is not None and name != "out":
                path.unlink(missing_ok=True)


def _write_result(options: argparse.Namespace, result: BuildResult) -> None:
    from vieval_plugin.media.files import write_whole
    from vieval_plugin.report.build_result import json_text, junit, summary

    for name, text_of in zip(_OUTPUTS, (summary, junit, json_text), strict=True):
        if path := getattr(options, name):
            write_whole(path, [text_of(result)], f"--{name}")
    if (
        step_summary := os.environ.get("GITHUB_STEP_SUMMARY")
    ) and options.margin is not None:
        with (
            contextlib.suppress(OSError),
            open(step_summary, "a", encoding="utf-8") as file,
        ):
            file.write(f"{summary(result)}\n")


def _rank(options: argparse.Namespace) -> BuildResult:
    """Refuse what can be refused, check the judge of an anchor, make images, judge them: each
    costs more than the last.
    """
    from vieval_plugin.benchmarks.loading.ratings import read_ratings
    from vieval_plugin.report.answer import Answer
    from vieval_plugin.report.build_result import BuildResult
    from vieval_plugin.report.gate import same_files_gate
    from vieval_plugin.results.baseline import add_baseline, read_baseline
    from vieval_plugin.results.lookup import require_consistent
    from vieval_plugin.results.runs import load_results
    from vieval_plugin.text.escaping import say

    are_images = options.prompts is not None or _hold_images(options.inputs)
    _require_applicable(options, are_images)
    ratings = read_ratings(options.human) if options.human else None
    request = _request(options) if are_images else None
    results = (
        _unjudged(request)
        if request
        else load_results(options.inputs, options.label, options.partial)
    )
    baseline = (
        read_baseline(options.against, results.records, options.partial)
        if options.against
        else None
    )
    if options.margin is not None:
        require_consistent(
            [
                *([] if request else results.records),
                *(baseline.records if baseline else ()),
            ]
        )
    records, too_few = [*results.records, *(baseline.records if baseline else ())], ""
    if request and options.margin is not None:
        too_few = _require_decision(
            options, records, request.judges[0].spec.rates == "contest"
        )
    if options.plan:
        return _plan(options, request)
    limits, failed = list[str](), list[str]()
    again = "run the same command again" if request else _commands(options.inputs)
    if baseline:
        baseline, sentence, drifted = _checked(baseline, options)
        if drifted:
            title = "The judge itself has drifted; nothing is said of your images."
            drift = Answer(
                title,
                sentence,
                next="Restore the judge, or make a new anchor of a build that you trust.",
            )
            say(*drift.lines)
            return BuildResult(ExitCode.JUDGE_DRIFTED, [drift])
        limits.append(sentence)
    if request:
        if options.generator_url:
            _make_images(options, request.source)
        same = same_files_gate(records) if options.margin is not None else None
        if same and not (options.out or options.tables or options.html):
            say(*same.answer.lines)
            _finish_build(options)
            return BuildResult(ExitCode.FINE, [same.answer])
        if too_few and not same:
            say(f"vieval: {too_few}", file=sys.stderr)
        results, failed = _judged(options, request)
    results = add_baseline(results, baseline) if baseline else results
    return _ranked(options, results, ratings, limits, again, failed, request)


def _request(options: argparse.Namespace) -> Request:
    """The images that the command is about, which may be yet to be made, and their judges."""
    from vieval_plugin.readers.columns import parse_columns
    from vieval_plugin.readers.image_folder import read_folders, read_named
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    unmade, [folder, *others] = bool(options.generator_url), options.inputs
    if (unmade or options.generator_model) and (
        not (unmade and options.generator_model and options.prompts)
        or others
        or folder.is_file()
    ):
        raise VievalError(
            "--generator-url needs --prompts and --generator-model, and one folder for the images"
        )
    named = options.prompts, options.kind, parse_columns(options.columns)
    source = (
        read_folders(options.inputs, *named, unmade=True)
        if unmade
        else read_named(list(map(str, options.inputs)), *named)
    )
    say(*(f"vieval: {line}" for line in source.notes), file=sys.stderr)
    return request_of(options, source, options_in_force(options), (DEFAULT_JUDGE, None))


def _unjudged(request: Request) -> Results:
    """What judging is to give, without verdicts."""
    from vieval_plugin.judges.protocol import Status
    from vieval_plugin.records import record_of, unjudged
    from vieval_plugin.results.runs import results_of
    from vieval_plugin.run.evaluate import provenance_of

    verdict, samples = (
        unjudged(Status.MISSING, "not judged yet"),
        [row.sample for row in request.source],
    )
    sources = [
        provenance_of(judge, request.current, request.backbone)
        for judge in request.judges
    ]
    return results_of(
        record_of(sample, verdict, source) for source in sources for sample in samples
    )


def _require_decision(
    options: argparse.Namespace, records: Sequence[Record], are_contests: bool
) -> str:
    """Refuse a gate that could decide nothing; a sentence where the prompts are too few for
    equal generators to pass.
    """
    from vieval_plugin.meta_evaluation.win_rates import EVEN
    from vieval_plugin.report.gate import NO_OTHER, too_few_sentence
    from vieval_plugin.text.errors import VievalError

    prompts = defaultdict(set)
    for record in records:
        group = record.sample.group if record.sample else record.id.uid
        prompts[record.id.image_model].add((record.id.part, group))
    mine, *references = prompts
    if not references:
        raise VievalError(f"{NO_OTHER.format(mine)}; name the folder of its images too")
    if len(judges := dict.fromkeys(options.judge or ())) > 1:
        raise VievalError(
            f"--margin decides by one judge, and here are {len(judges)} ({', '.join(judges)}); "
            "name one"
        )
    common = min(len(prompts[mine] & prompts[reference]) for reference in references)
    return too_few_sentence(common, options.margin, EVEN if are_contests else 1.0)


def _checked(
    baseline: Baseline, options: argparse.Namespace
) -> tuple[Baseline, str, bool]:
    """A baseline, a sentence on whether its judge has drifted, and true if it has.

    Of an anchor with its images the judge is asked again: where it is the same, the baseline has
    today's verdicts.
    """
    from vieval_plugin.cli.anchor import check_anchor

    if not baseline.is_anchor or not baseline.has_images:
        lacks = (
            "the anchor's images are not there"
            if baseline.is_anchor
            else f"{baseline.path} is no anchor"
        )
        return (
            baseline,
            f"It was not checked whether the judge has drifted, as {lacks}.",
            False,
        )
    today, decision, lines = check_anchor(baseline.path, options)
    baseline = baseline.judged_anew(today) if decision == "no_drift" else baseline
    return baseline, lines[0], decision == "drift"


def _make_images(options: argparse.Namespace, source: SampleSource) -> None:
    """Make the images of prompts on the server that flags name."""
    from vieval_plugin.backends.http.server import ServerOptions
    from vieval_plugin.run.served_images import make_images
    from vieval_plugin.text.escaping import say

    server = ServerOptions((options.generator_url,), os.environ.get(KEY_VARIABLE, ""))
    samples = [cast("Sample", row.sample) for row in source]
    lines = make_images(
        options.generator_model, server, samples, options.inputs[0], options.seed
    )
    say(*(f"vieval: {line}" for line in lines), file=sys.stderr)


def _finish_build(options: argparse.Namespace) -> None:
    """Have the next build make images of its own."""
    from vieval_plugin.run.served_images import finish_build

    if options.generator_url:
        finish_build(options.inputs[0])


def _judged(options: argparse.Namespace, request: Request) -> tuple[Results, list[str]]:
    """The verdicts on folders, written as they are asked for, and lines on what failed, such as
    a judge that cannot run.
    """
    from vieval_plugin.records import record_of
    from vieval_plugin.results.runs import results_of
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.run.side_by_side import judge_folders
    from vieval_plugin.run.verdict_lines import inputs_of, write_runs
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    runs, unable, progress = [], list(request.unable), Progress()
    for judge in request.judges:
        arguments = request.source, judge, request.current, request.backbone, progress
        try:
            runs.append(asyncio.run(judge_folders(*arguments, *options.label)))
        except VievalError as error:
            unable.append((judge.spec.name, str(error)))
    failed = lines_by_reason(unable)
    if not runs:
        raise VievalError("; ".join(failed))
    say(*progress.lines(), file=sys.stderr)
    if options.out:
        write_runs(options.out, inputs_of(request.source, options.command), runs)
        say(f"vieval: wrote {options.out}", file=sys.stderr)
    if progress.failed_calls:
        failed.append(
            "some calls failed (see above), and what they were about is left out"
        )
    pairs = (
        (pair, source)
        for judged, verdicts, source in runs
        for pair in zip(judged, verdicts, strict=True)
    )
    totals = request.source.totals
    results = results_of(
        replace(record_of(*pair, source), totals=totals) for pair, source in pairs
    )
    return replace(results, paths=(options.out,) if options.out else ()), failed


def _ranked(
    options: argparse.Namespace,
    results: Results,
    ratings: HumanRatings | None,
    limits: Sequence[str],
    again: str,
    failed: Sequence[str],
    request: Request | None,
) -> BuildResult:
    """Rank verdicts, and say and write what that shows."""
    from vieval_plugin.report.build_result import BuildResult
    from vieval_plugin.report.files import findings_document
    from vieval_plugin.report.gate import gate_of
    from vieval_plugin.report.sections import sections_of
    from vieval_plugin.report.writing import (
        RANK_MD,
        lines,
        tables_of,
        write_page,
        write_tables,
    )
    from vieval_plugin.results.prompt_differences import drop_different_prompts
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    statistics, notes = options_in_force(options).statistics.options(), results.notes
    results = drop_different_prompts(results)
    if options.margin is not None and (
        differences := [note for note in results.notes if note not in notes]
    ):
        raise VievalError(f"--margin compares the same prompts alone; {differences[0]}")
    if options.best_of:
        return _best_of(results, options.tables)
    report = sections_of(results, "generators", statistics, ratings)
    gate = (
        None
        if options.margin is None
        else gate_of(report, options.margin, statistics, limits, again)
    )
    if (
        gate
        and gate.evidence
        and gate.decision == "not_worse"
        and not (options.no_control or ratings)
    ):
        gate = _controlled(options, gate, results, request)
    if gate and options.history:
        gate = _add_history(options.history, gate, results)
    look = (
        [f"The prompts on which it fell most are in {options.html}."]
        if gate and gate.falls and options.html
        else []
    )
    ranking_lines = [
        line for answer in report.answers for line in replace(answer, title="").lines
    ]
    decision = (
        replace(gate.answer, limits=(*gate.answer.limits, *look, *ranking_lines))
        if gate
        else None
    )
    say(*lines(report, statistics, decision, "--tables FOLDER has them"), answer=True)
    further = {
        "--tables FOLDER writes all tables": options.tables,
        "--html FILE a page with the pictures": options.html,
    }
    if steps := "; ".join(step for step, path in further.items() if not path):
        say(f"{steps}.")
    if options.tables:
        say(
            *(
                f"wrote {path}"
                for path in write_tables(report, options.tables, statistics, RANK_MD)
            )
        )
    if options.html:
        write_page(report, options.html, statistics, gate)
        say(f"wrote {options.html} (open it in a browser)")
    if failed and not gate:
        raise VievalError("; ".join(failed))
    if not failed:
        _finish_build(options)
    code = tell_unreadable(results.unreadable)
    if not (gate and decision):
        boards = [
            board
            for section in report.sections
            for board in section.boards
            if board.ranks_generators
        ]
        return BuildResult(
            ExitCode(code or int(not any(board.defined for board in boards)))
        )
    findings = {
        **asdict(findings_document(report, statistics)),
        "margin": options.margin,
    }
    exit_code = ExitCode(code) if code else gate.exit_code
    return BuildResult(
        exit_code, [decision], gate, results.records, tables_of(report), findings
    )


def _controlled(
    options: argparse.Namespace, gate: Gate, results: Results, request: Request | None
) -> Gate:
    """A gate that passes, after its judge was asked about spoilt images; verdict files name the
    model that is asked.
    """
    from vieval_plugin.audit.positive_control import (
        contest_prompts,
        control_prompts,
        control_results,
        spoilings,
    )
    from vieval_plugin.cli.anchor import judge_today
    from vieval_plugin.report.gate import apply_control, require_no_control
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.text.escaping import say

    progress = Progress()
    if request:
        judging = request.judges[0], request.current, request.backbone, progress
    elif options.model:
        judging = (
            *judge_today(options, results.records[0].provenance, stored=True),
            None,
            progress,
        )
    else:
        return require_no_control(gate, options.margin)
    if judging[0].spec.rates == "contest":
        judged = (record.sample for record in results.records if record.sample)
        prompts = contest_prompts(list(judged), gate.challenger)
    else:
        reference = gate.evidence[0].reference
        prompts = control_prompts(
            results.records, gate.aspect, gate.challenger, reference, options.margin
        )
    ways = spoilings(gate.aspect, judging[0])
    found = asyncio.run(
        control_results(prompts, ways, gate.aspect, options.margin, judging)
    )
    say(*progress.lines(), file=sys.stderr)
    return apply_control(gate, found, options.margin, len(prompts))


def _add_history(path: Path, gate: Gate, results: Results) -> Gate:
    """A gate with the nights of its series; a night on which the judge cannot be read is not one
    of them.
    """
    from vieval_plugin.report.gate import add_history
    from vieval_plugin.results.baseline import add_night, night_of
    from vieval_plugin.text.errors import VievalError

    if len(gate.evidence) != 1:
        raise VievalError(
            f"--history follows one generator beside one baseline, got {len(gate.evidence)} "
            "baselines"
        )
    [evidence] = gate.evidence
    if gate.unreadable or not evidence.scored.n:
        return gate
    difference = evidence.scored.value, evidence.scored.n
    nights = add_night(
        path,
        night_of(results.records, gate.challenger, evidence.reference, *difference),
    )
    return add_history(
        gate, [night.date for night in nights], [night.difference for night in nights]
    )


def _plan(options: argparse.Namespace, request: Request | None) -> BuildResult:
    """Say what judging would cost, how many images a control adds, and the smallest difference
    that would show.
    """
    from vieval_plugin.audit.positive_control import spoilings
    from vieval_plugin.report.build_result import BuildResult
    from vieval_plugin.run.side_by_side import contests_between
    from vieval_plugin.stats.decisions import CONTROL_ITEMS, TYPICAL_SPREAD
    from vieval_plugin.stats.sample_sizes import smallest_difference
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural

    if request is None:
        raise VievalError(
            "--plan is for folders of images, with --prompts; results are judged already"
        )
    judge = request.judges[0]
    rows = [row for row in request.source if row.verdict is None]
    contests = judge.spec.rates == "contest"
    judged = contests_between(rows) if contests else [row.sample for row in rows]
    total = len(judged) if contests else request.source.total or 0
    code = tell_plan(request, judged, total)
    prompts = {(row.sample.id.part, row.sample.id.uid) for row in rows}
    units = len({(row.sample.id.part, row.sample.group) for row in rows})
    unit = "prompt" if units == len(prompts) else "group"
    if not contests and units:
        least = f"{smallest_difference(TYPICAL_SPREAD, units):.2f}"
        spread = f"at a typical spread of {TYPICAL_SPREAD:g}"
        say(
            f"{plural(units, unit)} would show differences of means from {least} on four times "
            f"in five, {spread}"
        )
    if options.margin is not None and not (options.no_control or options.human):
        ways = (
            1
            if contests
            else len(
                spoilings(
                    "O" if "O" in judge.spec.aspects else judge.spec.aspects[0], judge
                )
            )
        )
        calls = f", {judge.calls} calls each" if judge.asks_a_model else ""
        most = f" to {CONTROL_ITEMS * ways}" if ways > 1 else ""
        say(
            f"positive control of a gate that would pass: {CONTROL_ITEMS}{most} further "
            f"images{calls}"
        )
    return BuildResult(ExitCode(code))


def _hold_images(inputs: Sequence[Path]) -> bool:
    """Return whether all inputs are folders of images, and none is of results; VievalError where
    no prompts are known.
    """
    from vieval_plugin.readers.image_folder import has_prompts, is_of_images
    from vieval_plugin.readers.layout import find_folders
    from vieval_plugin.results.host_samples import SAMPLES
    from vieval_plugin.text.errors import VievalError

    if not all(path.is_dir() and not any(path.rglob(SAMPLES)) for path in inputs):
        return False
    layout, _ = find_folders(inputs)
    if not layout and not all(map(is_of_images, inputs)):
        return False
    if not layout and not any(map(has_prompts, inputs)):
        raise VievalError(
            f"{' and '.join(map(str, inputs))}: images without prompts; pass --prompts FILE"
        )
    return True


def _require_applicable(options: argparse.Namespace, are_images: bool) -> None:
    """VievalError for flags about judging, where nothing is judged."""
    from vieval_plugin.text.errors import VievalError

    if options.best_of and options.margin is not None:
        raise VievalError("--best-of decides nothing: leave out --margin, or --best-of")
    if are_images:
        if options.label[1:]:
            raise VievalError(
                "--label is given once for folders: it names the judge's verdicts"
            )
        return
    # an anchor's judge is asked again, and a gate's about spoilt images
    model_options = (
        () if options.against or options.margin is not None else ("model", "base_url")
    )
    judging_options = (
        "out",
        "kind",
        "columns",
        "judge",
        "setting",
        "scorer",
        "fresh",
        *model_options,
        "aspects",
        "lazy",
    )
    if used := next((name for name in judging_options if getattr(options, name)), None):
        raise VievalError(
            f"--{used.replace('_', '-')} is for folders of images, with --prompts; results are "
            "ranked as they are, and --tables and --html say where to"
        )


def _commands(inputs: Sequence[Path]) -> str:
    """The commands that judge again what a call or a tool failed on."""
    from vieval_plugin.run.shards.folder import PLAN
    from vieval_plugin.run.verdict_lines import run_file
    from vieval_plugin.text.yaml_json import read_json

    commands = []
    for path in inputs:
        if (path / PLAN).is_file():
            commands.append(f"`vieval shards {path} --rejudge api_error,tool_error`")
            continue
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if command := read_json(run_file(path).read_text(encoding="utf-8"))[
                "inputs"
            ]["command"]:
                commands.append(f"`{command}`")
    return (
        "; ".join(dict.fromkeys(commands))
        or f"with the command that wrote {', '.join(map(str, inputs))}"
    )


def _best_of(results: Results, folder: Path | None) -> BuildResult:
    """Say which image of each prompt is best."""
    from vieval_plugin.media.files import write_whole
    from vieval_plugin.meta_evaluation.candidates import candidates_by_prompt
    from vieval_plugin.report.build_result import BuildResult
    from vieval_plugin.report.rendering import csv_text
    from vieval_plugin.report.tables import best_of_table
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.tables import text_table

    table = best_of_table(candidates_by_prompt(results.records))
    say(
        *text_table([table.header, *table.rows]),
        *(f"note: {line}" for line in results.notes),
    )
    if folder:
        write_whole(folder / BEST_OF, [csv_text(table)])
        say(f"wrote {folder / BEST_OF}")
    return BuildResult(ExitCode(tell_unreadable(results.unreadable)))
