"""Likelihoods through transformers and vLLM, of the same weights.

These compare with a vLLM server that runs (VIEVAL_VLLM_URL) and with vLLM in a process of its own
(VIEVAL_VLLM_PYTHON).
"""

import asyncio
import base64
import json
import math
import os
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.extras import VLLM_URL as URL
from tests.extras import served_by_vllm
from tests.picture_questions import PICTURES, ask, likelihood
from vieval_plugin.backends import token_probabilities
from vieval_plugin.backends.http.openai import OpenAIBackend
from vieval_plugin.backends.http.server import ServerOptions, Usage
from vieval_plugin.judges.adiee import SPELLINGS
from vieval_plugin.judges.protocol import Failure, Image

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from vieval_plugin.backends.local.huggingface import TransformersBackend  # noqa: E402

ANSWERS = ("Yes", "No", "yes", " Yes")


def post(url, body):
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as response:
        return json.load(response)


@pytest.fixture(scope="module")
def served():
    """The name of the served model and the folder of its weights."""
    model = served_by_vllm()
    if not Path(model["root"]).is_dir():
        pytest.skip(
            f"the weights of the server at {URL} ({model['root']}) are not on this machine"
        )
    return model["id"], model["root"]


def conversation(asked, answer=None):
    """A question as the OpenAI API takes it, with the answer as a finished turn if there is one."""
    [message] = asked.messages
    content = [
        {
            "type": "image_url",
            "image_url": {
                "url": "data:image/png;base64," + base64.b64encode(p.source).decode()
            },
        }
        if isinstance(p, Image)
        else {"type": "text", "text": p}
        for p in message.parts
    ]
    after = [] if answer is None else [{"role": "assistant", "content": answer}]
    return [{"role": "user", "content": content}, *after]


def raw_from_server(model, asked):
    """Exact values by requests of our own: one allowed token, or the log-probabilities of a
    prompt with the answer in it.
    """
    values = []
    for answer in asked.continuations:
        ids = post(
            f"{URL.removesuffix('/v1')}/tokenize",
            {"model": model, "prompt": answer, "add_special_tokens": False},
        )["tokens"]
        body = {"model": model, "max_tokens": 1, "temperature": 0}
        if asked.definition == "first_token":
            body |= {
                "messages": conversation(asked),
                "allowed_token_ids": ids,
                "logprobs": True,
                "top_logprobs": 0,
            }
            [entry] = post(f"{URL}/chat/completions", body)["choices"][0]["logprobs"][
                "content"
            ]
            values.append(math.exp(entry["logprob"]))
        else:
            body |= {
                "messages": conversation(asked, answer),
                "prompt_logprobs": 0,
                "add_generation_prompt": False,
            }
            listed = post(f"{URL}/chat/completions", body)["prompt_logprobs"]
            values.append(
                math.exp(
                    mean(
                        [
                            entry
                            for [entry] in map(dict.values, listed[-len(ids) - 2 : -1])
                        ]
                    )
                )
            )
    return values


def mean(entries):
    return sum(entry["logprob"] for entry in entries) / len(entries)


