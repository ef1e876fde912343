"""A judge, a benchmark and tasks from a package outside the repository, which nothing of ours
names.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_server import FakeServer, named
from tests.pictures import plain

EXAMPLE = Path(__file__).parents[1] / "example_plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder of its own with the package in it, and the environment in which Python finds
    both.
    """
    folder = tmp_path_factory.mktemp("plugin")
    source = folder / "source"
    subprocess.run(["cp", "-r", str(EXAMPLE), str(source)], check=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    subprocess.run(
        [*pip, "--no-build-isolation", "--target", str(folder / "site"), str(source)],
        check=True,
    )
    cleared = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("VIEVAL_")
    }
    return {
        **cleared,
        "PYTHONPATH": str(folder / "site"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HF_HUB_OFFLINE": "1",
    }


@pytest.fixture(scope="module")
def server():
    with FakeServer() as running:
        yield running


def run(environment, folder, *command):
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout, done.stderr


def well(environment, folder, *command):
    """What a command printed that ended well."""
    code, printed, error = run(environment, folder, *command)
    assert code == 0, error[-3000:]
    return printed


def test_the_commands_know_them(installed, tmp_path):
    tasks = well(installed, tmp_path, "vieval_plugin", "tasks", "squares")
    assert {"squares_praise", "squares_viescore", "variant_squares_praise_strict"} <= {
        line.split()[0] for line in tasks.splitlines()
    }
    options = well(installed, tmp_path, "vieval_plugin", "config")
    assert "  praise:" in options
    assert "    points: 2" in options


def test_vieval_score_judges_with_it(installed, server, tmp_path):
    (tmp_path / "a.png").write_bytes(square())
    lines = [
        {
            "uid": "1",
            "kind": "tig",
            "images": {"output": "a.png"},
            "texts": {"prompt": "a red square"},
        },
        {
            "uid": "2",
            "kind": "tie",
            "images": {"output": "a.png"},
            "texts": {"prompt": "a red square"},
        },
    ]
    (tmp_path / "samples.jsonl").write_text(
        "".join(f"{json.dumps(line)}\n" for line in lines)
    )
    (tmp_path / "vieval.yaml").write_text(
        "judges: {praise: {points: 3}}\nstore: {path: store.sqlite}\n"
    )
    environment = {**installed, "VIEVAL_CONFIG": str(tmp_path / "vieval.yaml")}
    command = [
        "score",
        "samples.jsonl",
        "--judge",
        "praise",
        "--setting",
        "strict",
        "--out",
        "verdicts.jsonl",
    ]
    out = well(environment, tmp_path, "vieval_plugin", *command, *named(server))
    first, second = (
        json.loads(line)
        for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()
    )
    assert [step["path"] for step in first["trace"]] == [
        ["praise", "likes"],
        ["praise", "score"],
    ]
    assert len(json.loads(first["trace"][0]["answer"])["likes"]) == 3
    assert first["scores"]["SC"] == first["trace"][1]["scores"][0] / 20
    assert second["status"] == "not_applicable"
    assert "not_applicable 1" in out

    # without the options file: what the results carry is enough
    page = ["show", "verdicts.jsonl", "1", "--html", "page.html"]
    well(installed, tmp_path, "vieval_plugin", *page)
    html = (tmp_path / "page.html").read_text()
    assert "what the critic likes" in html
    assert "Name 3 things that you like about it." in html
    options = well(
        installed, tmp_path, "vieval_plugin", "config", "--of", "verdicts.jsonl"
    )
    assert "points: 3" in options
    export = ["export", "praise", "verdicts.jsonl", "--out", "train.jsonl"]
    well(installed, tmp_path, "vieval_plugin", *export)
    assert "Name 3 things" in (tmp_path / "train.jsonl").read_text()


DEMO = "vieval_demo_viescore_tig"
TASKS = {
    "squares": {"tasks": "squares_*,variant_squares_praise_strict"},
    "pairs": {"tasks": "square_pairs_*"},
    "demo": {"tasks": DEMO, "limit": 12},
}


@pytest.fixture(scope="module")
def judged(installed, server, tmp_path_factory):
    """A folder with results of lmms-eval by name in TASKS, all of one process, and what it
    printed.
    """
    pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")
    pytest.importorskip("skimage", reason="the drawn benchmark needs scikit-image")
    folder = tmp_path_factory.mktemp("judged")
    model = {
        "model": "vieval_openai",
        "model_args": f"model=fake,base_url={server.base_url}",
        "log_samples": True,
    }
    runs = [
        {**model, "output_path": str(folder / name), **options}
        for name, options in TASKS.items()
    ]
    (folder / "runs.yaml").write_text(json.dumps(runs))
    return folder, well(installed, folder, "lmms_eval", "--config", "runs.yaml")


@pytest.mark.slow
def test_lmms_eval_runs_its_task(installed, judged, tmp_path):
    folder, out = judged
    assert "squares_praise" in out
    well(
        installed,
        tmp_path,
        "vieval_plugin",
        "report",
        folder / "squares",
        "--out",
        "report",
        "--traces",
    )
    report = (tmp_path / "report" / "report.md").read_text()
    assert "Synthetic: eight squares" in report
    assert "praise (setting kind)" in report
    assert [*(tmp_path / "report" / "traces").glob("fake*praise*kind*squares_red.html")]


@pytest.mark.slow
def test_its_contests_are_judged_reported_and_compared(installed, judged, tmp_path):
    """A benchmark of votes from outside, judged by its own judge of samples and by a judge of
    contests of ours.
    """
    folder, out = judged
    assert "SC_accuracy_decisive_value" in out
    [results] = (folder / "pairs").rglob("*_results.json")
    assert "votes_inconsistent_share_value" in results.read_text()
    well(
        installed,
        tmp_path,
        "vieval_plugin",
        "report",
        folder / "pairs",
        "--out",
        "report",
    )
    report = (tmp_path / "report" / "report.md").read_text()
    assert "Synthetic: pairs of squares" in report
    assert "| red | always first | votes | 28 of 28 | 28 | 50.00 [" in report
    out = well(installed, tmp_path, "vieval_plugin", "compare", folder / "pairs")
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
    done = subprocess.run(
        [sys.executable, "-c", TINY_HOST, server.base_url],
        env=installed,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["SC_count"] == 12
    assert {
        name: value for name, value in found.items() if by_host[f"{name},none"] != value
    } == {}


def test_without_the_package_its_results_are_named_in_one_line(
    installed, server, tmp_path
):
    code, _, error = run(
        installed,
        tmp_path,
        "vieval_plugin",
        "score",
        "none.jsonl",
        "--judge",
        "prais",
        "--out",
        "x",
    )
    assert code == 1
    assert error.startswith("vieval: unknown judge 'prais'; did you mean praise?")


@pytest.mark.parametrize(
    ("point", "body", "said"),
    [
        (
            "vieval.judges",
            "raise RuntimeError('no luck')",
            "skipping broken (entry point mine of vieval.judges), which cannot be loaded",
        ),
        (
            "vieval.judges",
            "SPEC = 5",
            "skipping broken (entry point mine of vieval.judges), which does not define a JudgeSpec",
        ),
        (
            "vieval.judges",
            "from vieval_plugin.judges.vqascore import SPEC",
            "skipping 'vqascore' from broken (entry point mine of vieval.judges): the name is already taken",
        ),
        (
            "vieval.benchmarks",
            "import nowhere_to_be_found",
            "skipping broken (entry point mine of vieval.benchmarks), which cannot be",
        ),
        (
            "vieval.tasks",
            "TASKS = ()",
            "skipping broken (entry point mine of vieval.tasks), which has no TaskRow",
        ),
    ],
)
def test_an_entry_point_that_is_no_use_is_one_line_and_all_else_works(
    tmp_path, point, body, said
):
    about = tmp_path / "broken-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n"
    )
    (about / "entry_points.txt").write_text(f"[{point}]\nmine = broken_vieval_plugin\n")
    (tmp_path / "broken_vieval_plugin.py").write_text(body)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    code, out, error = run(
        environment, tmp_path, "vieval_plugin", "tasks", "imagenhub_viescore"
    )
    assert code == 0
    assert "imagenhub_viescore" in out
    [line] = [line for line in error.splitlines() if "broken" in line]
    assert said in line


def square():
    return plain("red", (32, 32))
