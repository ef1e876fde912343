"""The steps of bench/gpu_day.sh: each prints its part of the page.

python bench/gpu_day.py STEP FOLDER --size tiny
"""

from __future__ import annotations

import argparse
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
from collections.abc import Callable, Iterator, Mapping, Sequence
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
        (32, 128),
        10,
        512,
        128,
        (1, 8, 32),
        (1, 8),
        10,
        {"dtype": "bfloat16", "max_model_len": 8192},
    ),
    "tiny": Size(
        (2, 4),
        2,
        128,
        None,
        (1, 4),
        (1, 4),
        10,
        {
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
    start = time.perf_counter()
    if name == "tiny":
        tiny_model.build(folder / "model")
    else:
        import torch

        tiny_model.build(folder / "model", side=size.side)
        torch.manual_seed(0)
        model_7b(
            folder / "model", "cuda" if torch.cuda.is_available() else "cpu"
        ).save_pretrained(folder / "model")
    gigabytes = sum(file.stat().st_size for file in (folder / "model").iterdir()) / 1e9
    print(
        f"{machine()}. {gigabytes:.1f} GB of random weights in {time.perf_counter() - start:.0f} s "
        "(seed 0)."
    )


def model_7b(folder: Path, device: str) -> Any:
    """A model with random weights in the shape of 7B, with the vocabulary of the tiny model in
    the folder.
    """
    import torch
    from transformers import AutoConfig, Qwen2_5_VLForConditionalGeneration

    config = AutoConfig.from_pretrained(folder)
    for part, shape in (
        (config.text_config, TEXT_7B),
        (config.vision_config, VISION_7B),
    ):
        for key, value in shape.items():
            setattr(part, key, value)
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
        gpus = (
            subprocess.run(query, capture_output=True, text=True, check=True)
            .stdout.strip()
            .replace("\n", "; ")
        )
    except (OSError, subprocess.CalledProcessError):
        gpus = "no GPU"
    vllm = printed_by_vllm("vllm.__version__")
    return f"{gpus}, {os.cpu_count()} cores, Python {platform.python_version()}, vLLM {vllm}"


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


@contextmanager
def vllm_server(folder: Path, size: Size) -> Iterator[str]:
    """The address of vLLM's server on the model, up and asked once."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [
        f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}")
        for key, value in size.engine.items()
    ]
    structured = json.dumps({"backend": "xgrammar", "disable_any_whitespace": True})
    command = [
        os.environ["VLLM_PYTHON"],
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        str(folder / "model"),
    ]
    command += [
        "--served-model-name",
        MODEL,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--enable-prompt-tokens-details",
        *options,
    ]
    with (folder / "vllm.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--structured-outputs-config", structured],
            stdout=log,
            stderr=log,
        )
        try:
            while not is_up(f"http://127.0.0.1:{port}/health"):
                if process.poll() is not None:
                    raise SystemExit(
                        f"vLLM ended with exit code {process.returncode}; see {folder / 'vllm.log'}"
                    )
                time.sleep(1)
            yield f"http://127.0.0.1:{port}/v1"
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
    return [
        sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith(f"vllm:{name}_total")
        )
        for name in names
    ]


def server(folder: Path, size: Size, name: str) -> None:
    """Print wall times of the same questions by our client and by vLLM's, and then the judges
    from end to end.
    """
    with (
        vllm_client(folder) as client,
        vllm_server(folder, size) as url,
        tempfile.TemporaryDirectory() as temporary,
    ):
        files = common.photographs(
            Path(temporary), max(size.in_flight) * size.waves + 1, size.side
        )
        most = max(size.in_flight)
        common.in_own_process(
            judging, url, "viescore", "0shot", files[:most], most, size
        )  # the first calls compile and warm up
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
        for judge, setting in JUDGES:
            reset_prefix_cache(url)
            seen, hits = counted(url, *PREFIX_CACHE)
            chosen = files[: in_flight * size.waves]
            cost, calls, statuses = common.in_own_process(
                judging, url, judge, setting, chosen, in_flight, size
            )
            seen_after, hits_after = counted(url, *PREFIX_CACHE)
            share = (hits_after - hits) / max(seen_after - seen, 1)
            cpu = f"{1000 * cost.cpu / calls:.1f}"
            rows.add(
                judge,
                in_flight,
                calls,
                f"{cost.wall:.1f}",
                f"{calls / cost.wall:.2f}",
                f"{share:.0%}",
                cpu,
                statuses,
            )


class Rows:
    """A table in Markdown, printed a row at a time: a step that is ended leaves what it
    measured.
    """

    def __init__(self, header: list[str]) -> None:
        self.add(*header)
        self.add(*["---", *["---:"] * (len(header) - 1)])

    def add(self, *cells: object) -> None:
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def reset_prefix_cache(url: str) -> None:
    """Empty the server's prefix cache, so that who asks second has no advantage."""
    with urllib.request.urlopen(
        f"{url.removesuffix('/v1')}/reset_prefix_cache", data=b""
    ):
        pass


def first_questions(
    judge: str, setting: str | None, files: list[Path]
) -> list[Chat | Likelihood]:
    """The first question of a judge on each file."""
    prepared = prepare(judge, setting, common.options(None))
    return [next(prepared.program(sample))[0] for sample in common.samples(files)]


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
        return [
            replace(ask, schema=None)
            if isinstance(ask, Chat) and not self.structured
            else ask
            for ask in first_questions(self.judge, self.setting, files)
        ]

    def cells(
        self,
        client: subprocess.Popen[str],
        url: str,
        folder: Path,
        files: list[Path],
        size: Size,
    ) -> list[object]:
        """The row of the table."""
        *chosen, unmeasured = files[: self.in_flight * size.waves + 1]

        def by_ours() -> common.Cost:
            return common.in_own_process(asking, url, self, chosen, unmeasured, size)

        def by_theirs() -> float:
            return client_seconds(client, url, folder, self, chosen, size)

        first, their_first, their_second, second = [
            with_tokens(url, measure)
            for measure in (by_ours, by_theirs, by_theirs, by_ours)
        ]
        ours = first[0].wall, second[0].wall
        theirs = their_first[0], their_second[0]
        cpu = mean((first[0].cpu, second[0].cpu)) / len(chosen)
        return [
            self.judge,
            "with a schema" if self.structured else "free",
            self.in_flight,
            len(chosen),
            f"{mean(ours):.1f}",
            f"{mean(theirs):.1f}",
            ratio(ours, theirs)
            if is_same_work(second[1], their_second[1])
            else _UNEQUAL,
            token_words(second[1]),
            token_words(their_second[1]),
            f"{1000 * cpu:.1f}",
        ]


def is_same_work(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Whether two clients had the server read and write as many tokens, to a tenth.

    >>> is_same_work((2540, 1292), (1756, 1003)), is_same_work((1800, 990), (1756, 1003))
    (False, True)
    """
    pairs = zip(ours, theirs, strict=True)
    return all(abs(own - other) <= _SAME_WORK * max(own, other) for own, other in pairs)


def token_words(counts: Sequence[float]) -> str:
    return ", ".join(f"{count:,.0f}" for count in counts)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """How long ours took for each second of theirs; said to be nothing where two runs of the same
    differ by as much.

    >>> ratio((11.0, 11.2), (10.0, 10.1)), ratio((11.0, 12.0), (10.4, 11.2))
    ('1.10', '1.06, within the spread of two runs')
    """
    spread = max(max(times) - min(times) for times in (ours, theirs))
    value = f"{mean(ours) / mean(theirs):.2f}"
    if abs(mean(ours) - mean(theirs)) <= spread:
        return f"{value}, within the spread of two runs"
    return value


def with_tokens(url: str, measure: Callable[[], R]) -> tuple[R, list[float]]:
    """What a measurement gives from an empty prefix cache, and the tokens that the server counts
    in and out meanwhile.
    """
    reset_prefix_cache(url)
    before = counted(url, "prompt_tokens", "generation_tokens")
    measured = measure()
    after = counted(url, "prompt_tokens", "generation_tokens")
    return measured, [end - start for start, end in zip(before, after, strict=True)]


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
        progress = asyncio.run(
            common.judged(url, jobs, in_flight, max_tokens=size.answer_tokens)
        )
    return (
        cost,
        progress.usage.calls,
        ", ".join(f"{status} {n}" for status, n in progress.statuses.items()),
    )


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
    first = asks[0]
    body: dict[str, Any] = {"temperature": 0.0}
    if isinstance(first, Chat) and first.schema is not None:
        schema = {"name": "answer", "strict": True, "schema": first.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if isinstance(first, Likelihood):
        body |= {"logprobs": True, "top_logprobs": 20}
    limit = (size.answer_tokens or first.max_tokens) if isinstance(first, Chat) else 1
    arguments = ["--backend", "openai-chat", "--base-url", url.removesuffix("/v1")]
    arguments += [
        "--endpoint",
        "/v1/chat/completions",
        "--model",
        MODEL,
        "--tokenizer",
        str(folder / "model"),
    ]
    arguments += [
        "--dataset-name",
        "custom_image",
        "--dataset-path",
        str(rows),
        "--custom-ensure-client-side-data",
    ]
    arguments += ["--num-prompts", str(len(asks)), "--custom-output-len", str(limit)]
    arguments += [
        "--max-concurrency",
        str(compared.in_flight),
        "--extra-body",
        json.dumps(body),
        "--disable-tqdm",
    ]
    arguments += [
        "--save-result",
        "--result-dir",
        str(temporary),
        "--result-filename",
        "client.json",
    ]
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(json.dumps(arguments) + "\n")
    client.stdin.flush()
    if "measured\n" not in client.stdout:
        raise SystemExit(f"vLLM's benchmark ended early; see {folder / 'client.log'}")
    result = json.loads((temporary / "client.json").read_text())
    if result["completed"] < len(asks):
        raise SystemExit(
            f"{compared.judge}: vLLM's client completed {result['completed']} of {len(asks)}"
        )
    return float(result["duration"])


def content(ask: Chat | Likelihood) -> list[dict[str, Any]]:
    """The parts of an ask as the benchmark's data set has them."""
    parts = [part for message in ask.messages for part in message.parts]
    return [
        {"type": "image", "image": str(part.source)}
        if isinstance(part, Image)
        else {"type": "text", "text": part}
        for part in parts
    ]


def questions(
    temporary: Path, count: int, side: int
) -> dict[str, list[Chat | Likelihood]]:
    """First questions of VIEScore and VQAScore on photographs."""
    files = common.photographs(temporary, count, side)
    return {
        judge: first_questions(judge, setting, files) for judge, setting in COMPARED
    }


def engine(folder: Path, size: Size, name: str) -> None:
    """Print questions a second of vLLM in this process."""
    from vieval_plugin.backends.local.vllm import VLLMBackend

    structured = {"backend": "xgrammar", "disable_any_whitespace": True}
    arguments = {
        "sampling": Sampling(max_tokens=size.answer_tokens),
        "structured_outputs_config": structured,
    }
    backend = VLLMBackend(
        str(folder / "model"), usage=Usage(), **arguments, **size.engine
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
            rows.append(
                [
                    judge,
                    str(len(asks)),
                    f"{seconds:.1f}",
                    f"{len(asks) / seconds:.2f}",
                    ", ".join(kinds),
                ]
            )
    common.table(["judge", "questions", "s", "questions/s", "replies"], rows)


def run(*arguments: object) -> float:
    """Seconds of a command of VIEval; its output goes to the log."""
    start = time.perf_counter()
    done = subprocess.run(
        [*PYTHON, *map(str, arguments)], stdout=sys.stderr, check=False
    )
    if done.returncode:
        raise SystemExit(
            f"vieval {' '.join(map(str, arguments))} ended with exit code {done.returncode}"
        )
    return time.perf_counter() - start


def training_cells(
    batch: int, few: int, many: int, seconds: Mapping[int, Sequence[float]]
) -> list[str]:
    """The row of a batch; no step time where two runs of as many steps differ by as much."""
    longer = mean(seconds[many]) - mean(seconds[few])
    spread = max(max(times) - min(times) for times in seconds.values())
    cells = [str(batch), f"{mean(seconds[few]):.1f}"]
    if longer <= spread:
        return [*cells, "within the spread of two runs", ""]
    each = longer / (many - few)
    return [*cells, f"{each:.3f}", f"{batch / each:.2f}"]


def adiee(folder: Path, size: Size, name: str) -> None:
    """Print seconds of a training step of ADIEE's scorer: of two lengths of training, what the
    longer took in addition.
    """
    with tempfile.TemporaryDirectory() as temporary:
        turns = Path(temporary, "turns")
        data = Path(temporary, "data")
        run("data", "drawn", "--out", turns, "--count", 60, "--seed", 1)
        run("data", "adiee", turns, "--out", data, "--most", 2, "--seed", 1)
        rows = []
        for batch in size.training_batches:
            options = ("--base", folder / "model", "--batch-size", batch, "--seed", 1)
            few = size.training_steps
            many = 3 * size.training_steps
            seconds: dict[int, list[float]] = {few: [], many: []}
            for steps in (few, many, many, few):
                trained = Path(temporary, f"{batch}-{steps}")
                command = ("train", "adiee", data, "--out", trained, "--steps", steps)
                seconds[steps].append(run(*command, *options))
                shutil.rmtree(trained)  # it holds the whole model
            rows.append(training_cells(batch, few, many, seconds))
    common.table(
        ["batch", f"s of {size.training_steps} steps", "s a step", "edits/s"], rows
    )


def metrics(folder: Path, size: Size, name: str) -> None:
    """Print images a second of CLIP in the shape of ViT-B/32, by batch."""
    count = 64 if name == "tiny" else 2000
    for batch in (*size.batches, *([128] if name == "7b" else [])):
        options = [
            "--images",
            count,
            "--side",
            size.side,
            "--batch",
            batch,
            "--rounds",
            2,
        ]
        command = [sys.executable, "bench/scorer.py", *map(str, options)]
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
    from vieval_plugin.run.progress import Progress
    from vieval_plugin.run.router import refuse_questions
    from vieval_plugin.run.runner import judge_in_batches

    is_tiny = name == "tiny"
    if is_tiny:
        object_detector.SHORTER_SIDE = 96
        object_detector.LONGEST_SIDE = 160
    wanted = {"include": [{"class": "cat", "color": "red"}, {"class": "dog"}]}
    rows = Rows(["batch", "s", "images/s"])
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        classes = object_detector.COCO_CLASSES
        masks = tiny_segmenter.build(
            home / "masks", classes, **({} if is_tiny else SWIN_S)
        )
        colors = scorer.build(home / "colors")
        files = common.photographs(home, 8 if is_tiny else 1000, size.side)
        samples = [
            replace(sample, texts={"prompt": "a cat", "objects": json.dumps(wanted)})
            for sample in common.samples(files)
        ]
        prepared = prepare("objects", None, common.options(None))
        jobs = [Job(sample, prepared) for sample in samples]
        for batch in size.batches:
            scorers = Scorers(
                {
                    "objects": Scorer(str(masks), batch_size=batch),
                    "objects_color": Scorer(str(colors)),
                }
            )
            for count in (batch, len(jobs)):  # the first pays for loading
                start = time.perf_counter()
                outcomes = judge_in_batches(
                    jobs[:count], refuse_questions, Progress(), None, scorers=scorers
                )
                assert all(outcome.verdict.status.usable for outcome in outcomes)
                seconds = time.perf_counter() - start
            rows.add(str(batch), f"{seconds:.1f}", f"{len(jobs) / seconds:.1f}")


def ray(folder: Path, size: Size, name: str) -> None:
    """Print rows a second of CLIP by Ray's actors, one a GPU where there are GPUs."""
    import pyarrow
    import scorer
    from pyarrow import parquet

    count = 64 if name == "tiny" else 4000
    with tempfile.TemporaryDirectory() as temporary:
        clip = scorer.build(Path(temporary, "clip"))
        data = Path(temporary, "data")
        data.mkdir()
        files = common.photographs(Path(temporary), count, size.side)
        columns = {
            "uid": [file.stem for file in files],
            "image": [file.read_bytes() for file in files],
            "prompt": [
                f"a hillside at dusk, number {number}" for number in range(count)
            ],
        }
        parquet.write_table(
            pyarrow.table(columns),
            data / "part-0.parquet",
            row_group_size=max(count // 8, 1),
        )
        options = (
            "--judge",
            "clip_score",
            "--scorer",
            clip,
            "--rows-per-shard",
            max(count // 8, 1),
        )
        local = run("score", data, "--out", Path(temporary, "local"), *options)
        actors = run("score", data, "--out", Path(temporary, "ray"), *options, "--ray")
    rows = [
        [what, f"{s:.1f}", f"{count / s:.1f}"]
        for what, s in (("this process", local), ("Ray's actors", actors))
    ]
    common.table(["by", "s, with start", "rows/s"], rows)


def orders(folder: Path, size: Size, name: str) -> None:
    """Print the tokens that the server takes from its prefix cache, by the order of images and
    text.
    """
    rows = Rows(prefix_cache.HEADER)
    with vllm_server(folder, size) as url:
        for kind in ("tig", "tie"):
            for order in prefix_cache.ORDERS:
                server_url = url.removesuffix("/v1")
                rows.add(
                    *prefix_cache.row(server_url, MODEL, kind, size.side, order, 8)
                )


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
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="7b")
    given = parser.parse_args()
    STEPS[given.step](given.folder.absolute(), SIZES[given.size], given.size)


if __name__ == "__main__":
    main()
