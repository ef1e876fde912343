"""What the benchmarks share: pictures like photographs, the fake server in its own process, what
a run costs, a table.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import multiprocessing
import os
import platform
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar

import aiohttp
import numpy as np
import PIL.Image

from vieval_plugin.config import Backbone, Config, StoreOptions
from vieval_plugin.judges.protocol import (
    Chat,
    Image,
    Program,
    Reply,
    Sample,
    SampleId,
    Status,
    Verdict,
)
from vieval_plugin.records import Provenance
from vieval_plugin.run.answerers import opened_store
from vieval_plugin.run.backbones import JUDGE, Backbones
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.router import Question
from vieval_plugin.run.runner import judge_each
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.stats.agreement import annotator_mean

SERVER = Path(__file__).parents[1] / "tests" / "fake_server.py"
Answer: TypeAlias = Callable[[Question, int], Awaitable[Reply]]
P = ParamSpec("P")
R = TypeVar("R")
IMAGENHUB_FOLDER = "a folder with imagenhub/human_ratings and viescore_logs"


def script_parser(description: str | None, **numbers: int) -> argparse.ArgumentParser:
    """Create a parser with a script's docstring as help and whole numbers as options."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a fake server."""
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument(
        "--capacity",
        type=int,
        default=32,
        help="of the server; requests in flight, too",
    )


def first_line(docstring: str | None) -> str:
    """The summary of a script."""
    return (docstring or "").splitlines()[0]


def photographs(folder: Path, count: int, side: int) -> list[Path]:
    """JPEG files of smooth shapes under fine grain, all different: about 160 KB each (1.4 MB as
    PNG) at side 1024.
    """
    rng = np.random.default_rng(0)
    field = rng.normal(128, 3.2, (side, side, 1))
    for cells, height in ((4, 70), (16, 40), (64, 20), (256, 8)):
        colours = rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        patch = PIL.Image.fromarray(colours)
        smooth = patch.resize((side, side), PIL.Image.Resampling.BICUBIC)
        relief = np.asarray(smooth, float) / 128 - 1
        field = field + relief * height
    pixels = np.clip(field, 0, 255).astype(np.uint8)
    files = []
    for number in range(count):
        moved = np.roll(pixels, rng.integers(0, side, 2), axis=(0, 1))
        bits = np.unpackbits(np.array([number], ">u4").view(np.uint8))
        moved[:8, :32] = bits[:, None] * 255  # no two are alike
        file = folder / f"{number:05}.jpg"
        PIL.Image.fromarray(moved).save(file, "JPEG", quality=85)
        files.append(file)
    return files


def copies(folder: Path, count: int, side: int) -> list[Path]:
    """JPEG files that differ only in a few bytes behind the picture: quickly made."""
    [first] = photographs(folder, 1, side)
    picture = first.read_bytes()
    files = []
    for number in range(count):
        file = folder / f"copy{number:05}.jpg"
        file.write_bytes(picture + b"%08d" % number)
        files.append(file)
    return files


def samples(files: Iterable[Path]) -> Iterator[Sample]:
    """A sample of text-guided generation for each file."""
    for number, file in enumerate(files):
        identity = SampleId("own", "tig", "", str(number))
        texts = {"prompt": f"a hillside at dusk, number {number}"}
        yield Sample(identity, {"output": Image(file)}, texts)


def backbone(
    url: str, concurrent: int, max_tokens: int | None = None, model: str = "fake"
) -> Backbone:
    return Backbone(
        model=model, base_url=(url,), num_concurrent=concurrent, max_tokens=max_tokens
    )


def options(store: Path | None) -> Config:
    """The default options, with replies kept in a file or nowhere."""
    return Config(store=StoreOptions(use=store is not None, path=store))


async def judged(
    url: str,
    jobs: Iterable[Job],
    concurrent: int,
    store: Path | None = None,
    on_outcome: Callable[[int, Outcome], None] = lambda *_: None,
    through: Callable[[Answer], Answer] = lambda answer: answer,
    max_tokens: int | None = None,
    model: str = "fake",
) -> Progress:
    """Judge as a run does, with as many samples under way as requests; `through` may wrap who
    answers the questions.
    """
    progress = Progress()
    config = options(store)
    with opened_store(config) as kept:
        async with Backbones(
            {JUDGE: backbone(url, concurrent, max_tokens, model)}, kept, progress.usage
        ) as backbones:
            answer = through(backbones.answer)
            await judge_each(
                jobs,
                answer,
                progress,
                on_outcome,
                live=concurrent,
                store=kept,
                bar=False,
            )
    return progress


def recorded_samples(
    data: Path, logs: str, setting: str = "0shot"
) -> Iterator[tuple[Sample, Verdict, Provenance]]:
    """ImagenHub's rated samples by part, with the verdicts of one of the VIEScore authors' logs."""
    # not at the top: what runs under load would hold them in memory
    from vieval_plugin.benchmarks import registry
    from vieval_plugin.results import replay

    benchmark = registry.benchmark("imagenhub")
    recording = replay.load(data / "viescore_logs" / logs, "viescore")
    defaults = Config()
    for part in benchmark.parts:
        for sample in benchmark.load(data, part):
            verdict, source = replay.replayed(
                recording, sample.id, 0, "viescore", setting, "judge", defaults
            )
            yield sample, verdict, source


