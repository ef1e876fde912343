"""Test scorers behind a server that answers as vLLM does, and behind a real vLLM."""

import json
import os
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml

from tests import tiny_heads, tiny_model
from tests.backends.value_heads import asks, describe, measure, near, values
from tests.extras import needs
from tests.local_site import answering
from tests.refusals import refusal
from tests.tables import table
from tests.work import free_ports
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.judges.protocol import Failure, Image, Measurement, Status

pytestmark = needs("torch", "transformers", "torchvision", "aiohttp")


@pytest.fixture
def endpoint():
    """Opens a server that answers by path and body; has its address and requests."""
    with ExitStack() as opened:

        def make(answer):
            asked = []

            def respond(path, body, _):
                asked.append((path, json.loads(body)))
                code, said = answer(*asked[-1])
                return code, {}, json.dumps(said).encode()

            host = opened.enter_context(answering(respond))
            return SimpleNamespace(url=f"http://{host}/v1", asked=asked)

        yield make


def served(folder, url, endpoint, server=None, **network):
    folder.mkdir(exist_ok=True)
    own = {"model": "tiny", "base_url": url, "retries": 1, "patience": 5}
    own |= server or {}
    shown = {"images": ["source", "output"], "text": "How well: {{ instruction }}"}
    form = {"form": "served", "server": own, "endpoint": endpoint, **network}
    document = {"name": "behind", "questions": {"O": shown}, "scale": [-3, 3]}
    document["network"] = form
    (folder / "manifest.yaml").write_text(yaml.safe_dump(document))
    return folder


def served_asks(count=3):
    return [replace(one, metric="served") for one in asks(count)]


ANSWERS = {
    "pooling": lambda value: {"index": 0, "data": [0.5, value]},
    "classify": lambda value: {"index": 0, "probs": [0.5, value], "num_classes": 2},
    "score": lambda value: {"index": 0, "score": value},
}


def said(name, value):
    return 200, {"data": [ANSWERS[name](value)]}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_endpoint_is_asked_and_read_in_its_own_form(endpoint, name, tmp_path):
    server = endpoint(lambda path, body: said(name, len(str(body)) / 7))
    usage, store = Usage(), Store(tmp_path / "s")
    output = 0 if name == "score" else 1
    folder = served(tmp_path / "d", server.url, name, output=output)
    found = measure(folder, served_asks(), store, usage)
    assert {path for path, _ in server.asked} == {f"/{name}"}
    wanted = sorted(len(str(body)) / 7 for _, body in server.asked)
    assert sorted(reply.value for reply in found) == wanted
    assert (usage.calls, usage.cached) == (3, 0)
    body = server.asked[0][1]
    shown = body["documents"] if name == "score" else body["messages"][-1]
    assert [part["type"] for part in shown["content"]][:2] == ["image_url", "image_url"]
    assert body["use_activation"] is False
    assert measure(folder, served_asks(), store, usage) == found
    assert (usage.calls, usage.cached) == (3, 3)


def test_what_fails_has_no_number(endpoint, tmp_path):
    """A call that fails is tried again, and an image that cannot be decoded is not sent."""

    def answer(path, body):
        failed = (500, {"error": "no"})
        return failed if "dog red" in str(body) else said("score", 0.25)

    server, usage = endpoint(answer), Usage()
    asked = served_asks(4)
    asked[3] = replace(asked[3], images={**asked[3].images, "image_1": Image(b"none")})
    found = measure(served(tmp_path, server.url, "score"), asked, usage=usage)
    assert [type(r) for r in found] == [Failure, Measurement, Measurement, Failure]
    statuses = [found[0].status, found[3].status]
    assert statuses == [Status.API_ERROR, Status.TOOL_ERROR]
    assert usage.retries
    sent = {str(body) for _, body in server.asked}
    assert len([body for body in sent if "Say hello." not in body]) == 3


@pytest.mark.parametrize(
    "data", [None, [], [{"score": "high"}], [{"score": float("nan")}]]
)
def test_an_answer_of_another_form_has_no_number(endpoint, data, tmp_path):
    answer = {} if data is None else {"data": data}
    server = endpoint(lambda path, body: (200, answer))
    folder = served(tmp_path, server.url, "score", {"retries": 0})
    [found] = measure(folder, served_asks(1))
    assert isinstance(found, Failure)


@pytest.mark.parametrize(*table("wrong_served_networks.jsonl"))
def test_what_cannot_be_is_one_line(endpoint, tmp_path, changed, line):
    lacking = {"error": {"message": "The model does not exist."}}
    server = endpoint(lambda path, body: (404, lacking))
    folder = served(tmp_path, server.url, **{"endpoint": "score", **changed})
    assert line in refusal(measure, folder, served_asks(1))


FLAGS = """--served-model-name tiny --host 127.0.0.1 --dtype float32 --max-model-len 8192
--max-num-seqs 4 --enforce-eager --block-size 32 --runner pooling --convert embed"""
SETTINGS = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
SETTINGS |= {"VLLM_CPU_KVCACHE_SPACE": "1", "TORCH_COMPILE_DISABLE": "1"}


@pytest.fixture
def pooling(tmp_path):
    """The tiny model and the address of a vLLM that pools it (VIEVAL_VLLM_PYTHON)."""
    python = os.environ.get("VIEVAL_VLLM_PYTHON")
    if not python:
        pytest.skip("set VIEVAL_VLLM_PYTHON to the Python of an environment with vLLM")
    base, [port] = tiny_model.build(tmp_path / "tiny"), free_ports(1)
    command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(base)]
    command += [*FLAGS.split(), "--port", str(port)]
    own = {"env": {**os.environ, **SETTINGS}, "cwd": tmp_path}
    with open(tmp_path / "log", "wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, **own)
        try:
            for _ in range(600):
                assert server.poll() is None, (tmp_path / "log").read_text()[-2000:]
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
                    break
                except OSError:
                    time.sleep(1)
            yield base, f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait()


@pytest.mark.vllm
def test_a_value_head_behind_vllm_gives_the_same_numbers(pooling, tmp_path):
    base, url = pooling
    head = tiny_heads.build_head(tmp_path / "head.safetensors", (128, 64, 1))
    here = describe(tmp_path / "here", {"base": base, "head": head})
    network = {"head": str(head), "size": 128}
    there = served(tmp_path / "there", url, "pooling", **network)
    wanted = values(measure(here, asks(12)))
    assert values(measure(there, served_asks(12))) == near(wanted, 1e-4)
    assert len({round(value, 3) for value in wanted}) == 12
