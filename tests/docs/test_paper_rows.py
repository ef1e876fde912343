"""The rows of papers' tables in tests/docs/paper_rows.csv, which the page of papers counts."""

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


def test_each_row_was_read_in_public():
    for row in ROWS:
        assert re.match(r"(arxiv\.org/abs|github\.com)/\S", row["source"]), row
        assert not re.search("inferred|not read:", row["reason"]), row


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


def test_the_tasks_of_each_row_stand_on_the_page():
    commands = [row.split() for row in RUNS if "--tasks" in row]
    listed = {task for words in commands for task in tasks_in(words)}
    of_page = {task for words in papers_page.OF_HOST for task in tasks_in(words)}
    assert listed <= of_page
