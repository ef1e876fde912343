"""A judge, a benchmark and tasks from a package outside the repository."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import a_sample_row
from tests.fake_server import FakeServer, named
from tests.pictures import plain
from tests.stored_results import read_lines, write_lines
from tests.work import run_process

EXAMPLE = Path(__file__).parents[1] / "example_plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment in which Python finds the package, and a cache of its own."""
    folder = tmp_path_factory.mktemp("plugin")
    source = folder / "source"
    subprocess.run(["cp", "-r", str(EXAMPLE), str(source)], check=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-deps"]
    pip = [sys.executable, "-m", "pip", "install", *quiet, "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(source)], check=True)
    cleared = {k: v for k, v in os.environ.items() if not k.startswith("VIEVAL_")}
    own = {"PYTHONPATH": str(folder / "site"), "XDG_CACHE_HOME": str(folder / "cache")}
    return {**cleared, **own, "HF_HUB_OFFLINE": "1"}


@pytest.fixture(scope="module")
def server():
    with FakeServer() as running:
        yield running


def run(environment, folder, line, *further):
    command = [sys.executable, "-m", *shlex.split(line), *map(str, further)]
    return run_process(command, cwd=folder, env=environment, timeout=600)


def well(*command):
    """What a command printed that ended well."""
    done = run(*command)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_commands_know_them(installed, tmp_path):
    tasks = well(installed, tmp_path, "vieval_plugin tasks squares").splitlines()
    named = {line.split()[0] for line in tasks}
    assert named >= {
        "squares_praise",
        "squares_viescore",
        "variant_squares_praise_strict",
    }
    options = well(installed, tmp_path, "vieval_plugin config")
    assert "  praise:" in options
    assert "    points: 2" in options


def test_vieval_score_judges_with_it(installed, server, tmp_path):
    (tmp_path / "a.png").write_bytes(plain("red", (32, 32)))
    rows = [
        a_sample_row(str(number), "a.png", "a red square", kind)
        for number, kind in enumerate(("tig", "tie"))
    ]
    write_lines(tmp_path / "samples.jsonl", rows)
    options = "judges: {praise: {points: 3}}\nstore: {path: store.sqlite}\n"
    (tmp_path / "vieval.yaml").write_text(options)
    environment = {**installed, "VIEVAL_CONFIG": str(tmp_path / "vieval.yaml")}
    command = "vieval_plugin score samples.jsonl --judge praise --setting strict --out v.jsonl"
    out = well(environment, tmp_path, command, *named(server))
    first, second = read_lines(tmp_path / "v.jsonl")
    steps = [step["path"] for step in first["trace"]]
    assert steps == [["praise", "likes"], ["praise", "score"]]
    assert len(json.loads(first["trace"][0]["answer"])["likes"]) == 3
    assert first["scores"]["SC"] == first["trace"][1]["scores"][0] / 20
    assert second["status"] == "not_applicable"
    assert "not_applicable 1" in out

    # without the options file: what the results carry is enough
    well(installed, tmp_path, "vieval_plugin show v.jsonl 0 --html page.html")
    html = (tmp_path / "page.html").read_text()
    assert "what the critic likes" in html
    assert "Name 3 things that you like about it." in html
    options = well(installed, tmp_path, "vieval_plugin config --of v.jsonl")
    assert "points: 3" in options
    well(installed, tmp_path, "vieval_plugin export praise v.jsonl --out train.jsonl")
    assert "Name 3 things" in (tmp_path / "train.jsonl").read_text()


DEMO = "vieval_demo_viescore_tig"
TASKS = {
    "squares": {"tasks": "squares_*,variant_squares_praise_strict"},
    "pairs": {"tasks": "square_pairs_*"},
    "demo": {"tasks": DEMO, "limit": 12},
}


@pytest.fixture(scope="module")
def judged(installed, server, tmp_path_factory):
    """A folder with lmms-eval's results for each name in TASKS, and what it printed."""
    pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")
    pytest.importorskip("skimage", reason="the drawn benchmark needs scikit-image")
    folder = tmp_path_factory.mktemp("judged")
    address = f"model=fake,base_url={server.base_url}"
    model = {"model": "vieval_openai", "model_args": address, "log_samples": True}
    runs = [
        {**model, "output_path": str(folder / name), **options}
        for name, options in TASKS.items()
    ]
    (folder / "runs.yaml").write_text(json.dumps(runs))
    return folder, well(installed, folder, "lmms_eval --config runs.yaml")


@pytest.mark.slow
def test_lmms_eval_runs_its_task(installed, judged, tmp_path):
    folder, out = judged
    assert "squares_praise" in out
    command = f"vieval_plugin report {folder}/squares --out report --traces"
    well(installed, tmp_path, command)
    report = (tmp_path / "report" / "report.md").read_text()
    assert "Synthetic: eight squares" in report
    assert "praise (setting kind)" in report
    assert [*(tmp_path / "report" / "traces").glob("fake*praise*kind*squares_red.html")]


@pytest.mark.slow
def test_its_contests_are_judged_reported_and_compared(installed, judged, tmp_path):
    """Its votes are judged by its own judge of samples and by our judge of contests."""
    folder, out = judged
    assert "SC_accuracy_decisive_value" in out
    [results] = (folder / "pairs").rglob("*_results.json")
    assert "votes_inconsistent_share_value" in results.read_text()
    well(installed, tmp_path, f"vieval_plugin report {folder}/pairs --out report")
    report = (tmp_path / "report" / "report.md").read_text()
    assert "Synthetic: pairs of squares" in report
    assert "| red | always first | votes | 28 of 28 | 28 | 50.00 [" in report
    out = well(installed, tmp_path, f"vieval_plugin compare {folder}/pairs")
    assert "square_pairs" in out


TINY_HOST = """
import json, sys
from vieval_example.tiny_host import run_task
from vieval_plugin.config import Backbone, Config
from vieval_plugin.run.answerers import ServerAnswerer
from vieval_plugin.benchmarks.tasks import tasks
task = next(task for task in tasks() if task.name == "vieval_demo_viescore_tig")
answerer = ServerAnswerer(Backbone(model="fake", base_url=sys.argv[1]))
print(json.dumps(run_task(task, answerer, Config.model_validate({"store": {"use": False}}), limit=12)))
"""


@pytest.mark.slow
def test_a_host_of_its_own_gives_the_digits_of_lmms_eval(installed, server, judged):
    [results] = (judged[0] / "demo").rglob("*_results.json")
    by_host = json.loads(results.read_text())["results"][DEMO]
    command = [sys.executable, "-c", TINY_HOST, server.base_url]
    done = run_process(command, env=installed, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["SC_count"] == 12
    assert found == {name: by_host[f"{name},none"] for name in found}


def test_without_the_package_its_results_are_named_in_one_line(installed, tmp_path):
    command = "vieval_plugin score none.jsonl --judge prais --out x"
    done = run(installed, tmp_path, command)
    assert done.returncode == 1
    unknown = "vieval: unknown judge 'prais'; did you mean praise?"
    assert done.stderr.startswith(unknown)


TAKEN = "from vieval_plugin.judges.vqascore import SPEC"
MINE = "broken (entry point mine of vieval."


@pytest.mark.parametrize(
    ("point", "body", "said"),
    [
        ("judges", "raise RuntimeError('')", f"{MINE}judges), which cannot be loaded"),
        ("judges", "SPEC = 5", f"{MINE}judges), which does not define"),
        ("judges", TAKEN, f"'vqascore' from {MINE}judges): the name is already taken"),
        ("benchmarks", "import nowhere", f"{MINE}benchmarks), which cannot be"),
        ("tasks", "TASKS = ()", f"{MINE}tasks), which does not define a TaskRow"),
    ],
)
def test_an_entry_point_that_is_no_use_is_one_line_and_all_else_works(
    tmp_path, point, body, said
):
    about = tmp_path / "broken-1.0.dist-info"
    about.mkdir()
    metadata = "Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n"
    (about / "METADATA").write_text(metadata)
    points = f"[vieval.{point}]\nmine = broken_vieval_plugin\n"
    (about / "entry_points.txt").write_text(points)
    (tmp_path / "broken_vieval_plugin.py").write_text(body)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = run(environment, tmp_path, "vieval_plugin tasks imagenhub_viescore")
    assert done.returncode == 0
    assert "imagenhub_viescore" in done.stdout
    [line] = [line for line in done.stderr.splitlines() if "broken" in line]
    assert f"skipping {said}" in line
