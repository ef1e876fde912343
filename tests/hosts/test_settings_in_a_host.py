"""Each setting that lmms-eval records reaches the server, is refused, or is said to be unused."""

from __future__ import annotations

import json
import os
import re
import sys
from types import SimpleNamespace

import pytest

from tests.fake_server import FakeServer, Fault
from tests.in_process import TIE, command, options_file, served
from tests.refusals import refuses
from tests.work import run_process
from vieval_plugin.hosts.lmms_eval import settings

GOOD = '{"score": [3, 4], "reasoning": "fine"}'


@pytest.fixture
def server():
    """A server that keeps the bodies of its requests."""
    bodies = []

    def reply(body):
        bodies.append(body)
        return GOOD

    with FakeServer(reply=reply) as fake:
        fake.bodies = bodies
        yield fake


SETTINGS = ["--num_fewshot 1", "--system_instruction Kindly.", "--apply_chat_template"]


@pytest.mark.parametrize("model", ["vieval_openai", "openai"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_are_refused_first(evaluate, server, model, setting):
    flag, *value = setting.split()
    advice = f"^vieval: {flag} (1 )?does not apply"
    refuses(advice, evaluate, *served(model, server), flag, *value, limit=2)
    assert server.bodies == []


def test_generation_arguments_are_fields_of_each_request(evaluate, server):
    given = "temperature=0.5,frequency_penalty=0.25,reasoning_effort=low,stop=END"
    evaluate(*served("vieval_openai", server), "--gen_kwargs", given, limit=2)
    fields = {"temperature": 0.5, "frequency_penalty": 0.25, "reasoning_effort": "low"}
    assert len(server.bodies) > 2
    for body in server.bodies[-4:]:
        assert body.items() >= fields.items()
        assert body["stop"] in ("END", ["END"])


def test_arguments_that_the_hosts_model_would_drop_are_refused(evaluate, server):
    given = (*served("openai", server), "--gen_kwargs", "reasoning_effort=low")
    refuses("does not use --gen_kwargs reasoning_effort", evaluate, *given, limit=2)
    assert server.bodies == []


def test_a_spent_budget_ends_the_calls_and_usage_has_every_call(evaluate, server):
    one_at_a_time = served("vieval_openai", server, num_concurrent=1)
    run = evaluate(*one_at_a_time, "--max_tokens", "1", limit=6)
    assert len(server.bodies) < 6
    assert run.document["usage"]
    assert "token budget" in json.dumps(list(run.verdicts.values()))


def test_the_configured_temperature_stays_and_the_primary_metric_is_named(
    evaluate, server
):
    run = evaluate(*served("vieval_openai", server, temperature=0.7), limit=4)
    assert {body["temperature"] for body in server.bodies[-4:]} == {0.7}
    assert run.metrics["primary_metric,none"] == "O_fisher"
    # no error is always unknown
    assert not [key for key, value in run.metrics.items() if value == "N/A"]


def test_a_share_of_tasks_of_different_size_is_told():
    def lines(limit, *sizes):
        tasks = [SimpleNamespace(samples=[None] * size) for size in sizes]
        return settings._limit_lines(tasks, limit)

    [line] = lines(0.5, 24, 48)
    assert line.startswith("--limit 0.5: lmms-eval takes this share of the first task")
    assert lines(8, 24, 48) == lines(0.5, 24, 24) == []


def test_shots_lead_to_the_task_that_has_them(evaluate, server, prepared_data):
    given = {"tasks": "imagenhub_viescore_tie", "data": prepared_data("tie")}
    shots = (*served("vieval_openai", server), "--num_fewshot", "1")
    advice = "use --tasks variant_imagenhub_viescore_1shot_tie"
    refuses(advice, evaluate, *shots, **given)
    assert server.bodies == []


@pytest.mark.slow
def test_failed_calls_end_a_launch_of_two_processes_with_an_error(tmp_path):
    launch = "torch.distributed.run --standalone --nproc_per_node 2 -m lmms_eval"
    options = str(options_file(tmp_path / "options.yaml"))
    own = {"CUDA_VISIBLE_DEVICES": "", "VIEVAL_CONFIG": options}
    own["ACCELERATE_USE_CPU"] = "true"
    with FakeServer(faults=lambda *_: Fault("overlong")) as server:
        given = command(served("vieval_openai", server), limit=4)[1:]
        line = [
            sys.executable,
            "-m",
            *launch.split(),
            *given,
            "--output_path",
            tmp_path,
        ]
        done = run_process([*map(str, line)], env={**os.environ, **own}, timeout=300)
    assert done.returncode == 1, done.stderr[-3000:]
    said = "vieval: .*verdicts failed because calls FAILED"
    assert re.search(said, done.stderr), done.stderr
    [results] = tmp_path.rglob("*_results.json")
    row = json.loads(results.read_text())["results"][TIE]
    assert row["status_api_error_share,none"] == 1
