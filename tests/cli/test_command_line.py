"""The command `vieval` itself: its help, its version, its size, and what single commands show."""

import argparse
import contextlib
import dataclasses
import importlib.metadata
import io
import json
import re
import shlex
import sys
import typing
from pathlib import Path
from shlex import split

import PIL.Image
import pytest
import yaml
from pydantic import BaseModel

from tests import bounds
from tests.builders import a_verdict_file, some_scores
from tests.work import run_process
from vieval_plugin import Backbone, cli, config, evaluate
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.cli import build_parser, main
from vieval_plugin.judges import registry as judges
from vieval_plugin.prompts import packs
from vieval_plugin.readers import download

ROOT = Path(__file__).parents[2]
REMEDY = (
    "see tests/bounds.py: remove or merge one for each that you add; a judge in "
    "judges/described/ needs neither a module nor an option key"
)


def shown(capsys, *given, code=0):
    """What a command prints, by itself or as argparse ends it."""
    try:
        ended = main([*given])
    except SystemExit as end:
        ended = end.code
    assert ended == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def test_the_version_and_the_module():
    version = f"vieval {importlib.metadata.version('vieval')}\n"
    ran = run_process([sys.executable, "-m", "vieval_plugin", "--version"])
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, version, "")


def test_the_help_has_every_command_once_in_a_group(capsys):
    help_ = shown(capsys, "--help")
    blocks = dict(re.findall(r"^(\S.*):\n((?:  .*\n)+)", help_, re.MULTILINE))
    assert "vieval score cat.png" in blocks.pop("examples")
    assert list(blocks) == list(cli.GROUPS)
    lines = [line for body in blocks.values() for line in body.splitlines()]
    # each with what it does
    commands = [command for command, _ in (line.split(None, 1) for line in lines)]
    usage = shown(capsys, "nonsense", code=2)
    known = re.search(r"Known commands: (.*)", usage)[1].split(", ")
    assert sorted(commands) == sorted(known)


def test_config_has_every_field_of_a_backbone_and_stays_the_defaults(capsys):
    text = shown(capsys, "config")
    fields = re.findall(r"^#     (\w+): .*  # \S", text, re.MULTILINE)
    of_scorer = config.Scorer.__dataclass_fields__
    assert fields == [*config.Backbone.model_fields, *of_scorer]
    assert config.Config.model_validate(yaml.safe_load(text)) == config.Config()
    example = text.split("backbones: {}\n# of each:\n")[1].split("# scorer networks")[0]
    [(name, given)] = yaml.safe_load(re.sub("(?m)^# {3}", "", example)).items()
    assert name == "NAME"
    config.Backbone.model_validate({**given, "base_url": "http://127.0.0.1:8000/v1"})


@pytest.mark.parametrize("name", packs.built_in())
def test_prompts_show_has_every_template_of_a_pack_word_for_word(capsys, name):
    text, pack = shown(capsys, "prompts", "show", name), packs.load(name)
    for key, question in pack.questions.items():
        images = ", ".join(question.images) or "none"
        assert f"# {key} ({question.template}; images: {images}" in text
        assert pack.wording(question.template).rstrip() in text
    [first, *others] = pack.questions
    one = shown(capsys, "prompts", "show", name, first)
    assert f"# {first} (" in one
    assert not any(f"# {other} (" in one for other in others)


def test_prompts_list_has_all_settings_of_each_judge(capsys):
    listed = shown(capsys, "prompts", "list").splitlines()
    settings = {
        name: rest for name, _, *rest in (re.split(r",? +", it) for it in listed)
    }
    assert settings.keys() == set(packs.built_in())
    for name, found in settings.items():
        assert tuple(found) == judges.judge(packs.load(name).judge).settings
    assert "text_first" in settings["viescore/v1"]


# What a reader has to read and a user to choose from stays small (`tests/bounds.py`).


def option_keys(model, prefix=""):
    """The keys of options as a file has them, with those under names of the user's."""
    for name, annotation in typing.get_type_hints(model).items():
        kinds = (annotation, *typing.get_args(annotation))
        classes = [kind for kind in kinds if isinstance(kind, type)]
        is_group = lambda it: issubclass(it, BaseModel) or dataclasses.is_dataclass(it)
        below = [*filter(is_group, classes)]
        for kind in below:
            yield from option_keys(kind, f"{prefix}{name}.")
        is_constant = typing.get_origin(annotation) is typing.ClassVar
        if not below and not is_constant and not name.startswith("model_"):
            yield f"{prefix}{name}"


def flags(parser):
    """The options of a parser and of its commands."""
    for action in parser._actions:
        below = action.choices if isinstance(action, argparse._SubParsersAction) else {}
        for command in below.values():
            yield from flags(command)
        yield from (name for name in action.option_strings if name[:2] == "--")


