"""The steps of bench/gpu_day.sh: each prints its part of the page.

python bench/gpu_day.py STEP FOLDER --size tiny
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any, ClassVar, TypeVar

import common
import prefix_cache

from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.judges.protocol import Chat, Image, Likelihood
from vieval_plugin.run.backbones import JUDGE, Backbones
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import prepare

R = TypeVar("R")
JUDGES = (("viescore", "0shot"), ("vqascore", None), ("cigeval", "no_grounding"))
COMPARED = JUDGES[:2]  # with vLLM's own client, within ten minutes
PREFIX_CACHE = ("prefix_cache_queries", "prefix_cache_hits")
TOKENS = ("prompt_tokens", "generation_tokens")
STRUCTURED = {"backend": "xgrammar", "disable_any_whitespace": True}
_SAME_WORK = 0.1
_UNEQUAL = "not the same work"
MODEL = "fake"  # under which name common.backbone asks
PYTHON = [sys.executable, "-m", "vieval_plugin"]


@dataclass(frozen=True)
class Size:
    """How much a step measures."""

    in_flight: tuple[int, ...]
    waves: int  # questions for each request in flight
    side: int
    answer_tokens: int | None  # random weights end no answer by themselves
    batches: tuple[int, ...]
    training_batches: tuple[int, ...]
    training_steps: int
    engine: dict[str, Any]


SIZES = {
    "7b": Size(
        in_flight=(32, 128),
        waves=10,
        side=512,
        answer_tokens=128,
        batches=(1, 8, 32),
        training_batches=(1, 8),
        training_steps=10,
        engine={
            "dtype": "bfloat16",
            "max_model_len": 8192,
        },
    ),
    "tiny": Size(
        in_flight=(2, 4),
        waves=2,
        side=128,
        answer_tokens=None,
        batches=(1, 4),
        training_batches=(1, 4),
        training_steps=10,
        engine={
            "dtype": "float32",
            "max_model_len": 8192,
            "max_num_seqs": 4,
            "enforce_eager": True,
        },
    ),
}

# `vllm bench serve` without its command, which looks for the metadata of a package called vllm:
# builds for CPUs have other names; a run for each line of arguments, as importing it takes longer
# than most runs
CLIENT = """
import argparse, json, sys
from vllm.benchmarks import serve
parser = argparse.ArgumentParser()
serve.add_cli_args(parser)
for line in sys.stdin:
    serve.main(parser.parse_args(json.loads(line)))
    print(flush=True)
    print("measured", flush=True)
