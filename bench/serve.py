"""The reward server under load: throughput beside the ideal, CPU a sample, fairness among clients, and memory.

    python bench/serve.py

The fake backbone answers after 200 ms and works on 32 requests at once. A judge that asks one
question a sample then judges 160 samples a second at best. Each way of asking sends batches from
several clients at once; the server runs in a process of its own, so that its CPU time and memory
are its own.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import TypeAlias

from common import (
    fake_server,
    first_line,
    local_address,
    photographs,
    script_parser,
    table,
)

LATENCY = 0.2
CAPACITY = 32
BATCH = 16
CLIENTS = 8
MANY = 64
PROMPT = "a hillside at dusk"
Samples: TypeAlias = list[tuple[str, str]]
"""Prompts, and images in base64."""


@contextmanager
def reward_server(backbone: str, folder: Path) -> Iterator[tuple[str, int]]:
    """The address and process id of a server without a store, whose judge asks one question a
    sample.
    """
    judge = {
        "model": "fake",
        "base_url": backbone,
        "num_concurrent": CAPACITY,
    }
    options = {
        "store": {"use": False},
        "backbones": {"judge": judge},
    }
    config = folder / "options.yaml"
    config.write_text(json.dumps(options))
    command = [sys.executable, "-m", "vieval_plugin", "serve", "--reward", "r=vqascore"]
    command += ["--config", str(config), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            yield local_address(first), process.pid
        finally:
            process.kill()


def post(url: str, document: object) -> float:
    """Seconds that a request took."""
    body = json.dumps(document).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers)
    begun = time.perf_counter()
    with urllib.request.urlopen(request) as response:
        answer = json.loads(response.read())
    assert not answer.get("error"), answer
    assert not answer.get("failed"), answer
    return time.perf_counter() - begun


def compute(samples: Samples) -> object:
    return {
        "prompt": [prompt for prompt, _ in samples],
        "image": [image for _, image in samples],
    }


def judge_v1(samples: Samples) -> object:
    documents = []
    for prompt, image in samples:
        document = {
            "images": {"output": image},
            "texts": {"prompt": prompt},
        }
        documents.append(document)
    return {"samples": documents}


def cpu_seconds(process: int) -> float:
    """The processor time that a process has had."""
    stat = Path(f"/proc/{process}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> float:
    """Megabytes that a process has in memory."""
    pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize() / 2**20


def batch(images: list[bytes], number: int, size: int) -> Samples:
    """So many samples that no request had before, by their prompts and by bytes after the end of
    each file.
    """
    samples = []
    for n in range(number * size, (number + 1) * size):
        file = images[n % len(images)] + b"%d" % n
        image = base64.b64encode(file).decode()
        samples.append((f"{PROMPT}, number {n}", image))
    return samples


def throughput(
    url: str,
    process: int,
    path: str,
    body: Callable[[Samples], object],
    images: list[bytes],
    samples: int,
) -> list[object]:
    """A row of the table: samples a second, times the ideal, and CPU a sample."""
    first = int.from_bytes(os.urandom(4)) * 1000  # nothing is asked twice
    requests = []
    for number in range(samples // BATCH):
        requests.append(body(batch(images, first + number, BATCH)))
    begun = time.perf_counter()
    cpu_before = cpu_seconds(process)
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(partial(post, url + path), requests))
    seconds = time.perf_counter() - begun
    sent = BATCH * len(requests)
    ideal = sent * LATENCY / CAPACITY
    cpu = 1000 * (cpu_seconds(process) - cpu_before) / sent
    return [
        path,
        sent,
        sent / seconds,
        seconds / ideal,
        f"{cpu:.1f} ms",
    ]


def main() -> None:
    """Print the tables."""
    parser = script_parser(first_line(__doc__))
    parser.add_argument(
        "--samples", type=int, default=3200, help="samples for each way of asking"
    )
    parser.add_argument(
        "--memory",
        type=int,
        default=20_000,
        help="samples over which memory is watched",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = [file.read_bytes() for file in photographs(folder, 8, 512)]
        with (
            fake_server(latency=LATENCY, capacity=CAPACITY) as url,
            reward_server(url, folder) as (server, process),
        ):
            post(f"{server}/compute", compute(batch(images, 10**6, BATCH)))
            measure(server, process, images, options.samples, options.memory)


def measure(
    server: str, process: int, images: list[bytes], samples: int, watched: int
) -> None:
    """Print throughput by address, how even clients are served, and memory over so many samples."""
    rows = []
    for path, body in (("/compute", compute), ("/v1/judge", judge_v1)):
        rows.append(throughput(server, process, path, body, images, samples))
    columns = {
        "address": "",
        "samples": "",
        "a second": ".0f",
        "times the ideal": ".3f",
        "CPU a sample": "",
    }
    table(columns, rows)
    documents = []
    for number in range(MANY):
        documents.append(compute(batch(images, 2 * 10**6 + number, 8)))
    with ThreadPoolExecutor(MANY) as pool:
        seconds = list(pool.map(partial(post, f"{server}/compute"), documents))
    print(
        f"\n{MANY} clients at once, 8 samples each: slowest over median "
        f"{max(seconds) / median(seconds):.2f}"
    )
    before = resident(process)
    levels = []
    for _ in range(4):
        throughput(server, process, "/compute", compute, images[:1], watched // 4)
        levels.append(f"{resident(process):.0f}")
    print(
        f"memory in MB: {before:.0f} before, then after each quarter of {watched} "
        f"samples {', '.join(levels)}"
    )


if __name__ == "__main__":
    main()
