"""The commands, the code and the action of docs/guides/gate.md run as they stand there."""

import json
import os
import re
import shlex
import shutil
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
from tests.work import run_process
from vieval_plugin.cli import main
from vieval_plugin.run.side_by_side import storable
from vieval_plugin.testing import assert_not_worse
from vieval_plugin.text.errors import VievalError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "gate.md").read_text(encoding="utf-8")
ACTION = ROOT / "action.yml"
INSPECT = os.environ.get("VIEVAL_INSPECT_PYTHON", "")
PROMPTFOO = os.environ.get("VIEVAL_PROMPTFOO", "")
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
    heading = rf"(?:## {name}\n\n```python|```python {name})"
    return re.search(rf"{heading}\n(.*?)```", PAGE, re.DOTALL)[1]


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
        backbones = f"{{judge: {{model: fake, base_url: {server.base_url}}}}}"
        options = "statistics: {draws: 100}\nstore: {path: replies.sqlite}\n"
        (tmp_path / "vieval.yaml").write_text(f"{options}backbones: {backbones}")
        monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))
        yield server


def test_the_commands_of_the_page_run_in_their_order(served, tmp_path):
    images(tmp_path, "new", level(0.02), N)
    commands = re.findall(r"^vieval (.*)$", PAGE.replace("\\\n ", " "), re.MULTILINE)
    with FakeImageServer() as generator:
        text = "\n".join(commands).replace("http://127.0.0.1:8000/v1", served.base_url)
        text = text.replace("http://127.0.0.1:9000/v1", generator.base_url)
        codes = [main(shlex.split(command)) for command in text.splitlines()]
    assert codes[:4] == [0, 0, 0, 0]
    assert codes[4] in (0, 3, 4)  # of noise that a fake server calls images
    written = {"page.html", "junit.xml", "new.jsonl", "anchor.jsonl", "night"}
    assert {path.name for path in tmp_path.iterdir()} >= written


@pytest.fixture
def builds(served, tmp_path, vieval):
    """Builds (fine, same, bad, doubtful), verdicts of the good one, and an anchor that drifted."""
    images(tmp_path, "fine", level(0.02), N)
    shutil.copytree("good", "same")
    images(tmp_path, "bad", level(-0.3), N)
    falls = lambda prompt, draw: level(0)(prompt, draw) - 0.4 * (prompt % 5 == 0)
    images(tmp_path, "doubtful", falls, N)
    others = (tmp_path / "prompts.csv").read_text().replace("grey", "red")
    (tmp_path / "others.csv").write_text(others)
    vieval("score good --prompts prompts.csv --out good.jsonl")
    with FakeServer(reply=noisy(1)) as server:
        anchor = "anchor make good.jsonl --n 60 --out anchor.jsonl --copy-images"
        vieval(anchor, *named(server))
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
    drifted = {"baseline": "anchor.jsonl", "model": "fake", "base_url": builds}
    changed = {"drifted judge": drifted, "other prompts": {"prompts": "others.csv"}}
    reasons = {1: "--against good.jsonl: the prompts differ", 5: "Drift: "}
    for (name, change), (code, title) in TITLES.items():
        given = {**arguments, **changed.get(change, {})}
        if not code:
            assert_not_worse(name, **given)
            continue
        with pytest.raises(AssertionError) as error:
            assert_not_worse(name, **given)
        first, evidence, *_ = str(error.value).splitlines()
        assert title in first
        assert evidence.startswith(reasons.get(code, "The mean O of "))
    worse = r"^viescore with fake finds that bad is worse than good"
    with pytest.raises(AssertionError, match=worse):
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
    quiet = ["-q", "-p", "no:cacheprovider", "test_images.py"]
    command = [sys.executable, "-m", "pytest", *quiet]
    worse = "finds that new is worse than good"
    for name, code, line in (("fine", 0, "1 passed"), ("bad", 1, worse)):
        shutil.copytree(name, "new", dirs_exist_ok=True)
        done = run_process(command, cwd=tmp_path, env=environment)
        assert (done.returncode, line in done.stdout) == (code, True), done.stdout


def steps(inputs, outputs, folder, environment):
    """The exit code of the action's commands, run in bash, and all outputs."""
    action = yaml.safe_load(ACTION.read_text())
    defaults = {
        name: spec.get("default", "") for name, spec in action["inputs"].items()
    }
    values = {f"inputs.{name}": str(it) for name, it in (defaults | inputs).items()}
    code = 0
    for step in action["runs"]["steps"]:
        if "run" not in step or step["name"] == "Install VIEval":
            continue
        outputs.write_text("")
        given = step.get("env", {}).items()
        filled = {name: values[value.strip("${ }")] for name, value in given}
        command = ["bash", "-eo", "pipefail", "-c", step["run"]]
        about = {"cwd": folder, "env": {**environment, **filled}}
        code = run_process(command, **about).returncode
        for line in outputs.read_text().splitlines():
            name, _, value = line.partition("=")
            values[f"steps.{step.get('id')}.outputs.{name}"] = value
    return code, values


