"""`vieval prompts`: list, show, copy and import prompt packs, or export a benchmark's prompts
for a generator.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import add_command, output_path

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "prompts",
        "show and change what judges ask, or export a benchmark's prompts",
        "A prompt pack is a folder with a judge's questions and wording.",
        ("read a pack", "vieval prompts show viescore/v1"),
        ("change its wording", "vieval prompts copy viescore/v1 my_pack"),
        (
            "prompts for your generator",
            "vieval prompts export vieval_demo --out prompts",
        ),
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    listing = add_command(
        actions,
        "list",
        "list the built-in packs",
        "Each line has the pack's hash.",
        ("all packs", "vieval prompts list"),
    )
    listing.set_defaults(run=_list)
    showing = add_command(
        actions,
        "show",
        "show what a pack asks",
        "You see its questions, their images and scores, and the wording.",
        ("a pack", "vieval prompts show viescore/v1"),
        ("one question", "vieval prompts show viescore/v1 SC_tie"),
    )
    showing.add_argument("pack", help="a name from `vieval prompts list`, or a folder")
    showing.add_argument(
        "question", nargs="?", help="show only this question, such as SC_tie"
    )
    showing.set_defaults(run=_show)
    copy_parser = add_command(
        actions,
        "copy",
        "copy a pack, to change its wording",
        "The copy has a name of its own, so that verdicts say which wording they come from.",
        ("a pack of your own", "vieval prompts copy viescore/v1 my_pack"),
    )
    copy_parser.add_argument(
        "pack", help="a name from `vieval prompts list`, or a folder"
    )
    copy_parser.add_argument(
        "folder", type=output_path, help="a new folder; the pack gets its name"
    )
    copy_parser.set_defaults(run=_copy)
    _add_export(actions)
    importing = add_command(
        actions,
        "import",
        "build a pack with the authors' own wording",
        "VIEval does not ship it: you give a checkout of their repository.",
        ("VIEScore's wording", "vieval prompts import viescore VIEScore --to packs"),
    )
    importing.add_argument("judge", help="the judge")
    importing.add_argument(
        "source",
        type=Path,
        help="a checkout of the authors' repository, or a folder of their results",
    )
    importing.add_argument(
        "--to", type=output_path, required=True, help="folder for the packs"
    )
    importing.add_argument(
        "--context",
        help="name of the context file, if the wording has one (default: context.txt)",
    )
    importing.set_defaults(run=_import)


def _add_export(actions: Commands) -> None:
    parser = add_command(
        actions,
        "export",
        "write a benchmark's prompts and conditions for your generator",
        "Put its images into the folder as expected.csv says, and score the folder.",
        ("all parts", "vieval prompts export vieval_demo --out prompts"),
        ("one part", "vieval prompts export imagenhub/tig --out prompts"),
    )
    parser.add_argument(
        "benchmark", help="a benchmark, or BENCHMARK/PART for one of its parts"
    )
    parser.add_argument(
        "--out", type=output_path, required=True, help="folder to write to"
    )
    parser.set_defaults(run=_export)


def _list(options: argparse.Namespace) -> int:
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.escaping import say

    for name in packs.built_in():
        pack = packs.load(name)
        say(f"{name}  {pack.hash}  {', '.join(pack.settings)}".rstrip())
    return 0


def _show(options: argparse.Namespace) -> int:
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.suggestions import did_you_mean
    from vieval_plugin.text.untrusted import exists, path_of

    pack_names = packs.built_in()
    is_name = options.pack.count("/") == 1 and not exists(path_of(options.pack))
    if (
        is_name
        and options.pack not in pack_names
        and (suggestion := did_you_mean(options.pack, pack_names, 0.6))
    ):
        raise VievalError(f"no prompt pack {options.pack!r}{suggestion}")
    pack = packs.load(options.pack)
    if options.question and options.question not in pack.questions:
        raise VievalError(
            f"{pack.name} has no question "
            f"{options.question!r}{did_you_mean(options.question, pack.questions)}"
        )
    say(f"{pack.name}  {pack.hash}  for {pack.judge}, replies in {pack.replies}")
    parts: dict[str, None] = {}
    for name, question in pack.questions.items():
        if options.question in (None, name):
            parts |= dict.fromkeys(pack.parts(question.template))
            images, scores = (
                ", ".join(question.images) or "none",
                ", ".join(question.scores) or "none",
            )
            say(
                "",
                f"# {name} ({question.template}; images: {images}; scores: {scores})",
            )
            say(*pack.wording(question.template).splitlines())
    for part in parts:
        say("", f"# {part} (part of the above)", *pack.wording(part).splitlines())
    return 0


def _copy(options: argparse.Namespace) -> int:
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.escaping import say

    pack = packs.copy(options.pack, options.folder)
    use = (
        f"--judge {options.folder}"
        if pack.judge == pack.name
        else f"judges.{pack.judge}.pack: {options.folder}"
    )
    say(f"{options.folder}  {pack.name}  {pack.hash}  (use it: {use})")
    return 0


def _export(options: argparse.Namespace) -> int:
    from vieval_plugin import config
    from vieval_plugin.benchmarks import registry
    from vieval_plugin.benchmarks.benchmark import data_root, known_part
    from vieval_plugin.benchmarks.loading.prompt_export import (
        EXPECTED_FILE,
        PROMPTS_FILE,
        export_prompts,
    )
    from vieval_plugin.text.escaping import say

    name, _, part = options.benchmark.partition("/")
    benchmark = registry.benchmark(name)
    parts = [known_part(name, benchmark.parts, part)] if part else list(benchmark.parts)
    root = data_root(benchmark, config.current())
    for exported in parts:
        folder = options.out / exported
        count = export_prompts(benchmark, exported, root, folder)
        say(
            f"{folder / PROMPTS_FILE}: {count} prompts; put the images, named as {EXPECTED_FILE} "
            f"says, into {folder / 'MODEL'}, MODEL "
            f"being what yours is called, then: vieval score {folder}"
        )
    return 0


def _import(options: argparse.Namespace) -> int:
    from vieval_plugin.importers.importing import importers
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    by_judge = importers()
    if options.judge not in by_judge:
        raise VievalError(
            f"no importer for {options.judge!r}; choose one of {', '.join(sorted(by_judge))}"
        )
    require_writable(options.to / packs.MANIFEST, "--to")
    for folder in by_judge[options.judge](options.source, options.to, options.context):
        pack = packs.load(str(folder))
        use = f"use it: judges.{options.judge}.pack: {folder} in the file that VIEVAL_CONFIG names"
        say(f"{folder}  {pack.hash}  ({use})")
    return 0
