"""docs/guides/gate.md: its commands, its code, and the steps of the action, run as they stand
there.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import PIL.Image
import pytest
import yaml

from tests.brightness import by_brightness, images, noisy, prompts
from tests.fake_image_server import FakeImageServer
from tests.fake_server import FakeServer, named
from vieval_plugin.cli import main
from vieval_plugin.run.side_by_side import storable
from vieval_plugin.testing import assert_not_worse
from vieval_plugin.text.errors import VievalError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "gate.md").read_text(encoding="utf-8")
ACTION = ROOT / "action.yml"
INSPECT, PROMPTFOO = (
    os.environ.get(f"VIEVAL_{name}", "") for name in ("INSPECT_PYTHON", "PROMPTFOO")
)
N = 80


def test_the_file_that_the_action_installs_has_the_name_of_a_wheel():
    from packaging.utils import parse_wheel_filename

    name = re.search(r"install: \./(\S+)\[http\]", PAGE)[1]
    assert parse_wheel_filename(name)[0] == "vieval"


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "HSV", "LAB", "RGBa"])
def test_a_picture_of_any_mode_is_stored(tmp_path, mode):
    storable(PIL.Image.new(mode, (4, 4))).save(tmp_path / "a.png")


@pytest.mark.parametrize("mode", ["F", "I"])
def test_values_whose_range_is_not_known_are_refused(mode):
    with pytest.raises(VievalError, match="8 bits per channel"):
        storable(PIL.Image.new(mode, (4, 4)))


@pytest.mark.parametrize(
    "made", [np.zeros((4, 4, 3)), "a.png", b"", [], PIL.Image.new("RGB", (0, 4))]
)
def test_what_is_no_picture_is_refused(made):
    with pytest.raises(VievalError, match="must return PIL images"):
        storable(made)


def block(name):
    """The Python of the page after a heading, or under the name of a file."""
    return re.search(
        rf"(?:## {name}\n\n```python|```python {name})\n(.*?)```", PAGE, re.DOTALL
    )[1]


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
        for command in re.findall(
            r"^vieval .*$", PAGE.replace("\\\n ", " "), re.MULTILINE
        ):
            text = command.replace("http://127.0.0.1:8000/v1", served.base_url)
            arguments = shlex.split(
                text.replace("http://127.0.0.1:9000/v1", generator.base_url)
            )[1:]
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


@pytest.fixture
def builds(served, tmp_path):
    """Builds that are fine, the same, bad and doubtful, the verdicts of the good one, and an
    anchor whose judge has drifted.
    """
    images(tmp_path, "fine", level(0.02), N)
    shutil.copytree("good", "same")
    images(tmp_path, "bad", level(-0.3), N)
    images(
        tmp_path,
        "doubtful",
        lambda prompt, draw: level(0)(prompt, draw) - (0.4 if prompt % 5 == 0 else 0),
        N,
    )
    (tmp_path / "others.csv").write_text(
        (tmp_path / "prompts.csv").read_text().replace("grey", "red")
    )
    assert (
        main(["score", "good", "--prompts", "prompts.csv", "--out", "good.jsonl"]) == 0
    )
    with FakeServer(reply=noisy(1)) as server:
        anchor = [
            "anchor",
            "make",
            "good.jsonl",
            "--n",
            "60",
            "--out",
            "anchor.jsonl",
            "--copy-images",
        ]
        assert main([*anchor, *named(server)]) == 0
    with FakeServer(reply=noisy(2, shift=2)) as drifted:
        yield drifted.base_url


TITLES = {
    ("fine", ""): (0, "fine is not worse than good"),
    ("same", ""): (0, "same is not worse than good"),
    ("bad", ""): (3, "bad is worse than good"),
    ("doubtful", ""): (4, "doubtful is worse than good, but perhaps"),
    ("fine", "drifted judge"): (5, "judge itself has drifted"),
    ("fine", "other prompts"): (1, "The gate could not decide"),
}
"""Exit code and key of the title of each build, in what else differs."""


def test_the_assertion_fails_with_title_and_evidence(builds):
    arguments = {"prompts": "prompts.csv", "baseline": "good.jsonl", "margin": 0.1}
    changed = {
        "": {},
        "drifted judge": {
            "baseline": "anchor.jsonl",
            "model": "fake",
            "base_url": builds,
        },
        "other prompts": {"prompts": "others.csv"},
    }
    for (name, change), (code, title) in TITLES.items():
        if not code:
            assert_not_worse(name, **arguments | changed[change])
            continue
        with pytest.raises(AssertionError) as error:
            assert_not_worse(name, **arguments | changed[change])
        first, evidence, *_ = str(error.value).splitlines()
        assert title in first
        assert evidence.startswith(
            {1: "--against good.jsonl: the prompts differ", 5: "Drift: "}.get(
                code, "The mean O of "
            )
        )
    with pytest.raises(
        AssertionError, match=r"^viescore with fake finds that bad is worse than good"
    ):
        assert_not_worse("bad", **{**arguments, "baseline": "good"})
    calls = []

    def generator(prompt, seed):
        calls.append((prompt, seed))
        brightness = round(255 * level(0.02)(int(prompt.split()[-1]), 0))
        return PIL.Image.new("RGB", (16, 16), (brightness,) * 3)

    assert_not_worse(generator, **arguments, seed=7)
    assert calls[:2] == [("a grey square 0", 7), ("a grey square 1", 8)]


def test_pytest_runs_the_test_of_the_page(builds, tmp_path):
    (tmp_path / "test_images.py").write_text(block("In pytest"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "test_images.py",
    ]
    for name, code, line in (
        ("fine", 0, "1 passed"),
        ("bad", 1, "finds that new is worse than good"),
    ):
        shutil.copytree(name, "new", dirs_exist_ok=True)
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert (done.returncode, line in done.stdout) == (code, True), done.stdout


def steps(inputs, outputs, folder, environment):
    """The exit code of the steps of the action that are commands, in bash, with what they wrote
    as outputs.
    """
    action = yaml.safe_load(ACTION.read_text())
    values = {
        f"inputs.{name}": str(spec.get("default", ""))
        for name, spec in action["inputs"].items()
    }
    values |= {f"inputs.{name}": value for name, value in inputs.items()}
    code = 0
    for step in action["runs"]["steps"]:
        if "run" not in step or step["name"] == "Install VIEval":
            continue
        outputs.write_text("")
        filled = {
            name: values[value.strip("${ }")]
            for name, value in step.get("env", {}).items()
        }
        command = ["bash", "-eo", "pipefail", "-c", step["run"]]
        code = subprocess.run(
            command, cwd=folder, env={**environment, **filled}, capture_output=True
        ).returncode
        of_step = (line.partition("=") for line in outputs.read_text().splitlines())
        values |= {
            f"steps.{step.get('id')}.outputs.{name}": value
            for name, _, value in of_step
        }
    return code, values


def test_the_page_names_the_action_at_the_root_and_inputs_that_it_has():
    [step] = yaml.safe_load(re.search(r"^- uses:.*?(?=^```)", PAGE, re.M | re.S)[0])
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    assert step["uses"] == "vieval/vieval@main"
    assert {*step["with"]} <= {*action["inputs"]}
    assert all(
        "@" in part["uses"] for part in action["runs"]["steps"] if "uses" in part
    )
    assert {*action["branding"]} == {"icon", "color"}


def test_the_steps_of_the_action_pass_and_fail_a_build(builds, tmp_path):
    (tmp_path / "bin").mkdir()
    for name, module in (("vieval", "-m vieval_plugin"), ("python", "")):
        (tmp_path / "bin" / name).write_text(
            f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n'
        )
        (tmp_path / "bin" / name).chmod(0o755)
    summary, files = tmp_path / "summary.md", tmp_path / "vieval-gate"
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "GITHUB_OUTPUT": str(tmp_path / "outputs"),
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    inputs = {
        "prompts": "prompts.csv",
        "against": "good.jsonl",
        "margin": "0.1",
        "columns": "prompt=prompt",
    }
    changed = {
        "": {},
        "drifted judge": {
            "against": "anchor.jsonl",
            "model": "fake",
            "base-url": builds,
        },
        "other prompts": {"prompts": "others.csv"},
    }
    for (name, change), (expected, title) in TITLES.items():
        summary.unlink(missing_ok=True)
        code, values = steps(
            {**inputs, "images": name, **changed[change]},
            tmp_path / "outputs",
            tmp_path,
            environment,
        )
        assert (code, values["steps.gate.outputs.exit-code"]) == (
            expected,
            str(expected),
        ), name
        assert values["steps.store.outputs.path"].endswith("replies.sqlite")
        assert json.loads((files / "result.json").read_text())["exit_code"] == code
        assert title in summary.read_text().splitlines()[0]
        cases = ElementTree.parse(files / "junit.xml").getroot()
        assert (cases.get("failures"), cases.get("errors")) == (
            str(int(code in (3, 4))),
            str(int(code in (1, 5))),
        )
        # where nothing was decided there is no page, not that of the build before either
        assert (files / "page.html").exists() == (code not in (1, 5))
        assert (
            not (files / "page.html").exists()
            or title in (files / "page.html").read_text()
        )


def test_the_assertion_for_promptfoo_scores_an_image(served):
    names = {}
    exec(block("judged.py"), names)
    result = names["get_assert"]("good/p3.png", {"prompt": "a grey square 3"})
    assert result["pass"] is True
    assert result["score"] == pytest.approx(0.5, abs=0.1)


ASSERTIONS = """
const { assertions } = require("promptfoo");
const assertion = { type: "python", value: "file://judged.py" };
const run = (n) => {
  const prompt = `a grey square ${n}`;
  const call = { prompt, assertion, test: { vars: { prompt } }, providerResponse: { output: `good/p${n}.png` } };
  return assertions.runAssertion(call);
};
run(%d).then(async (seen) => console.log("\\n" + JSON.stringify([seen, await run(%d)]))).then(() => process.exit(0));
"""


@pytest.mark.skipif(
    not PROMPTFOO,
    reason="VIEVAL_PROMPTFOO names no folder of promptfoo (make test-recipes)",
)
def test_promptfoo_asks_the_assertion_of_the_page(served, tmp_path):
    (tmp_path / "judged.py").write_text(block("judged.py"))
    settings = {
        "PROMPTFOO_PYTHON": sys.executable,
        "PROMPTFOO_CONFIG_DIR": str(tmp_path / "settings"),
    }
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    environment = {
        **os.environ,
        "NODE_PATH": f"{PROMPTFOO}/node_modules",
        **settings,
        **quiet,
    }
    command = ["node", "-e", ASSERTIONS % (3, N)]  # of which the last has no image
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    seen, absent = json.loads(done.stdout.splitlines()[-1])
    assert (seen["pass"], absent["pass"]) == (True, False)
    assert seen["score"] == pytest.approx(0.5, abs=0.1)


TASK = """
import json
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.solver import solver
from inspect_judged import viescore

@solver
def images():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("none", f"good/{state.sample_id}.png")
        return state
    return solve

samples = [Sample(id=f"p{n}", input=f"a grey square {n}") for n in (0, 3, %d)]
[log] = eval(Task(dataset=samples, solver=images(), scorer=viescore()), model="mockllm/model", display="none")
print(json.dumps([log.status, {sample.id: [s.value for s in sample.scores.values()] for sample in log.samples}]))
"""


@pytest.mark.skipif(
    not INSPECT,
    reason="VIEVAL_INSPECT_PYTHON names no Python with Inspect (make test-recipes)",
)
def test_inspect_scores_images_by_the_scorer_of_the_page(served, tmp_path):
    (tmp_path / "inspect_judged.py").write_text(block("inspect_judged.py"))
    (tmp_path / "task.py").write_text(TASK % N)
    (tmp_path / "good" / f"p{N}.png").write_text("no image")
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"
    }
    done = subprocess.run(
        [INSPECT, "task.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    status, scores = json.loads(done.stdout.splitlines()[-1])
    assert status == "success"
    assert scores["p0"] + scores["p3"] == pytest.approx([0.35, 0.5], abs=0.1)
    assert not scores[f"p{N}"] or scores[f"p{N}"] != scores[f"p{N}"]