IN_PROCESS = """
import json, math, sys
from pathlib import Path

from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.vllm import VLLMBackend
from vieval_plugin.judges.protocol import Failure, Image, Likelihood, Message

if __name__ == "__main__":
    from vllm import SamplingParams

    given = json.loads(Path(sys.argv[1]).read_text())
    options = {"dtype": "float32", "max_model_len": 2048, "max_num_seqs": 4, "enforce_eager": True, "block_size": 32}
    backend = VLLMBackend(given["model"], usage=Usage(), **options)
    asks = [
        Likelihood((Message("user", (Image(Path(one["image"])), one["question"])),), tuple(one["answers"]), ("q",), one["definition"])
        for one in given["asks"]
    ]
    replies = backend.answer(list(enumerate(asks)), [0] * len(asks))
    raw = []
    for one in given["asks"]:
        values = []
        for answer, chat, ids in zip(one["answers"], one["chats"], one["ids"]):
            if one["definition"] == "first_token":
                parameters = SamplingParams(temperature=0, max_tokens=1, allowed_token_ids=ids, logprobs=0)
                [output] = backend._engine.chat([chat], parameters, use_tqdm=False)
                values.append(math.exp(output.outputs[0].logprobs[0][ids[0]].logprob))
            else:
                parameters = SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=0)
                [output] = backend._engine.chat([chat], parameters, use_tqdm=False, add_generation_prompt=False)
                listed = [next(iter(entry.values())).logprob for entry in output.prompt_logprobs[-len(ids) - 2 : -1]]
                values.append(math.exp(sum(listed) / len(listed)))
        raw.append(values)
    found = [None if isinstance(reply, Failure) else list(zip(reply.low, reply.high)) for reply in replies]
    Path(sys.argv[2]).write_text(json.dumps({"backend": found, "raw": raw}))
"""


def from_vllm_in_process(python, folder, asks, tokenizer, work):
    """Values from vLLM in a process of its own: this package's backend, and requests to the
    engine.
    """
    given = []
    for number, asked in enumerate(asks):
        (work / f"{number}.png").write_bytes(asked.messages[0].parts[0].source)
        turns = [
            answer if asked.definition == "sequence_mean" else None
            for answer in asked.continuations
        ]
        given.append(
            {
                "image": str(work / f"{number}.png"),
                "question": asked.messages[0].parts[1],
                "answers": asked.continuations,
                "definition": asked.definition,
                # of beginnings only the backend's own are compared
                "chats": [
                    conversation(asked, answer)
                    for answer in turns
                    if asked.definition != "beginning"
                ],
                "ids": [
                    tokenizer(answer, add_special_tokens=False).input_ids
                    for answer in asked.continuations
                ],
            }
        )
    (work / "given.json").write_text(json.dumps({"model": folder, "asks": given}))
    (work / "in_process.py").write_text(IN_PROCESS)
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "TORCH_COMPILE_DISABLE": "1",
    }
    command = [python, work / "in_process.py", work / "given.json", work / "found.json"]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command,
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((work / "found.json").read_text())


async def from_server(model, asks):
    async with OpenAIBackend(
        model, ServerOptions(urls=(URL,)), usage=Usage()
    ) as backend:
        return [await backend.answer(asked) for asked in asks]


def agree(asks, ours, columns):
    """Prints a table and checks that exact values are the same, and that intervals hold them."""
    print(
        "\n"
        + "".join(
            f"{word:>16}"
            for word in (
                "image, question",
                "definition",
                "answer",
                "transformers",
                *columns,
            )
        )
    )
    exact_probabilities, outside = [], [0.0]
    for n, asked in enumerate(asks):
        for k, answer in enumerate(asked.continuations):
            p, others = (
                ours[n][k],
                [values[n] and values[n][k] for values in columns.values()],
            )
            label = f"{n // 4 + 1}, {n // 2 % 2 + 1}"
            print(
                "".join(
                    f"{word:>16}"
                    for word in (
                        label,
                        asked.definition,
                        repr(answer),
                        *map(cell, ((p, p), *others)),
                    )
                )
            )
            exact_probabilities += [
                (p, low) for low, high in filter(None, others) if low == high
            ]
            outside += [max(low - p, p - high) for low, high in filter(None, others)]
    apart, relative = (
        max(values)
        for values in zip(
            *((abs(p - q), abs(p / q - 1)) for p, q in exact_probabilities), strict=True
        )
    )
    print(
        f"of {len(exact_probabilities)} pairs of exact values the furthest apart: {apart:.1e}, "
        f"relative {relative:.1e}"
    )
    assert apart < 1e-3
    assert relative < 1e-3
    assert max(outside) < 1e-3


def cell(bounds):
    if bounds is None:
        return "-"
    low, high = bounds
    return f"{low:.7f}" if low == high else f"{low:.4f}..{high:.4f}"


