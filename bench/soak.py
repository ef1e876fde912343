"""An hour of the reward server and of a folder of shards under faults: memory, descriptors, threads, size of the store.

    python bench/soak.py --minutes 60

The fake server answers after half a second; a tenth of the attempts meet a fault (refused, reset,
cut, slow, no JSON), and one prompt in fifty fails for good. `vieval serve` has clients that send
images nobody sent before, and some again; beside it `vieval score` judges a folder of shards, is
killed every ten minutes, and goes on.
"""

from __future__ import annotations

import base64
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from common import (
    conditions,
    fake_server,
    first_line,
    in_own_process,
    local_address,
    photographs,
    script_parser,
    table,
)
from pyarrow import parquet
from serve import resident
from shards import write_tiny

CLIENTS = 4
KILL_EVERY = 600.0
ROWS_A_SHARD = 256
VIEVAL = [sys.executable, "-m", "vieval_plugin"]


def levels(process: int) -> tuple[float, int, int]:
    """MiB, descriptors and threads of a process; zeros where it is gone."""
    folder = Path(f"/proc/{process}")
    try:
        descriptors = len(list((folder / "fd").iterdir()))
        mib = resident(process)
        threads = len(list((folder / "task").iterdir()))
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0, 0
    return mib, descriptors, threads


def mebibytes(*files: Path) -> float:
    return sum(file.stat().st_size for file in files if file.is_file()) / 2**20


def accounted(verdicts: Path) -> str:
    """Say how many rows of the finished shards lack a verdict, and how many have two."""
    files = list(verdicts.rglob("*.parquet"))
    uids = []
    for file in files:
        rows = parquet.read_table(file, columns=["uid"])
        uids += rows["uid"].to_pylist()
    distinct = len(set(uids))
    missing = ROWS_A_SHARD * len(files) - distinct
    return (
        f"{len(uids):,} rows of {len(files)} finished shards: missing {missing}, "
        f"twice {len(uids) - distinct}"
    )