def files(*folders, suffix):
    return [file for folder in folders for file in (ROOT / folder).rglob(f"*{suffix}")]


def test_commands_options_and_keys_are_few():
    commands = [name for group in cli.GROUPS.values() for name in group]
    options = {flag for name in commands for flag in flags(build_parser([name]))}
    keys = {*option_keys(config.Config)}
    print(f"{len(commands)} commands, {len(options)} options, {len(keys)} keys")
    assert "--margin" in options
    assert {"judges.cigeval.removed", "scorers.device", "store.path"} <= keys
    assert len(commands) <= bounds.COMMANDS, REMEDY
    assert len(options) <= bounds.OPTIONS, REMEDY
    assert len(keys) <= bounds.OPTION_KEYS, REMEDY


def test_the_code_is_small():
    modules = files("vieval_plugin", "judges", suffix=".py")
    assert 400 < len(modules) <= bounds.MODULES, REMEDY
    suffixes = (".jinja", ".css", ".js")
    pages = [path for it in suffixes for path in files("vieval_plugin", suffix=it)]
    lines = sum(len(path.read_text().splitlines()) for path in pages)
    assert 1_000 < lines <= bounds.TEMPLATE_LINES


# The reply cache.


@pytest.fixture
def kept(store, server):
    """A store with two replies."""
    backbone = Backbone(model="fake", base_url=server.base_url)
    evaluate(vieval_demo.load(Path(), "tig")[:1], backbone=backbone)
    return store


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_cache_is_exported_and_deletes_nothing_unasked(kept, monkeypatch, vieval):
    exported = [json.loads(line) for line in vieval("cache", "export").out.splitlines()]
    assert [row["reply"]["kind"] for row in exported] == ["Text"] * 2
    clear = "cache clear --model fake"
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    told = vieval(clear, code=1)
    line = "cannot ask for confirmation without a terminal; pass --yes"
    assert (told.out, told.err) == ("", f"vieval: {line}\n")
    replies = f"2 replies from fake in {kept}"
    asked = f"delete {replies}? Getting them again requires new calls. [y/N] "
    for answer in ("", "n\n", "\n", "nay\n"):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        out = vieval(clear).out
        assert out.startswith(asked)
        assert out.endswith(f"not confirmed: kept {replies}\n")
    monkeypatch.setattr("sys.stdin", Terminal("Yes\n"))
    assert vieval(clear).out.endswith("deleted 2 replies\n")


# Preparing data where there is no network.

NOWHERE = "http://127.0.0.1:9"
HOSTS = [f"--mirror={source}={NOWHERE}" for source in ("ratings", "hub", "museum")]


@pytest.mark.parametrize(
    ("name", "given"), [("imagenhub", HOSTS), ("genai_bench_tiger", []), ("mmrb2", [])]
)
def test_two_lines_say_what_to_fetch_and_where(
    tmp_path, vieval, name, given, monkeypatch
):
    monkeypatch.setattr(download, "FIRST_WAIT", 0.01)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    said = vieval("prepare", name, "--root", tmp_path, *given, code=1).out
    first, why, what = said.splitlines()
    assert first == f"data folder: {tmp_path}"
    assert why.startswith(f"{name}: cannot be downloaded on this machine: ")
    assert "127.0.0.1:9" in why
    command = f"run `vieval prepare {name} --root FOLDER`"
    copied = f"then copy FOLDER/{name} to {tmp_path / name}"
    assert what == f"on a machine with network access, {command}, {copied}"


# The help of every command: what it says, and that its examples are commands there are.


def children(parser):
    """The parsers of a parser's commands or actions, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    return {}


def walked(parser, names=()):
    """Every parser with the words that lead to it."""
    yield names, parser
    for name, child in children(parser).items():
        yield from walked(child, (*names, name))


PARSERS = dict(walked(cli.build_parser()))


def examples(parser):
    """The commands among the lines of an epilog."""
    opening, *lines = parser.epilog.splitlines()
    assert opening == "examples:"
    for purpose, command in zip(lines[::2], lines[1::2], strict=True):
        assert re.match(r"  # \S", purpose)
        yield command.strip()


def options(parser):
    others = (argparse._SubParsersAction, argparse._HelpAction, argparse._VersionAction)
    return [action for action in parser._actions if not isinstance(action, others)]


def parsed(arguments):
    """The namespace of a command line; a failure with argparse's own words where it has none."""
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            namespace, unknown = PARSERS[()].parse_known_args(arguments)
    except SystemExit:
        pytest.fail(f"{arguments}: {told.getvalue().splitlines()[-1]}")
    return namespace, unknown


