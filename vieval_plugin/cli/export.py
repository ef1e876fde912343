"""Export verdicts as training data, or results for leaderboards.

By default, a judge's conversations become examples to train its backbone. With --pairs, verdicts
become preference pairs to train a generator by DPO. With --to, scores of judges and generators, with
intervals, become files for other leaderboards.

Examples:
    # write preference pairs for a generator
    vieval export --pairs verdicts.jsonl --out pairs.parquet
    # write examples for a backbone
    vieval export t2i_eval out/gpt-4o --out train.jsonl
    # write a record of Every Eval Ever for each judge and generator
    vieval export out/gpt-4o --to every-eval-ever --organization "My lab" --out evals
    # write a judge's results for its page on the hub
    vieval export out/gpt-4o --to hub-eval-results --dataset ORG/NAME --out hub
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from vieval_plugin.cli import (
    OutputPath,
    Seed,
    argument,
    flag,
    number_between,
)
from vieval_plugin.cli.options import BenchmarkOptions, PartialOptions

if TYPE_CHECKING:
    from vieval_plugin.results.lookup import Lookup


class ExportOptions(BenchmarkOptions, PartialOptions):
    """Options of `vieval export`."""

    judge: str = argument("judge whose conversations to export", default="")
    results: list[Path] = argument(
        "results in any format that vieval show reads", nargs="*"
    )
    pairs: list[Path] = flag(
        "write the best and the worst image of each prompt according to these verdicts",
        nargs="+",
        metavar="RESULTS",
    )
    out: OutputPath = flag(
        "file or folder to write: .jsonl for examples; .jsonl, .parquet or a folder for pairs",
    )
    trainer: Literal["trl", "diffusers", "kohya", "onetrainer"] = flag(
        "trainer whose format to write; all but trl require --pairs, and the last two "
        "read folders (default: %(default)s)",
        "trl",
    )
    to: Literal["every-eval-ever", "hub-eval-results"] | None = flag(
        "write results for leaderboards instead of training data: JSON and samples for Every "
        "Eval Ever, or YAML files for models and a data set on the Hugging Face Hub",
    )
    organization: str = flag(
        "with --to, publisher of the results (default: %(default)s)", "unknown"
    )
    dataset: str = flag(
        "with --to hub-eval-results, id of the benchmark's data set on the Hugging Face Hub",
        "",
        metavar="ORG/NAME",
    )
    rebalance: bool = flag("balance sub-tasks and scores, if the judge defines how")
    seed: Seed = flag("random seed (default: %(default)s)", 0)
    margin: float | None = flag(
        "without --pairs, maximum distance of a score from the mean human rating (default: 0.3); "
        "with --pairs, write all pairs whose scores differ by at least this value",
        type=number_between(0, 1, float),
    )


def run(options: ExportOptions) -> int:
    from vieval_plugin.benchmarks import registry as benchmark_registry
    from vieval_plugin.media.files import require_suffix, require_writable
    from vieval_plugin.results.lookup import open_results
    from vieval_plugin.text.escaping import say
    from vieval_plugin.training.export import MARGIN, ExportChoices, export
    from vieval_plugin.training.preference_pairs import FOLDERS, PARQUET

    if options.to:
        say(*_write_for_boards(options))
        return 0
    if options.trainer not in FOLDERS:
        formats = (".jsonl", PARQUET) if options.pairs else (".jsonl",)
        require_suffix(options.out, formats)
        require_writable(options.out, reads=[*options.pairs, *options.results])
    _require_one_export(options)
    for folder in options.benchmark:
        benchmark_registry.benchmark(folder)
    lookup = open_results(options.pairs or options.results, options.partial)
    say(*(f"note: {note}" for note in lookup.notes))
    if options.pairs:
        say(_write_pairs(options, lookup))
        return 0
    margin = MARGIN if options.margin is None else options.margin
    choices = ExportChoices(options.rebalance, options.seed, margin)
    say(*export(options.judge, lookup, options.out, choices))
    return 0


def _write_for_boards(options: ExportOptions) -> list[str]:
    """Write the files for other leaderboards; a line for each."""
    import time

    from vieval_plugin.api import report
    from vieval_plugin.leaderboard import every_eval_ever, hub_results
    from vieval_plugin.text.errors import VievalError

    results = [*filter(None, [options.judge]), *options.results]
    if options.pairs or options.rebalance or not results:
        raise VievalError(
            "--to accepts only results; use vieval export RESULTS --to FORMAT"
        )
    to_hub = options.to == "hub-eval-results"
    if to_hub != bool(options.dataset):
        raise VievalError(
            "--to hub-eval-results and --dataset ORG/NAME must be passed together, because the hub "
            "identifies a benchmark by its data set"
        )
    conclusion = report(*results, partial=options.partial, benchmarks=options.benchmark)
    if conclusion.report is None:
        raise VievalError(conclusion.answer)
    publication = every_eval_ever.Publication(
        options.organization,
        int(time.time()),
        conclusion.options.statistics.options(),
    )
    if to_hub:
        paths = hub_results.export(
            conclusion.report, options.out, publication, options.dataset
        )
    else:
        paths = every_eval_ever.export(conclusion.report, options.out, publication)
    return [f"wrote {path}" for path in paths]


def _require_one_export(options: ExportOptions) -> None:
    """Raise VievalError for arguments of both kinds of exports, or of none."""
    from vieval_plugin.text.errors import VievalError

    if options.pairs and (options.judge or options.results or options.rebalance):
        raise VievalError(
            "--pairs cannot be combined with --judge, --rebalance or further results; "
            "use vieval export --pairs RESULTS --out FILE"
        )
    if not options.pairs and not (options.judge and options.results):
        raise VievalError("pass a judge and results, or --pairs RESULTS")
    if not options.pairs and options.trainer != "trl":
        raise VievalError(f"--trainer {options.trainer} requires --pairs")


def _write_pairs(options: ExportOptions, lookup: Lookup) -> str:
    """The line on the pairs that were written."""
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.wording import plural
    from vieval_plugin.training.preference_pairs import (
        preference_pairs,
        write_pair_folders,
        write_pairs,
    )

    pairs = preference_pairs(lookup, options.margin)
    if not pairs:
        least = f" by {options.margin:g}" if options.margin else ""
        raise VievalError(
            f"no pairs to write, because no uid has two images whose scores differ{least}; "
            "if several uids share a prompt, score with --columns uid=COLUMN"
        )
    if options.trainer == "trl" or options.trainer == "diffusers":
        write_pairs(options.out, pairs, options.trainer)
    else:
        write_pair_folders(options.out, pairs, options.trainer)
    prompts = plural(len({pair.uid for pair in pairs}), "prompt")
    return f"wrote {options.out}: {plural(len(pairs), 'pair')} of {prompts}"
