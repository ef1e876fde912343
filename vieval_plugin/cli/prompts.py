"""`vieval prompts`: list, show, copy and import prompt packs, or export a benchmark's prompts for a generator."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vieval_plugin.cli import Commands


GROUP = "settings and checks"


def add(commands: Commands) -> None:
    from vieval_plugin.importers.importing import importers

    parser = commands.add_parser(
        "prompts", help="list, show, copy and import prompt packs; export a benchmark's prompts for a generator"
    )
    actions = parser.add_subparsers(required=True, metavar="action")
    listing = actions.add_parser("list", help="built-in packs and their hashes")
    listing.set_defaults(run=_list)
    showing = actions.add_parser(
        "show", help="what a pack asks: its questions, their images and scores, and the wording"
    )
    showing.add_argument("pack", help="a name that list prints, or a folder")
    showing.add_argument("question", nargs="?", help="only this question, such as SC_tie")
    showing.set_defaults(run=_show)
    copy_parser = actions.add_parser(
        "copy", help="copy a pack into a folder, to change its wording under a name of its own"
    )
    copy_parser.add_argument("pack", help="a name that list prints, or a folder")
    copy_parser.add_argument("folder", type=Path, help="a new folder; its name becomes the pack's")
    copy_parser.set_defaults(run=_copy)
    export_parser = actions.add_parser("export", help="write a benchmark's prompts and conditions for a generator")
    export_parser.add_argument("benchmark", help="a benchmark, or BENCHMARK/PART for one of its parts")
    export_parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    export_parser.set_defaults(run=_export)
    importing = actions.add_parser("import", help="build a pack of the authors' own wording")
    importing.add_argument("judge", choices=sorted(importers()))
    importing.add_argument(
        "source", type=Path, help="a checkout of the authors' repository, or a folder of their results"
    )
    importing.add_argument("--to", type=Path, required=True, help="folder to write the packs to")
    importing.add_argument("--context", help="the context file, where the wording has one (default: context.txt)")
    importing.set_defaults(run=_import)


def _list(options: argparse.Namespace) -> int:
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.escaping import say

    for name in packs.built_in():
        pack = packs.load(name)
        say(f"{name}  {pack.hash}  {', '.join(pack.settings)}".rstrip())
    return 0


def _show(options: argparse.Namespace) -> int:
    from vieval_plugin.errors import VievalError
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.suggestions import did_you_mean
    from vieval_plugin.text.untrusted import exists, path_of

    known = packs.built_in()
    is_name = options.pack.count("/") == 1 and not exists(path_of(options.pack))
    if is_name and options.pack not in known and (suggestion := did_you_mean(options.pack, known, 0.6)):
        raise VievalError(f"no prompt pack {options.pack!r}{suggestion}")
    pack = packs.load(options.pack)
    if options.question and options.question not in pack.questions:
        raise VievalError(
            f"{pack.name} has no question {options.question!r}{did_you_mean(options.question, pack.questions)}"
        )
    say(f"{pack.name}  {pack.hash}  for {pack.judge}, replies in {pack.replies}")
    parts: dict[str, None] = {}
    for name, question in pack.questions.items():
        if options.question in (None, name):
            parts |= dict.fromkeys(pack.parts(question.template))
            images, scores = ", ".join(question.images) or "none", ", ".join(question.scores) or "none"
            say("", f"# {name} ({question.template}; images: {images}; scores: {scores})")
            say(*pack.wording(question.template).splitlines())
    for part in parts:
        say("", f"# {part} (part of the above)", *pack.wording(part).splitlines())
    return 0


def _copy(options: argparse.Namespace) -> int:
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.escaping import say

    pack = packs.copy(options.pack, options.folder)
    use = f"--judge {options.folder}" if pack.judge == pack.name else f"judges.{pack.judge}.pack: {options.folder}"
    say(f"{options.folder}  {pack.name}  {pack.hash}  (use it: {use})")
    return 0


def _export(options: argparse.Namespace) -> int:
    from vieval_plugin import config
    from vieval_plugin.benchmarks import registry
    from vieval_plugin.benchmarks.benchmark import data_root, known_part
    from vieval_plugin.benchmarks.loading.prompt_export import EXPECTED_FILE, PROMPTS_FILE, export_prompts
    from vieval_plugin.text.escaping import say

    name, _, part = options.benchmark.partition("/")
    benchmark = registry.benchmark(name)
    parts = [known_part(name, benchmark.parts, part)] if part else list(benchmark.parts)
    root = data_root(benchmark, config.current())
    for exported in parts:
        folder = options.out / exported
        count = export_prompts(benchmark, exported, root, folder)
        say(
            f"{folder / PROMPTS_FILE}: {count} prompts; put the images, named as {EXPECTED_FILE} says, into {folder / 'MODEL'}, MODEL "
            f"being what yours is called, then: vieval score {folder}"
        )
    return 0


def _import(options: argparse.Namespace) -> int:
    from vieval_plugin.importers.importing import importers
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.escaping import say

    require_writable(options.to / packs.MANIFEST, "--to")
    for folder in importers()[options.judge](options.source, options.to, options.context):
        pack = packs.load(str(folder))
        option = "pack_1shot" if pack.settings == ("1shot",) else "pack"
        use = f"use it: judges.{options.judge}.{option}: {folder} in the file that VIEVAL_CONFIG names"
        say(f"{folder}  {pack.hash}  ({use})")
    return 0