def same(values):
    return [[(p, p) for p in row] for row in values]


@pytest.fixture(scope="module")
def parity(served):
    """Questions of both definitions, and what transformers makes of them in float32 on the
    server's weights.
    """
    asks = [
        likelihood(image, what, ANSWERS, definition)
        for image in PICTURES
        for what in ("figure", "dog and the artifacts of the background")
        for definition in ("first_token", "sequence_mean")
    ]
    backend = TransformersBackend(served[1], usage=Usage())
    return asks, [reply.low for reply in ask(backend, *asks)], backend._tokenizer


@pytest.fixture(scope="module")
def begun(served):
    """Questions about numbers of one and two tokens, and what transformers makes of them."""
    asks = [
        likelihood(image, continuations=SPELLINGS, definition="beginning")
        for image in PICTURES
    ]
    backend = TransformersBackend(served[1], usage=Usage())
    assert len(backend._tokens("10")) == len(backend._tokens("1")) + 1
    return asks, [reply.low for reply in ask(backend, *asks)]


def holds(bounds, values, widest):
    """Checks that intervals hold exact values, and are no wider than what was not asked for
    because it hardly counts.
    """
    for (low, high), value in zip(bounds, values, strict=True):
        assert low - 1e-6 <= value <= high + 1e-6
        assert high - low <= widest
    return max(high - low for low, high in bounds)


@pytest.mark.vllm
def test_the_same_beginnings_as_from_a_vllm_server(served, begun, monkeypatch):
    """Random weights say numbers so rarely that hardly any would be asked for."""
    asks, ours = begun
    for reply, values in zip(
        asyncio.run(from_server(served[0], asks)), ours, strict=True
    ):
        bounds = list(zip(reply.low, reply.high, strict=True))
        print("widest", holds(bounds, values, 1e-4), "of", sum(values))
    monkeypatch.setattr(token_probabilities, "CLOSE_ENOUGH", 0.0)
    for reply, values in zip(
        asyncio.run(from_server(served[0], asks)), ours, strict=True
    ):
        assert reply.low == reply.high == pytest.approx(values, rel=1e-3)
        one, ten = (SPELLINGS.index(text) for text in ("1", "10"))
        print("P(1)", reply.low[one], values[one], "P(10)", reply.low[ten], values[ten])


@pytest.mark.vllm
def test_the_same_probabilities_as_from_a_vllm_server(served, parity):
    """The table is printed with -s. A server tells sequence_mean only to requests of our own."""
    (model, _), (asks, ours, _) = served, parity
    replies = asyncio.run(from_server(model, asks))
    told = [
        None
        if isinstance(reply, Failure)
        else list(zip(reply.low, reply.high, strict=True))
        for reply in replies
    ]
    agree(
        asks,
        ours,
        {
            "OpenAIBackend": told,
            "raw requests": same(raw_from_server(model, one) for one in asks),
        },
    )


@pytest.mark.vllm
def test_the_same_probabilities_as_from_vllm_in_process(
    served, parity, begun, tmp_path
):
    """The table is printed with -s."""
    python = os.environ.get("VIEVAL_VLLM_PYTHON", "")
    if not Path(python).is_file():
        pytest.skip("set VIEVAL_VLLM_PYTHON to the Python of an environment with vLLM")
    (_, folder), (asks, ours, tokenizer) = served, parity
    found = from_vllm_in_process(
        python, folder, [*asks, *begun[0]], tokenizer, tmp_path
    )
    for bounds, values in zip(found["backend"][len(asks) :], begun[1], strict=True):
        print("widest", holds(bounds, values, 2e-4))
    found = {column: values[: len(asks)] for column, values in found.items()}
    # VLLMBackend knows first tokens only
    told = [
        own if one.definition == "first_token" else None
        for own, one in zip(found["backend"], asks, strict=True)
    ]
    agree(asks, ours, {"VLLMBackend": told, "raw requests": same(found["raw"])})