def test_the_page_names_the_action_at_the_root_and_inputs_that_it_has():
    [step] = yaml.safe_load(re.search(r"^- uses:.*?(?=^```)", PAGE, re.M | re.S)[0])
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    assert step["uses"] == "vieval/vieval@main"
    assert {*step["with"]} <= {*action["inputs"]}
    used = [part["uses"] for part in action["runs"]["steps"] if "uses" in part]
    assert all("@" in name for name in used)
    assert {*action["branding"]} == {"icon", "color"}


def test_the_steps_of_the_action_pass_and_fail_a_build(builds, tmp_path):
    (tmp_path / "bin").mkdir()
    for name, module in (("vieval", "-m vieval_plugin"), ("python", "")):
        script = f'#!/bin/sh\nexec {sys.executable} {module} "$@"\n'
        (tmp_path / "bin" / name).write_text(script)
        (tmp_path / "bin" / name).chmod(0o755)
    summary, files = tmp_path / "summary.md", tmp_path / "vieval-gate"
    own = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    outputs = tmp_path / "outputs"
    own |= {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary)}
    inputs = {"prompts": "prompts.csv", "against": "good.jsonl", "margin": "0.1"}
    inputs["columns"] = "prompt=prompt"
    drifted = {"against": "anchor.jsonl", "model": "fake", "base-url": builds}
    changed = {"drifted judge": drifted, "other prompts": {"prompts": "others.csv"}}
    for (name, change), (expected, title) in TITLES.items():
        summary.unlink(missing_ok=True)
        given = {**inputs, "images": name, **changed.get(change, {})}
        code, values = steps(given, outputs, tmp_path, {**os.environ, **own})
        assert (code, values["steps.gate.outputs.exit-code"]) == (
            expected,
            f"{expected}",
        )
        assert values["steps.store.outputs.path"].endswith("replies.sqlite")
        assert json.loads((files / "result.json").read_text())["exit_code"] == code
        assert title in summary.read_text().splitlines()[0]
        cases = ElementTree.parse(files / "junit.xml").getroot()
        counts = tuple(str(int(code in codes)) for codes in ((3, 4), (1, 5)))
        assert (cases.get("failures"), cases.get("errors")) == counts
        # where nothing was decided there is no page, not that of the build before either
        page = files / "page.html"
        assert page.exists() == (code not in (1, 5))
        assert not page.exists() or title in page.read_text()


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


NO_PROMPTFOO = "VIEVAL_PROMPTFOO names no folder of promptfoo (make test-recipes)"


@pytest.mark.skipif(not PROMPTFOO, reason=NO_PROMPTFOO)
def test_promptfoo_asks_the_assertion_of_the_page(served, tmp_path):
    (tmp_path / "judged.py").write_text(block("judged.py"))
    settings = {"PYTHON": sys.executable, "CONFIG_DIR": str(tmp_path / "settings")}
    settings |= {"DISABLE_TELEMETRY": "1", "DISABLE_UPDATE": "1"}
    own = {f"PROMPTFOO_{name}": value for name, value in settings.items()}
    own["NODE_PATH"] = f"{PROMPTFOO}/node_modules"
    command = ["node", "-e", ASSERTIONS % (3, N)]  # of which the last has no image
    about = {"cwd": tmp_path, "env": {**os.environ, **own}, "timeout": 600}
    done = run_process(command, **about)
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


NO_INSPECT = "VIEVAL_INSPECT_PYTHON names no Python with Inspect (make test-recipes)"


@pytest.mark.skipif(not INSPECT, reason=NO_INSPECT)
def test_inspect_scores_images_by_the_scorer_of_the_page(served, tmp_path):
    (tmp_path / "inspect_judged.py").write_text(block("inspect_judged.py"))
    (tmp_path / "task.py").write_text(TASK % N)
    (tmp_path / "good" / f"p{N}.png").write_text("no image")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    done = run_process([INSPECT, "task.py"], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    status, scores = json.loads(done.stdout.splitlines()[-1])
    assert status == "success"
    assert scores["p0"] + scores["p3"] == pytest.approx([0.35, 0.5], abs=0.1)
    assert not scores[f"p{N}"] or scores[f"p{N}"] != scores[f"p{N}"]
