"""The `vieval` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from vieval_plugin import config, packs
from vieval_plugin.errors import VievalError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0 fine, 1 a finding or an error of one line, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except VievalError as error:
        print(f"vieval: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        print("vieval: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vieval", description="Judges of generated images for evaluation harnesses.")
    commands = parser.add_subparsers(required=True, metavar="command")

    tasks = commands.add_parser(
        "tasks", help="list the tasks as lmms-eval resolves them, and whether their data is there"
    )
    tasks.set_defaults(run=_tasks)

    prepare = commands.add_parser("prepare", help="fill the data folder with a benchmark")
    prepare.add_argument("benchmark", choices=["imagenhub"])
    prepare.add_argument("--root", type=Path, help="data folder (default: VIEVAL_DATA, else the user's cache folder)")
    prepare.add_argument(
        "--task", action="append", metavar="CODE", help="only this task, such as tie (may be repeated)"
    )
    prepare.add_argument("--no-images", action="store_true", help="ratings and conditions only")
    for host, what in (("ratings", "human ratings"), ("hub", "the hub's rows API"), ("museum", "images")):
        prepare.add_argument(f"--{host}-host", metavar="URL", help=f"base address of {what}")
    prepare.set_defaults(run=_prepare)

    prompts = commands.add_parser("prompts", help="list prompt packs, or import the authors' wording")
    actions = prompts.add_subparsers(required=True, metavar="action")
    listing = actions.add_parser("list", help="built-in packs and their hashes")
    listing.set_defaults(run=_list_prompts)
    importing = actions.add_parser("import", help="build a pack of the authors' own wording")
    importing.add_argument("judge", choices=["viescore"])
    importing.add_argument(
        "source", type=Path, help="a checkout of the authors' repository, or a folder of their results"
    )
    importing.add_argument("--to", type=Path, required=True, help="folder to write the packs to")
    importing.add_argument("--context", default="context.txt", help="the context file to use (default: %(default)s)")
    importing.set_defaults(run=_import_prompts)

    report = commands.add_parser("report", help="tables from results of lmms-eval runs")
    report.add_argument("results", nargs="+", type=Path, help="--output_path of runs with --log_samples")
    report.add_argument("--out", type=Path, required=True, help="folder for report.md, CSV tables and cells.json")
    report.add_argument("--expect", type=Path, help="CSV of printed cells to compare with")
    report.set_defaults(run=_report)

    commented = commands.add_parser(
        "config", help="print an options file with every option, its default and its meaning"
    )
    commented.set_defaults(run=_config)
    return parser


def _tasks(options: argparse.Namespace) -> int:
    try:
        from vieval_plugin.hosts.lmms_eval.listing import listing
    except ImportError as error:
        raise VievalError(f'lmms-eval is not installed ({error}); run: pip install "vieval[lmms-eval]"') from None
    print(listing())
    return 0


def _prepare(options: argparse.Namespace) -> int:
    from vieval_plugin.data import prepare_imagenhub as preparing

    root = options.root or config.current().data_folder()
    named = {"ratings": options.ratings_host, "hub": options.hub_host, "museum": options.museum_host}
    hosts = preparing.Hosts(**{name: url for name, url in named.items() if url})
    print(f"filling {root}")
    report = preparing.prepare(root, hosts=hosts, tasks=options.task, images=not options.no_images)
    print("\n".join(preparing.summary_lines(report)))
    return 0 if report.complete else 1


def _list_prompts(options: argparse.Namespace) -> int:
    for name in packs.built_in():
        pack = packs.load(name)
        print(f"{name}  {pack.hash}  {', '.join(pack.settings)}")
    return 0


def _import_prompts(options: argparse.Namespace) -> int:
    from vieval_plugin.prompt_import import import_viescore

    for folder in import_viescore(options.source, options.to, options.context):
        pack = packs.load(str(folder))
        option = "pack_1shot" if pack.settings == ("1shot",) else "pack"
        print(
            f"{folder}  {pack.hash}  (use it: judges.viescore.{option}: {folder} in the file that VIEVAL_CONFIG names)"
        )
    return 0


def _report(options: argparse.Namespace) -> int:
    from vieval_plugin.report import write_report

    statistics = config.current().statistics.options()
    comparison = write_report(options.results, options.out, statistics, options.expect)
    print(f"wrote {options.out / 'report.md'}")
    if comparison is None:
        return 0
    print("\n".join(comparison.lines()))
    return 1 if comparison.failed else 0


def _config(options: argparse.Namespace) -> int:
    print(config.commented(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
