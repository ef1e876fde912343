"""How commands end: output is tried first, signals end in order, nothing in a traceback."""

import asyncio
import configparser
import gc
import json
import logging
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from shlex import split

import pytest

from tests.fake_server import FakeServer, Fault
from tests.refusals import refusal
from tests.work import run_process, until
from vieval_plugin.cli import main
from vieval_plugin.media.files import write_whole

HERE = Path(__file__).parents[2]


def scoring(file, out, server):
    return split(f"score {file} --out {out} --model fake --base-url {server.base_url}")


CODE = "import sys; from vieval_plugin.cli import main; sys.exit(main(sys.argv[1:]))"
COMMAND = (sys.executable, "-c", CODE)


# Output.


CHOOSE = "; choose another"
PLACES = {
    "a folder": ("there", "Is a directory"),
    "below a file": ("file/v.jsonl", "Not a directory"),
    "the root": ("/", "Is a directory"),
    "a name that is too long": ("x" * 300, "File name too long"),
    "a folder of the system's": ("/proc/nowhere/v.jsonl", "No such file or directory"),
    "a device": ("/dev/null", "Not a plain file"),
}


@pytest.mark.parametrize(("place", "reason"), PLACES.values(), ids=PLACES)
def test_unwritable_places(
    noise_samples, server, store, tmp_path, vieval, place, reason
):
    (tmp_path / "file").write_text("x")
    (tmp_path / "there").mkdir()
    printed = vieval(*scoring(noise_samples(1), tmp_path / place, server), code=1).err
    assert f": {reason}{CHOOSE} --out" in printed
    assert server.stats()["requests"] == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


WRITING = (
    *(
        "report nowhere --out {}",
        "compare nowhere --out {}",
        "show nowhere x --html {}/x",
    ),
    *("export t2i_eval nowhere --out {}/x", "prompts import viescore nowhere --to {}"),
)


@pytest.mark.parametrize("command", WRITING)
def test_every_command_tries_its_output_first(command, tmp_path, vieval):
    (tmp_path / "file").write_text("x")
    printed = vieval(command.format(tmp_path / "file"), code=1).err
    assert f": Not a directory{CHOOSE} {command.split()[-2]}" in printed


def test_a_full_disk_is_found_before_asking(noise_samples, server, tmp_path):
    """In a process that may write no more than 4 KB to a file: the closest to a full disk."""
    scored = scoring(noise_samples(1), tmp_path / "new" / "v.jsonl", server)
    limited = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    done = run_process([*COMMAND, *scored], cwd=HERE, preexec_fn=limited)
    assert done.returncode == 1
    assert done.stderr.endswith(f": File too large{CHOOSE} --out\n")
    assert server.stats()["requests"] == 0
    assert sorted(os.listdir(tmp_path)) == ["a.png", "s.jsonl"]


def test_a_device_is_never_replaced_by_a_file():
    assert "Not a plain file" in refusal(write_whole, Path("/dev/null"), ["x"])


# Signals.


@pytest.fixture
def started(tmp_path):
    """`vieval` in a process of its own, with a store and a cache of its own."""
    running = []
    options = tmp_path / "vieval.yaml"
    cache = tmp_path / "cache"
    options.write_text("store: {path: replies.sqlite}\n")
    own = {"VIEVAL_CONFIG": str(options), "XDG_CACHE_HOME": str(cache)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    settings = {"cwd": HERE, "env": {**os.environ, **own}, **pipes}

    def start(arguments, **how):
        process = subprocess.Popen([*COMMAND, *arguments], **settings, **how)
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def ignoring(number):
    return lambda: signal.signal(number, signal.SIG_IGN)


@pytest.mark.parametrize("begun_with_and", [False, True])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_keeps_the_answers(
    noise_samples, started, tmp_path, name, begun_with_and
):
    """A shell lets what is begun with & ignore Ctrl-C."""
    if (name, begun_with_and) == ("SIGINT", True):
        pytest.skip("it is ignored")
    number = getattr(signal, name)
    begin = ignoring(signal.SIGINT) if begun_with_and else None
    ended = threading.Event()
    # from the hundredth on they hang, so that the run is not over before the signal comes
    hangs = lambda number: number > 100 and not ended.is_set()
    faults = lambda number, _: Fault("hang") if hangs(number) else None
    with FakeServer(latency=0.05, capacity=4, faults=faults) as server:
        command = scoring(noise_samples(100), tmp_path / "v.jsonl", server)
        process = started(command, preexec_fn=begin)
        until(lambda: server.stats()["statuses"].get("200", 0) > 20)
        process.send_signal(number)
        out, said = process.communicate(timeout=600)
        ended.set()
        asked = server.stats()["statuses"]["200"]
        assert process.returncode == 128 + number, said
        lines = said.splitlines()
        for start in ("verdicts: ", "calls: "):
            assert any(line.startswith(start) for line in lines), said
        assert lines[-1] == f"vieval: interrupted ({name}); answers so far are kept"
        assert not re.search("Traceback|never retrieved|Exception", said + out)
        assert not (tmp_path / "v.jsonl").exists()
        again = started(command)
        again.communicate(timeout=600)
        assert again.returncode == 0
        # what was in flight may be asked again
        assert asked <= server.stats()["statuses"]["200"] <= 201 + 32


def test_a_run_that_nohup_began_outlives_its_terminal(noise_samples, started, tmp_path):
    with FakeServer(latency=0.05, capacity=4) as server:
        command = scoring(noise_samples(40), tmp_path / "v.jsonl", server)
        process = started(command, preexec_fn=ignoring(signal.SIGHUP))
        until(lambda: server.stats()["statuses"].get("200", 0) > 5)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=600)
    assert process.returncode == 0
    assert len((tmp_path / "v.jsonl").read_text().splitlines()) == 40


