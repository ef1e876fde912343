"""A real vLLM with a tiny model of random weights: `make test-vllm` sets it up and runs these."""

import asyncio
import base64
import dataclasses
import json
import math
import os
import random
import re
import subprocess
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="calling a server requires aiohttp")

from tests.extras import VLLM_URL as URL
from tests.extras import served_by_vllm
from tests.pictures import plain
from vieval_plugin.backends.http.openai import OpenAIBackend
from vieval_plugin.backends.http.server import ServerOptions, Usage
from vieval_plugin.judges.parsing import reply_schema
from vieval_plugin.judges.protocol import Chat, Image, Likelihood, Message

pytestmark = pytest.mark.vllm

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get(
    "VIEVAL_VLLM_PYTHON", str(ROOT / ".venv-vllm" / "bin" / "python")
)
QUESTION = "Does the image show what the text says? Please answer Yes or No."


@pytest.fixture(scope="module")
def model():
    return served_by_vllm()


def post(path, body):
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{URL}/{path}", data, headers), timeout=120
    ) as answer:
        return json.load(answer)


def image(colour, size=(224, 224)):
    return Image(plain(colour, size))


def chat(picture, text=QUESTION):
    return Chat(
        (Message("user", (picture, text)),),
        ("question",),
        reply_schema(2),
        max_tokens=150,
    )


def messages(picture, text=QUESTION):
    url = f"data:image/png;base64,{base64.b64encode(picture.source).decode()}"
    return [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": url}},
                {"type": "text", "text": text},
            ],
        }
    ]


def ask(model, *asks):
    """The replies of our backend, asked all at once."""

    async def run():
        async with OpenAIBackend(
            model["id"], ServerOptions((URL,)), usage=Usage()
        ) as backend:
            return await asyncio.gather(*map(backend.answer, asks))

    return asyncio.run(run())


def likely(model, picture):
    """The likeliest first tokens of an answer that are words, with their raw log-probabilities."""
    request = {
        "model": model["id"],
        "messages": messages(picture),
        "temperature": 0,
        "max_tokens": 1,
    }
    answer = post("chat/completions", {**request, "logprobs": True, "top_logprobs": 20})
    listed = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    words = {
        entry["token"]: entry["logprob"]
        for entry in listed
        if re.fullmatch(r"[A-Za-z]{2,}", entry["token"])
    }
    return dict(list(words.items())[:4])


def scored(model, picture, continuation):
    """The log-probability of an answer's first token, from those of a prompt that already holds
    the answer.
    """
    given = [*messages(picture), {"role": "assistant", "content": continuation}]
    flags = {
        "add_generation_prompt": False,
        "continue_final_message": True,
        "prompt_logprobs": 0,
    }
    answer = post(
        "chat/completions",
        {"model": model["id"], "messages": given, "max_tokens": 1, **flags},
    )
    [last] = answer["prompt_logprobs"][-1].values()
    return last["logprob"]


def cached():
    """Tokens that the server looked up in its prefix cache so far, and those it found."""
    with urllib.request.urlopen(
        URL.removesuffix("/v1") + "/metrics", timeout=30
    ) as answer:
        text = answer.read().decode()
    return [
        float(
            re.search(
                rf"^vllm:prefix_cache_{what}_total\{{.*\}} (\S+)$", text, re.MULTILINE
            )[1]
        )
        for what in ("queries", "hits")
    ]


TWO_SCORES = re.compile(r'\{\s*"score"\s*:\s*\[\s*[-+.\deE]+\s*,\s*[-+.\deE]+\s*\]')


