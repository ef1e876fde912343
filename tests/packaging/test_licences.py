"""No GPL and nothing non-commercial is shipped or installed, or trains a model."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tables import table
from vieval_plugin.benchmarks import registry

SCRIPT = Path(__file__).parents[2] / ".ci" / "licences.py"


@pytest.fixture(scope="module")
def licences():
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(*table("licences.jsonl"))
def test_only_listed_licences_are_allowed(stated, allowed, licences):
    assert licences["is_allowed"](stated) is allowed
    assert licences["judged"]("A.Package", "1", stated).allowed is allowed


def test_a_package_is_brought_by_the_extras_that_lead_to_it(licences):
    needs = {"a": ["b", "c[x]", "d; extra == 'all'"]}
    needs["c"] = ["e; extra == 'x'", "f; extra == 'y'"]
    requirements = [licences["Requirement"]("a>=1")]
    assert set(licences["brought"](requirements, needs)) == {"a", "b", "c", "e"}


def test_the_extras_of_the_first_command_bring_no_pytorch(licences):
    extras, needs = licences["extras"](), licences["needs_of"](sys.executable)
    brought = lambda name: licences["brought"]([*extras[""], *extras[name]], needs)
    names = ["http", "metrics", "text", "tables", "filter", "scorers"]
    assert [name for name in names if "torch" in set(brought(name))] == ["scorers"]


@pytest.mark.slow
def test_nothing_that_is_installed_is_under_other_terms():
    pytest.importorskip("piplicenses")
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "| numpy |" in done.stdout


def test_data_for_research_or_evaluation_alone_trains_no_model():
    terms = r"\bNC\b|non-?commercial|research|evaluation only|unknown"
    restricted = re.compile(terms, re.IGNORECASE)
    known = registry.benchmarks().values()
    bound = [each for each in known if restricted.search(each.licence)]
    assert {"mmrb2", "winoground", "seetrue"} <= {each.name for each in bound}
    assert [each.name for each in bound if each.trainable] == []
