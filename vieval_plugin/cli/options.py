"""Options that several commands share, each flag of them declared once."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vieval_plugin.cli import (
    Count,
    Options,
    OutputPath,
    Seed,
    argument,
    flag,
    number_between,
    tell,
)
from vieval_plugin.text.errors import (
    BASE_URL_ENV_VAR,
    MODEL_ENV_VAR,
    OPENAI_BASE_URL_ENV_VAR,
)

if TYPE_CHECKING:
    from vieval_plugin.backends.http.batches import BatchOptions
    from vieval_plugin.config import Backbone, Config

#: The judge where none is named.
DEFAULT_JUDGE = "viescore"
#: Groups of flags in the help.
_JUDGE = ("judge",)
_BACKBONE = (
    "backbone",
    "model that the judge uses (default: backbones.judge in the options file)",
)


class LabelOptions(Options):
    """The names of the judges of results."""

    label: list[str] = flag(
        "label of a result's judge in tables; repeat it for each result, in order"
    )


class ColumnOptions(Options):
    """The columns of a table."""

    columns: list[str] = flag(
        "table columns to read, such as output=image,prompt=caption (default: "
        "recognised by name)",
        metavar="KEY=COLUMN",
    )


class BenchmarkOptions(Options):
    """Folders with benchmarks of the user's own."""

    benchmark: list[str] = flag(
        "folder of your own benchmark, if the results are on it; may be repeated "
        "(default: $VIEVAL_BENCHMARKS)",
        metavar="FOLDER",
    )


class CalibrationOptions(Options):
    """The file that adds a judge's calibrated score."""

    calibration: Path | None = flag(
        "file from vieval calibrate, which adds a score such as O_calibrated, an estimate of human "
        "ratings",
        metavar="FILE",
    )


class PartialOptions(Options):
    """The option to read incomplete runs."""

    partial: bool = flag(
        "also read OUT.partial, the verdicts from an incomplete run of vieval score",
    )


class SeedOptions(Options):
    """The seed of statistics."""

    seed: Seed | None = flag("random seed (default: option statistics.seed)")


class PublishedOptions(Options):
    """The folder of published verdicts."""

    published: Path | None = flag(
        "folder of published verdicts (default: the prepared one)", metavar="FOLDER"
    )


class ConfigOptions(Options):
    """The options file."""

    config: Path | None = flag("options file (default: $VIEVAL_CONFIG)")


def human_flag(purpose: str = "", **arguments: Any) -> Any:
    """Declare the files of people's ratings; `purpose` ends the help."""
    return flag(
        f"CSV files of human ratings{purpose}", nargs="+", metavar="FILE", **arguments
    )


def judge_flag(default: str) -> Any:
    """Declare the names of judges; `default` is the command's own, in words."""
    return flag(f"judge name; may be repeated (default: {default})", [])


class SettingOptions(ConfigOptions, group=_JUDGE):
    """The settings of judges."""

    setting: str | None = flag(
        "setting of the judge, such as 1shot (default: its first setting)"
    )
    aspects: tuple[str, ...] = flag(
        "ask only about these aspects, such as SC, if the judge asks about each "
        "separately (default: all)",
        (),
        type=lambda text: tuple(map(str.strip, text.split(","))),
        metavar="NAMES",
    )
    scorer: str | None = flag(
        "weights for a judge that is a network: a name, folder or file (default: its own)",
    )


class JudgeOptions(SettingOptions, group=_JUDGE):
    """The judges and their settings."""

    judge: list[str] = judge_flag(DEFAULT_JUDGE)
    lazy: bool = flag("skip questions that cannot change O, such as PQ if SC is 0")
    fresh: bool = flag("ask again instead of using cached replies, and replace them")


def patience_flag(seconds: float) -> Any:
    """Declare the patience with a server, with a command's own default."""
    return flag(
        "seconds without a reply before the server counts as offline (default: "
        f"{seconds:g})",
        None,
        metavar="S",
    )


