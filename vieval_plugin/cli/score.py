"""`vieval score`: judge the images of your own generator."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands
    from vieval_plugin.config import Backbone, Config
    from vieval_plugin.judges.protocol import Sample, Verdict
    from vieval_plugin.readers.samples import SampleSource
    from vieval_plugin.records import Provenance
    from vieval_plugin.run.prepare import PreparedJudge


GROUP = "judge images"
DEFAULT_JUDGE = "viescore"
"""The judge where none is named."""
MODEL, URL = "VIEVAL_MODEL", "VIEVAL_BASE_URL"
"""Environment variables of the backbone where neither flags nor options name one."""
_REASON = 300  # characters of a reason that are printed
_OF_BACKBONE = ("num_concurrent", "temperature", "max_tokens", "timeout", "patience", "price_input", "price_output")


@dataclass(frozen=True)
class _Request:
    """Samples, and who judges them by what: a backbone that flags name, or those of the options."""

    source: SampleSource
    prepared: Sequence[PreparedJudge]
    current: Config
    backbone: Backbone | None


def add(commands: Commands) -> None:
    parser = commands.add_parser("score", help="judge the images of your own generator")
    parser.add_argument(
        "samples",
        nargs="+",
        help="images, with --prompt; or JSONL or CSV: images (output, source, ...), texts, kind, uid, image_model; or "
        "folders of images, with --prompts; or what lmms-eval wrote of a generator (--log_samples)",
    )
    parser.add_argument("--out", type=Path, help="JSONL of verdicts, in the samples' order; not needed for images")
    parser.add_argument("--json", action="store_true", help="print the verdicts on images as JSON, one a line")
    parser.add_argument("--plan", action="store_true", help="judge eight samples, tell what all would cost, and stop")

    selection = parser.add_argument_group("what is judged")
    selection.add_argument("--prompt", metavar="TEXT", help="what the images were made of")
    selection.add_argument("--source", metavar="IMAGE", help="the image that was edited")
    selection.add_argument("--instruction", metavar="TEXT", help="how it was to be edited")
    selection.add_argument("--prompts", type=Path, help="what images in folders were made of: .txt, .csv or .jsonl")
    selection.add_argument(
        "--kind", "--task", dest="kind", help="the kind of samples whose line names none, such as tig"
    )
    selection.add_argument("--limit", type=int, metavar="N", help="judge the first N samples only")
    selection.add_argument(
        "--allow-urls", action="append", default=[], metavar="HOST", help="fetch images from this host; once for each"
    )
    selection.add_argument(
        "--strict", action="store_true", help="ask nothing if a line is bad, but stop at the first, with its number"
    )

    add_judge(parser).add_argument(
        "--label", default="", help="what reports call these verdicts (default: the backbone's model)"
    )
    model = add_backbone(parser)
    model.add_argument("--price-input", type=float, metavar="P", help="of a million tokens of questions, for --plan")
    model.add_argument("--price-output", type=float, metavar="P", help="of a million tokens of answers, for --plan")
    parser.set_defaults(run=_run)


def add_judge(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The flags that say who judges."""
    by = parser.add_argument_group("who judges")
    by.add_argument(
        "--judge", action="append", help="a judge, once for each (default: viescore, or that of the run's task)"
    )
    by.add_argument("--setting", help="the judge's setting, such as 1shot (default: its plain one)")
    by.add_argument("--config", type=Path, help="the options file (default: the one that VIEVAL_CONFIG names)")
    by.add_argument("--scorer", help="weights of a judge that measures: a name, a folder or a file (default: its own)")
    by.add_argument("--fresh", action="store_true", help="ask anew what the store holds, and replace it")
    return by


