"""A host version that no test ran with is named in one line, and a known one in none."""

import configparser
import importlib.metadata
from pathlib import Path

import pytest

from vieval_plugin.hosts import tested_versions
from vieval_plugin.hosts.tested_versions import LMMS_EVAL, VLMEVALKIT, note_lmms_eval, note_vlmevalkit


@pytest.fixture(autouse=True)
def nothing_said_yet():
    tested_versions._note.cache_clear()


@pytest.mark.parametrize(("installed", "lines"), [(LMMS_EVAL, 0), ("0.7.9", 0), ("0.8.0", 1), ("0.70.1", 1)])
def test_lmms_eval_of_another_minor_version_is_named_once(installed, lines, monkeypatch, capsys):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: {"lmms-eval": installed}[name])
    note_lmms_eval()
    note_lmms_eval()
    told = capsys.readouterr().err.splitlines()
    assert len(told) == lines
    assert all(installed in line and LMMS_EVAL in line for line in told)


@pytest.mark.parametrize("name", [*VLMEVALKIT, "a checkout in /somewhere"])
def test_a_known_vlmevalkit_and_a_checkout_are_not_named(name, capsys):
    note_vlmevalkit(name)
    assert capsys.readouterr().err == ""


def test_another_vlmevalkit_is_named(capsys):
    note_vlmevalkit("ms-vlmeval 0.0.21")
    [line] = capsys.readouterr().err.splitlines()
    assert "ms-vlmeval 0.0.21" in line
    assert "ms-vlmeval 0.0.20" in line


def test_the_extras_ask_for_the_tested_versions():
    setup = configparser.ConfigParser()
    setup.read(Path(__file__).parents[2] / "setup.cfg")
    extras = setup["options.extras_require"]
    assert f"lmms-eval>={LMMS_EVAL},<" in extras["lmms-eval"]
    assert VLMEVALKIT[0].replace(" ", ">=") in extras["vlmevalkit"]