class BackboneOptions(Options, group=_BACKBONE):
    """The model that the judge asks."""

    model: str | None = flag(f"model name on the server (default: ${MODEL_ENV_VAR})")
    base_url: list[str] | None = flag(
        "address of an OpenAI-compatible server, ending in /v1; may be repeated "
        f"(default: ${BASE_URL_ENV_VAR}, or ${OPENAI_BASE_URL_ENV_VAR})",
    )
    num_concurrent: int | None = flag(
        "maximum number of concurrent requests (default: 32)", metavar="N"
    )
    temperature: str | None = flag(
        "sampling temperature, or none to omit it (default: 0)", metavar="T"
    )
    max_tokens: int | None = flag(
        "maximum number of tokens in a reply (default: the judge's own limit)",
        metavar="N",
    )
    timeout: float | None = flag(
        "seconds without data before a call is retried (default: 600)",
        metavar="S",
    )
    patience: float | None = patience_flag(120)
    price_input: float | None = flag("price per million input tokens", metavar="P")
    price_cached_input: float | None = flag(
        "price per million cached input tokens", metavar="P"
    )
    price_output: float | None = flag("price per million output tokens", metavar="P")


class BatchedOptions(Options, group=_BACKBONE):
    """The option to ask the model by batches."""

    batch: bool = flag("use the batch API, which costs half as much but takes hours")
    batch_files: OutputPath | None = flag(
        "write batches to this folder, for vllm run-batch",
        metavar="FOLDER",
    )


class SampleOptions(ColumnOptions, group=("samples",)):
    """The samples that are judged."""

    prompt: str | None = flag("prompt of images passed individually", metavar="TEXT")
    source: str | None = flag("source image of an edit", metavar="IMAGE")
    instruction: str | None = flag("instruction of an edit", metavar="TEXT")
    prompts: Path | None = flag("prompts of images in folders: a table or a .txt file")
    layout: str | None = flag(
        "layout of the folders: a benchmark name, such as geneval, or a YAML file "
        "(default: detected)",
        metavar="NAME",
    )
    kind: str | None = flag(
        "task type of samples without one, such as tig (text to image)"
    )
    benchmark: str | None = flag(
        "judge the images of this benchmark and keep its human ratings with the verdicts",
        metavar="FOLDER",
    )
    limit: Count | None = flag("judge only the first N samples", metavar="N")
    allow_urls: list[str] = flag(
        "allow downloads of images from this host; may be repeated", metavar="HOST"
    )
    strict: bool = flag("stop at the first invalid row, before the first call")


class ShardOptions(
    Options,
    group=(
        "a folder of shards",
        "for data sets of any size, if --out is a folder",
    ),
):
    """A folder of shards."""

    rows_per_shard: Count | None = flag(
        "rows per shard, which is one file (default: 512)", metavar="N"
    )
    max_failures: float | None = flag(
        "maximum share of a shard's rows that may fail (api_error, tool_error, "
        "parse_failure, refusal or no_image); a shard with more is not written, and "
        "three in a row stop the run (default: 0.2)",
        type=number_between(0, kind=float),
        metavar="SHARE",
    )
    budget: Count | None = flag(
        "do not start a shard that would exceed this number of calls", metavar="CALLS"
    )
    processes: Count | None = flag(
        "number of workers on this machine (default: this process)", metavar="N"
    )
    workers: Count | None = flag(
        "number of workers on Ray (default: one per node, or one per GPU)", metavar="N"
    )
    part: str | None = flag(
        "judge one of N parts; auto uses the task of a Slurm array or the process of "
        "torchrun (default: all)",
        metavar="I/N",
    )
    extend: bool = flag("also judge files that were added since the first run")
    trace: bool = flag("keep replies verbatim")
    ray: str | None = flag(
        "use workers on a Ray cluster (default: a running cluster, or a new one)",
        nargs="?",
        const="",
        metavar="ADDRESS",
    )