"""

# the published shape of Qwen2.5-VL-7B (its config.json), without its vocabulary: tokens are those
# of the tests' tokenizer
TEXT_7B = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "layer_types": ["full_attention"] * 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 1e6,
        "mrope_section": [16, 24, 24],
    },
}
VISION_7B = {
    "depth": 32,
    "hidden_size": 1280,
    "intermediate_size": 3420,
    "num_heads": 16,
    "out_hidden_size": 3584,
    "fullatt_block_indexes": [7, 15, 23, 31],
}


def weights(folder: Path, size: Size, name: str) -> None:
    """Write a model with random weights and its processor."""
    import tiny_model

    if name != "tiny":
        require_gpu()
    model = folder / "model"
    start = time.perf_counter()
    if name == "tiny":
        tiny_model.build(model)
    else:
        import torch

        tiny_model.build(model, side=size.side)
        torch.manual_seed(0)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model_7b(model, device).save_pretrained(model)
    seconds = time.perf_counter() - start
    gigabytes = sum(file.stat().st_size for file in model.iterdir()) / 1e9
    print(
        f"{machine()}. {gigabytes:.1f} GB of random weights in {seconds:.0f} s (seed 0)."
    )


def model_7b(folder: Path, device: str) -> Any:
    """A model with random weights in the shape of 7B, with the vocabulary of the tiny model in
    the folder.
    """
    import torch
    from transformers import AutoConfig, Qwen2_5_VLForConditionalGeneration

    config = AutoConfig.from_pretrained(folder)
    for key, value in TEXT_7B.items():
        setattr(config.text_config, key, value)
    for key, value in VISION_7B.items():
        setattr(config.vision_config, key, value)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        return Qwen2_5_VLForConditionalGeneration(config)


def machine() -> str:
    """The accelerator, or the processor, and the versions that matter."""
    query = [
        "nvidia-smi",
        "--query-gpu=name,memory.total,driver_version",
        "--format=csv,noheader",
    ]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        gpus = "no GPU"
    else:
        gpus = done.stdout.strip().replace("\n", "; ")
    python = platform.python_version()
    vllm = printed_by_vllm("vllm.__version__")
    return f"{gpus}, {os.cpu_count()} cores, Python {python}, vLLM {vllm}"


def printed_by_vllm(expression: str) -> str:
    """The value of an expression where vLLM is imported; its last line, as imports may print."""
    script = f"import vllm, vllm.platforms; print({expression})"
    done = subprocess.run(
        [os.environ["VLLM_PYTHON"], "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    return "".join(done.stdout.strip().splitlines()[-1:])


def require_gpu() -> None:
    """SystemExit where vLLM would run on the processor, which takes days for weights of this
    size.
    """
    if printed_by_vllm("vllm.platforms.current_platform.is_cpu()") != "False":
        raise SystemExit(
            f"{os.environ['VLLM_PYTHON']} has no vLLM for a GPU; install one there, or measure "
            "with SIZE=tiny"
        )


def server_command(model: Path, size: Size, port: int) -> list[str]:
    """The command of vLLM's server on a port."""
    command = [os.environ["VLLM_PYTHON"], "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", str(model), "--served-model-name", MODEL]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    command += ["--enable-prompt-tokens-details"]
    for key, value in size.engine.items():
        option = f"--{key.replace('_', '-')}"
        if value is not True:
            option += f"={value}"
        command.append(option)
    return [*command, "--structured-outputs-config", json.dumps(STRUCTURED)]


@contextmanager
def vllm_server(folder: Path, size: Size) -> Iterator[str]:
    """The address of vLLM's server on the model, up and asked once."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    log_file = folder / "vllm.log"
    with log_file.open("w") as log:
        command = server_command(folder / "model", size, port)
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            while not is_up(f"{address}/health"):
                if process.poll() is not None:
                    raise SystemExit(
                        f"vLLM ended with exit code {process.returncode}; see {log_file}"
                    )
                time.sleep(1)
            yield f"{address}/v1"
        finally:
            process.terminate()
            process.wait()


@contextmanager
def vllm_client(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of vLLM's benchmark client; its log is beside the server's."""
    command = [os.environ["VLLM_PYTHON"], "-c", CLIENT]
    with (folder / "client.log").open("w") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(url):
            return True
    except (urllib.error.URLError, ConnectionError):
        return False


def counted(url: str, *names: str) -> list[float]:
    """Totals of the server's own counters."""
    with urllib.request.urlopen(url.removesuffix("/v1") + "/metrics") as response:
        lines = response.read().decode().splitlines()
    totals = []
    for name in names:
        counters = [line for line in lines if line.startswith(f"vllm:{name}_total")]
        values = [line.rpartition(" ")[2] for line in counters]
        totals.append(sum(map(float, values)))
    return totals


def server(folder: Path, size: Size, name: str) -> None:
    """Print wall times of the same questions by our client and by vLLM's, and then the judges
    from end to end.
    """
    most = max(size.in_flight)
    with (
        vllm_client(folder) as client,
        vllm_server(folder, size) as url,
        tempfile.TemporaryDirectory() as temporary,
    ):
        pictures = most * size.waves + 1
        files = common.photographs(Path(temporary), pictures, size.side)
        # the first calls compile and warm up
        common.in_own_process(
            judging, url, "viescore", "0shot", files[:most], most, size
        )
        print_comparisons(client, url, folder, files, size)
        print_verdicts(url, files, size)