@pytest.mark.parametrize("names", PARSERS, ids=" ".join)
def test_each_help_has_examples_that_its_parser_takes(names):
    parser = PARSERS[names]
    commands = list(examples(parser))
    assert len(commands) >= (2 if len(names) < 2 else 1)
    for command in commands:
        first, *words = shlex.split(re.sub(r"\s>\s\S+$", "", command))
        assert first == "vieval"
        assert tuple(words[: len(names)]) == names, command
        namespace, unknown = parsed(words)
        assert callable(namespace.run)
        assert not unknown or words[0] == "vlmevalkit", command


@pytest.mark.parametrize("names", [names for names in PARSERS if names], ids=" ".join)
def test_each_help_opens_with_an_imperative_and_ends_its_sentences(names):
    description = PARSERS[names].description
    assert re.match(r"[A-Z][a-z]+,? \S", description)
    assert description.endswith(".") or re.search(r"https://\S+$", description)
    assert not re.search(r"\?|\bpeople\b", description)


@pytest.mark.parametrize("names", PARSERS, ids=" ".join)
def test_each_option_has_one_plain_sentence_with_its_default(names):
    clause = re.compile(r"(of|what|whose|how many|which|so many)\b")
    undefined = (None, False, "", [], argparse.SUPPRESS)
    for action in options(PARSERS[names]):
        assert action.help, f"{names}: {action.dest} has no help"
        assert not action.help.endswith("."), action.help
        assert not clause.match(action.help), action.help
        if action.default not in undefined and not action.required:
            assert "default: " in action.help, f"{names}: {action.dest}"


# What a start imports.


SCORE = """
import sys
from vieval_plugin.cli import main
code = main(["score", "images", "--prompts", "prompts.txt", "--judge", "sharpness", "--out", "verdicts.jsonl"])
print(code, *(name for name in sys.modules if name.partition(".")[0] == "vieval_plugin"))
"""


def test_scoring_a_folder_imports_no_benchmark_and_few_modules(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "images").mkdir()
    for number in range(3):
        path = tmp_path / "images" / f"{number}.png"
        PIL.Image.effect_noise((16, 16), 40 + number).convert("RGB").save(path)
    (tmp_path / "prompts.txt").write_text("grains\nsand\nsky\n")
    done = run_process([sys.executable, "-c", SCORE], cwd=tmp_path, check=True)
    code, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    rooms = {name.split(".")[1] for name in modules if "." in name}
    unneeded = {"benchmarks", "meta_evaluation", "importers", "report", "hosts"}
    assert not rooms & unneeded
    assert len(modules) < bounds.MODULES_OF_A_SCORE


REPORT = """
import sys
entered = set()
def note(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>":
        entered.add(frame.f_globals.get("__name__", ""))
sys.setprofile(note)
from vieval_plugin.cli import main
code = main(["report", "verdicts.jsonl", "--out", "report"])
sys.setprofile(None)
ours = [name for name in entered if name.partition(".")[0] == "vieval_plugin"]
print(code, len(ours), *sys.modules)
"""


def test_a_report_enters_few_modules_and_does_not_import_pyarrow(tmp_path):
    scores = {"aurora": some_scores(40, 0.4), "borealis": some_scores(40, 0.5, seed=1)}
    a_verdict_file(tmp_path / "verdicts.jsonl", scores)
    done = run_process([sys.executable, "-c", REPORT], cwd=tmp_path, check=True)
    code, entered, *modules = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    assert int(entered) < bounds.MODULES_OF_A_REPORT
    assert "pyarrow" not in modules
    http = "vieval_plugin.backends.http."
    assert not [name for name in modules if name.startswith(http)]


COMMAND = "from vieval_plugin.cli import main; main(['{}'])"
NUMBERS = {"numpy", "scipy", "pydantic", "jinja2", "yaml", "PIL"}
OURS = {f"vieval_plugin.{room}" for room in split("benchmarks judges config readers")}
OF_A_JUDGE = split(
    "scipy markdown_it json_repair vieval_plugin.benchmarks vieval_plugin.run.session "
    "vieval_plugin.readers.samples vieval_plugin.backends.http.openai"
)


@pytest.mark.parametrize(
    ("start", "unneeded"),
    [
        (COMMAND.format("--version"), NUMBERS | OURS),
        (COMMAND.format("--help"), NUMBERS | OURS),
        ("from vieval_plugin import Judge", set(OF_A_JUDGE)),
    ],
    ids=["version", "help", "Judge"],
)
def test_a_start_imports_only_what_it_needs(start, unneeded):
    code = f"import sys\ntry:\n    {start}\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    done = run_process([sys.executable, "-c", code], timeout=600)
    imported = done.stderr.splitlines()[-1].split()
    assert "vieval_plugin" in imported
    assert not unneeded & set(imported)
