"""The command `vieval` itself: its help, its version, and what single commands show."""

import importlib.metadata
import json
import re
import subprocess
import sys

import pytest
import yaml

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
    ran = subprocess.run([sys.executable, "-m", "vieval_plugin", "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, version, "")


def test_the_help_has_every_command_once_in_a_group(capsys):
    help_ = shown(capsys, "--help")
    blocks = dict(re.findall(r"^(\S.*):\n((?:  .*\n)+)", help_, re.MULTILINE))
    assert "vieval score cat.png" in blocks.pop("examples")
    assert list(blocks) == list(cli.GROUPS)
    commands = [line.split()[0] for body in blocks.values() for line in body.splitlines()]
    usage = shown(capsys, "nonsense", code=2)
    known = re.search(r"The commands are (.*)", usage)[1].split(", ")
    assert sorted(commands) == sorted(known)
    assert all(len(line.split(None, 1)) == 2 for body in blocks.values() for line in body.splitlines())


def test_config_has_every_field_of_a_backbone_and_stays_the_defaults(capsys):
    text = shown(capsys, "config")
    fields = re.findall(r"^#     (\w+): .*  # \S", text, re.MULTILINE)
    assert fields == [*config.Backbone.model_fields, *config.Scorer.__dataclass_fields__]
    assert config.Config.model_validate(yaml.safe_load(text)) == config.Config()
    example = text.split("backbones: {}\n# of each:\n")[1].split("# networks that measure")[0]
    [(name, given)] = yaml.safe_load(re.sub("(?m)^# {3}", "", example)).items()
    assert name == "NAME"
    config.Backbone.model_validate({**given, "base_url": "http://127.0.0.1:8000/v1"})


@pytest.mark.parametrize("name", packs.built_in())
def test_prompts_show_has_every_template_of_a_pack_word_for_word(capsys, name):
    text, pack = shown(capsys, "prompts", "show", name), packs.load(name)
    for key, question in pack.questions.items():
        assert f"# {key} ({question.template}; images: {', '.join(question.images) or 'none'}" in text
        assert pack.wording(question.template).rstrip() in text
    [first, *others] = pack.questions
    one = shown(capsys, "prompts", "show", name, first)
    assert f"# {first} (" in one
    assert not any(f"# {other} (" in one for other in others)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("prompts", "show", "viescor/v1"), "no prompt pack 'viescor/v1'; did you mean viescore/v1?"),
        (("prompts", "show", "viescore/v1", "SC_tg"), "viescore/v1 has no question 'SC_tg'; did you mean SC_tig?"),
        (("prompts", "show", "/none"), "/none: no prompt pack there"),
        (("rank", "/none"), "/none: no such file or folder"),
        (("report", "/none", "--out", "unwritten"), "/none: no such file or folder"),
        (("prepare", "imagenhb"), "no benchmark 'imagenhb'; did you mean imagenhub?"),
        (("label", "imagenhb/tig", "--out", "p.html"), "no such file, and no such benchmark; did you mean imagenhub?"),
    ],
)
def test_a_name_that_is_not_there_is_one_line_with_the_nearest(capsys, tmp_path, monkeypatch, given, told):
    monkeypatch.chdir(tmp_path)
    [line] = shown(capsys, *given, code=1).splitlines()
    assert told in line


def test_a_command_that_is_not_there_is_wrong_usage_with_the_nearest(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["scoer", "samples.jsonl"])
    assert ended.value.code == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("vieval: error: no command 'scoer'; did you mean score? The commands are anchor, audit, ")


@pytest.mark.parametrize("kind", ["tgi", "image"])
def test_a_kind_that_is_none_is_refused_with_the_nearest(samples_file, tmp_path, capsys, kind):
    out = tmp_path / "page.html"
    samples_file.write_text(samples_file.read_text().replace('"kind": "tie", ', ""))
    line = shown(capsys, "label", str(samples_file), "--kind", kind, "--out", str(out), code=1)
    assert re.search(rf"line 1: no kind '{kind}'; did you mean (tig|mie)\? The kinds are .*mcic", line)
    assert not out.exists()


# A file of samples where results are needed, and the other way round.

SAMPLE = {"uid": "1", "kind": "tig", "image_model": "mine", "images": {"output": "1.png"}, "texts": {"prompt": "a cat"}}
VERDICT = {"vieval": 2, "uid": "1", "kind": "tig", "scores": {}, "status": "ok", "provenance": {}}


@pytest.mark.parametrize("command", ["rank", "compare", "report"])
def test_samples_are_no_results(command, tmp_path, vieval):
    file = tmp_path / "samples.jsonl"
    file.write_text(json.dumps(SAMPLE) + "\n")
    line = vieval(command, file, *(["--out", str(tmp_path / "out")] if command == "report" else []), code=1).err.strip()
    assert line == (
        f"vieval: {file}: line 1 is no result of VIEval ('filtered_resps' is missing); these are samples: judge them with "
        "`vieval score`"
    )


def test_verdicts_are_no_samples(tmp_path, vieval):
    file = tmp_path / "verdicts.jsonl"
    file.write_text(json.dumps(VERDICT) + "\n")
    printed = vieval("label", file, "--out", tmp_path / "label.html", code=1).err
    assert "verdicts, where samples are needed; give the table that was judged" in printed