class Rows:
    """A table in Markdown, printed a row at a time: a step that is ended leaves what it
    measured.
    """

    def __init__(self, header: list[str]) -> None:
        self.add(*header)
        self.add(*["---", *["---:"] * (len(header) - 1)])

    def add(self, *cells: object) -> None:
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def print_comparisons(
    client: subprocess.Popen[str], url: str, folder: Path, files: list[Path], size: Size
) -> None:
    """Print wall times of the same questions by our client and by vLLM's."""
    print(
        "The first question of each sample, from an empty prefix cache, by ours, theirs, "
        "theirs, ours (theirs is `vllm bench serve`):\n"
    )
    rows = Rows(Comparison.HEADER)
    runs = itertools.product(COMPARED, size.in_flight, (True, False))
    for (judge, setting), in_flight, structured in runs:
        asks = first_questions(judge, setting, files[: in_flight * size.waves])
        if not structured and not any(has_schema(ask) for ask in asks):
            continue
        compared = Comparison(judge, setting, structured, in_flight)
        rows.add(*compared.cells(client, url, folder, files, size))


def print_verdicts(url: str, files: list[Path], size: Size) -> None:
    """Print what the judges take from end to end."""
    print("\nWhole verdicts:\n")
    rows = Rows(
        [
            "judge",
            "in flight",
            "calls",
            "s",
            "calls/s",
            "prefix cache",
            "CPU ms a call",
            "verdicts",
        ]
    )
    in_flight = size.in_flight[0]
    pictures = files[: in_flight * size.waves]
    for judge, setting in JUDGES:
        reset_prefix_cache(url)
        queries_before, hits_before = counted(url, *PREFIX_CACHE)
        cost, calls, statuses = common.in_own_process(
            judging, url, judge, setting, pictures, in_flight, size
        )
        queries, hits = counted(url, *PREFIX_CACHE)
        share = (hits - hits_before) / max(queries - queries_before, 1)
        rows.add(
            judge,
            in_flight,
            calls,
            f"{cost.wall:.1f}",
            f"{calls / cost.wall:.2f}",
            f"{share:.0%}",
            f"{1000 * cost.cpu / calls:.1f}",
            statuses,
        )


def reset_prefix_cache(url: str) -> None:
    """Empty the server's prefix cache, so that who asks second has no advantage."""
    address = f"{url.removesuffix('/v1')}/reset_prefix_cache"
    with urllib.request.urlopen(address, data=b""):
        pass


def first_questions(
    judge: str, setting: str | None, files: list[Path]
) -> list[Chat | Likelihood]:
    """The first question of a judge on each file."""
    prepared = prepare(judge, setting, common.options(None))
    questions = []
    for sample in common.samples(files):
        asks = next(prepared.program(sample))
        questions.append(asks[0])
    return questions


def has_schema(ask: Chat | Likelihood) -> bool:
    return isinstance(ask, Chat) and ask.schema is not None


@dataclass(frozen=True)
class Comparison:
    """The same questions by our client and by vLLM's, in turns that favour neither."""

    judge: str
    setting: str | None
    structured: bool
    in_flight: int

    HEADER: ClassVar = [
        "judge",
        "answers",
        "in flight",
        "questions",
        "s",
        "s of vLLM's client",
        "ratio",
        "tokens in, out",
        "those of vLLM's client",
        "CPU ms a question",
    ]

    def asks(self, files: list[Path]) -> list[Chat | Likelihood]:
        """The questions, without their schemas where answers are free."""
        questions = first_questions(self.judge, self.setting, files)
        if self.structured:
            return questions
        return [drop_schema(ask) for ask in questions]

    def cells(
        self,
        client: subprocess.Popen[str],
        url: str,
        folder: Path,
        files: list[Path],
        size: Size,
    ) -> list[object]:
        """The row of the table."""
        *measured, unmeasured = files[: self.in_flight * size.waves + 1]

        def by_ours() -> common.Cost:
            return common.in_own_process(asking, url, self, measured, unmeasured, size)

        def by_theirs() -> float:
            return client_seconds(client, url, folder, self, measured, size)

        first, _ = with_tokens(url, by_ours)
        their_first, _ = with_tokens(url, by_theirs)
        their_second, their_tokens = with_tokens(url, by_theirs)
        second, tokens = with_tokens(url, by_ours)
        ours = (first.wall, second.wall)
        theirs = (their_first, their_second)
        compared = _UNEQUAL
        if is_same_work(tokens, their_tokens):
            compared = ratio(ours, theirs)
        cpu = mean((first.cpu, second.cpu)) / len(measured)
        return [
            self.judge,
            "with a schema" if self.structured else "free",
            self.in_flight,
            len(measured),
            f"{mean(ours):.1f}",
            f"{mean(theirs):.1f}",
            compared,
            token_words(tokens),
            token_words(their_tokens),
            f"{1000 * cpu:.1f}",
        ]


