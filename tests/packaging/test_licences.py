"""Nothing of the GPL and nothing non-commercial is shipped or installed, and data under such terms trains nothing."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from vieval_plugin.benchmarks import registry

SCRIPT = Path(__file__).parents[2] / ".ci" / "licences.py"


@pytest.fixture(scope="module")
def licences():
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(
    ("stated", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 AND (MIT OR BSD-3-Clause)", True),
        ("BSD License; Mozilla Public License 2.0 (MPL 2.0)", True),
        ("GPL-3.0-only OR MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("MIT License; GNU General Public License v3 (GPLv3)", False),
        ("AGPL-3.0-or-later", False),
        ("CC-BY-NC-4.0", False),
        ("UNKNOWN", False),
        ("", False),
    ],
)
def test_only_listed_licences_are_allowed(stated, allowed, licences):
    assert licences["is_allowed"](stated) is allowed
    assert licences["judged"]("A.Package", "1", stated).allowed is allowed


def test_a_package_is_brought_by_the_extras_that_lead_to_it(licences):
    needs = {"a": ["b", "c[x]", "d; extra == 'all'"], "c": ["e; extra == 'x'", "f; extra == 'y'"]}
    requirements = [licences["Requirement"]("a>=1")]
    assert set(licences["brought"](requirements, needs)) == {"a", "b", "c", "e"}


@pytest.mark.slow
def test_nothing_that_is_installed_is_under_other_terms():
    pytest.importorskip("piplicenses")
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "| numpy |" in done.stdout


def test_data_for_research_or_evaluation_alone_trains_no_model():
    restricted = re.compile(r"\bNC\b|non-?commercial|research|evaluation only|unknown", re.IGNORECASE)
    bound = [each for each in registry.benchmarks().values() if restricted.search(each.licence)]
    assert {"mmrb2", "winoground", "seetrue"} <= {each.name for each in bound}
    assert [each.name for each in bound if each.trainable] == []