def add_backbone(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The flags of the model that the judge asks."""
    model = parser.add_argument_group(
        "the backbone", "the model that the judge asks (default: backbones.judge of the options)"
    )
    model.add_argument("--model", help="the name that its server knows it by")
    model.add_argument("--base-url", action="append", help="its server, an address that ends in /v1; once for each")
    model.add_argument("--num-concurrent", type=int, metavar="N", help="requests in flight at once (default: 32)")
    model.add_argument("--temperature", type=float, help="sampling temperature (default: 0)")
    model.add_argument("--max-tokens", type=int, metavar="N", help="limit of an answer (default: the judge's own)")
    model.add_argument(
        "--timeout", type=float, help="seconds without a byte before a call is tried again (default: 600)"
    )
    model.add_argument("--patience", type=float, help="seconds without any answer before the run stops (default: 120)")
    return model


def _run(options: argparse.Namespace) -> int:
    from vieval_plugin.errors import VievalError
    from vieval_plugin.images import files_of
    from vieval_plugin.judges import registry as judge_registry
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.readers.image_folder import are_images
    from vieval_plugin.readers.samples import limited
    from vieval_plugin.run.prepare import prepare
    from vieval_plugin.text.escaping import say

    images = not options.prompts and are_images(options.samples)
    if options.out is None and not (options.plan or images):
        raise VievalError("name the file that verdicts are to be written to with --out, or pass --plan")
    if options.limit is not None and options.limit < 1:
        raise VievalError(f"--limit {options.limit} leaves nothing to judge; give 1 or more")
    for name in options.judge or []:
        judge_registry.judge(name)
    current = options_in_force(options)
    backbone = named_backbone(options, current)
    source, judge, setting = _samples_of(options, current)
    prepared = [
        prepare(name, options.setting or (setting if name == judge else None), current, backbone)
        for name in dict.fromkeys(options.judge or [judge])
    ]
    if not options.plan:
        require_model(prepared, current, backbone)
    source = limited(source, options.limit)
    say(*(f"vieval: {line}" for line in (*source.notes, *_unused(options, prepared))), file=sys.stderr)
    if options.out:
        reads = [
            *map(Path, options.samples),
            *([options.prompts] if options.prompts else []),
            *files_of(row.sample for row in source),
        ]
        require_writable(options.out, reads=reads)
    if options.allow_urls or any(row.addresses for row in source):
        from vieval_plugin.run.addresses import fetched

        source = fetched(source, options.allow_urls, options.fresh)
    if options.strict:
        from vieval_plugin.run.strict import require_good

        for prepared_judge in prepared:
            require_good(source, prepared_judge.spec)
    request = _Request(source, prepared, current, backbone)
    return _plan(request) if options.plan else _score(options, request, images)


def options_in_force(options: argparse.Namespace) -> Config:
    """The options file, with what flags say of all backbones and scorers on top."""
    from vieval_plugin import config

    current = config.read(str(options.config)) if options.config else config.current()
    if options.fresh:
        current = current.asking_anew()
    return current.scored_by({"model": options.scorer}) if options.scorer else current


def named_backbone(options: argparse.Namespace, current: Config) -> Backbone | None:
    """The backbone that flags name, or that of the options with what they say of it; None where they say nothing."""
    from pydantic import ValidationError

    from vieval_plugin.config import Backbone
    from vieval_plugin.errors import VievalError
    from vieval_plugin.run.backbones import JUDGE

    model, base_url = options.model, options.base_url
    if JUDGE not in current.backbones:
        model = model or os.environ.get(MODEL)
        base_url = base_url or [address for address in (os.environ.get(URL),) if address]
    if bool(model) != bool(base_url):
        raise VievalError("--model and --base-url go together; or name neither and set backbones.judge in the options")
    fields = {name: getattr(options, name) for name in _OF_BACKBONE if getattr(options, name, None) is not None}
    if model:
        fields |= {"model": model, "base_url": tuple(base_url)}
    elif not fields or JUDGE not in current.backbones:
        return None
    else:
        fields = {**current.backbones[JUDGE].model_dump(), **fields}
    try:
        return Backbone.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise VievalError(f"--{str(first['loc'][0]).replace('_', '-')}: {first['msg']}") from None


def _samples_of(options: argparse.Namespace, current: Config) -> tuple[SampleSource, str, str | None]:
    """The samples, and the judge and setting that they are for where no other is named."""
    from vieval_plugin.errors import VievalError
    from vieval_plugin.readers.image_folder import are_images, holds_images, read_folders, read_images
    from vieval_plugin.readers.samples import read_samples

    paths = [Path(named) for named in options.samples]
    if options.prompts:
        return read_folders(paths, options.prompts, options.kind), DEFAULT_JUDGE, None
    if are_images(options.samples):
        texts = {name: getattr(options, name) for name in ("prompt", "instruction") if getattr(options, name)}
        return read_images(options.samples, texts, options.source, options.kind), DEFAULT_JUDGE, None
    from vieval_plugin.results.unjudged import is_run, load_unjudged

    if options.prompt or options.instruction or options.source:
        raise VievalError("--prompt, --source and --instruction are for images; a file of samples has its own")
    if len(paths) > 1:
        raise VievalError("pass images, one file of samples, or several folders of images with --prompts")
    [path] = paths
    if holds_images(path) and not any(path.rglob("*_samples_*.jsonl")):
        raise VievalError(f"{path}: images, and no prompts; name the file of what they were made of with --prompts")
    if not is_run(path):
        return read_samples(path, options.kind), DEFAULT_JUDGE, None
    run = load_unjudged(path, current, options.kind)
    return run.source, run.judge or DEFAULT_JUDGE, run.setting


def require_model(prepared: Sequence[PreparedJudge], current: Config, backbone: Backbone | None) -> None:
    """VievalError that names the ways to name a model, where a judge asks one and none is named."""
    from vieval_plugin.errors import VievalError
    from vieval_plugin.judges import registry as judge_registry
    from vieval_plugin.run.backbones import JUDGE

    asking = next((judge.spec.name for judge in prepared if judge.asks_a_model), "")
    if asking and not (backbone or current.backbones):
        own_weights = (spec for spec in judge_registry.judges().values() if spec.training_benchmarks and not spec.pack)
        trial = ", ".join(f"--judge {spec.title}" for spec in own_weights)
        raise VievalError(
            f"{asking} asks a model, and none is named: pass --model and --base-url of a server, or set {MODEL} and {URL}; "
            f"or name it as backbones.{JUDGE} in the options; or try the pipeline with {trial}"
        )


def _unused(options: argparse.Namespace, prepared: Sequence[PreparedJudge]) -> list[str]:
    """Lines on flags that no judge has a use for."""
    names = ", ".join(judge.spec.name for judge in prepared)
    of_model = [name for name in ("model", *_OF_BACKBONE) if getattr(options, name) is not None]
    lines = []
    if options.scorer and not any(judge.spec.scored for judge in prepared):
        lines.append(f"--scorer is not used: {names} measures with no network")
    if of_model and not any(judge.asks_a_model for judge in prepared):
        lines.append(f"--{of_model[0].replace('_', '-')} is not used: {names} asks no model")
    if options.plan and options.out:
        lines.append("--out is not used: --plan writes no verdicts")
    return lines


def _plan(request: _Request) -> int:
    from vieval_plugin.run.backbones import JUDGE
    from vieval_plugin.run.plan import pilot, plan, to_ask
    from vieval_plugin.text.escaping import say

    rows = list(request.source)
    samples = [row.sample for row in rows if row.verdict is None]
    for judge in request.prepared:
        askable = to_ask(samples, judge)
        cost = asyncio.run(pilot(askable, judge, request.current, request.backbone))
        answering = (request.backbone or request.current.backbones.get(JUDGE)) if judge.asks_a_model else None
        say(*plan(cost, answering))
        if left := len(rows) - len(askable):
            say(f"{left} of {len(rows)} samples would not be asked about")
    return 0


def _score(options: argparse.Namespace, request: _Request, images: bool) -> int:
    from vieval_plugin.judges.protocol import Status
    from vieval_plugin.run.evaluate import judge_samples, provenance_of
    from vieval_plugin.run.progress import Progress, failures, next_step, summary
    from vieval_plugin.run.verdict_file import verdict_lines, write_all
    from vieval_plugin.text.escaping import say

    rows, progress, judged = list(request.source), Progress(), []
    samples, decided = [row.sample for row in rows], {n: row.verdict for n, row in enumerate(rows) if row.verdict}
    try:
        for prepared in request.prepared:
            judging = judge_samples(
                samples,
                prepared,
                request.current,
                request.backbone,
                progress,
                bar=not images,
                decided=decided,
            )
            verdicts_of_judge = asyncio.run(judging)
            verdicts = [
                replace(verdict, findings=(*verdict.findings, *row.findings))
                for row, verdict in zip(rows, verdicts_of_judge, strict=True)
            ]
            judged.append(
                (verdicts, replace(provenance_of(prepared, request.current, request.backbone), label=options.label))
            )
    finally:
        if not images or progress.failed_calls:
            say(*progress.lines(), file=sys.stderr)
    if options.out:
        write_all(options.out, samples, judged)
    for prepared, (verdicts, source) in zip(request.prepared, judged, strict=True):
        if images:
            say(*(verdict_lines(samples, verdicts, source) if options.json else _in_words(samples, verdicts, source)))
            continue
        named = [f"{prepared.spec.name}:"] if len(judged) > 1 else []
        say(*named, *summary(samples, verdicts, prepared.spec.aspects), *failures(samples, verdicts))
    if options.out and not options.json:
        say(f"wrote {options.out}", *next_step(samples, judged[0][0], options.out))
    numbered = [(n, verdict) for verdicts, _ in judged for n, verdict in enumerate(verdicts)]
    judgeable = any(n not in decided and verdict.status is not Status.NOT_APPLICABLE for n, verdict in numbered)
    scored = any(verdict.scores for _, verdict in numbered)
    if not scored:
        say(f"vieval: nothing could be {'scored' if judgeable else 'judged'} (see above)", file=sys.stderr)
    bad = [verdict for verdict in decided.values() if verdict.status is not Status.NO_IMAGE]
    return 0 if scored and not bad and not progress.failed_calls else 1


def _in_words(samples: Sequence[Sample], verdicts: Sequence[Verdict], source: Provenance) -> Iterator[str]:
    """A line an image with its scores, and one an answer with its sub-scores and reason."""
    by = " ".join([source.judge, *source.settings, *(["by", source.backbone] if source.pack else [])])
    for sample, verdict in zip(samples, verdicts, strict=True):
        scores = ", ".join(f"{aspect} {score:.2f}" for aspect, score in verdict.scores.items())
        yield f"{sample.id.uid}: {scores or 'no score'} ({by}{'' if verdict.status.usable else f', {verdict.status}'})"
        for step in verdict.trace:
            numbers = ", ".join(f"{score:.3g}" for score in step.scores)
            if numbers or not step.status.usable:
                yield f"  {': '.join(filter(None, (step.label, numbers, ' '.join(step.reason.split())[:_REASON])))}"
