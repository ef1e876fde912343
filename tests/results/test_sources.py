"""Names of runs in reports."""

from dataclasses import replace

import pytest

from vieval_plugin.judges.viescore import SPEC
from vieval_plugin.records import Provenance
from vieval_plugin.results import sources

NAMES = [("viescore", "viescore/v1", "fake"), ("praise", "praise_v1", "praise")]


def build(*_):
    """A judge of a package of its own."""


NAMES.append(("legible", "legible", "legible"))


@pytest.mark.parametrize(("judge", "pack", "name"), NAMES)
def test_a_judge_of_ones_own_keeps_its_name(monkeypatch, judge, pack, name):
    judges = {"viescore": SPEC, "praise": replace(SPEC, name="praise", build=build)}
    monkeypatch.setattr(sources, "judges", lambda: judges)
    assert sources.source_of(Provenance(judge, (), ("SC",), "fake", pack)).name == name