def test_judging_through_our_model_parses_every_reply_and_gives_the_same_digits_again(
    evaluate, model, tmp_path
):
    arguments = (
        "--model",
        "vieval_openai",
        "--model_args",
        f"model={model['id']},base_url={URL},num_concurrent=4",
    )
    arguments += ("--gen_kwargs", "max_new_tokens=150")
    first, second = (
        evaluate(*arguments, store=tmp_path / f"{turn}.sqlite") for turn in "ab"
    )
    # random weights end no reasoning, so that many replies are cut by the limit of tokens; their
    # scores are as asked
    assert set(first.statuses) <= {"ok", "repaired", "parse_failure"}
    assert all(
        re.match(r'\{\s*"score"\s*:\s*\[\s*\d+', answer)
        for answer in first.answers().values()
    )
    assert len(set(first.answers("PQ").values())) > 3  # one question about six images
    assert second.verdicts == first.verdicts
    assert second.metrics == first.metrics
    assert all(row["token_counts"][0]["input_tokens"] > 500 for row in first.rows)


def test_judging_through_the_hosts_own_model_accounts_for_every_sample(evaluate, model):
    """It has no way to ask for a schema, and random weights write no JSON: every answer is
    there, and unreadable.
    """
    arguments = (
        "--model",
        "openai",
        "--model_args",
        f"model_version={model['id']},base_url={URL},api_key=EMPTY",
    )
    run = evaluate(*arguments, "--gen_kwargs", "max_new_tokens=16")
    assert run.statuses == {"parse_failure": 6}
    assert len(set(run.answers("PQ").values())) > 3
    assert all(
        8 < row["token_counts"][0]["output_tokens"] <= 4 * 16 for row in run.rows
    )  # two questions, each twice


def test_schemas_are_enforced_and_images_matter(model):
    red, blue = ask(model, chat(image("red")), chat(image("blue")))
    assert TWO_SCORES.match(red.text)  # its reasoning may be cut by the limit of tokens
    assert TWO_SCORES.match(blue.text)
    assert red.text != blue.text


def test_likelihoods_are_the_models_own(model):
    picture = image("green")
    words = [*likely(model, picture), "Yes", "No"]
    [found] = ask(
        model,
        Likelihood(
            (Message("user", (picture, QUESTION)),), tuple(words), ("question",)
        ),
    )
    for word, low, high in zip(words, found.low, found.high, strict=True):
        exact = scored(model, picture, word)
        assert low - 1e-6 <= math.exp(exact) <= high + 1e-6
        if low == high:
            assert math.log(low) == pytest.approx(exact, abs=1e-3)
    assert found.low[:2] == found.high[:2]  # the likeliest are always known


def test_questions_that_share_an_image_hit_the_prefix_cache(model):
    picture = image(tuple(random.randrange(256) for _ in range(3)))
    ask(model, chat(picture, "Is the picture sharp? " + QUESTION))
    between = cached()
    ask(model, chat(picture, "Are the colours natural? " + QUESTION))
    after = cached()
    assert after[0] - between[0] > 64
    assert after[1] - between[1] >= 64  # the image has 64 tokens
    request = {
        "model": model["id"],
        "messages": messages(picture, "Is it bright? " + QUESTION),
        "max_tokens": 1,
    }
    details = post("chat/completions", request)["usage"].get("prompt_tokens_details")
    if details:  # a server started by tests/vllm_server.sh tells it of each request
        assert details["cached_tokens"] >= 64


