"""Show or change judges' prompts, or export a benchmark's prompts.

A prompt pack is a folder with a judge's questions and wording.

Examples:
    # read a pack
    vieval prompts show viescore/v1
    # copy a pack to change its wording
    vieval prompts copy viescore/v1 my_pack
    # export prompts for your generator
    vieval prompts export vieval_demo --out prompts
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.cli import Options, OutputPath, argument, flag

_PACK = "pack name from `vieval prompts list`, or a folder"


class ListOptions(Options):
    """Options of `vieval prompts list`, which has none."""


class ShowOptions(Options):
    """Options of `vieval prompts show`."""

    pack: str = argument(_PACK)
    question: str | None = argument("show only this question, such as SC_tie")


class CopyOptions(Options):
    """Options of `vieval prompts copy`."""

    pack: str = argument(_PACK)
    folder: OutputPath = argument("new folder, whose name becomes the name of the pack")


class ExportOptions(Options):
    """Options of `vieval prompts export`."""

    benchmark: str = argument("benchmark, or BENCHMARK/PART for one of its parts")
    out: OutputPath = flag("output folder")


class ImportOptions(Options):
    """Options of `vieval prompts import`."""

    judge: str = argument("judge that the packs are for")
    source: Path = argument(
        "checkout of the authors' repository, or a folder of their results"
    )
    to: OutputPath = flag("folder for the packs")
    context: str | None = flag(
        "name of the context file, if the wording has one (default: context.txt)"
    )


def list_packs(options: ListOptions) -> int:
    """List the built-in packs.

    Each line has the pack's hash and the settings of its judge.

    Examples:
        # list all packs
        vieval prompts list
    """
    from vieval_plugin.judges import registry as judge_registry
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.escaping import say

    for name in packs.built_in():
        pack = packs.load(name)
        settings = judge_registry.judge(pack.judge).settings
        say(f"{name}  {pack.hash}  {', '.join(settings)}".rstrip())
    return 0


def show_pack(options: ShowOptions) -> int:
    """Show the questions of a pack.

    Each question is shown with its images, scores and wording.

    Examples:
        # show a pack
        vieval prompts show viescore/v1
        # show one question
        vieval prompts show viescore/v1 SC_tie
    """
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.suggestions import did_you_mean

    _require_known_pack(options.pack)
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
            images = ", ".join(question.images) or "none"
            scores = ", ".join(question.scores) or "none"
            say(
                "",
                f"# {name} ({question.template}; images: {images}; scores: {scores})",
            )
            say(*pack.wording(question.template).splitlines())
    for part in parts:
        say(
            "",
            f"# {part} (included in the prompts above)",
            *pack.wording(part).splitlines(),
        )
    return 0


def _require_known_pack(name: str) -> None:
    """Raise VievalError for a name that is nearly that of a built-in pack."""
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.suggestions import did_you_mean
    from vieval_plugin.text.untrusted import exists, path_of

    names = packs.built_in()
    if name in names or name.count("/") != 1 or exists(path_of(name)):
        return
    suggestion = did_you_mean(name, names, 0.6)
    if suggestion:
        raise VievalError(f"no prompt pack {name!r}{suggestion}")


def copy_pack(options: CopyOptions) -> int:
    """Copy a pack to change its wording.

    The copy has its own name, so verdicts record which wording they used.

    Examples:
        # make your own pack
        vieval prompts copy viescore/v1 my_pack
    """
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.escaping import say

    pack = packs.copy(options.pack, options.folder)
    use = f"judges.{pack.judge}.pack: {options.folder}"
    if pack.judge == pack.name:
        use = f"--judge {options.folder}"
    say(f"{options.folder}  {pack.name}  {pack.hash}  (to use it: {use})")
    return 0


def export_benchmark(options: ExportOptions) -> int:
    """Write a benchmark's prompts and conditions for your generator.

    Save the images as listed in expected.csv, then score the folder.

    Examples:
        # export all parts
        vieval prompts export vieval_demo --out prompts
        # export one part
        vieval prompts export imagenhub/tig --out prompts
    """
    from vieval_plugin import config
    from vieval_plugin.benchmarks import registry
    from vieval_plugin.benchmarks.benchmark import data_root, known_part
    from vieval_plugin.benchmarks.loading.prompt_export import (
        EXPECTED_FILE,
        PROMPTS_FILE,
        export_prompts,
    )
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.wording import plural

    name, _, part = options.benchmark.partition("/")
    benchmark = registry.benchmark(name)
    parts = [""] if benchmark.prompts else list(benchmark.parts)
    if part:
        parts = [known_part(name, benchmark.parts, part)]
    root = data_root(benchmark, config.current())
    for exported in parts:
        folder = options.out / exported
        count = export_prompts(benchmark, exported, root, folder)
        advice = (
            f"save the images as listed in {EXPECTED_FILE} to {folder / 'MODEL'} "
            f"(MODEL is your model's name), then run `vieval score {folder}`"
        )
        say(f"{folder / PROMPTS_FILE}: {plural(count, 'prompt')}; {advice}")
    return 0


def import_packs(options: ImportOptions) -> int:
    """Build a pack with the authors' own wording.

    VIEval does not ship this wording; pass a checkout of their repository.

    Examples:
        # build a pack with VIEScore's wording
        vieval prompts import viescore VIEScore --to packs
    """
    from vieval_plugin.importers.importing import importers
    from vieval_plugin.media.files import require_writable
    from vieval_plugin.prompts import packs
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.escaping import say

    by_judge = importers()
    if options.judge not in by_judge:
        raise VievalError(
            f"no importer for {options.judge!r}; known judges: {', '.join(sorted(by_judge))}"
        )
    require_writable(options.to / packs.MANIFEST, "--to")
    for folder in by_judge[options.judge](options.source, options.to, options.context):
        pack = packs.load(str(folder))
        if pack.manifest.wording:
            use = f"to use it, set VIEVAL_JUDGES={options.to}"
        else:
            use = (
                f"to use it, set judges.{options.judge}.pack: {folder} in the options "
                "file ($VIEVAL_CONFIG)"
            )
        say(f"{folder}  {pack.hash}  ({use})")
    return 0


ACTIONS = {
    "list": list_packs,
    "show": show_pack,
    "copy": copy_pack,
    "export": export_benchmark,
    "import": import_packs,
}