class Clients:
    """Threads that ask the reward server, each with a random generator of its own, until `stop`
    is set.
    """

    def __init__(self, url: str, images: list[bytes], seed: int) -> None:
        self.url = url
        self.images = images
        self.stop = threading.Event()
        self.results: Counter[str] = Counter()
        for number in range(CLIENTS):
            start_thread(self._ask, seed + number)

    def _ask(self, seed: int) -> None:
        rng = random.Random(seed)
        first = seed * 10**7
        number = first
        while not self.stop.is_set():
            number += 1
            image = number
            if rng.random() >= 0.9:
                image = rng.randint(first + 1, number)
            try:
                self.results[self._status(image)] += 1
            except OSError as error:
                self.results[type(error).__name__] += 1

    def _status(self, number: int) -> str:
        """The status of the verdict on an image."""
        file = self.images[number % len(self.images)] + b"%d" % number
        sample = {
            "images": {"output": base64.b64encode(file).decode()},
            "texts": {"prompt": f"a hillside, number {number}"},
        }
        request = urllib.request.Request(
            f"{self.url}/v1/judge",
            json.dumps({"samples": [sample]}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as response:
            [verdict] = json.load(response)["verdicts"]
        return verdict["status"]


def start_thread(function: Callable[..., None], *arguments: object) -> None:
    """Start a thread that ends with the process."""
    threading.Thread(target=function, args=arguments, daemon=True).start()


class Worker:
    """`vieval score` on the folder of shards, which is killed now and then and started again."""

    def __init__(self, command: list[str], log: TextIO) -> None:
        self._command = command
        self._log = log
        self._begun = time.monotonic()
        self.kills = 0
        self.process = self._started()

    def _started(self) -> subprocess.Popen:
        return subprocess.Popen(self._command, stdout=self._log, stderr=self._log)

    def kill_in_time(self) -> None:
        """Kill the process and start it again, if it is time."""
        if time.monotonic() > self._begun + (self.kills + 1) * KILL_EVERY:
            self.kills += 1
            self.process.kill()
            self.process.wait()
            self.process = self._started()


def write_options(file: Path, backbone: str, store: Path) -> None:
    """Write an options file of a judge with a store."""
    judge = {
        "model": "fake",
        "base_url": backbone,
        "num_concurrent": 8,
        "timeout": 20,
    }
    options = {
        "store": {"path": str(store)},
        "backbones": {"judge": judge},
    }
    file.write_text(json.dumps(options))


def serve_command(folder: Path) -> list[str]:
    command = [*VIEVAL, "serve", "--reward", "r=vqascore"]
    return [*command, "--config", str(folder / "serve.yaml"), "--port", "0"]


def score_command(folder: Path) -> list[str]:
    command = [*VIEVAL, "score", str(folder / "data"), "--out", str(folder / "out")]
    command += ["--config", str(folder / "score.yaml"), "--judge", "viescore"]
    return [*command, "--rows-per-shard", str(ROWS_A_SHARD)]


def soak(folder: Path, minutes: float, rows: int, seed: int) -> None:
    images = [file.read_bytes() for file in photographs(folder, 4, 256)]
    (folder / "data").mkdir()
    in_own_process(write_tiny, folder / "data", rows)
    lines = []
    with (
        fake_server(
            latency=0.5, capacity=16, fault_share=0.1, permanent_share=0.02, seed=seed
        ) as url,
        (folder / "serve.log").open("w") as server_log,
        (folder / "score.log").open("w") as worker_log,
    ):
        for name in ("serve", "score"):
            write_options(folder / f"{name}.yaml", url, folder / f"{name}.sqlite")
        server = subprocess.Popen(
            serve_command(folder), stderr=subprocess.PIPE, text=True
        )
        assert server.stderr is not None
        address = local_address(server.stderr.readline())
        start_thread(server_log.writelines, server.stderr)
        worker = Worker(score_command(folder), worker_log)
        clients = Clients(address, images, seed)
        start = time.monotonic()
        try:
            for step in range(1, 13):
                while time.monotonic() < start + step * minutes * 5:
                    time.sleep(1)
                    worker.kill_in_time()
                finished = len(list((folder / "out").rglob("*.parquet")))
                numbers = [
                    *levels(server.pid),
                    mebibytes(*folder.glob("serve.sqlite*")),
                    *levels(worker.process.pid),
                    mebibytes(*folder.glob("score.sqlite*")),
                ]
                line = [
                    f"{step * minutes / 12:.0f}",
                    f"{clients.results.total():,}",
                    *(f"{number:.0f}" for number in numbers),
                    str(finished),
                ]
                lines.append(line)
                results = dict(clients.results)
                print(" ".join(line), results, file=sys.stderr, flush=True)
        finally:
            clients.stop.set()
            processes = (server, worker.process)
            for process in processes:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(60) for process in processes]
    numbers_of_each = ["MiB", "files", "threads", "store MiB"]
    shards = [f"shards: {name}" for name in (*numbers_of_each, "finished")]
    table(["minute", "samples", *numbers_of_each, *shards], lines)
    print(
        f"verdicts of the server: {dict(clients.results)}; {worker.kills} kills; exit "
        f"codes at SIGTERM: {codes}"
    )
    lost = 0
    for status, number in clients.results.items():
        if "Error" in status:
            lost += number
    print(
        f"requests of the server without a verdict: {lost}; {accounted(folder / 'out')}"
    )


def main() -> None:
    parser = script_parser(first_line(__doc__))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument(
        "--rows", type=int, default=102_400, help="rows of the folder of shards"
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"{conditions()}, seed {given.seed}.\n")
    with tempfile.TemporaryDirectory() as folder:
        soak(Path(folder), given.minutes, given.rows, given.seed)


if __name__ == "__main__":
    main()