def drop_schema(ask: Chat | Likelihood) -> Chat | Likelihood:
    if isinstance(ask, Chat):
        return replace(ask, schema=None)
    return ask


def is_same_work(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether two clients had the server read and write as many tokens, to a tenth.

    >>> is_same_work((2540, 1292), (1756, 1003)), is_same_work((1800, 990), (1756, 1003))
    (False, True)
    """
    for own, other in zip(ours, theirs, strict=True):
        if abs(own - other) > _SAME_WORK * max(own, other):
            return False
    return True


def token_words(counts: Sequence[float]) -> str:
    return ", ".join(f"{count:,.0f}" for count in counts)


def spread_of(runs: Iterable[Sequence[float]]) -> float:
    """How far apart runs of the same are at most."""
    return max(max(times) - min(times) for times in runs)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """How long ours took for each second of theirs; said to be nothing where two runs of the same
    differ by as much.

    >>> ratio((11.0, 11.2), (10.0, 10.1)), ratio((11.0, 12.0), (10.4, 11.2))
    ('1.10', '1.06, within the spread of two runs')
    """
    our_mean = mean(ours)
    their_mean = mean(theirs)
    value = f"{our_mean / their_mean:.2f}"
    if abs(our_mean - their_mean) <= spread_of((ours, theirs)):
        return f"{value}, within the spread of two runs"
    return value


def with_tokens(url: str, measure: Callable[[], R]) -> tuple[R, list[float]]:
    """What a measurement gives from an empty prefix cache, and the tokens that the server counts
    in and out meanwhile.
    """
    reset_prefix_cache(url)
    read_before, written_before = counted(url, *TOKENS)
    measured = measure()
    read, written = counted(url, *TOKENS)
    return measured, [read - read_before, written - written_before]


def asking(
    url: str, compared: Comparison, files: list[Path], unmeasured: Path, size: Size
) -> common.Cost:
    """The cost of asking a judge's first questions by our client alone, once they are prepared
    and the server's abilities are known.
    """

    async def ask_all() -> common.Cost:
        waiting = iter(compared.asks(files))
        [probe] = compared.asks([unmeasured])
        backbone = common.backbone(url, compared.in_flight, size.answer_tokens)
        async with Backbones({JUDGE: backbone}, None, Usage()) as backbones:

            async def work() -> None:
                for ask in waiting:
                    await backbones.answer(ask)

            await backbones.answer(probe)
            with common.costs() as cost:
                await asyncio.gather(*(work() for _ in range(compared.in_flight)))
            return cost

    return asyncio.run(ask_all())


def judging(
    url: str,
    judge: str,
    setting: str | None,
    files: list[Path],
    in_flight: int,
    size: Size,
) -> tuple[common.Cost, int, str]:
    """The cost of judging the files, with the calls that it takes and how the verdicts end."""
    prepared = prepare(judge, setting, common.options(None))
    jobs = [Job(sample, prepared) for sample in common.samples(files)]
    with common.costs() as cost:
        run = common.judged(url, jobs, in_flight, max_tokens=size.answer_tokens)
        progress = asyncio.run(run)
    statuses = [f"{status} {n}" for status, n in progress.statuses.items()]
    return cost, progress.usage.calls, ", ".join(statuses)


def client_seconds(
    client: subprocess.Popen[str],
    url: str,
    folder: Path,
    compared: Comparison,
    files: list[Path],
    size: Size,
) -> float:
    """Seconds of `vllm bench serve` for the first questions of a judge on these files."""
    asks = compared.asks(files)
    temporary = files[0].parent
    rows = temporary / "questions.jsonl"
    rows.write_text(
        "".join(json.dumps({"content": content(ask)}) + "\n" for ask in asks)
    )
    arguments = client_arguments(asks[0], len(asks), compared.in_flight, size)
    arguments += ["--base-url", url.removesuffix("/v1")]
    arguments += ["--tokenizer", str(folder / "model"), "--dataset-path", str(rows)]
    arguments += ["--result-dir", str(temporary), "--result-filename", "client.json"]
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(json.dumps(arguments) + "\n")
    client.stdin.flush()
    if "measured\n" not in client.stdout:
        raise SystemExit(f"vLLM's benchmark ended early; see {folder / 'client.log'}")
    result = json.loads((temporary / "client.json").read_text())
    completed = result["completed"]
    if completed < len(asks):
        raise SystemExit(
            f"{compared.judge}: vLLM's client completed {completed} of {len(asks)}"
        )
    return float(result["duration"])


def client_arguments(
    ask: Chat | Likelihood, count: int, in_flight: int, size: Size
) -> list[str]:
    """What vLLM's client is told of so many questions like this one."""
    body: dict[str, Any] = {"temperature": 0.0}
    limit = 1
    if isinstance(ask, Chat):
        limit = size.answer_tokens or ask.max_tokens
    if isinstance(ask, Chat) and ask.schema is not None:
        body["response_format"] = common.response_format(ask.schema)
    if isinstance(ask, Likelihood):
        body |= {"logprobs": True, "top_logprobs": 20}
    arguments = ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
    arguments += ["--model", MODEL, "--dataset-name", "custom_image"]
    arguments += ["--custom-ensure-client-side-data", "--num-prompts", str(count)]
    arguments += ["--custom-output-len", str(limit), "--extra-body", json.dumps(body)]
    arguments += ["--max-concurrency", str(in_flight), "--disable-tqdm"]
    return [*arguments, "--save-result"]


def content(ask: Chat | Likelihood) -> list[dict[str, Any]]:
    """The parts of an ask as the benchmark's data set has them."""
    entries = []
    for message in ask.messages:
        for part in message.parts:
            if isinstance(part, Image):
                entries.append({"type": "image", "image": str(part.source)})
            else:
                entries.append({"type": "text", "text": part})
    return entries


def questions(
    temporary: Path, count: int, side: int
) -> dict[str, list[Chat | Likelihood]]:
    """First questions of VIEScore and VQAScore on photographs."""
    files = common.photographs(temporary, count, side)
    asks = {}
    for judge, setting in COMPARED:
        asks[judge] = first_questions(judge, setting, files)
    return asks


def engine(folder: Path, size: Size, name: str) -> None:
    """Print questions a second of vLLM in this process."""
    from vieval_plugin.backends.local.vllm import VLLMBackend

    backend = VLLMBackend(
        str(folder / "model"),
        usage=Usage(),
        sampling=Sampling(max_tokens=size.answer_tokens),
        structured_outputs_config=STRUCTURED,
        **size.engine,
    )
    timed(backend, size, max(size.in_flight) * size.waves)


def transformers(folder: Path, size: Size, name: str) -> None:
    """Print questions a second of transformers in this process, by batch."""
    from vieval_plugin.backends.local.huggingface import TransformersBackend

    for batch in size.batches:
        print(f"Batches of {batch}:\n")
        sampling = Sampling(max_tokens=size.answer_tokens)
        backend = TransformersBackend(
            str(folder / "model"), usage=Usage(), sampling=sampling, batch_size=batch
        )
        timed(backend, size, max(4, 2 * batch))
        del backend


def timed(backend: Any, size: Size, count: int) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for judge, asks in questions(Path(temporary), count, size.side).items():
            backend.answer([(0, asks[0])], [0])
            start = time.perf_counter()
            replies = backend.answer(list(enumerate(asks)), [0] * len(asks))
            seconds = time.perf_counter() - start
            kinds = sorted({type(reply).__name__ for reply in replies})
            rate = len(asks) / seconds
            rows.append([judge, len(asks), seconds, rate, ", ".join(kinds)])
    columns = {
        "judge": "",
        "questions": "",
        "s": ".1f",
        "questions/s": ".2f",
        "replies": "",
    }
    common.table(columns, rows)


def run(*arguments: object) -> float:
    """Seconds of a command of VIEval; its output goes to the log."""
    start = time.perf_counter()
    options = list(map(str, arguments))
    done = subprocess.run([*PYTHON, *options], stdout=sys.stderr, check=False)
    if done.returncode:
        raise SystemExit(
            f"vieval {' '.join(options)} ended with exit code {done.returncode}"
        )
    return time.perf_counter() - start


def training_cells(
    batch: int, few: int, many: int, seconds: Mapping[int, Sequence[float]]
) -> list[str]:
    """The row of a batch; no step time where two runs of as many steps differ by as much."""
    longer = mean(seconds[many]) - mean(seconds[few])
    cells = [str(batch), f"{mean(seconds[few]):.1f}"]
    if longer <= spread_of(seconds.values()):
        return [*cells, "within the spread of two runs", ""]
    each = longer / (many - few)
    return [*cells, f"{each:.3f}", f"{batch / each:.2f}"]


def adiee(folder: Path, size: Size, name: str) -> None:
    """Print seconds of a training step of ADIEE's scorer: of two lengths of training, what the
    longer took in addition.
    """
    few = size.training_steps
    many = 3 * size.training_steps
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        turns = Path(temporary, "turns")
        data = Path(temporary, "data")
        run("data", "drawn", "--out", turns, "--count", 60, "--seed", 1)
        run("data", "adiee", turns, "--out", data, "--most", 2, "--seed", 1)
        for batch in size.training_batches:
            options = ("--base", folder / "model", "--batch-size", batch, "--seed", 1)
            seconds: dict[int, list[float]] = {few: [], many: []}
            for steps in (few, many, many, few):
                trained = Path(temporary, f"{batch}-{steps}")
                command = ("train", "adiee", data, "--out", trained, "--steps", steps)
                seconds[steps].append(run(*command, *options))
                shutil.rmtree(trained)  # it holds the whole model
            rows.append(training_cells(batch, few, many, seconds))
    common.table(["batch", f"s of {few} steps", "s a step", "edits/s"], rows)


def metrics(folder: Path, size: Size, name: str) -> None:
    """Print images a second of CLIP in the shape of ViT-B/32, by batch."""
    count = 64
    batches = list(size.batches)
    if name == "7b":
        count = 2000
        batches.append(128)
    for batch in batches:
        command = [sys.executable, "bench/scorer.py", "--images", str(count)]
        command += ["--side", str(size.side), "--batch", str(batch), "--rounds", "2"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        print(f"```text\n{done.stdout.strip()}\n```\n")


#: Shape of GenEval's detector, Mask2Former with Swin-S.
SWIN_S: dict[str, Any] = {
    "backbone": {
        "embed_dim": 96,
        "depths": [2, 2, 18, 2],
        "num_heads": [3, 6, 12, 24],
        "window_size": 7,
    },
    "feature_size": 256,
    "mask_feature_size": 256,
    "hidden_dim": 256,
    "encoder_feedforward_dim": 1024,
    "dim_feedforward": 2048,
    "encoder_layers": 6,
    "decoder_layers": 10,
    "num_attention_heads": 8,
    "num_queries": 100,
}


def objects(folder: Path, size: Size, name: str) -> None:
    """Print images a second of `objects`, with random weights in the shape of GenEval's networks,
    by batch.
    """
    import scorer
    import tiny_segmenter

    from vieval_plugin.backends.image_tools import object_detector
    from vieval_plugin.backends.metrics.network_metrics import Scorers
    from vieval_plugin.config import Scorer

    count = 1000
    shape = SWIN_S
    if name == "tiny":
        count = 8
        shape = {}
        object_detector.SHORTER_SIDE = 96
        object_detector.LONGEST_SIDE = 160
    classes = object_detector.COCO_CLASSES
    rows = Rows(["batch", "s", "images/s"])
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        masks = tiny_segmenter.build(home / "masks", classes, **shape)
        colors = scorer.build(home / "colors")
        jobs = object_jobs(common.photographs(home, count, size.side))
        for batch in size.batches:
            networks = {
                "objects": Scorer(str(masks), batch_size=batch),
                "objects_color": Scorer(str(colors)),
            }
            scorers = Scorers(networks)
            judge_objects(jobs[:batch], scorers)  # pays for loading
            seconds = judge_objects(jobs, scorers)
            rows.add(batch, f"{seconds:.1f}", f"{len(jobs) / seconds:.1f}")


def object_jobs(files: list[Path]) -> list[Job]:
    """Jobs of `objects` on pictures."""
    wanted = {"include": [{"class": "cat", "color": "red"}, {"class": "dog"}]}
    texts = {"prompt": "a cat", "objects": json.dumps(wanted)}
    prepared = prepare("objects", None, common.options(None))
    jobs = []
    for sample in common.samples(files):
        jobs.append(Job(replace(sample, texts=texts), prepared))
    return jobs


def judge_objects(jobs: list[Job], scorers: Any) -> float:
    """Seconds that the jobs take."""
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.run.router import refuse_questions
    from vieval_plugin.run.runner import judge_in_batches

    start = time.perf_counter()
    outcomes = judge_in_batches(
        jobs, refuse_questions, Progress(), None, scorers=scorers
    )
    assert all(outcome.verdict.status.usable for outcome in outcomes)
    return time.perf_counter() - start


def ray(folder: Path, size: Size, name: str) -> None:
    """Print rows a second of CLIP by Ray's actors, one a GPU where there are GPUs."""
    import pyarrow
    import scorer
    from pyarrow import parquet

    count = 64 if name == "tiny" else 4000
    shard = max(count // 8, 1)
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        clip = scorer.build(home / "clip")
        data = home / "data"
        data.mkdir()
        files = common.photographs(home, count, size.side)
        samples = common.samples(files)
        columns = {
            "uid": [file.stem for file in files],
            "image": [file.read_bytes() for file in files],
            "prompt": [sample.texts["prompt"] for sample in samples],
        }
        path = data / "part-0.parquet"
        parquet.write_table(pyarrow.table(columns), path, row_group_size=shard)
        options = ["--judge", "clip_score", "--scorer", clip, "--rows-per-shard", shard]
        local = run("score", data, "--out", home / "local", *options)
        actors = run("score", data, "--out", home / "ray", *options, "--ray")
    rows = [
        ["this process", local, count / local],
        ["Ray's actors", actors, count / actors],
    ]
    columns = {
        "by": "",
        "s, with start": ".1f",
        "rows/s": ".1f",
    }
    common.table(columns, rows)


def orders(folder: Path, size: Size, name: str) -> None:
    """Print the tokens that the server takes from its prefix cache, by the order of images and
    text.
    """
    rows = Rows(prefix_cache.HEADER)
    with vllm_server(folder, size) as url:
        server_url = url.removesuffix("/v1")
        for kind in ("tig", "tie"):
            for order in prefix_cache.ORDERS:
                cells = prefix_cache.row(server_url, MODEL, kind, size.side, order, 8)
                rows.add(*cells)


STEPS = {
    step.__name__: step
    for step in (
        weights,
        server,
        orders,
        engine,
        transformers,
        adiee,
        metrics,
        objects,
        ray,
    )
}


def main() -> None:
    parser = common.script_parser(common.first_line(__doc__))
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="7b")
    given = parser.parse_args()
    STEPS[given.step](given.folder.absolute(), SIZES[given.size], given.size)


if __name__ == "__main__":
    main()
