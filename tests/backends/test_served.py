"""Scorers behind a server: a server in this process that answers as vLLM does, and a real vLLM
(marker vllm).
"""

import json
import os
import socket
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests import tiny_heads, tiny_model
from tests.backends.value_heads import asks, describe, measure
from tests.extras import needs
from tests.local_site import answering
from tests.refusals import refusal
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.judges.protocol import Failure, Image, Measure, Measurement, Status
from vieval_plugin.text.errors import VievalError

pytestmark = needs("torch", "transformers", "torchvision", "aiohttp")


@pytest.fixture
def endpoint():
    """Opens a server that answers by a function of path and body, with a status; its address,
    and what it was asked.
    """
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
    whole = {
        "server": {
            "model": "tiny",
            "base_url": url,
            "retries": 1,
            "patience": 5,
            **(server or {}),
        }
    }
    document = {
        "name": "behind",
        "questions": {
            "O": {"images": ["source", "output"], "text": "How well: {{ instruction }}"}
        },
        "scale": [-3, 3],
        "network": {"form": "served", **whole, "endpoint": endpoint, **network},
    }
    (folder / "manifest.yaml").write_text(yaml.safe_dump(document))
    return folder


def served_asks(count=3):
    return [
        Measure("served", one.images, one.path, one.texts, one.backbone)
        for one in asks(count)
    ]


ANSWERS = {
    "pooling": lambda value: {"data": [{"index": 0, "data": [0.5, value]}]},
    "classify": lambda value: {
        "data": [{"index": 0, "label": "x", "probs": [0.5, value], "num_classes": 2}]
    },
    "score": lambda value: {"data": [{"index": 0, "score": value}]},
}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_endpoint_is_asked_and_read_in_its_own_form(endpoint, name, tmp_path):
    server = endpoint(lambda path, body: (200, ANSWERS[name](len(str(body)) / 7)))
    usage, store = Usage(), Store(tmp_path / "s")
    folder = served(
        tmp_path / "d", server.url, name, output=0 if name == "score" else 1
    )
    found = measure(folder, served_asks(), store, usage)
    assert {path for path, _ in server.asked} == {f"/{name}"}
    assert sorted(reply.value for reply in found) == sorted(
        len(str(body)) / 7 for _, body in server.asked
    )
    assert (usage.calls, usage.cached) == (3, 0)
    body = server.asked[0][1]
    shown = body["documents"] if name == "score" else body["messages"][-1]
    assert [part["type"] for part in shown["content"]][:2] == ["image_url", "image_url"]
    assert body["use_activation"] is False
    assert measure(folder, served_asks(), store, usage) == found
    assert (usage.calls, usage.cached) == (3, 3)


def test_a_call_that_fails_is_tried_again_and_then_has_no_number(endpoint, tmp_path):
    tries = []

    def answer(path, body):
        tries.append(body)
        return (
            (500, {"error": "no"})
            if "dog red" in str(body)
            else (200, ANSWERS["score"](0.25))
        )

    usage = Usage()
    found = measure(
        served(tmp_path, endpoint(answer).url, "score"), served_asks(), usage=usage
    )
    assert [type(reply) for reply in found] == [Failure, Measurement, Measurement]
    assert found[0].status is Status.API_ERROR
    assert usage.retries
    assert sum(usage.failures.values()) == 1


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"data": []},
        {"data": [{"score": "high"}]},
        {"data": [{"score": float("nan")}]},
    ],
)
def test_an_answer_of_another_form_has_no_number(endpoint, said, tmp_path):
    calm = {"retries": 0}
    server = endpoint(lambda path, body: (200, said))
    [found] = measure(served(tmp_path, server.url, "score", calm), served_asks(1))
    assert isinstance(found, Failure)


def test_an_image_that_cannot_be_decoded_is_not_sent(endpoint, tmp_path):
    server = endpoint(lambda path, body: (200, ANSWERS["score"](0.25)))
    [one] = served_asks(1)
    bad = Measure(
        one.metric,
        {**one.images, "image_1": Image(b"none")},
        one.path,
        one.texts,
        one.backbone,
    )
    [found] = measure(served(tmp_path, server.url, "score"), [bad])
    assert found.status is Status.TOOL_ERROR
    assert server.asked == []


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"endpont": "x"}, "unknown key network.endpont; did you mean endpoint?"),
        ({"endpoint": "embed"}, "network.endpoint"),
        (
            {"head": "head.safetensors"},
            "`head` requires `endpoint: pooling` and the `size` of its vectors",
        ),
        (
            {"endpoint": "pooling", "head": "none.safetensors", "size": 2},
            "weights file not found",
        ),
        (
            {"server": {"num_concurent": 3}},
            "unknown key network.server.num_concurent; did you mean num_concurrent?",
        ),
        (
            {"server": {"base_url": "nonsense"}},
            "network.server.base_url: must be an address such as",
        ),
    ],
)
def test_what_cannot_be_is_one_line(endpoint, tmp_path, changed, line):
    server = endpoint(lambda path, body: (200, ANSWERS["score"](0.25)))
    folder = served(tmp_path, server.url, **{"endpoint": "score", **changed})
    assert line in refusal(measure, folder, served_asks(1))


def test_a_model_that_the_server_does_not_have_ends_the_run_in_one_line(
    endpoint, tmp_path
):
    server = endpoint(
        lambda path, body: (404, {"error": {"message": "The model does not exist."}})
    )
    with pytest.raises(VievalError, match="model or address not found"):
        measure(served(tmp_path, server.url, "pooling"), served_asks())


@pytest.fixture
def pooling(tmp_path):
    """The tiny model and the address of a vLLM that pools it, in a process of its own
    (VIEVAL_VLLM_PYTHON).
    """
    python = os.environ.get("VIEVAL_VLLM_PYTHON")
    if not python:
        pytest.skip("set VIEVAL_VLLM_PYTHON to the Python of an environment with vLLM")
    base = tiny_model.build(tmp_path / "tiny")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = (
        "--served-model-name tiny --host 127.0.0.1 --dtype float32 --max-model-len 8192 "
        "--max-num-seqs 4"
    )
    said += f" --enforce-eager --block-size 32 --runner pooling --convert embed --port {port}"
    command = [
        python,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        str(base),
        *said.split(),
    ]
    settings = {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
    }
    with open(tmp_path / "log", "wb") as log:
        environment = {**os.environ, **settings, "TORCH_COMPILE_DISABLE": "1"}
        server = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, cwd=tmp_path
        )
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
def test_a_value_head_in_process_and_behind_vllm_gives_the_same_numbers(
    pooling, tmp_path
):
    base, url = pooling
    head = tiny_heads.build_head(tmp_path / "head.safetensors", (128, 64, 1))
    here = measure(describe(tmp_path / "here", {"base": base, "head": head}), asks(12))
    network = {"head": str(Path(head)), "size": 128}
    there = measure(
        served(tmp_path / "there", url, "pooling", **network), served_asks(12)
    )
    assert [reply.value for reply in there] == pytest.approx(
        [reply.value for reply in here], abs=1e-4
    )
    assert len({round(reply.value, 3) for reply in here}) == 12
