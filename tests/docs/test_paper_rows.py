"""tests/docs/paper_rows.csv: rows of the papers' tables of results have a state, those of tables
that were not read are marked as inferred, and docs/reference/papers.md counts both.
"""

import csv
import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from tests.docs import pages, papers_page
from vieval_plugin.benchmarks import tasks

judge_file = papers_page.judge_file  # a fixture

with (Path(__file__).parent / "paper_rows.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))
STATES = ("comes out", "runs", "not here")
RUNS = sorted({row["command"] for row in ROWS if row["state"] == "runs"})


def tasks_in(command):
    """The tasks of a command of lmms-eval, as its words."""
    return command[command.index("--tasks") + 1].split(",")


def test_each_row_is_listed_once_with_a_state():
    keys = [(row["paper"], row["table"], row["row"]) for row in ROWS]
    assert len(set(keys)) == len(keys)
    assert {row["state"] for row in ROWS} == set(STATES)
    for row in ROWS:
        assert row["reason" if row["state"] == "not here" else "command"], row


def test_each_command_exists(judge_file):
    host = pytest.importorskip(
        "vieval_plugin.hosts.lmms_eval.answerable", reason="lmms-eval is not installed"
    )
    for command in map(shlex.split, RUNS):
        if command[0] == "vieval":
            assert pages.fault(command) == ""
            continue
        assert command[0] == "lmms-eval"
        assert command[command.index("--model") + 1] in host.MODELS
        assert set(tasks_in(command)) <= tasks.entries().keys()


def test_each_row_that_comes_out_has_a_test():
    for test in {row["command"] for row in ROWS if row["state"] == "comes out"}:
        path, name = test.split("::")
        assert f"\ndef {name}(" in (pages.ROOT / path).read_text(encoding="utf-8")


def test_the_page_counts_the_rows_of_each_paper():
    counts = Counter((row["paper"], row["state"]) for row in ROWS)
    for paper in dict.fromkeys(row["paper"] for row in ROWS):
        numbers = " | ".join(str(counts[paper, state]) for state in STATES)
        assert f"| {paper} | {numbers} |" in papers_page.TEXT


def test_no_task_of_the_page_is_missing():
    """A replay of all tasks is a test of its cells, so only tasks that are asked are compared."""
    listed = {
        task for row in RUNS if "--tasks" in row for task in tasks_in(row.split())
    }
    of_page = {
        task
        for command in papers_page.OF_HOST
        if "vieval_replay" not in command
        for task in tasks_in(command)
    }
    groups = {"imagenhub_dino", "imagenhub_clip_i"}
    assert {g for g in groups if any(t.startswith(g) for t in listed)} == groups
    assert of_page - groups <= listed
    exports = {c for c in RUNS if re.match("vieval export", c)}
    assert len(exports) == 3


def test_the_page_says_how_many_rows_are_inferred():
    inferred = [row for row in ROWS if "inferred" in row["reason"]]
    assert f"{len(inferred)} of {len(ROWS)} are inferred" in papers_page.TEXT