class ScoreOptions(
    SampleOptions,
    JudgeOptions,
    CalibrationOptions,
    BackboneOptions,
    BatchedOptions,
    ShardOptions,
):
    """Options of `vieval score`."""

    samples: list[str] = argument(
        "images, with --prompt; a table (CSV, JSONL, parquet, a saved data set, or ORG/NAME "
        "on the Hugging Face Hub); folders of images, with --prompts or with prompts inside; "
        "or a generator's output from lmms-eval (run with --log_samples)",
        nargs="*",
    )
    out: Path | None = flag(
        "output for verdicts: a .jsonl, .csv or .parquet file, or a folder of shards for parquet "
        "and webdataset tar files (default: NAME.verdicts.jsonl next to a local table or folder)"
    )
    json: bool = flag("print verdicts as JSON lines, for images passed individually")
    plan: bool = flag(
        "judge eight samples, print the estimated cost of judging all of them, and exit"
    )
    judge: list[str] = judge_flag(f"{DEFAULT_JUDGE}, or the judge of the run's task")
    label: str = flag(
        "label of the verdicts in reports (default: the backbone's name)", ""
    )
    #: Command line, for the verdicts.
    command: str


def backbone_of(name: str, options: ScoreOptions, current: Config) -> Backbone | None:
    """The backbone that flags name for a judge; VievalError where it asks a model and none is
    named anywhere.
    """
    from vieval_plugin.run.backbones import require_model
    from vieval_plugin.run.prepare import prepare

    if not prepare(name, options.setting, current).asks_a_model:
        return None
    backbone = named_backbone(options, current)
    require_model(name, current, backbone)
    return backbone


def options_in_force(options: SettingOptions) -> Config:
    """The options file, with what flags say of all backbones and scorers on top."""
    from vieval_plugin import config

    current = config.read(str(options.config)) if options.config else config.current()
    narrowing: dict[str, Any] = {}
    if options.aspects:
        narrowing["aspects"] = options.aspects
    if isinstance(options, JudgeOptions) and options.fresh:
        current = current.asking_anew()
    if isinstance(options, JudgeOptions) and options.lazy:
        _tell_lazy_in_vain(options.judge, current)
        narrowing["lazy"] = True
    if narrowing:
        current = current.model_copy(
            update={"judges": current.judges.model_copy(update=narrowing)}
        )
    if isinstance(options, CalibrationOptions) and options.calibration:
        current = current.model_copy(update={"calibration": options.calibration})
    return current.scored_by({"model": options.scorer}) if options.scorer else current


def _tell_lazy_in_vain(judges: Sequence[str], current: Config) -> None:
    """Say of which judges --lazy changes nothing."""
    from vieval_plugin.judges import registry as judge_registry

    for name in judges:
        narrowed = judge_registry.judge(name, current.judge_files).narrowed
        if not narrowed or narrowed((), True).aspects == narrowed((), False).aspects:
            tell(f"--lazy has no effect on {name}, whose questions are all required")


def batch_of(options: BatchedOptions, folder: Path) -> BatchOptions | None:
    """The way in which flags have questions asked by batches, with what was sent in a folder;
    None for calls.
    """
    from vieval_plugin.backends.http.batches import BatchOptions

    if not (options.batch or options.batch_files):
        return None
    return BatchOptions(
        options.batch_files or folder, has_service=not options.batch_files
    )


def remove_batches(options: BatchedOptions, batch: BatchOptions | None) -> None:
    """Remove what was sent by batches, once all answers are in the store."""
    if options.batch and batch:
        shutil.rmtree(batch.folder, ignore_errors=True)


def named_backbone(options: BackboneOptions, current: Config) -> Backbone | None:
    """The backbone that flags name, or that of the options with what they say of it; None where
    they say nothing.
    """
    from vieval_plugin.run import backbones

    in_files = isinstance(options, BatchedOptions) and bool(options.batch_files)
    return backbones.named_backbone(
        backbone_fields(options), current, _announce, in_files
    )


def backbone_fields(options: BackboneOptions) -> dict[str, Any]:
    """The fields of a backbone that flags set."""
    return {
        option.name: value
        for option in fields(BackboneOptions)
        if (value := getattr(options, option.name)) is not None
    }


def first_flag(options: Options, names: Iterable[str]) -> str:
    """The first of some flags that is set; empty where none is."""
    for name in names:
        if getattr(options, name) not in (None, False, []):
            return f"--{name.replace('_', '-')}"
    return ""


#: Say once which server the environment names.
_announce = cache(tell)