def mean_rating(ratings: Sequence[float]) -> float:
    """Annotators' mean rating of one image."""
    [mean] = annotator_mean([[rating] for rating in ratings])
    return float(mean)


def require_ok(progress: Progress, count: int) -> None:
    """Require that a run judged so many samples, all without a fault."""
    assert dict(progress.statuses) == {Status.OK: count}, progress.lines()


@contextmanager
def fake_server(**settings: float) -> Iterator[str]:
    """The address of the tests' fake server in a process of its own, started with these options."""
    command = [sys.executable, str(SERVER), "--port", "0"]
    for name, value in settings.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()


def local_address(line: str) -> str:
    """The first address of this machine in a line that a server printed.

    >>> local_address("serving at http://127.0.0.1:8080 (open it); health at ...")
    'http://127.0.0.1:8080'
    """
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    if found is None:
        raise SystemExit(f"the server printed no address: {line.strip()}")
    return found[0]


def served(url: str) -> dict[str, Any]:
    """What the fake server counted since the last call: requests, statuses, distinct prompts."""
    address = url.removesuffix("/v1") + "/stats"
    with urllib.request.urlopen(address) as response:
        counted: dict[str, Any] = json.load(response)
    with urllib.request.urlopen(address + "/reset", data=b""):
        return counted


@dataclass
class Cost:
    """What a stretch of a process took: seconds of wall time and of CPU (all threads), MiB
    before and at the highest.
    """

    wall: float = 0.0
    cpu: float = 0.0
    before: float = 0.0
    peak: float = 0.0


@contextmanager
def costs() -> Iterator[Cost]:
    """Measure the block; the highest memory is that of the process so far."""
    cost = Cost(before=memory("VmRSS"))
    wall = time.perf_counter()
    cpu = time.process_time()
    yield cost
    cost.wall = time.perf_counter() - wall
    cost.cpu = time.process_time() - cpu
    cost.peak = memory("VmHWM")


def memory(field: str = "VmRSS") -> float:
    """MiB that Linux reports for this process; `VmHWM` is the highest since it was started."""
    status = Path("/proc/self/status").read_text()
    for line in status.splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"/proc/self/status has no {field}")


def in_own_process(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in a fresh process: its memory and CPU are its own, its imports out of the
    way of others.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *args, **kwargs).result()


def first_requests(
    programs: Iterable[Program],
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The first chats of judge programs as a server takes them, with the file of their only
    image left to be put in.
    """
    for program in programs:
        for ask in next(program):
            assert isinstance(ask, Chat)
            [message] = ask.messages
            [image] = [part for part in message.parts if isinstance(part, Image)]
            [text] = [part for part in message.parts if isinstance(part, str)]
            content: list[dict[str, Any]] = [
                {"type": "image_url", "image_url": {"url": ""}},
                {"type": "text", "text": text},
            ]
            body: dict[str, Any] = {
                "model": "fake",
                "messages": [{"role": message.role, "content": content}],
                "max_tokens": ask.max_tokens,
                "temperature": 0.0,
            }
            if ask.schema is not None:
                body["response_format"] = response_format(ask.schema)
            yield Path(str(image.source)), body


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a request says for an answer by a schema."""
    json_schema = {"name": "answer", "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": json_schema}


async def bare_loop(
    url: str,
    requests: Iterable[tuple[Path, dict[str, Any]]],
    concurrent: int,
    on_reply: Callable[[], None] = lambda: None,
) -> None:
    """The baseline: aiohttp and nothing else sends the requests, so many at a time, and parses
    the replies.
    """
    waiting = iter(requests)

    async def work(session: aiohttp.ClientSession) -> None:
        for file, body in waiting:
            await post_bare(session, url, file, body)
            on_reply()

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(work(session) for _ in range(concurrent)))


async def post_bare(
    session: aiohttp.ClientSession, url: str, file: Path, body: dict[str, Any]
) -> None:
    """Send a request with its image, and parse the reply; the body is left without the image."""
    data = base64.b64encode(file.read_bytes()).decode()
    image = body["messages"][0]["content"][0]["image_url"]
    image["url"] = f"data:image/jpeg;base64,{data}"
    async with session.post(f"{url}/chat/completions", json=body) as response:
        reply = await response.json()
    image["url"] = ""
    json.loads(reply["choices"][0]["message"]["content"])


def table(
    columns: Mapping[str, str] | Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Print a table in Markdown, numbers to the right.

    Args:
        columns: headings, perhaps with the format of each column's cells.
        rows: the cells.
    """
    formats = [""] * len(columns)
    if isinstance(columns, Mapping):
        formats = list(columns.values())
    alignments = ["---", *["---:"] * (len(columns) - 1)]
    lines = [
        f"| {' | '.join(columns)} |",
        f"|{'|'.join(alignments)}|",
    ]
    for row in rows:
        cells = map(format, row, formats)
        lines.append(f"| {' | '.join(cells)} |")
    print("\n".join(lines), end="\n\n", flush=True)


def conditions() -> str:
    """Where and when this runs; the load says whether anything else does."""
    names = ("vieval", "lmms-eval", "aiohttp")
    packages = ", ".join(f"{name} {version(name)}" for name in names)
    load, _, _ = os.getloadavg()
    return (
        f"Python {platform.python_version()}, {packages}, {os.cpu_count()} cores, load "
        f"{load:.2f} before the run"
    )
