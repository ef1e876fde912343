"""The commands of docs/reference/papers.md exist, and the judge in its file runs."""

import re

import pytest

from tests.docs import pages, papers_page
from tests.docs.papers_page import COMMANDS, FILE, INLINE, OF_HOST, TEXT
from tests.fake_server import FakeServer
from tests.pictures import plain
from vieval_plugin import Judge
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import tasks

judge_file = papers_page.judge_file  # a fixture


def test_each_table_has_a_command_or_says_why_there_is_none():
    # behind the first heading of a paper, before which states are counted
    lines = TEXT.partition("\n## ")[2].splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ")]
    rows = [row for row in rows if len(row) == 4]
    rows = [row for row in rows if row[2] not in ("command", "---|---|---|---|")]
    assert len(rows) > 40
    for row in rows:
        assert re.match("comes? out|runs|cannot (come out|be run)", row[3]), row
        told = re.search("`|^the (same|replay|task|command)", row[2])
        assert told or "cannot" in row[3], row


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c[0] == "vieval"], ids=" ".join
)
def test_commands_of_vieval_exist(command):
    assert pages.fault(command) == ""


def test_models_and_tasks_of_lmms_eval_exist(judge_file):
    host = pytest.importorskip(
        "vieval_plugin.hosts.lmms_eval.answerable", reason="lmms-eval is not installed"
    )
    assert len(OF_HOST) > 25
    for command in OF_HOST:
        options = dict(zip(command[1::2], command[2::2], strict=False))
        assert options["--model"] in host.MODELS
        assert set(options["--tasks"].split(",")) <= tasks.entries().keys()


def test_tasks_and_benchmarks_outside_commands_exist_too(judge_file):
    beginnings = ("variant_", *benchmark_registry.benchmarks())
    words = {name for name in INLINE if re.fullmatch(r"\w+", name)}
    names = {name for name in words if name.startswith(beginnings)}
    assert names <= {*tasks.entries(), *benchmark_registry.benchmarks()}
    variants = [task for task in tasks.tasks() if task.setting in ("tifa", "vq2a")]
    wanted = {"winoground", "eqben_mini", "tifa160", "seetrue", "pickapic"}
    assert {*wanted, "genai_bench_t2i"} <= {task.benchmark for task in variants}


def test_gpt4v_eval_scores_an_image_from_0_to_100(judge_file):
    assert len(FILE.splitlines()) == 12
    reply = '{"score": [85], "reasoning": "all of it but the hat"}'
    about = {"model": "fake", "options": {"store": {"use": False}}}
    with (
        FakeServer(reply=lambda request: reply) as server,
        Judge(str(judge_file), base_url=server.base_url, **about) as judge,
    ):
        score = judge.score(plain("red", (32, 32)), "a red picture with a hat")
    assert score == pytest.approx(0.85)
