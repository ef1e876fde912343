"""lmms-eval in processes of its own: exit codes, last lines, several ranks, kill -9."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from tests import in_process
from tests.fake_server import FakeServer, Fault
from tests.in_process import (
    TIE,
    Run,
    command,
    options_file,
    own_images,
    replay,
    served,
    shown,
)
from tests.work import free_ports, run_process, until

pytestmark = pytest.mark.slow


def test_a_process_as_users(results_of, lmms_eval, ratings_folder, cig_logs, tmp_path):
    """A replay, and then judging by a server that fails, in one process."""
    options = options_file(tmp_path / "options.yaml")
    task = "imagenhub_viescore_cig"
    replayed = f"name=test,logs={cig_logs}"
    with FakeServer(faults=lambda *_: Fault("500")) as server:
        well = {"tasks": task, "model": "vieval_replay", "model_args": replayed}
        failing = {"tasks": TIE, "limit": 2, "model": "openai"}
        failing["model_args"] = served("openai", server, max_retries=1)[-1]
        path = written_runs(tmp_path, out=well, failed=failing)
        run = lmms_eval("--config", path, data=ratings_folder, options=options)
    assert run.returncode == 1, run.stderr[-2000:]
    lines = run.stderr.splitlines()
    ending = "2 of 2 verdicts failed because calls FAILED (see above)"
    assert lines[-1] == f"vieval: {ending}"
    assert "vieval: verdicts: api_error 2" in lines
    assert "\nvieval: FAILED CALLS: [LMMS_EVAL_REQUEST_FAILED" in run.stderr
    in_process.run(*replay(cig_logs, tmp_path / "here", task), data=ratings_folder)
    document, samples = results_of(tmp_path / "out")
    ours, same = results_of(tmp_path / "here")
    assert document["results"] == ours["results"]
    [rows], [others] = samples.values(), same.values()
    found = [row["filtered_resps"] for row in rows]
    assert found == [row["filtered_resps"] for row in others]


def written_runs(folder, **runs):
    """A file for the host's `--config`: runs by the name of their output folder."""
    listed = [
        {**each, "log_samples": True, "output_path": str(folder / out)}
        for out, each in runs.items()
    ]
    (folder / "runs.yaml").write_text(json.dumps(listed))
    return folder / "runs.yaml"


# ---------------------------------------------------------------- several at once, and one that is
# killed

RANKED = '''
"""A model of the host's that runs anywhere: what `openai` does, without its refusal of CPU processes."""
import base64, io, json, os, urllib.request
import torch
from lmms_eval.api.model import lmms

class Ranked(lmms):
    is_simple, device = True, torch.device("cpu")

    def __init__(self, url="", **_):
        super().__init__()
        self.url = url

    def generate_until(self, requests):
        return [self.ask(*request.args) for request in requests]

    def ask(self, text, generation, look, doc_id, task, split):
        parts = [{"type": "text", "text": text}]
        for picture in look(self.task_dict[task][split][doc_id]):
            file = io.BytesIO()
            picture.save(file, "PNG")
            url = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
            parts.append({"type": "image_url", "image_url": {"url": url}})
        body = {"model": "fake", "messages": [{"role": "user", "content": parts}], "rank": int(os.environ.get("RANK", 0))}
        call = urllib.request.Request(self.url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return json.loads(urllib.request.urlopen(call).read())["choices"][0]["message"]["content"]

    loglikelihood = generate_until_multi_round = generate_until

AVAILABLE_MODELS = {"ranked": "Ranked"}
'''


# the host leaves this to the end of the process, where gloo's threads now and then abort it (torch
# 2.15)
ENDING = """
import atexit
import torch.distributed as processes
atexit.register(lambda: processes.is_initialized() and processes.destroy_process_group())
"""


@pytest.fixture
def ranked(tmp_path):
    """A plugin of the host with the model `ranked`; returns the environment that makes it known."""
    plugin = tmp_path / "ranking"
    files = {"__init__.py": ENDING, "tasks/__init__.py": "", "models/ranked.py": RANKED}
    files["models/__init__.py"] = 'AVAILABLE_MODELS = {"ranked": "Ranked"}'
    for name, text in files.items():
        (plugin / name).parent.mkdir(parents=True, exist_ok=True)
        (plugin / name).write_text(text)
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"LMMS_EVAL_PLUGINS": "ranking", "PYTHONPATH": os.pathsep.join(paths)}


