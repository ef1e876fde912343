"""A real vLLM with a tiny model of random weights: `make test-vllm` sets it up and runs these."""

import asyncio
import base64
import dataclasses
import itertools
import json
import os
import random
import re
import subprocess
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="calling a server requires aiohttp")

from tests import pairs, picture_questions
from tests.extras import VLLM_URL as URL
from tests.extras import served_by_vllm
from tests.pictures import plain
from vieval_plugin.backends import token_probabilities
from vieval_plugin.backends.http.openai import OpenAIBackend
from vieval_plugin.backends.http.server import ServerOptions, Usage
from vieval_plugin.cli import main
from vieval_plugin.judges.adiee import SPELLINGS
from vieval_plugin.judges.parsing import reply_schema
from vieval_plugin.judges.protocol import Chat, Image, Likelihood, Message
from vieval_plugin.results.lookup import open_results

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
    request = urllib.request.Request(f"{URL}/{path}", data, headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def image(colour, size=(224, 224)):
    return Image(plain(colour, size))


def chat(picture, text=QUESTION):
    message = Message("user", (picture, text))
    return Chat((message,), ("question",), reply_schema(2), max_tokens=150)


def messages(picture, text=QUESTION):
    url = f"data:image/png;base64,{base64.b64encode(picture.source).decode()}"
    shown = {"type": "image_url", "image_url": {"url": url}}
    return [{"role": "user", "content": [shown, {"type": "text", "text": text}]}]


def ask(model, *asks):
    """The replies of our backend, asked all at once."""

    async def run():
        server = ServerOptions((URL,))
        async with OpenAIBackend(model["id"], server, usage=Usage()) as backend:
            return await asyncio.gather(*map(backend.answer, asks))

    return asyncio.run(run())


def likely(model, picture):
    """The likeliest first tokens of an answer that are words."""
    request = {"model": model["id"], "messages": messages(picture), "temperature": 0}
    request |= {"max_tokens": 1, "logprobs": True, "top_logprobs": 20}
    [choice] = post("chat/completions", request)["choices"]
    listed = choice["logprobs"]["content"][0]["top_logprobs"]
    words = [entry["token"] for entry in listed]
    return [word for word in words if re.fullmatch(r"[A-Za-z]{2,}", word)][:4]


def cached():
    """Tokens that the server looked up in its prefix cache so far, and those it found."""
    url = URL.removesuffix("/v1") + "/metrics"
    with urllib.request.urlopen(url, timeout=30) as answer:
        text = answer.read().decode()
    names = ("queries", "hits")
    lines = (rf"^vllm:prefix_cache_{name}_total\{{.*\}} (\S+)$" for name in names)
    return [float(re.search(line, text, re.MULTILINE)[1]) for line in lines]


TWO_SCORES = re.compile(r'\{\s*"score"\s*:\s*\[\s*[-+.\deE]+\s*,\s*[-+.\deE]+\s*\]')


def test_judging_through_our_model_is_reproducible(evaluate, model, tmp_path):
    """Random weights end no reasoning, so many replies are cut; their scores are as asked."""
    named = f"model={model['id']},base_url={URL},num_concurrent=4"
    flags = ("--model", "vieval_openai", "--model_args", named)
    flags += ("--gen_kwargs", "max_new_tokens=150")
    first, second = (evaluate(*flags, store=tmp_path / f"{n}.sqlite") for n in "ab")
    assert set(first.statuses) <= {"ok", "repaired", "parse_failure"}
    begun = re.compile(r'\{\s*"score"\s*:\s*\[\s*\d+')
    assert all(begun.match(answer) for answer in first.answers().values())
    assert len(set(first.answers("PQ").values())) > 3  # one question about six images
    assert second.verdicts == first.verdicts
    assert second.metrics == first.metrics
    assert all(row["token_counts"][0]["input_tokens"] > 500 for row in first.rows)


@pytest.fixture
def both(model):
    """Asks the server and transformers, on the same weights in float32."""
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    from vieval_plugin.backends.local.huggingface import TransformersBackend

    if not Path(model["root"]).is_dir():
        pytest.skip(f"the weights of the server at {URL} are elsewhere")
    here = TransformersBackend(model["root"], usage=Usage())
    assert len(here._tokens("10")) == len(here._tokens("1")) + 1
    return lambda asks: zip(
        ask(model, *asks), picture_questions.ask(here, *asks), strict=True
    )


def require_within(bounds, exact, widest, slack):
    """Require that intervals hold exact values, and are no wider than this."""
    for low, high, value in zip(bounds.low, bounds.high, exact.low, strict=True):
        assert low - slack <= value <= high + slack
        assert high - low <= widest
        assert low < high or value == pytest.approx(low, rel=1e-3, abs=1e-9)


def test_first_tokens_are_those_of_transformers(both):
    shown = ("figure", "dog and the artifacts of the background")
    answers = [("Yes", "No", "yes", " Yes")]
    each = itertools.product(picture_questions.PICTURES, shown, answers)
    for bounds, exact in both([picture_questions.likelihood(*one) for one in each]):
        require_within(bounds, exact, 1.0, 1e-3)


@pytest.mark.parametrize("widest", [1e-4, 0.0])
def test_beginnings_are_those_of_transformers(both, monkeypatch, widest):
    """Random weights say numbers so rarely that hardly any would be asked for."""
    monkeypatch.setattr(token_probabilities, "CLOSE_ENOUGH", widest)
    about = {"continuations": SPELLINGS, "definition": "beginning"}
    pictures = picture_questions.PICTURES
    for bounds, exact in both(
        [picture_questions.likelihood(image, **about) for image in pictures]
    ):
        require_within(bounds, exact, widest, 1e-6)


def test_questions_that_share_an_image_hit_the_prefix_cache(model):
    picture = image(tuple(random.randrange(256) for _ in range(3)))
    ask(model, chat(picture, "Is the picture sharp? " + QUESTION))
    between = cached()
    ask(model, chat(picture, "Are the colours natural? " + QUESTION))
    after = cached()
    assert after[0] - between[0] > 64
    assert after[1] - between[1] >= 64  # the image has 64 tokens
    bright = messages(picture, "Is it bright? " + QUESTION)
    request = {"model": model["id"], "messages": bright, "max_tokens": 1}
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


FIXED = {"VLLM_CPU_KVCACHE_SPACE": "1", "TORCH_COMPILE_DISABLE": "1"}
FIXED |= {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
FIXED |= {"VLLM_LOGGING_LEVEL": "WARNING"}


@pytest.fixture(scope="module")
def in_vllm(tmp_path_factory):
    """Runs a script in vLLM's environment, where VIEval can be imported; has its output."""
    if not Path(PYTHON).is_file():
        lacking = f"no environment with vLLM at {PYTHON} (VIEVAL_VLLM_PYTHON)"
        pytest.skip(f"{lacking}; `make test-vllm` makes one")
    folder = tmp_path_factory.mktemp("vllm")
    environment = {**os.environ, **FIXED, "PYTHONPATH": str(folder / "site")}

    def run(*arguments, given=""):
        command = [PYTHON, *map(str, arguments)]
        kept = {"capture_output": True, "text": True, "timeout": 300, "check": False}
        own = {"input": given, "cwd": folder, "env": environment}
        return subprocess.run(command, **own, **kept)

    if run("-c", "import vieval_plugin.backends.local.vllm").returncode:
        _install(folder / "site", run)

    def script(text, given):
        (folder / "script.py").write_text(text)
        done = run("script.py", given=json.dumps(given))
        assert done.returncode == 0, done.stderr[-6000:]
        # the engine is closed before the interpreter ends
        assert "force killing" not in done.stderr
        lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
        return list(map(json.loads, lines))

    return script


COPIED = "setup.cfg pyproject.toml README.md LICENSE vieval_plugin judges"
COPIED += " prompt_templates task_configs"
LACKING = """
import importlib.util as u
needed = "json-repair platformdirs scipy".split()
print(*(n for n in needed if not u.find_spec(n.replace("-", "_"))))
"""


def _install(site, run):
    """VIEval and what it needs and that environment lacks, beside it rather than in it."""
    source = site.parent / "source"  # a copy: building leaves files behind
    source.mkdir()
    copied = [ROOT / name for name in COPIED.split()]
    subprocess.run(["cp", "-rL", *copied, source], check=True)
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "--target", site)
    done = run(*install, source, *run("-c", LACKING).stdout.split())
    assert done.returncode == 0, done.stderr[-3000:]


def test_vllm_in_process_answers_as_the_server(model, in_vllm):
    """A bad question spoils no other, and what cannot be decoded is a failure without a call."""
    red, blue = image("red"), image("blue")
    words = likely(model, red)
    read = {"schema": reply_schema(2), "limit": 150, "text": QUESTION}
    sources = [one.source for one in (red, red, red, Image(b"no image"), blue)]
    asks = [{"image": base64.b64encode(one).decode(), **read} for one in sources]
    asks[1]["text"] = "dog " * 5000
    asks[2]["continuations"] = words
    given = {"model": model["root"], "asks": asks}
    replies, (calls, tokens, failures) = in_vllm(IN_PROCESS, given)
    kinds = ["Text", "Failure", "Probabilities", "Failure", "Text"]
    assert [reply["kind"] for reply in replies] == kinds
    first, long, likelihoods, undecoded, last = replies
    asked = Likelihood((Message("user", (red, QUESTION)),), tuple(words), ("q",))
    *by_server, known = ask(model, chat(red), chat(blue), asked)
    for reply, same in zip((first, last), by_server, strict=True):
        assert TWO_SCORES.match(reply["text"])
        wanted = json.loads(json.dumps(dataclasses.asdict(same)))
        assert reply == {"kind": "Text", **wanted}
    assert long["status"] == "api_error"
    assert "4096" in long["reason"]
    assert undecoded["status"] == "tool_error"
    assert likelihoods["low"] == likelihoods["high"]
    assert likelihoods["low"] == pytest.approx(known.low, rel=1e-3, abs=0)
    assert (calls, len(failures)) == (4, 2)
    assert tokens == sum(one.input_tokens for one in by_server)


def test_every_reply_of_t2i_eval_parses_under_schemas(
    lmms_eval, model, tmp_path, monkeypatch
):
    pairs.write(tmp_path, 6)
    assert main(["prepare", "t2i_eval_bench", "--root", str(tmp_path)]) == 0
    options, out = tmp_path / "v.yaml", tmp_path / "out"
    options.write_text("store: {use: false}\nstatistics: {draws: 50}\n")
    named = f"model={model['id']},base_url={URL},num_concurrent=4"
    flags = ["--model", "vieval_openai", "--model_args", named, "--log_samples"]
    flags += ["--tasks", "t2i_eval_bench_t2i_eval", "--output_path", out]
    done = lmms_eval(*flags, data=tmp_path, options=options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert "vieval: verdicts: " in done.stderr
    monkeypatch.setenv("VIEVAL_DATA", str(tmp_path))
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    records = open_results([out]).records
    steps = [step for record in records for step in record.verdict.trace]
    # random weights end no explanation, so that some replies are cut by the limit of tokens
    counts = Counter(str(step.status) for step in steps)
    assert counts.keys() <= {"ok", "repaired", "parse_failure"}
    assert counts["ok"]
    assert all(step.answer.startswith("{") for step in steps if step.answer)
