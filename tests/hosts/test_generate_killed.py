"""kill -9 while images are generated: run again, no image is generated or judged twice."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests import in_process
from tests.fake_image_server import FakeImageServer
from tests.fake_server import FakeServer
from tests.work import until
from vieval_plugin.results.host_samples import records_of

TASK, PROMPTS = "generate_vieval_demo_viescore_tig", 8
ROOT = Path(__file__).parents[2]


def scores(out):
    [path] = out.rglob("*_samples_*.jsonl")
    found = [record for together in records_of(path) for record in together]
    return {record.id.uid: dict(record.verdict.scores) for record in found}


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path):
    killed = threading.Event()
    killed.set()

    # what is asked after the fourth hangs, so that the run is not over before it is killed
    def hanging(path, body):
        if len(painter.requests) > 4:
            killed.wait(120)

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

    with FakeImageServer(hanging) as painter, FakeServer() as judge:
        file, given = arguments("whole")
        in_process.run(*given, options=file)
        made, asked = len(painter.requests), judge.stats()["requests"]
        painter.requests.clear()
        judge.reset_stats()
        killed.clear()
        file, given = arguments("killed")
        own = {"VIEVAL_CONFIG": str(file), "CUDA_VISIBLE_DEVICES": ""}
        command = [sys.executable, "-m", "lmms_eval", "eval", *given]
        process = subprocess.Popen(command, env={**os.environ, **own}, cwd=ROOT)
        until(lambda: len(painter.requests) >= 4 or process.poll() is not None)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        killed.set()
        in_process.run(*given, options=file)
        # what was under way when it was killed is made or asked again: one of each at most
        assert made <= len(painter.requests) <= made + 1
        assert asked <= judge.stats()["requests"] <= asked + 2
        found = len(list((tmp_path / "killed" / "generated" / "images").glob("*.png")))
        assert found == PROMPTS
    assert scores(tmp_path / "killed-out") == scores(tmp_path / "whole-out")
