"""Workflows run targets of the Makefile, on pinned actions, with no more rights than said."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.serve.serving import serve_process

ROOT = Path(__file__).parents[2]
SETUP = (ROOT / "setup.cfg").read_text(encoding="utf-8")
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
with_workflows = pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no workflows")


def jobs_of(name):
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text())["jobs"]


TARGETS = "lint test test-extras test-core test-wheel docs test-page test-vllm test-vlmevalkit"


@with_workflows
def test_each_target_is_in_the_makefile():
    text = "\n".join(path.read_text() for path in WORKFLOWS)
    makefile = (ROOT / "Makefile").read_text()
    listed = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    run = set(re.findall(r"run: make ([a-z-]+)", text))
    for names in re.findall(r"target: \[(.*)\]", text):
        run |= set(names.split(", "))
    assert set(TARGETS.split()) <= run <= set(listed)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_rights_are_given_by_job(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert {"timeout-minutes", "permissions"} <= job.keys()
    for action in re.findall(r"uses: (\S+.*)", path.read_text()):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[0-9.]+", action), action


@with_workflows
def test_nothing_is_published_before_all_tests_ran():
    jobs = jobs_of("release")
    steps = [step for name in jobs["publish"]["needs"] for step in jobs[name]["steps"]]
    runs = {step.get("run", "") for step in steps}
    made = {f"make {target} PYTHON=python" for target in ("test", "test-wheel")}
    assert {*made, "python -m build"} <= runs


@with_workflows
def test_the_image_is_built_and_well_before_anything_is_published():
    jobs = jobs_of("release")
    assert "image" in jobs["publish"]["needs"]
    assert set(jobs["publish-image"]["needs"]) == {"publish", "image"}
    script = "\n".join(step.get("run", "") for step in jobs["image"]["steps"])
    [flags] = re.findall(r" vieval serve (.*?[^\\])\n", script, re.DOTALL)
    flags = shlex.split(flags.replace("0.0.0.0", "127.0.0.1").replace("\\\n", ""))
    with serve_process(*flags) as (process, server):
        assert health("vieval", "serve", "--port", str(server.port)) == 0
        assert health("vieval", "serve", f"--port={server.port}", *flags) == 0
        process.kill()
        process.wait()
        assert health("vieval", "serve", "--port", str(server.port)) != 0


def test_a_container_that_serves_nothing_is_well():
    assert health("/opt/vieval/bin/vieval", "score", "serve.png") == 0


def health(*command):
    """Exit status of the image's health check, in a container that runs a command."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
    [check] = re.findall(r"^HEALTHCHECK .*? CMD (.*)$", text, re.MULTILINE)
    printed = f"printf '%s\\0' {shlex.join(command)}"
    check = check.replace("tr '\\0' ' ' < /proc/1/cmdline", f"{printed} | tr '\\0' ' '")
    assert printed in check
    check = check.replace("/opt/vieval/bin/python", sys.executable)
    return subprocess.run(["sh", "-c", check], timeout=30).returncode


@with_workflows
def test_each_python_of_the_classifiers_is_tested():
    versions = re.findall(r"Python :: (3\.\d+)$", SETUP, re.MULTILINE)
    jobs = jobs_of("tests").values()
    matrices = [job["strategy"]["matrix"] for job in jobs if "strategy" in job]
    assert [matrix["python"] for matrix in matrices if "python" in matrix] == [versions]


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "docs/tutorials/reward.md"]
)
def test_a_page_names_the_least_python_that_pip_accepts(page):
    [least] = re.findall(r"^python_requires = >=(\S+)$", SETUP, re.MULTILINE)
    assert f"Python {least} or newer" in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "advice", ["docs/reference/results.md", "vieval_plugin/backends/local/vllm.py"]
)
def test_the_vllm_that_is_advised_is_the_one_that_was_tried(advice):
    [tried] = re.findall(r"^    (vllm>=\S+)$", SETUP, re.MULTILINE)
    assert f"pip install '{tried}'" in (ROOT / advice).read_text(encoding="utf-8")


def test_constraints_of_releases_are_within_the_bounds():
    makefile = (ROOT / "Makefile").read_text()
    extras = re.search(r"^EXTRAS := (.*)$", makefile, re.MULTILINE)[1].split(",")
    lines = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    versions = dict(line.partition(" ;")[0].split("==") for line in lines)
    assert {"build", "twine"} <= versions.keys()
    asked = runpy.run_path(str(ROOT / ".ci" / "licences.py"))["extras"]()
    for extra in ["", *extras]:
        for requirement in asked[extra]:
            marker = requirement.marker
            if marker is None or marker.evaluate({"python_version": "3.11"}):
                version = versions[requirement.name.lower()]
                assert requirement.specifier.contains(version), requirement


@with_workflows
def test_a_release_has_the_constraints_and_they_are_renewed():
    sets_up = lambda step: "setup-python" in step.get("uses", "")
    jobs = jobs_of("release").values()
    installing = [job for job in jobs if any(map(sets_up, job["steps"]))]
    assert len(installing) == 3
    for job in installing:
        assert job["env"]["PIP_CONSTRAINT"].endswith("/.ci/constraints.txt")
    dependabot = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())
    updates = dependabot["updates"]
    renewed = {each["package-ecosystem"]: each["directory"] for each in updates}
    assert renewed == {"github-actions": "/", "pip": "/.ci"}
