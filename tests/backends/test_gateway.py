"""Runs through a real gateway, LiteLLM's proxy, in front of the fake server (`make
test-gateway`).
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request

import PIL.Image
import pytest

from tests.fake_server import HOST, FakeServer, Fault

GATEWAY = os.environ.get("VIEVAL_GATEWAY", "")
KEY = "sk-gateway-key-0123"
pytestmark = pytest.mark.skipif(
    not GATEWAY, reason="needs LiteLLM's proxy: make test-gateway"
)


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def model(name, server, provider="openai", **more):
    parameters = {
        "model": f"{provider}/fake",
        "api_base": server.base_url,
        "api_key": "sk-upstream",
        **more,
    }
    return {"model_name": name, "litellm_params": parameters}


@contextlib.contextmanager
def running(folder, models):
    """The gateway of these models; yields its base address."""
    budget = {"hosted_vllm": {"budget_limit": 1e-12, "time_period": "1d"}}
    document = {
        "model_list": models,
        "router_settings": {"num_retries": 0, "provider_budget_config": budget},
        "general_settings": {"master_key": KEY},
    }
    (folder / "config.yaml").write_text(json.dumps(document))
    port = free_port()
    environment = {
        **os.environ,
        "HOME": str(folder),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    command = [
        GATEWAY,
        "--config",
        str(folder / "config.yaml"),
        "--host",
        HOST,
        "--port",
        str(port),
    ]
    with (folder / "gateway.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        url = f"http://{HOST}:{port}"
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/health/liveliness", timeout=1).close()
                break
            time.sleep(1)
        yield f"{url}/v1"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gateway")
    limited = {"faults": lambda number, request: Fault("429") if number % 2 else None}
    with FakeServer() as server, FakeServer(**limited) as limiting:
        price = {"input_cost_per_token": 1.0, "output_cost_per_token": 1.0}
        models = [
            model("org/judge", server),
            model("spent/judge", server, "hosted_vllm", **price),
            model("limited/judge", limiting),
        ]
        with running(folder, models) as url:
            yield url


@pytest.mark.parametrize(
    ("name", "key", "code", "sentence"),
    [
        ("org/judge", KEY, 0, ""),
        ("limited/judge", KEY, 0, ""),
        ("spent/judge", KEY, 1, "Exceeded budget for provider"),
        ("org/judge", "sk-wrong-key-0123", 1, "refuses the key"),
        ("org/absent", KEY, 1, "model or address not found"),
    ],
)
def test_what_a_gateway_answers_ends_as_it_should(
    name, key, code, sentence, gateway, vieval, tmp_path, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    PIL.Image.new("RGB", (64, 64), (1, 20, 200)).save(tmp_path / "a.png")
    score = [
        "score",
        tmp_path / "a.png",
        "--prompt",
        "a cat",
        "--model",
        name,
        "--base-url",
        gateway,
        "--fresh",
    ]
    printed = vieval(*score, code=code)
    assert sentence in printed.out + printed.err


def test_a_gateway_without_a_service_of_files_ends_a_batch_at_once(
    gateway, vieval, tmp_path, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    PIL.Image.new("RGB", (64, 64), (1, 20, 200)).save(tmp_path / "a.png")
    score = [
        "score",
        tmp_path / "a.png",
        "--prompt",
        "a cat",
        "--out",
        tmp_path / "v.jsonl",
        "--fresh",
        "--batch",
    ]
    printed = vieval(*score, "--model", "org/judge", "--base-url", gateway, code=1)
    assert "does not accept files" in printed.err
