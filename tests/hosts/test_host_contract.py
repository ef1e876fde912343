"""What every host does with a judge as a task (make test-vlmevalkit has the real VLMEvalKit)."""

import importlib.util
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import in_process
from tests.fake_server import FakeServer, Fault
from tests.in_process import demo, naming_images, options_file, own_images
from tests.work import run_process
from vieval_plugin import Backbone, evaluate
from vieval_plugin.benchmarks import tasks
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.config import Config, StoreOptions
from vieval_plugin.hosts.vlmevalkit import names
from vieval_plugin.judges.protocol import Verdict
from vieval_plugin.results.documents import read_response

KEY = "sk-distinctive-0123456789"
STUB = Path(__file__).parent / "vlmevalkit" / "stub"
TASK = "vieval_demo_viescore_tie"
NOWHERE = "http://127.0.0.1:9/v1"


@dataclass(frozen=True)
class Judged:
    """What a run said and left: verdicts by sample, and how many calls its numbers say failed."""

    told: str
    verdicts: dict[str, Verdict]
    failed: int


def verdicts_below(folder):
    """The verdicts of the only samples file of a run, however a host nests its responses."""
    [path] = {path.resolve() for path in folder.rglob("*_samples_*.jsonl")}
    found = {}
    for line in path.read_text().splitlines():
        response = json.loads(line)["filtered_resps"]
        while isinstance(response, list):
            [response] = response
        identity, verdict, _ = read_response(response)
        found[identity.image_model + identity.uid] = verdict
    return found


class LmmsEval:
    """lmms-eval, in this process."""

    named = "task"

    def __init__(self, folder, capsys):
        pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")
        self.folder = folder
        self.capsys = capsys

    def names(self):
        return set(in_process.tasks().all_tasks)

    def judge(self, server, out="out", limit=6):
        model = in_process.served("vieval_openai", server, retries=0)
        options = options_file(self.folder / "o.yaml", self.folder / "replies.sqlite")
        where = ("--output_path", self.folder / out)
        given = in_process.command(model, TASK, limit)[1:]
        in_process.run(*given, *where, options=options)
        results, _ = in_process.read(self.folder / out)
        share = results["results"][TASK]["status_api_error_share,none"]
        told = self.capsys.readouterr().err
        return Judged(told, verdicts_below(self.folder / out), round(share * limit))

    def refused(self, task, measures):
        asking = f"--model vieval_openai --model_args model=m,base_url={NOWHERE}"
        model = "--model vieval_scorer" if measures else asking
        return in_process.refused(*model.split(), "--tasks", task, "--limit", 1)


class VLMEvalKit:
    """`vieval vlmevalkit` in a process of its own, with what `path` has first."""

    named = "dataset"

    def __init__(self, folder, path=None):
        pytest.importorskip("pandas", reason="pandas comes with both hosts")
        self.folder = folder
        self.own = {"LMUData": str(folder / "lmu"), "CUDA_VISIBLE_DEVICES": ""}
        self.own |= {"PYTHONPATH": str(path)} if path else {}

    def run(self, task, *arguments, out="out", limit=6):
        options = options_file(self.folder / "o.yaml", self.folder / "replies.sqlite")
        environment = {**os.environ, **self.own, "VIEVAL_CONFIG": str(options)}
        command = [sys.executable, "-m", "vieval_plugin", "vlmevalkit", "--data", task]
        command += [*arguments, "--work-dir", self.folder / out, "--limit", limit]
        return run_process([*map(str, command)], env=environment, timeout=600)

    def names(self):
        return set(names.datasets())

    def judge(self, server, out="out", limit=6):
        served = ("--vieval-model", "fake", "--vieval-base-url", server.base_url)
        done = self.run(TASK, *served, "--vieval-retries", 0, out=out, limit=limit)
        import pandas

        [table] = {path.resolve() for path in (self.folder / out).rglob("*_acc.csv")}
        failed = int(pandas.read_csv(table).iloc[-1]["status_api_error"])
        assert done.returncode == bool(failed), done.stderr
        told = done.stdout + done.stderr
        return Judged(told, verdicts_below(self.folder / out), failed)

    def refused(self, task, measures):
        asking = ("--vieval-model", "m", "--vieval-base-url", NOWHERE)
        done = self.run(task, *(("--model", "VievalScorer") if measures else asking))
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        return next(x for x in done.stderr.splitlines() if x.startswith("vieval: "))


@pytest.fixture(
    params=["lmms_eval", "stub", pytest.param("kit", marks=pytest.mark.vlmevalkit)]
)
def host(request, tmp_path, capsys):
    if request.param == "lmms_eval":
        return LmmsEval(tmp_path, capsys)
    if request.param == "stub":
        return VLMEvalKit(tmp_path, STUB)
    if importlib.util.find_spec("vlmeval") is None:
        pytest.skip("VLMEvalKit is not installed (make test-vlmevalkit)")
    return VLMEvalKit(tmp_path)


def test_every_task_that_judges_has_a_name(host):
    judging = {t.name for t in tasks.tasks() if not benchmark(t.benchmark).generates}
    assert judging <= host.names()


def test_each_sample_has_a_verdict_on_its_own_images_and_the_scores_of_python(host):
    with FakeServer(reply=naming_images) as server:
        judged = host.judge(server)
        samples = [demo()[name] for name in judged.verdicts]
        backbone = Backbone(model="fake", base_url=server.base_url)
        options = Config(store=StoreOptions(use=False))
        expected = evaluate(samples, backbone=backbone, options=options)
    assert (len(samples), judged.failed) == (6, 0)
    for (name, verdict), same in zip(judged.verdicts.items(), expected, strict=True):
        assert {step.label: step.reason for step in verdict.trace} == own_images(name)
        assert (verdict.status, verdict.scores) == (same.status, same.scores)


def test_failed_calls_are_counted_and_asked_again(host):
    broken = [True]
    fails = lambda number, _: Fault("500") if broken and number % 3 == 0 else None
    with FakeServer(reply=naming_images, faults=fails) as server:
        first = host.judge(server)
        broken.clear()
        before = server.stats()["requests"]
        again = host.judge(server, out="again")
        assert server.stats()["requests"] - before < before / 2
    failed = [v for v in first.verdicts.values() if v.status == "api_error"]
    assert 0 < len(failed) == first.failed
    assert not [verdict for verdict in failed if len(verdict.scores) == 3]
    assert "FAILED CALLS: server error" in first.told
    assert {str(verdict.status) for verdict in again.verdicts.values()} == {"ok"}
    assert (len(again.verdicts), again.failed) == (6, 0)


def test_no_key_is_written(host, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FakeServer(api_key=KEY) as server:
        judged = host.judge(server, limit=2)
    assert {str(verdict.status) for verdict in judged.verdicts.values()} == {"ok"}
    assert KEY not in judged.told
    files = [path for path in host.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


MISTAKES = [
    (
        TASK[:-1],
        True,
        "'vieval_demo_viescore_ti'; did you mean vieval_demo_viescore_ti",
    ),
    (TASK, True, " asks a model"),
    ("vieval_demo_lpips_tie", False, "is a network; use --model "),
]


@pytest.mark.parametrize(("task", "measures", "line"), MISTAKES)
def test_a_users_mistake_is_one_line(host, task, measures, line):
    told = host.refused(task, measures)
    assert line in told
    assert task == TASK or not measures or f"unknown {host.named} " in told
