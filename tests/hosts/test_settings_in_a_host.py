"""Each setting that lmms-eval records reaches the server, is refused, or is said to be unused."""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace

import pytest

from tests.fake_server import FakeServer, Fault
from tests.in_process import TIE, options_file, served
from tests.refusals import refusal
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


@pytest.mark.parametrize("model", ["vieval_openai", "openai"])
@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        (
            "--num_fewshot 1",
            "--num_fewshot 1 does not apply to vieval_demo_viescore_tie",
        ),
        ("--system_instruction Kindly.", "--system_instruction does not apply"),
        ("--apply_chat_template", "--apply_chat_template does not apply"),
    ],
)
def test_settings_are_refused_first(evaluate, server, model, setting, advice):
    line = refusal(evaluate, *served(model, server), *setting.split(), limit=2)
    assert line.startswith(f"vieval: {advice}")
    assert server.bodies == []


def test_generation_arguments_are_fields_of_each_request(evaluate, server):
    given = "temperature=0.5,frequency_penalty=0.25,reasoning_effort=low,stop=END"
    evaluate(*served("vieval_openai", server), "--gen_kwargs", given, limit=2)
    assert len(server.bodies) > 2
    for body in server.bodies[-4:]:
        assert body["temperature"] == 0.5
        assert body["frequency_penalty"] == 0.25
        assert body["reasoning_effort"] == "low"
        assert body["stop"] in ("END", ["END"])


def test_arguments_that_the_hosts_model_would_drop_are_refused(evaluate, server):
    given = ("--gen_kwargs", "reasoning_effort=low")
    line = refusal(evaluate, *served("openai", server), *given, limit=2)
    assert "does not use --gen_kwargs reasoning_effort" in line
    assert server.bodies == []


def test_the_configured_temperature_stays(evaluate, server):
    evaluate(*served("vieval_openai", server, temperature=0.7), limit=2)
    assert {body["temperature"] for body in server.bodies[-4:]} == {0.7}


def refusing():
    return FakeServer(reply=lambda _: GOOD, faults=lambda *_: Fault("overlong"))


def host_process(folder, server, *launch, limit=2, **environment):
    """lmms-eval in a process of its own, at a server."""
    command = [sys.executable, "-m", *launch, "lmms_eval"]
    command += [*served("vieval_openai", server), "--tasks", TIE, "--limit", f"{limit}"]
    command += ["--log_samples", "--output_path", str(folder / f"{server.port}")]
    options = str(options_file(folder / "options.yaml"))
    own = {"CUDA_VISIBLE_DEVICES": "", "VIEVAL_CONFIG": options, **environment}
    return run_process(command, env={**os.environ, **own}, timeout=300)


def test_failed_calls_end_the_command_with_exit_code_1(tmp_path, server):
    with refusing() as other:
        done, failed = (host_process(tmp_path, fake) for fake in (server, other))
    assert done.returncode == 0, done.stderr[-2000:]
    assert failed.returncode == 1, failed.stderr[-2000:]
    assert "vieval: " in failed.stderr


def test_a_spent_budget_ends_the_calls_and_usage_has_every_call(evaluate, server):
    one_at_a_time = served("vieval_openai", server, num_concurrent=1)
    run = evaluate(*one_at_a_time, "--max_tokens", "1", limit=6)
    assert len(server.bodies) < 6
    assert json.dumps(run.document.get("usage", {})) != "{}"
    assert "token budget" in json.dumps(list(run.verdicts.values()))


def test_the_primary_metric_is_named_and_no_error_is_always_unknown(evaluate, server):
    run = evaluate(*served("vieval_openai", server), limit=4)
    assert run.metrics["primary_metric,none"] == "O_fisher"
    assert not [key for key, value in run.metrics.items() if value == "N/A"]


def test_a_share_of_tasks_of_different_size_is_told():
    def tasks(*sizes):
        return [SimpleNamespace(samples=[None] * size) for size in sizes]

    [line] = settings._limit_lines(tasks(24, 48), 0.5)
    assert line.startswith("--limit 0.5: lmms-eval takes this share of the first task")
    assert settings._limit_lines(tasks(24, 48), 8) == []
    assert settings._limit_lines(tasks(24, 24), 0.5) == []


def test_shots_lead_to_the_task_that_has_them(evaluate, server, prepared_data):
    given = {"tasks": "imagenhub_viescore_tie", "data": prepared_data("tie")}
    shots = (*served("vieval_openai", server), "--num_fewshot", "1")
    line = refusal(evaluate, *shots, **given)
    assert "use --tasks variant_imagenhub_viescore_1shot_tie" in line
    assert server.bodies == []


@pytest.mark.slow
def test_failed_calls_end_a_launch_of_two_processes_with_an_error(tmp_path):
    launch = ["torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]
    with refusing() as server:
        cpu = {"ACCELERATE_USE_CPU": "true"}
        done = host_process(tmp_path, server, *launch, limit=4, **cpu)
    assert done.returncode == 1, done.stderr[-3000:]
    lines = [line for line in done.stderr.splitlines() if "vieval: " in line]
    said = "verdicts have no score because calls FAILED"
    assert any(said in line for line in lines), lines
    [results] = tmp_path.rglob("*_results.json")
    row = json.loads(results.read_text())["results"][TIE]
    assert row["status_api_error_share,none"] == 1
