"""The attack in its short form; `make test-attack` is the long one."""

import ast
import os
import signal
import sys
from pathlib import Path
from shlex import split
from types import SimpleNamespace

import pytest

from tests.attack import run
from tests.attack.checks import Row, check
from tests.attack.clients import Ended, Workshop
from tests.attack.fault_server import Asked, Plan
from tests.attack.faults import BY_NAME, FAULTS, PAYLOAD, RIGHT
from tests.attack.files import Known
from tests.attack.scenarios import leaks
from tests.work import run_process

ROOT = Path(__file__).parents[2]


@pytest.mark.attack
def test_nothing_is_lost_invented_or_asked_twice(tmp_path):
    # a process of its own, as it has servers, clients and signals of its own
    flags = split("-m attack.run --samples 60 --lmms 0 --kills 3 --short --keep")
    command = [sys.executable, *flags, tmp_path]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    ended = run_process(command, env=environment, timeout=900)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr[-2000:]}"


SAMPLE = Known("p0", "tig", {"output": "red"})
VERDICT = {"status": "ok", "scores": SAMPLE.scores("viescore"), "trace": []}
STEP = {"status": "api_error", "reason": "HTTP 500"}
FAILED = {"status": "api_error", "scores": {}, "trace": [STEP]}
INVENTED = {**VERDICT, "scores": {**VERDICT["scores"], "O": 0.123}}
HTTP_500 = BY_NAME["http_500"]


@pytest.mark.parametrize(
    ("verdicts", "fault", "blamed"),
    [
        ({"p0": VERDICT}, RIGHT, ""),
        ({}, RIGHT, "lost"),
        ({"p0": INVENTED}, RIGHT, "invented"),
        ({"p0": FAILED}, RIGHT, "unaccounted"),
        ({"p0": {**FAILED, "trace": []}}, HTTP_500, "unaccounted"),
    ],
)
def test_the_attack_finds_a_wrong_verdict(verdicts, fault, blamed):
    questions = [question for question, _ in SAMPLE.questions("viescore").values()]
    log = [Asked(name, name, "key", fault, began=0.0, sent=1.0) for name in questions]
    row = Row("judged")
    check(row, [SAMPLE], verdicts, "viescore", log)
    assert [wrong.split()[0] for wrong in row.wrong] == ([blamed] if blamed else [])


@pytest.mark.parametrize(
    ("ended", "blamed"),
    [
        (Ended(0, "done", "", 1.0), ""),
        (Ended(3, "done", "", 1.0), "exit code 3"),
        (Ended(0, "done", "", 11.0), "bound 10 s"),
        (Ended(0, "done", "", 10.0, timed_out=True), "had not ended"),
        (Ended(0, "", "Traceback (most recent call last):\n", 1.0), "1 tracebacks"),
        (Ended(0, PAYLOAD, "", 1.0), "an escape sequence"),
    ],
)
def test_the_attack_finds_how_a_run_ended(ended, blamed):
    row = Row("judged")
    row.ended(ended, "score", bound=10.0, codes=(0,))
    assert len(row.wrong) == bool(blamed)
    assert blamed in "".join(row.wrong)


def test_the_attack_finds_a_key_in_a_file_and_an_open_store(tmp_path):
    workshop = Workshop(tmp_path)
    workshop.keys.append("sk-attack-0000")
    assert leaks(SimpleNamespace(workshop=workshop)).passed
    (tmp_path / "v.jsonl").write_text("it was sk-attack-0000\n")
    (tmp_path / "replies.sqlite").touch(0o644)
    assert len(leaks(SimpleNamespace(workshop=workshop)).wrong) == 2


@pytest.mark.parametrize(("wrong", "code"), [([], 0), (["a sample was lost"], 1)])
def test_the_attack_exits_with_1_after_a_broken_promise(
    wrong, code, monkeypatch, capsys
):
    row = lambda attack: Row("row", wrong=list(wrong))
    rows = dict.fromkeys(("healthy", "leaks"), row)
    monkeypatch.setattr(run, "scenarios", lambda size: rows)
    hangup = signal.getsignal(signal.SIGHUP)
    try:
        assert run.main(["--samples", "1"]) == code
    finally:
        signal.signal(signal.SIGHUP, hangup)
    assert ("2 broken promises" in capsys.readouterr().out) == bool(wrong)


def test_the_fault_server_fails_in_a_hundred_ways_and_shares_no_code():
    assert len({fault.name for fault in FAULTS}) >= 100
    assert Plan().share == 0.4
    for name in ("fault_server.py", "faults.py"):
        tree = ast.parse((ROOT / "tests" / "attack" / name).read_text())
        nodes = [*ast.walk(tree)]
        whole = [node for node in nodes if isinstance(node, ast.Import)]
        imported = [alias.name for node in whole for alias in node.names]
        parts = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        imported += [node.module or "" for node in parts if not node.level]
        modules = {module.partition(".")[0] for module in imported}
        assert modules <= sys.stdlib_module_names
        assert not {"http", "socketserver", "asyncio"} & set(imported)
