"""kill -9 while images are made or judged: run again, nothing is made or asked twice."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests import in_process
from tests.fake_image_server import FakeImageServer
from tests.fake_server import FakeServer, Fault
from tests.work import until
from vieval_plugin.results.host_samples import records_of

TASK, PROMPTS = "generate_vieval_demo_viescore_tig", 8


def scores(out):
    [path] = out.rglob("*_samples_*.jsonl")
    found = [record for together in records_of(path) for record in together]
    return {record.id.uid: dict(record.verdict.scores) for record in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    "killed_while", ["generating", pytest.param("judging", marks=pytest.mark.extras)]
)
def test_a_killed_run_goes_on_where_it_was(tmp_path, killed_while):
    killed = threading.Event()
    killed.set()

    # what is asked after the fourth hangs, so that the run is not over before it is killed
    def hanging(path, body):
        if killed_while == "generating" and len(painter.requests) > 4:
            killed.wait(120)

    def faults(number, body):
        return Fault("hang") if number > 4 and not killed.is_set() else None

    def arguments(where):
        given = f"model=painter,base_url={painter.base_url},num_concurrent=1"
        model = ("--model", "vieval_image_api", "--model_args", given)
        asked = {"model": "fake", "base_url": judge.base_url, "num_concurrent": 1}
        own = {"backbones": {"judge": asked}, "data": str(tmp_path / where)}
        store = tmp_path / f"{where}.sqlite"
        file = in_process.options_file(tmp_path / f"{where}.yaml", store, **own)
        command = in_process.command(model, TASK, PROMPTS)[1:]
        out = ("--output_path", tmp_path / f"{where}-out")
        return file, [*map(str, (*command, *out))]

    with FakeImageServer(hanging) as painter, FakeServer(faults=faults) as judge:
        file, given = arguments("whole")
        in_process.run(*given, options=file)
        made, asked = len(painter.requests), judge.stats()["requests"]
        painter.requests.clear()
        judge.reset_stats()
        killed.clear()
        file, given = arguments("killed")
        painted = lambda: len(painter.requests)
        answered = lambda: judge.stats()["requests"]
        seen = painted if killed_while == "generating" else answered
        own = {"VIEVAL_CONFIG": str(file), "CUDA_VISIBLE_DEVICES": ""}
        environment = {**os.environ, **own}
        command = [sys.executable, "-m", "lmms_eval", "eval", *given]
        cwd = Path(__file__).parents[2]
        process = subprocess.Popen(command, env=environment, cwd=cwd)
        until(lambda: seen() >= 4 or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        killed.set()
        in_process.run(*given, options=file)
        # what was under way when it was killed is made or asked again: one of each at most
        assert made <= len(painter.requests) <= made + 1
        assert asked <= judge.stats()["requests"] <= asked + 2
        found = len(list((tmp_path / "killed" / "generated" / "images").glob("*.png")))
        assert found == PROMPTS
    assert scores(tmp_path / "killed-out") == scores(tmp_path / "whole-out")