IN_PROCESS = """
import base64, dataclasses, json, sys
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.local.vllm import VLLMBackend
from vieval_plugin.judges.protocol import Chat, Image, Likelihood, Message

def main():
    given = json.load(sys.stdin)
    def messages(ask):
        return (Message("user", (Image(base64.b64decode(ask["image"])), ask["text"])),)
    asks = [
        Likelihood(messages(ask), tuple(ask["continuations"]), ("question",)) if "continuations" in ask
        else Chat(messages(ask), ("question",), ask["schema"], ask["limit"])
        for ask in given["asks"]
    ]
    engine = dict(dtype="float32", max_model_len=4096, max_num_seqs=4, enforce_eager=True, block_size=32)
    engine["structured_outputs_config"] = {"backend": "xgrammar", "disable_any_whitespace": True}
    usage = Usage()
    backend = VLLMBackend(given["model"], usage=usage, **engine)
    replies = backend.answer(list(enumerate(asks)), [0] * len(asks))
    print(json.dumps([{"kind": type(r).__name__, **dataclasses.asdict(r)} for r in replies]))
    print(json.dumps([usage.calls, usage.input_tokens, dict(usage.failures)]))

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def in_vllm(tmp_path_factory):
    """Runs a script in vLLM's environment, with VIEval made importable there if it is not;
    returns its output.
    """
    if not Path(PYTHON).is_file():
        pytest.skip(
            f"no environment with vLLM at {PYTHON} (VIEVAL_VLLM_PYTHON); `make test-vllm` makes one"
        )
    folder = tmp_path_factory.mktemp("vllm")
    fixed = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "TORCH_COMPILE_DISABLE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    environment = {
        **os.environ,
        **fixed,
        "HF_HUB_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
    }
    environment["PYTHONPATH"] = str(folder / "site")

    def run(*arguments, given=""):
        command = [PYTHON, *map(str, arguments)]
        return subprocess.run(
            command,
            input=given,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    if run("-c", "import vieval_plugin.backends.local.vllm").returncode:
        _install(folder / "site", run)

    def script(text, given):
        (folder / "script.py").write_text(text)
        done = run("script.py", given=json.dumps(given))
        assert done.returncode == 0, done.stderr[-6000:]
        assert (
            "force killing" not in done.stderr
        )  # the engine is closed before the interpreter ends
        return [
            json.loads(line)
            for line in done.stdout.splitlines()
            if line.startswith("[")
        ]

    return script


def _install(site, run):
    """VIEval and what it needs and that environment lacks, beside it rather than in it."""
    source = site.parent / "source"  # a copy: building leaves files behind
    copied = (
        "setup.cfg",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "vieval_plugin",
        "judges",
        "prompt_templates",
    )
    subprocess.run(["mkdir", source], check=True)
    subprocess.run(
        ["cp", "-rL", *(ROOT / name for name in (*copied, "task_configs")), source],
        check=True,
    )
    lacking = (
        "import importlib.util as u; print(*(n for n in {!r}.split() if not "
        "u.find_spec(n.replace('-', '_'))))"
    )
    needed = run("-c", lacking.format("json-repair platformdirs scipy")).stdout.split()
    done = run(
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        site,
        source,
        *needed,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_vllm_in_process_answers_as_the_server_and_a_bad_question_spoils_no_other(
    model, in_vllm
):
    red, blue = image("red"), image("blue")
    words = list(likely(model, red))
    schema, encoded = (
        reply_schema(2),
        [base64.b64encode(one.source).decode() for one in (red, blue)],
    )
    asks = [
        {"image": encoded[0], "text": QUESTION, "schema": schema, "limit": 150},
        {"image": encoded[0], "text": "dog " * 5000, "schema": schema, "limit": 150},
        {"image": encoded[0], "text": QUESTION, "continuations": words},
        {
            "image": base64.b64encode(b"no image").decode(),
            "text": QUESTION,
            "schema": schema,
            "limit": 150,
        },
        {"image": encoded[1], "text": QUESTION, "schema": schema, "limit": 150},
    ]
    replies, (calls, tokens, failures) = in_vllm(
        IN_PROCESS, {"model": model["root"], "asks": asks}
    )
    assert [reply["kind"] for reply in replies] == [
        "Text",
        "Failure",
        "Probabilities",
        "Failure",
        "Text",
    ]
    by_server = ask(model, chat(red), chat(blue))
    for reply, same in zip((replies[0], replies[4]), by_server, strict=True):
        assert TWO_SCORES.match(reply["text"])
        assert reply == {
            "kind": "Text",
            **json.loads(json.dumps(dataclasses.asdict(same))),
        }
    assert replies[1]["status"] == "api_error"
    assert "4096" in replies[1]["reason"]
    assert replies[3]["status"] == "tool_error"
    for word, low, high in zip(
        words, replies[2]["low"], replies[2]["high"], strict=True
    ):
        assert low == high
        assert math.log(low) == pytest.approx(scored(model, red, word), abs=1e-3)
    assert (calls, len(failures)) == (
        4,
        2,
    )  # what cannot be decoded is a failure without a call
    assert tokens == sum(one.input_tokens for one in by_server)