def _environment(options, **further):
    fixed = dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"), "1")
    fixed |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **fixed, "VIEVAL_CONFIG": str(options), **further}


LAUNCH = (
    "accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 "
    "--mixed_precision no --dynamo_backend no"
)


def test_two_processes_give_the_numbers_of_one(evaluate, results_of, ranked, tmp_path):
    """Our own model and one of the host's, both in one launch.

    Rank 1 has 2 of 5 samples; only rank 0 meets an answer it cannot read, so the ranks differ in
    their waves.
    """
    first = own_images("demo_ademo_00.png")["SC"].split()

    def reply(request):
        # whether schemas are enforced is asked without any
        images = shown(request) or ["0"]
        if images == first and "Quite good." not in json.dumps(request["messages"]):
            return "Quite good."
        score = [int(images[-1], 16) % 11, int(images[0], 16) % 11]
        return json.dumps({"score": score, "reasoning": "fine"})

    with FakeServer(reply=reply) as ours, FakeServer(reply=reply) as theirs:
        arguments = served("vieval_openai", ours)
        address = f"url={theirs.base_url}/chat/completions"
        models = {"vieval_openai": arguments[-1], "ranked": address}
        runs = {
            name: {"model": name, "model_args": given, "tasks": TIE, "limit": 5}
            for name, given in models.items()
        }
        [port] = free_ports(1)
        launch = f"{LAUNCH} --main_process_port {port} -m lmms_eval --config"
        options = options_file(tmp_path / "two.yaml")
        environment = _environment(options, ACCELERATE_USE_CPU="true", **ranked)
        asked = [sys.executable, "-m", *launch.split(), written_runs(tmp_path, **runs)]
        done = run_process(asked, env=environment, timeout=600)
        assert done.returncode == 0, done.stderr[-6000:]
        calls = [server.stats()["requests"] for server in (ours, theirs)]
        one = evaluate(*arguments, limit=5)
    # ours asks once a process whether schemas are enforced
    assert calls == [5 * 2 + 1 + 2, 5 * 2 + 1]
    assert one.statuses == {"ok": 4, "repaired": 1}
    for model in models:
        document, samples = results_of(tmp_path / model)
        two = Run(document["results"][TIE], document, samples[TIE])
        # only a server tells whether it cut an answer
        assert _without_cut(two.verdicts) == _without_cut(one.verdicts)
        assert two.metrics == one.metrics


def _without_cut(verdicts):
    found = [verdict for several in verdicts.values() for verdict in several]
    cut = {step.pop("cut", None) for verdict in found for step in verdict["trace"]}
    assert cut <= {None, False}
    return verdicts


def test_a_killed_run_asks_nothing_again(evaluate, tmp_path):
    store, resumed = tmp_path / "replies.sqlite", threading.Event()
    # from the sixtieth on they hang, so that the run is not over before it is killed
    hangs = lambda number: number > 60 and not resumed.is_set()
    faults = lambda number, _: Fault("hang") if hangs(number) else None
    with FakeServer(latency=0.1, capacity=4, faults=faults) as server:
        named = served("vieval_openai", server, num_concurrent=4)
        line = [sys.executable, "-m", "lmms_eval", *command(named, limit=48)[1:]]
        asked = [*map(str, [*line, "--output_path", tmp_path / "out"])]
        environment = _environment(options_file(tmp_path / "options.yaml", store))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        killed = subprocess.Popen(asked, env=environment, **quiet)
        answered = lambda: server.stats()["statuses"].get("200", 0)
        until(lambda: answered() > 30 or killed.poll() is not None)
        assert killed.poll() is None, "the run ended before it was killed"
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        until(lambda: not server.stats()["in_flight"])
        resumed.set()
        kept = _replies(store)
        assert 20 < kept <= 60
        server.reset_stats()
        run = evaluate(*named, limit=48, store=store)
        assert server.stats()["requests"] == _replies(store) - kept
        whole = evaluate(*named, limit=48, store=tmp_path / "other.sqlite")
    assert run.statuses == {"ok": 48}
    assert (run.verdicts, run.metrics) == (whole.verdicts, whole.metrics)


def _replies(store):
    with contextlib.closing(sqlite3.connect(store)) as database:
        return database.execute("SELECT COUNT(*) FROM replies").fetchone()[0]