def test_signals_are_the_callers_again_after_a_command(vieval):
    found = lambda: [signal.getsignal(it) for it in (signal.SIGTERM, signal.SIGHUP)]
    before = found()
    vieval("prompts list")
    assert found() == before


# What nobody foresaw.


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """A command with a slip in it; tracebacks go to a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-distinctive-0123456789")

    def slip():
        raise RuntimeError("a slip \x1b[31m\nwith sk-distinctive-0123456789 in it")

    monkeypatch.setattr("vieval_plugin.benchmarks.tasks.tasks", slip)
    return tmp_path / "cache"


def test_an_unforeseen_error_is_one_line_with_its_traceback_file(broken, vieval):
    [line] = vieval("tasks", code=1).err.splitlines()
    error = "unexpected error (RuntimeError: a slip \\x1b[31m with [key] in it)"
    assert line.startswith(f"vieval: {error}; the traceback is in ")
    [file] = broken.rglob("*.txt")
    assert str(file) in line
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file.parent, file)]
    assert modes == [0o700, 0o600]
    text = file.read_text()
    assert "Traceback (most recent call last)" in text
    assert "in slip" in text
    assert not re.search("sk-distinctive|\x1b", text)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
def test_a_full_disk_under_the_output_is_one_line():
    with open("/dev/full", "w") as full:
        pipes = {"stdout": full, "stderr": subprocess.PIPE, "text": True}
        ended = subprocess.run([*COMMAND, "config"], **pipes)
    assert ended.returncode == 1
    remedy = "free disk space, then run the same command again"
    assert ended.stderr == f"vieval: output: no space left; {remedy}\n"


def test_a_traceback_needs_no_cache(broken, monkeypatch, tmp_path, vieval, capsys):
    broken.write_text("no folder")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert main(["tasks"]) == 1
    [file] = temporary.iterdir()
    assert str(file) in capsys.readouterr().err
    file.unlink()
    temporary.rmdir()
    temporary.write_text("no folder either")
    assert "the traceback could not be written" in vieval("tasks", code=1).err


def test_a_slip_while_commands_are_gathered_is_one_line(broken, monkeypatch, vieval):
    monkeypatch.setattr("vieval_plugin.cli.get_type_hints", lambda run: 1 / 0)
    said = vieval("prepare", "imagenhub", code=1).err
    assert said.startswith("vieval: unexpected error (ZeroDivisionError")


def test_who_stops_reading_is_no_error():
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([*COMMAND, "config"], cwd=HERE, **pipes)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() in (1, 120)


# An interrupt that comes when a module is looked for, or at the end of the interpreter.
_INTERRUPTED = """
import atexit, os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
if os.environ["INTERRUPT_AT"] == "exit":
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
"""
PLACES_OF_CTRL_C = (
    *("vieval_plugin.cli", "platformdirs", "vieval_plugin.run.shutdown"),
    *("vieval_plugin.cli.config", "pydantic", "exit"),
)


def interrupted(tmp_path, place, *command):
    (tmp_path / "sitecustomize.py").write_text(_INTERRUPTED)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "INTERRUPT_AT": place}
    return run_process(command, cwd=HERE, env=environment, timeout=60)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize("by", ["module", "script"])
@pytest.mark.parametrize("place", PLACES_OF_CTRL_C)
def test_ctrl_c_leaves_no_traceback(tmp_path, by, place):
    module, function = _entry_point().split(":")
    code = f"import sys; from {module} import {function} as main; sys.exit(main())"
    ran = {"module": ("-m", "vieval_plugin"), "script": ("-c", code)}[by]
    ended = interrupted(tmp_path, place, sys.executable, *ran, "config")
    assert ended.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.splitlines()) <= 1


def _entry_point():
    """The function of the command in setup.cfg."""
    parser = configparser.ConfigParser()
    parser.read(HERE / "setup.cfg")
    scripts = parser["options.entry_points"]["console_scripts"]
    return dict(line.split(" = ") for line in scripts.strip().splitlines())["vieval"]


def test_ctrl_c_that_is_ignored_stays_ignored_from_the_first_import(tmp_path):
    ignored = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")
    command = (sys.executable, "-m", "vieval_plugin", "config")
    ended = interrupted(tmp_path, "platformdirs", *ignored, *command)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("trouble", ["key", "death", "ctrl-c"])
def test_none_is_lost(noise_samples, store, tmp_path, caplog, vieval, trouble):
    """asyncio tells of such ones when they are collected."""

    def faults(number, body):
        if trouble == "ctrl-c" and number == 10:
            os.kill(os.getpid(), signal.SIGINT)
        dies = trouble == "death" and number == 10
        return Fault("death", seconds=60) if dies else None

    key = "other" if trouble == "key" else ""
    with FakeServer(faults=faults, api_key=key, latency=0.01) as own:
        judge = {"model": "fake", "base_url": own.base_url, "patience": 0.5}
        options = {"backbones": {"judge": judge}, "store": {"path": "r.sqlite"}}
        (tmp_path / "vieval.yaml").write_text(json.dumps(options))
        with caplog.at_level(logging.WARNING, logger="asyncio"):
            scored = ("score", noise_samples(60), "--out", tmp_path / "v.jsonl")
            said = vieval(*scored, code=130 if trouble == "ctrl-c" else 1).err
            gc.collect()
    assert "never retrieved" not in caplog.text
    assert "Traceback" not in said
    assert not asyncio.all_tasks(asyncio.new_event_loop())
