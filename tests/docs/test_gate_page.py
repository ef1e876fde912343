"""docs/guides/gate.md: its commands, its code, and the steps of the action, run as they stand there."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import PIL.Image
import pytest
import yaml

from tests.cli.test_rank_folders import by_brightness, images, prompts
from tests.fake_image_server import FakeImageServer
from tests.fake_server import FakeServer
from vieval_plugin.cli import main
from vieval_plugin.testing import assert_not_worse

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "gate.md").read_text(encoding="utf-8")
ACTION = ROOT / ".github" / "actions" / "gate" / "action.yml"
N = 80


def level(shift):
    return lambda prompt, draw: 0.35 + prompt % 7 / 20 + shift * (1 + prompt % 3 / 10)


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A repository with prompts and images of a good build, and the server of a judge."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    prompts(tmp_path, N)
    images(tmp_path, "good", level(0), N)
    with FakeServer(reply=by_brightness()) as server:
        (tmp_path / "vieval.yaml").write_text(
            "statistics: {draws: 100}\nstore: {path: replies.sqlite}\n"
            f"backbones: {{judge: {{model: fake, base_url: {server.base_url}}}}}"
        )
        monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))
        yield server


def test_the_commands_of_the_page_run_in_their_order(served, tmp_path, capsys):
    images(tmp_path, "new", level(0.02), N)
    with FakeImageServer() as generator:
        codes = []
        for command in re.findall(r"^vieval .*$", PAGE, re.MULTILINE):
            text = command.replace("http://127.0.0.1:8000/v1", served.base_url)
            arguments = shlex.split(text.replace("http://127.0.0.1:9000/v1", generator.base_url))[1:]
            codes.append(main(arguments))
    assert codes[:4] == [0, 0, 0, 0]
    assert codes[4] in (0, 3, 4)  # of noise that a fake server calls images
    assert {path.name for path in tmp_path.iterdir()} >= {
        "page.html",
        "junit.xml",
        "new.jsonl",
        "anchor.jsonl",
        "night",
    }
    capsys.readouterr()


def test_the_assertion_fails_with_title_and_evidence(served, tmp_path):
    assert main(["score", "good", "--prompts", "prompts.csv", "--out", "good.jsonl"]) == 0
    images(tmp_path, "bad", level(-0.3), N)
    given = {"prompts": "prompts.csv", "baseline": "good.jsonl", "margin": 0.1}
    with pytest.raises(
        AssertionError, match=r"^bad is worse than good by more than the margin\.\nDifference -0\."
    ) as told:
        assert_not_worse("bad", **given)
    assert "the margin is 0.1." in str(told.value)
    with pytest.raises(AssertionError, match=r"^bad is worse than good by more than the margin\."):
        assert_not_worse("bad", **{**given, "baseline": "good"})
    with pytest.raises(
        AssertionError, match=r"^Nothing was decided\.\n--against good\.jsonl: judged with judge viescore"
    ):
        assert_not_worse("bad", **given, judge="vieval_small")
    asked = []

    def generator(prompt, seed):
        asked.append((prompt, seed))
        brightness = round(255 * level(0.02)(int(prompt.split()[-1]), 0))
        return PIL.Image.new("RGB", (16, 16), (brightness,) * 3)

    assert_not_worse(generator, **given, seed=7)
    assert asked[:2] == [("a grey square 0", 7), ("a grey square 1", 8)]


def steps(inputs, outputs, folder, environment):
    """The exit code of the steps of the action that are commands, in bash, with what they wrote as outputs."""
    action = yaml.safe_load(ACTION.read_text())
    given = {name: str(spec.get("default", "")) for name, spec in action["inputs"].items()} | inputs
    code = 0
    for step in action["runs"]["steps"]:
        if "run" not in step or step["name"] == "Install VIEval":
            continue
        filled = {}
        for name, value in step["env"].items():
            of_input = re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)
            filled[name] = given[of_input[1]] if of_input else outputs.read_text().strip().partition("=")[2]
        command = ["bash", "-eo", "pipefail", "-c", step["run"]]
        code = subprocess.run(command, cwd=folder, env={**environment, **filled}, capture_output=True).returncode
    return code


@pytest.mark.skipif(not ACTION.is_file(), reason="an sdist has no actions")
def test_the_steps_of_the_action_pass_and_fail_a_build(served, tmp_path):
    assert main(["score", "good", "--prompts", "prompts.csv", "--out", "good.jsonl"]) == 0
    images(tmp_path, "fine", level(0.02), N)
    images(tmp_path, "bad", level(-0.3), N)
    images(tmp_path, "doubtful", lambda prompt, draw: level(0)(prompt, draw) - (0.4 if prompt % 5 == 0 else 0), N)
    (tmp_path / "others.csv").write_text((tmp_path / "prompts.csv").read_text().replace("grey", "red"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "vieval").write_text(f'#!/bin/sh\nexec {sys.executable} -m vieval_plugin "$@"\n')
    (tmp_path / "bin" / "vieval").chmod(0o755)
    outputs, summary = tmp_path / "outputs", tmp_path / "summary.md"
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GITHUB_OUTPUT": str(outputs),
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    given = {"prompts": "prompts.csv", "against": "good.jsonl", "margin": "0.1"}
    for name, other, code in (
        ("fine", {}, 0),
        ("bad", {}, 3),
        ("doubtful", {}, 4),
        ("fine", {"prompts": "others.csv"}, 1),
    ):
        outputs.unlink(missing_ok=True)
        summary.unlink(missing_ok=True)
        assert steps({**given, "images": name, **other}, outputs, tmp_path, environment) == code, name
        assert json.loads((tmp_path / "vieval-gate" / "result.json").read_text())["exit_code"] == code
        assert summary.read_text().startswith("## ")


@pytest.mark.parametrize("name", ["judged.py", "inspect_judged.py"])
def test_the_recipes_score_an_image(served, tmp_path, name):
    if name == "inspect_judged.py":
        pytest.importorskip("inspect_ai")
    code = re.search(rf"```python {name}\n(.*?)```", PAGE, re.DOTALL)[1]
    names = {}
    exec(code, names)
    if name == "judged.py":
        result = names["get_assert"]("good/p3.png", {"prompt": "a grey square 3"})
        assert result["pass"] is True
        assert result["score"] == pytest.approx(0.5, abs=0.1)
        return
    import asyncio

    state = SimpleNamespace(output=SimpleNamespace(completion="good/p3.png"), input_text="a grey square 3")
    assert asyncio.run(names["viescore"]()(state, None)).value == pytest.approx(0.5, abs=0.1)
