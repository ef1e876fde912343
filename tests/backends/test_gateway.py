"""Test runs through LiteLLM's proxy in front of the fake server (`make test-gateway`)."""

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request

import PIL.Image
import pytest

from tests.fake_server import HOST, FakeServer, Fault
from tests.work import free_ports

GATEWAY = os.environ.get("VIEVAL_GATEWAY", "")
KEY = "sk-gateway-key-0123"
pytestmark = pytest.mark.skipif(
    not GATEWAY, reason="needs LiteLLM's proxy: make test-gateway"
)


def model(name, server, provider="openai", **more):
    parameters = {"model": f"{provider}/fake", "api_base": server.base_url}
    parameters |= {"api_key": "sk-upstream", **more}
    return {"model_name": name, "litellm_params": parameters}


@contextlib.contextmanager
def running(folder, models):
    """The gateway of these models; yields its base address."""
    budget = {"hosted_vllm": {"budget_limit": 1e-12, "time_period": "1d"}}
    settings = {"num_retries": 0, "provider_budget_config": budget}
    document = {"model_list": models, "router_settings": settings}
    document["general_settings"] = {"master_key": KEY}
    config = folder / "config.yaml"
    config.write_text(json.dumps(document))
    [port] = free_ports(1)
    own = {"HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    command = [GATEWAY, "--config", str(config), "--host", HOST, "--port", str(port)]
    with (folder / "gateway.log").open("wb") as log:
        outputs = {"stdout": log, "stderr": log}
        process = subprocess.Popen(command, env={**os.environ, **own}, **outputs)
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


@pytest.fixture
def score(gateway, vieval, tmp_path, monkeypatch):
    """What `vieval score` prints of an image, by a model of the gateway."""
    PIL.Image.new("RGB", (64, 64), (1, 20, 200)).save(tmp_path / "a.png")

    def run(name, *flags, key=KEY, code=1):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        about = ["--prompt", "a cat", "--model", name, "--base-url", gateway, "--fresh"]
        printed = vieval("score", tmp_path / "a.png", *about, *flags, code=code)
        return printed.out + printed.err

    return run


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
def test_a_gateways_answer_ends_so(name, key, code, sentence, score):
    assert sentence in score(name, key=key, code=code)


def test_a_gateway_without_a_service_of_files_ends_a_batch_at_once(score, tmp_path):
    printed = score("org/judge", "--out", tmp_path / "v.jsonl", "--batch")
    assert "does not accept files" in printed
