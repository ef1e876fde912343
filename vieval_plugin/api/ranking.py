"""Which generator is best: the judging of folders, the ranking of verdicts, and the gate.

A ranking is prepared before it is made: what can be refused is refused before the judge of an anchor
is checked, images are made and judged, each of which costs more than the last.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import PIL.Image

from vieval_plugin.api.conclusion import (
    AnyPath,
    Conclusion,
    Input,
    flattened,
    optional_path,
    paths_of,
    results_given,
)
from vieval_plugin.api.likeness import add_likeness
from vieval_plugin.audit.anchor import check_anchor, judge_today
from vieval_plugin.audit.positive_control import (
    contest_prompts,
    control_prompts,
    control_results,
    planned_control,
    spoilings,
)
from vieval_plugin.benchmarks.loading.ratings import read_ratings
from vieval_plugin.config import Backbone, Config, Options, resolved
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Sample, Status
from vieval_plugin.readers.columns import parse_columns
from vieval_plugin.readers.image_folder import (
    has_prompts,
    is_of_images,
    read_folders,
    read_named,
)
from vieval_plugin.readers.layout import find_folders
from vieval_plugin.readers.places import PLAN
from vieval_plugin.readers.samples import SampleSource
from vieval_plugin.records import Record, record_of, unjudged
from vieval_plugin.report.answer import Answer
from vieval_plugin.report.build_result import BuildResult
from vieval_plugin.report.files import findings_document
from vieval_plugin.report.gate import (
    Gate,
    add_history,
    apply_control,
    gate_of,
    require_decidable,
    require_no_control,
    same_files_gate,
)
from vieval_plugin.report.sections import Report, Section, sections_of
from vieval_plugin.report.tables import best_of_table
from vieval_plugin.report.writing import lines, tables_of
from vieval_plugin.results.baseline import (
    Baseline,
    add_baseline,
    add_night,
    night_of,
    read_baseline,
)
from vieval_plugin.results.host_samples import SAMPLES
from vieval_plugin.results.lookup import require_consistent
from vieval_plugin.results.prompt_differences import drop_different_prompts
from vieval_plugin.results.runs import Results, results_of
from vieval_plugin.run import backbones, loop
from vieval_plugin.run.plan import detectable_difference
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scoring import Request, lines_by_reason, request_of
from vieval_plugin.run.side_by_side import (
    NO_FOLDER,
    contests_between,
    draw_images,
    judge_folders,
)
from vieval_plugin.run.strict import require_known_kind
from vieval_plugin.run.verdict_lines import (
    inputs_of,
    require_same_judges,
    run_file,
    run_hash,
    write_runs,
)
from vieval_plugin.text.errors import ExitCode, VievalError
from vieval_plugin.text.suggestions import did_you_mean
from vieval_plugin.text.tables import text_table
from vieval_plugin.text.yaml_json import read_json

#: Called with a line to tell, or with what calls came to.
Tell: TypeAlias = Callable[[str | Progress], None]
#: Draws the image of a prompt's text and a seed; None where it makes none.
Draw: TypeAlias = Callable[[str, int], PIL.Image.Image | None]
#: Makes the images of samples, and returns lines on that.
Make: TypeAlias = Callable[[Sequence[Sample]], Iterable[str]]
#: Flags that apply only where images are judged, in the order in which they are refused.
JUDGING = (
    "prompts",
    "reference",
    "out",
    "kind",
    "columns",
    "judge",
    "setting",
    "scorer",
    "fresh",
    "model",
    "base_url",
    "aspects",
    "lazy",
)
_MODEL = ("model", "base_url")
#: Fields of a request that are no arguments of a call.
_OWN = {"inputs", "backbone", "make", "flags", "command", "plan"}
_NO_GATE = "This is not a gate: pass --margin M to decide by the exit code."
#: The most that a win rate can fall, which no margin reaches.
_LARGEST_FALL = 0.5


def _ignore(event: str | Progress) -> None:
    """Ignore a line."""


@dataclass(frozen=True, kw_only=True)
class RankingRequest:
    """Generators to rank, who judges them, and how a gate decides."""

    inputs: Sequence[Input]
    #: Options in force.
    options: Config
    #: File of the prompts of images.
    prompts: AnyPath | None = None
    #: Folder of images that those of the generators are compared with.
    reference: AnyPath | None = None
    #: Task type of prompts that name none.
    kind: str | None = None
    #: Columns of prompts, each KEY=COLUMN.
    columns: Sequence[str] = ()
    #: Name of a judge of images, or several.
    judge: str | Sequence[str] | None = None
    setting: str | None = None
    #: Fields of the judge's backbone.
    backbone: Mapping[str, Any] = field(default_factory=dict)
    #: Files of people's ratings.
    human: AnyPath | Sequence[AnyPath] = ()
    #: Verdicts of an earlier build, or an anchor.
    against: AnyPath | None = None
    #: Names of the judges of results.
    label: Sequence[str] = ()
    #: Read also verdicts of runs that are not complete.
    partial: bool = False
    #: Margin of a gate; None for a ranking.
    margin: float | None = None
    #: A gate that passes asks its judge about spoilt images.
    control: bool = True
    #: File of the nights of a gate.
    history: AnyPath | None = None
    #: Only find the best image of each prompt.
    best_of: bool = False
    #: Only plan.
    plan: bool = False
    #: Makes the images, which are yet to be made.
    make: Make | None = None
    #: File for the verdicts.
    out: AnyPath | None = None
    #: Page that will be written.
    html: AnyPath | None = None
    #: Folder of tables that will be written.
    tables: AnyPath | None = None
    #: Further names of `JUDGING` that are in use.
    flags: Sequence[str] = ()
    #: Command line, for the verdicts.
    command: str = ""
    #: Show a progress bar.
    bar: bool = False
    tell: Tell = _ignore

    @property
    def judges(self) -> Sequence[str]:
        """Names of the judges that are asked for."""
        return [self.judge] if isinstance(self.judge, str) else self.judge or ()

    def named_backbone(self, current: Config) -> Backbone | None:
        """The backbone that the request names."""
        return backbones.named_backbone(self.backbone, current, self.tell)


@dataclass(frozen=True)
class PreparedRanking:
    """A ranking for which nothing was paid yet."""

    request: RankingRequest
    #: Images to judge, and who judges them; None for verdicts.
    judging: Request | None
    #: Verdicts, or those that judging is to give.
    results: Results
    baseline: Baseline | None
    #: People's ratings, as `read_ratings` returns them; None without.
    ratings: Any
    #: Line that even equal scores could not pass a gate; empty where they could.
    too_few: str = ""


def _request(
    inputs: Sequence[Input],
    options: Options = None,
    draw: Draw | None = None,
    seed: int = 0,
    **arguments: Any,
) -> RankingRequest:
    """The request of a call of `rank` or `gate`."""
    inputs = flattened(inputs)
    names = {field.name for field in fields(RankingRequest)}
    own_names = names & arguments.keys()
    own = {name: arguments.pop(name) for name in own_names}
    backbone_fields = Backbone.model_fields.keys()
    field_names = sorted((names - _OWN) | {"draw", "seed"} | backbone_fields)
    unknown = sorted(arguments.keys() - field_names)
    if unknown:
        hint = did_you_mean(unknown[0], field_names)
        raise VievalError(f"unknown argument {unknown[0]!r}{hint}")
    if draw:
        paths = paths_of(inputs)
        if not (paths and own.get("prompts")):
            raise VievalError("`draw` requires `prompts` and a folder for its images")
        own["make"] = _maker(draw, paths[0], seed)
    return RankingRequest(
        inputs=inputs,
        options=resolved(options),
        backbone=arguments,
        **own,
    )


def request_of_flags(flags: Mapping[str, Any], **fields_set: Any) -> RankingRequest:
    """The request of the command's flags; `fields_set` are those fields that are not
    flags.
    """
    names = {field.name for field in fields(RankingRequest)} & flags.keys()
    values = {name: flags[name] for name in names}
    judging_flags = [name for name in JUDGING if flags[name]]
    return RankingRequest(
        **values,
        **fields_set,
        control=not flags["no_control"],
        flags=judging_flags,
        bar=True,
    )


def _require_own_out(request: RankingRequest, judging: Request) -> None:
    """Raise VievalError if the file for verdicts has those of other judges."""
    if request.out and not request.plan:
        sources = judging.sources(_first_label(request))
        by_hash = {run_hash(source): source for source in sources}
        require_same_judges(Path(request.out), by_hash)


def _first_label(request: RankingRequest) -> str:
    return next(iter(request.label), "")


def _maker(draw: Draw, folder: Path, seed: int) -> Make:
    """A function that makes the images of samples in a folder."""

    def made(samples: Sequence[Sample]) -> list[str]:
        draw_images(draw, samples, folder, seed)
        return []

    return made


def rank(*inputs: Input, **arguments: Any) -> Conclusion:
    """Find out which generator is better, as `vieval rank` does.

    Args:
        inputs: folders of images, with `prompts`; or verdicts: files of `vieval score`, folders of
            runs, or each a `Run`, a `Record`, the `Verdicts` of a `Judge`, or a data frame with the
            columns uid and generator and a column a score.
        **arguments: those of the command, and none of them prints:

            - `reference`, a folder of images that those of the generators are compared with;
            - of images `prompts`, their file; `kind`; `columns`, such as `["uid=id"]`; `judge`, a
              name or several (default: viescore); `setting`; `out`, a file for the verdicts; fields
              of the judge's backbone, such as `model` and `base_url`;
            - `draw`, a function of a prompt and a seed that returns its image, kept in the one
              folder, and `seed`, that of the first;
            - `human`, files of people's ratings; `against`, verdicts of an earlier build or an
              anchor; `label`, what tables call the judge of each path; `partial`;
            - `html` and `tables`, a page and a folder of tables to write;
            - `options`, as an options file has them, or a `Config`; `bar`, for a progress bar;
              `tell`, called with each line and each `Progress` as they come.

    Returns:
        The answer with its numbers; `outcome` is `ERROR` where nothing could be ranked, calls
        failed or a file could not be read.

    Raises:
        VievalError: what is passed cannot be used, or no judge can run.

    >>> import pandas
    >>> scores = [{"uid": f"p{n}", "generator": g, "O": n / 20 + (g == "new") / 9}
    ...     for n in range(12) for g in ("new", "old")]
    >>> ranking = rank(pandas.DataFrame(scores), options={"statistics": {"draws": 50}})
    >>> ranking.answer, ranking.outcome.name
    ("scores rates new's images better than old's.", 'FINE')
    """
    return _concluded(_request(inputs, **arguments))


def gate(*inputs: Input, margin: float, **arguments: Any) -> Conclusion:
    """Decide whether the first generator is not worse than the others, as `vieval rank --margin`
    does.

    Args:
        inputs: as for `rank`, the generator in question first.
        margin: how much worse it may be, from 0 to below 1/2, in the unit of the difference.
        **arguments: as for `rank`; and `control=False` to pass a build without asking whether the
            judge sees spoilt images; `history`, a file of nights, in which a slow fall is looked
            for.

    Returns:
        The decision; `outcome` is `FINE`, `WORSE`, `UNDECIDED`, `JUDGE_DRIFTED`, `SLOW_FALL`, or
        `ERROR` where a file could not be read.

    Raises:
        VievalError: what is passed cannot be used, or the judge cannot run.

    >>> import pandas
    >>> scores = [{"uid": f"p{n}", "generator": g, "O": n / 20 + (g == "old") / 9}
    ...     for n in range(12) for g in ("new", "old")]
    >>> gate(pandas.DataFrame(scores), margin=0.02).outcome
    <ExitCode.WORSE: 3>
    """
    if isinstance(margin, bool) or not 0 <= margin < _LARGEST_FALL:
        raise VievalError(
            f"`margin` must be at least 0 and below {_LARGEST_FALL:g}, got {margin!r}"
        )
    return _concluded(_request(inputs, margin=margin, **arguments))


def _concluded(request: RankingRequest) -> Conclusion:
    """The conclusion of a request, with the page and the tables that it names written."""
    conclusion = conclude(prepare_ranking(request))
    if conclusion.report and request.html:
        conclusion.write_page(request.html)
    if conclusion.report and request.tables:
        conclusion.write_tables(request.tables)
    return conclusion


def prepare_ranking(request: RankingRequest) -> PreparedRanking:
    """Read the input of a ranking, and raise its errors before any model is paid for.

    Raises:
        VievalError: it cannot be used.
    """
    paths = paths_of(request.inputs)
    are_paths = bool(paths) and len(paths) == len(request.inputs)
    are_images = are_paths and (request.prompts is not None or _hold_images(paths))
    _require_applicable(request, are_images)
    human = paths_of(flattened([request.human]))
    ratings = read_ratings(human) if human else None
    judging = _judging(request, paths) if are_images else None
    if judging:
        _require_own_out(request, judging)
        results = _unjudged(judging)
    else:
        results = results_given(request.inputs, request.label, request.partial)
    baseline = (
        read_baseline(Path(request.against), results.records, request.partial)
        if request.against
        else None
    )
    earlier = baseline.records if baseline else ()
    too_few = ""
    if request.margin is not None:
        require_consistent([*([] if judging else results.records), *earlier])
        if judging:
            records = [*results.records, *earlier]
            is_contest = judging.judges[0].spec.rates == "contest"
            too_few = require_decidable(
                records, request.judges, request.margin, is_contest
            )
    return PreparedRanking(request, judging, results, baseline, ratings, too_few)


def planned(prepared: PreparedRanking) -> tuple[Request, list[Judged], int, list[str]]:
    """The judging that is planned, what is left to judge, how much there is in all, and lines on
    the smallest difference that would show and on how many images a control adds.

    Raises:
        VievalError: verdicts are ranked, which are judged already.
    """
    request = prepared.request
    judging = prepared.judging
    if judging is None:
        raise VievalError(
            "--plan applies only to folders of images, with --prompts; results are "
            "already judged"
        )
    rows = [row for row in judging.source if row.verdict is None]
    judge = judging.judges[0]
    text = list[str]()
    if judge.spec.rates == "contest":
        judged = list[Judged](contests_between(rows))
        total = len(judged)
    else:
        judged = [row.sample for row in rows]
        total = judging.source.total or 0
        text += [detectable_difference(judged)] if judged else []
    if request.margin is not None and request.control and not request.human:
        text.append(planned_control(judge))
    return judging, judged, total, text


def conclude(prepared: PreparedRanking) -> Conclusion:
    """Check the judge of an anchor, make images, judge them and rank: what each costs is told.

    Raises:
        VievalError: no judge can run, or its images cannot be made.
    """
    request = prepared.request
    judging = prepared.judging
    baseline = prepared.baseline
    limits = list[str]()
    if baseline:
        baseline, sentence, drifted = _checked(baseline, request)
        if drifted:
            return _early(request, ExitCode.JUDGE_DRIFTED, _drift(sentence))
        limits.append(sentence)
    results = prepared.results
    failed = list[str]()
    if judging:
        if len(request.inputs) == 1:
            _make_images(request, judging.source)
        earlier = baseline.records if baseline else ()
        records = [*results.records, *earlier]
        same = same_files_gate(records) if request.margin is not None else None
        if same and not (request.out or request.tables or request.html):
            return _identical(prepared, same, records)
        if prepared.too_few and not same:
            request.tell(prepared.too_few)
        results, failed = _judged(request, judging)
    results = add_baseline(results, baseline) if baseline else results
    return _ranked(prepared, results, limits, failed)


def _identical(
    prepared: PreparedRanking, gate: Gate, records: Sequence[Record]
) -> Conclusion:
    """The conclusion of a gate of identical images, which are not judged."""
    request = prepared.request
    if request.history:
        judge = prepared.results.runs[0].name.words
        gate = _add_history(Path(request.history), replace(gate, judge=judge), records)
    return _early(request, gate.exit_code, gate.answer)


def _early(request: RankingRequest, outcome: ExitCode, answer: Answer) -> Conclusion:
    """The conclusion of a gate that compares nothing."""
    build = BuildResult(outcome, [answer])
    printed_lines = _with_verdict(answer.lines, outcome)
    return Conclusion(build=build, lines=printed_lines, options=request.options)


def _with_verdict(sentences: Sequence[str], outcome: ExitCode) -> tuple[str, ...]:
    """Lines of a gate, the first with its outcome in a word."""
    first, *further = sentences
    return f"{outcome.verdict}: {first}", *further


def _drift(sentence: str) -> Answer:
    return Answer(
        "The judge itself has drifted, so your images were not compared.",
        sentence,
        next="Restore the judge, or make a new anchor from a build that you trust.",
    )


def _judging(request: RankingRequest, paths: Sequence[Path]) -> Request:
    """The images that are ranked, which may be yet to be made, and their judges."""
    prompts = optional_path(request.prompts)
    reading = (prompts, request.kind, parse_columns(request.columns))
    reference = optional_path(request.reference)
    if request.make and not prompts:
        raise VievalError(NO_FOLDER)
    if request.make and len(paths) == 1:
        source = read_folders(paths, *reading, unmade=True, reference=reference)
    else:
        if request.make:  # beside images that are there already
            _make_images(request, read_folders(paths[:1], *reading, unmade=True))
        source = read_named(list(map(str, paths)), *reading, reference=reference)
    for line in source.notes:
        request.tell(line)
    judging = request_of(
        source,
        request.judges,
        request.setting,
        request.options,
        request.named_backbone,
        is_plan=request.plan,
    )
    if len(judging.judges) == 1:
        require_known_kind(source, judging.judges[0].spec)
    return judging


def _make_images(request: RankingRequest, source: SampleSource) -> None:
    """Make the images of a folder where the request says how."""
    if request.make:
        samples = [cast(Sample, row.sample) for row in source]
        for line in request.make(samples):
            request.tell(line)


def _unjudged(judging: Request) -> Results:
    """The results to be judged, without verdicts."""
    verdict = unjudged(Status.MISSING, "not judged yet")
    samples = [row.sample for row in judging.source]
    return results_of(
        record_of(sample, verdict, source)
        for source in judging.sources("")
        for sample in samples
    )


def _checked(baseline: Baseline, request: RankingRequest) -> tuple[Baseline, str, bool]:
    """A baseline, a sentence on whether its judge has drifted, and true if it has.

    Of an anchor with its images the judge is asked again: where it is the same, the baseline has
    today's verdicts.
    """
    if not baseline.is_anchor or not baseline.has_images:
        lacks = (
            "the anchor's images were not found"
            if baseline.is_anchor
            else f"{baseline.path} is not an anchor"
        )
        return baseline, f"Judge drift was not checked: {lacks}.", False
    today, decision, text = check_anchor(
        baseline.path,
        request.options,
        request.named_backbone,
        request.tell,
        request.bar,
    )
    baseline = baseline.judged_anew(today) if decision == "no_drift" else baseline
    return baseline, text[0], decision == "drift"


def _judged(request: RankingRequest, judging: Request) -> tuple[Results, list[str]]:
    """The verdicts on folders, written where that is wanted, and lines on what failed, such as a
    judge that cannot run.
    """
    runs = []
    unable = list(judging.unable)
    progress = Progress()
    label = _first_label(request)
    out = optional_path(request.out)
    for judge in judging.judges:
        judged = judge_folders(
            judging.source,
            judge,
            judging.current,
            judging.backbone,
            progress,
            label,
            request.bar,
        )
        try:
            runs.append(loop.run(judged))
        except VievalError as error:
            unable.append((judge.spec.name, str(error)))
    failed = lines_by_reason(unable)
    if not runs:
        raise VievalError("; ".join(failed))
    request.tell(progress)
    if out:
        write_runs(out, inputs_of(judging.source, request.command), runs)
        request.tell(f"wrote {out}")
    if progress.failed_calls:
        failed.append("some calls failed (see above); their samples are left out")
    totals = judging.source.totals
    records = []
    for samples, outcomes, source in runs:
        for sample, outcome in zip(samples, outcomes, strict=True):
            record = record_of(sample, outcome.verdict, source)
            records.append(replace(record, totals=totals))
    return replace(results_of(records), paths=(out,) if out else ()), failed


def _ranked(
    prepared: PreparedRanking,
    results: Results,
    limits: Sequence[str],
    failed: Sequence[str],
) -> Conclusion:
    """Rank verdicts, and decide if there is a margin."""
    request = prepared.request
    notes = results.notes
    results = drop_different_prompts(results)
    differences = [note for note in results.notes if note not in notes]
    if request.margin is not None and differences:
        raise VievalError(
            f"--margin requires the same prompts for all generators; {differences[0]}"
        )
    if request.best_of:
        return _best_of(request, results)
    report = sections_of(
        results,
        "generators",
        request.options.statistics.options(),
        prepared.ratings,
    )
    report = add_likeness(report, results.records, request.options)
    if request.margin:
        sections = [replace(part, margin=request.margin) for part in report.sections]
        report = replace(report, sections=tuple(sections))
    gate = None
    if request.margin is not None:
        gate = _decided(prepared, request.margin, report, results, limits)
    return _conclusion(request, results, report, gate, failed)


def _conclusion(
    request: RankingRequest,
    results: Results,
    report: Report,
    gate: Gate | None,
    failed: Sequence[str],
) -> Conclusion:
    """The conclusion of a ranking, with a gate or without."""
    statistics = request.options.statistics.options()
    answers = report.answers
    findings = dict[str, Any]()
    is_ranked = any(_is_ranked(section) for section in report.sections)
    outcome = ExitCode(not is_ranked)
    if gate:
        answers = [_decision(request, report, gate)]
        outcome = gate.exit_code
        findings = asdict(findings_document(report, statistics))
        findings["margin"] = request.margin
    if results.unreadable or (failed and not gate):
        outcome = ExitCode.ERROR
    gate_answer = answers[0] if gate else None
    sentences = tuple(
        lines(report, statistics, gate_answer, "see them with --tables FOLDER")
    )
    build = BuildResult(
        outcome, answers, gate, results.records, tables_of(report), findings
    )
    printed_lines = sentences
    if gate:
        printed_lines = _with_verdict(sentences, outcome)
    elif request.against:
        printed_lines = (*sentences, _NO_GATE)
    return Conclusion(
        build=build,
        lines=printed_lines,
        options=request.options,
        report=report,
        unreadable=results.unreadable,
        failed=tuple(failed),
    )


def _is_ranked(section: Section) -> bool:
    """Return whether generators have numbers."""
    return any(board.ranks_generators and board.defined for board in section.boards)


def _decision(request: RankingRequest, report: Report, gate: Gate) -> Answer:
    """The answer of a gate, with where to look and what the ranking says."""
    limits = [*gate.answer.limits]
    if gate.falls and request.html:
        limits.append(f"{request.html} shows the prompts with the largest drop.")
    for answer in report.answers:
        limits += replace(answer, title="").lines
    return replace(gate.answer, limits=tuple(limits))


def _decided(
    prepared: PreparedRanking,
    margin: float,
    report: Report,
    results: Results,
    limits: Sequence[str],
) -> Gate:
    """The gate, with its positive control and its history."""
    request = prepared.request
    statistics = request.options.statistics.options()
    command = "the same command" if prepared.judging else _again(request)
    gate = gate_of(report, margin, statistics, limits, command)
    is_passed = gate.evidence and gate.decision == "not_worse"
    if is_passed and request.control and not request.human:
        gate = _controlled(prepared, margin, gate, results)
    if request.history:
        gate = _add_history(Path(request.history), gate, results.records)
    return gate


def _controlled(
    prepared: PreparedRanking,
    margin: float,
    gate: Gate,
    results: Results,
) -> Gate:
    """A gate that passes, after its judge was asked about spoilt images; verdicts need the name
    of the model that is asked.
    """
    request = prepared.request
    judging = prepared.judging
    progress = Progress()
    if judging:
        judge = judging.judges[0]
        current = judging.current
        backbone = judging.backbone
    elif request.backbone.get("model"):
        source = results.records[0].provenance
        backbone = None
        judge, current = judge_today(
            source,
            request.options,
            request.named_backbone,
            stored=True,
        )
    else:
        return require_no_control(gate, margin)
    if judge.spec.rates == "contest":
        samples = [record.sample for record in results.records if record.sample]
        prompts = contest_prompts(samples, gate.challenger)
    else:
        reference = gate.evidence[0].reference
        prompts = control_prompts(
            results.records, gate.aspect, gate.challenger, reference, margin
        )
    aspect = gate.aspect
    ways = spoilings(aspect, judge)
    models = (judge, current, backbone, progress)
    control = loop.run(
        control_results(prompts, ways, aspect, margin, models, request.bar)
    )
    request.tell(progress)
    return apply_control(gate, control, margin, len(prompts))


def _add_history(path: Path, gate: Gate, records: Sequence[Record]) -> Gate:
    """A gate with the nights of its series; a night on which the judge cannot be read is not one
    of them.
    """
    compared = [evidence.reference for evidence in gate.evidence]
    references = [*compared, *gate.identical]
    if len(references) != 1:
        raise VievalError(
            "--history tracks one generator against one baseline, got "
            f"{len(references)} baselines"
        )
    if gate.unreadable:
        return gate
    difference = 0.0
    n = len({(record.id.part, record.id.uid) for record in records})
    if gate.evidence:
        scored = gate.evidence[0].scored
        difference = scored.value
        n = scored.n
    if not n:
        return gate
    night = night_of(records, gate.challenger, references[0], difference, n)
    nights = add_night(path, night)
    dates = [night.date for night in nights]
    differences = [night.difference for night in nights]
    return add_history(gate, dates, differences)


def _hold_images(inputs: Sequence[Path]) -> bool:
    """Return whether all inputs are folders of images, and none is of results; VievalError where
    no prompts are known.
    """
    if not all(path.is_dir() and not any(path.rglob(SAMPLES)) for path in inputs):
        return False
    layout, _ = find_folders(inputs)
    if layout:
        return True
    if not all(map(is_of_images, inputs)):
        return False
    if not any(map(has_prompts, inputs)):
        folders = " and ".join(map(str, inputs))
        raise VievalError(f"{folders}: images require prompts; pass --prompts FILE")
    return True


def _require_applicable(request: RankingRequest, are_images: bool) -> None:
    """Raise VievalError for arguments about judging, where nothing is judged."""
    if request.best_of and request.margin is not None:
        raise VievalError("--best-of and --margin cannot be combined; pass one of them")
    if are_images:
        if request.label[1:]:
            raise VievalError("--label may be passed only once for folders of images")
        return
    # an anchor's judge is asked again, and a gate's about spoilt images
    asks = request.against or request.margin is not None
    refused = [
        name
        for name in JUDGING
        if _is_used(name, request) and not (asks and name in _MODEL)
    ]
    if refused:
        flag = refused[0].replace("_", "-")
        raise VievalError(
            f"--{flag} applies only to folders of images, with --prompts; for results, "
            "use only --tables and --html"
        )


def _is_used(name: str, request: RankingRequest) -> bool:
    is_field = request.backbone.get(name) or getattr(request, name, None)
    return bool(is_field or name in request.flags)


def _again(request: RankingRequest) -> str:
    """Commands that retry verdicts that failed by a call or a tool."""
    commands = []
    paths = paths_of(request.inputs)
    for path in paths:
        if (path / PLAN).is_file():
            commands.append(f"`vieval shards {path} --rejudge api_error,tool_error`")
            continue
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            document = read_json(run_file(path).read_text(encoding="utf-8"))
            command = document["inputs"]["command"]
            if command:
                commands.append(f"`{command}`")
    if commands:
        return "; ".join(dict.fromkeys(commands))
    return f"the command that wrote {', '.join(map(str, paths)) or 'these verdicts'}"


def _best_of(request: RankingRequest, results: Results) -> Conclusion:
    """The best image of each prompt and generator, as a table."""
    table = best_of_table(results.records)
    rows = text_table([table.header, *table.rows])
    build = BuildResult(ExitCode(bool(results.unreadable)), tables=[table])
    notes = (f"note: {line}" for line in results.notes)
    return Conclusion(
        build=build,
        lines=(*rows, *notes),
        options=request.options,
        unreadable=results.unreadable,
    )
