"""The command `vieval` itself: its help, its version, and what single commands show."""

import importlib.metadata
import re
import sys

import pytest
import yaml

from tests.work import run_process
from vieval_plugin import cli, config
from vieval_plugin.cli import main
from vieval_plugin.prompts import packs


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
