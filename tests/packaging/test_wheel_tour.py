"""A newcomer's first hour with the wheel and `http` alone, and then without a network."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.brightness import by_brightness, images, prompts, rough
from tests.fake_server import FakeServer
from tests.stored_results import read_lines
from tests.work import run_process

pytestmark = pytest.mark.wheel

# found by Python when it starts: addresses that are not this machine's are refused
OFFLINE = """
import socket
connect = socket.socket.connect
def connect_here(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
        raise OSError(f"the tour has no network: {address}")
    return connect(self, address)
socket.socket.connect = connect_here
"""
PIP = (sys.executable, "-m", "pip")


class Tour:
    """The wheel in an environment of its own, and a folder in which its commands run."""

    def __init__(self, folder, wheel, extras="http"):
        environment, self.folder = folder / "environment", folder / "work"
        self.folder.mkdir()
        venv.create(environment, with_pip=False)
        self.programs = environment / "bin"
        install = ["--python", self.programs / "python", "install", "--quiet"]
        install += ["--only-binary", ":all:", f"{wheel}[{extras}]"]
        subprocess.run([*PIP, *install], check=True, timeout=600)
        [self.site] = environment.glob("lib/python*/site-packages")
        (self.site / "sitecustomize.py").write_text(OFFLINE)
        own = {"PATH": str(self.programs), "HOME": str(self.folder)}
        self.environment = {**own, "COLUMNS": "100", "LANG": "C.UTF-8"}

    def run(self, program, *arguments):
        """What a program of the environment prints; no other program can be found there."""
        command = [self.programs / program, *map(str, arguments)]
        how = {"cwd": self.folder, "env": self.environment, "timeout": 300}
        done = run_process(command, **how)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def vieval(self, line, *further):
        return self.run("vieval", *line.split(), *further)

    def verdict(self, name):
        """The only verdict of a file."""
        [verdict] = read_lines(self.folder / name)
        return verdict


def _size(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@pytest.fixture(scope="module")
def tour(tmp_path_factory, wheel):
    return Tour(tmp_path_factory.mktemp("tour"), wheel)


@pytest.fixture(scope="module")
def judged(tour):
    """Two folders of images, ranked by a judge that a server on this machine answers."""
    prompts(tour.folder)
    images(tour.folder, "mine", rough(0.7, 1))
    images(tour.folder, "theirs", rough(0.4, 2))
    ranked = "rank mine theirs --prompts prompts.csv --judge viescore"
    with FakeServer(reply=by_brightness()) as server:
        named = ("--model", "any", "--base-url", server.base_url)
        said = tour.vieval(f"{ranked} --out ranked.jsonl --html rank.html", *named)
        scored = ("--prompt", "a grey square", "--out", "scored.jsonl")
        tour.vieval("score mine/p1.png", *scored, *named)
    return said


REACH = """
import socket, vieval_plugin
print(vieval_plugin.__file__)
try: socket.create_connection(('192.0.2.1', 80), 1)
except OSError as error: print(error)
"""


def test_the_package_is_the_wheels_and_nothing_else_is_reached(tour):
    [place, connected] = tour.run("python", "-c", REACH).splitlines()
    assert Path(place).is_relative_to(tour.site)
    assert "no network" in connected


def test_the_version_is_that_of_the_wheel(tour, wheel):
    version = wheel.name.split("-")[1]
    assert tour.vieval("--version") == f"vieval {version}\n"
    ask = "import importlib.metadata as m; print(m.version('vieval'))"
    assert tour.run("python", "-c", ask) == f"{version}\n"


def test_every_file_and_the_licence_are_there(tour, wheel):
    packed = zipfile.ZipFile(wheel).namelist()
    assert [name for name in packed if not (tour.site / name).is_file()] == []
    [licence] = tour.site.glob("vieval-*.dist-info/licenses/LICENSE")
    assert "Apache License" in licence.read_text()


def test_images_are_scored(tour, judged):
    verdict = tour.verdict("scored.jsonl")
    assert verdict["status"] == "ok"
    assert set(verdict["scores"]) == {"SC", "PQ", "O"}


def test_generators_are_ranked(tour, judged):
    better = "viescore with any rates mine's images better than theirs'.\n"
    assert judged.startswith(better)
    assert "<html" in (tour.folder / "rank.html").read_text()


def test_a_report_is_made(tour, judged):
    assert "mine" in tour.vieval("report ranked.jsonl --out report")
    assert (tour.folder / "report" / "report.html").is_file()


def test_the_demo_reads_its_posters_with_the_extras_of_readme(tmp_path, wheel):
    tour = Tour(tmp_path, wheel, "http,metrics,text")
    better = "\ntext_rendering rates new's images better than old's.\n"
    assert better in tour.vieval("demo")
    assert (tour.folder / "demo" / "rank.html").is_file()
    readme = Path(__file__, "../../../README.md").resolve().read_text()
    size = r'"\.\[http,metrics,text\]".*?(\d+) MB, no PyTorch'
    [megabytes] = re.findall(size, readme)
    assert not (tour.site / "torch").exists()
    assert _size(tour.site) / 1e6 == pytest.approx(float(megabytes), rel=0.2)


def test_tasks_are_listed_and_written(tour):
    assert "imagenhub" in tour.vieval("tasks")
    tour.vieval("tasks imagenhub_viescore --write tasks")
    assert list((tour.folder / "tasks").rglob("*.yaml"))


def test_each_template_is_read_and_hashed_as_here(tour, vieval):
    listed = tour.vieval("prompts list")
    assert listed == vieval("prompts", "list").out
    for line in listed.splitlines():
        assert tour.vieval("prompts show", line.split()[0])


EDIT_FLAGS = ("--source", "theirs/p1.png", "--instruction", "make it brighter")


@pytest.mark.parametrize(
    ("judge", "flags", "reply"),
    [
        ("t2i_eval", ("--prompt", "a square"), None),
        ("adiee", EDIT_FLAGS, lambda body: "7"),
        ("viescore", EDIT_FLAGS, None),
    ],
)
def test_judges_ask_by_their_schemas_and_read_the_answers(
    tour, judged, judge, flags, reply
):
    """Without a reply the server answers as the schema of a question says."""
    with FakeServer(reply=reply) as server:
        named = ("--model", "any", "--base-url", server.base_url)
        out = f"{judge}.jsonl"
        scored = f"score mine/p1.png --judge {judge} --out {out}"
        tour.vieval(scored, *flags, *named)
    verdict = tour.verdict(out)
    assert verdict["status"] in ("ok", "repaired")
    assert verdict["scores"]


def test_lmms_eval_lists_the_tasks_of_the_wheel(wheel, tmp_path):
    pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")
    target = tmp_path / "installed"
    install = ["install", "--quiet", "--no-deps", "--target", target, wheel]
    subprocess.run([*PIP, *install], check=True, timeout=300)
    environment = {**os.environ, "PYTHONPATH": str(target), "HF_HUB_OFFLINE": "1"}
    tasks = str(target / "vieval_plugin" / "task_configs")
    listing = ["-m", "lmms_eval", "tasks", "list", "--include-path", tasks]
    command = [sys.executable, *listing]
    done = run_process(command, cwd=tmp_path, env=environment, timeout=600)
    assert "imagenhub_viescore" in done.stdout, done.stdout + done.stderr
