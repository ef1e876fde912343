"""An hour of the reward server and of a folder of shards under faults: memory, descriptors, threads, size of the store.

    python bench/soak.py --minutes 60

The fake server answers after half a second; a tenth of the attempts meet a fault (refused, reset,
cut, slow, no JSON), and one prompt in fifty fails for good. `vieval serve` has clients that send
images nobody sent before, and some again; beside it `vieval score` judges a folder of shards, is
killed every ten minutes, and goes on.
"""

from __future__ import annotations

import argparse
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
from pathlib import Path

from common import (
    conditions,
    fake_server,
    in_own_process,
    local_address,
    photographs,
    table,
)
from pyarrow import parquet
from serve import resident
from shards import write_tiny

CLIENTS = 4
KILL_EVERY = 600.0
ROWS_A_SHARD = 256


def levels(process: int) -> tuple[float, int, int]:
    """MiB, descriptors and threads of a process; zeros where it is gone."""
    try:
        descriptors = len(list(Path(f"/proc/{process}/fd").iterdir()))
        return (
            resident(process),
            descriptors,
            len(list(Path(f"/proc/{process}/task").iterdir())),
        )
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0, 0


def mebibytes(*files: Path) -> float:
    return sum(file.stat().st_size for file in files if file.is_file()) / 2**20


def accounted(verdicts: Path) -> str:
    """Say how many rows of the finished shards lack a verdict, and how many have two."""
    files = list(verdicts.rglob("*.parquet"))
    uids = [
        uid
        for file in files
        for uid in parquet.read_table(file, columns=["uid"])["uid"].to_pylist()
    ]
    distinct = len(set(uids))
    missing = ROWS_A_SHARD * len(files) - distinct
    return f"{len(uids):,} rows of {len(files)} finished shards: missing {missing}, twice {len(uids) - distinct}"


class Clients:
    """Threads that ask the reward server, each with a random generator of its own, until `stop`
    is set.
    """

    def __init__(self, url: str, images: list[bytes], seed: int) -> None:
        self.url = url
        self.images = images
        self.stop = threading.Event()
        self.results: Counter[str] = Counter()
        self._threads = [
            threading.Thread(target=self._ask, args=(seed + n,), daemon=True)
            for n in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def _ask(self, seed: int) -> None:
        rng = random.Random(seed)
        number = seed * 10**7
        while not self.stop.is_set():
            number += 1
            asked = (
                number if rng.random() < 0.9 else rng.randint(seed * 10**7 + 1, number)
            )
            image = base64.b64encode(
                self.images[asked % len(self.images)] + b"%d" % asked
            ).decode()
            body = {
                "samples": [
                    {
                        "images": {"output": image},
                        "texts": {"prompt": f"a hillside, number {asked}"},
                    }
                ]
            }
            request = urllib.request.Request(
                f"{self.url}/v1/judge",
                json.dumps(body).encode(),
                {"Content-Type": "application/json"},
            )
            try:
                with urllib.request.urlopen(request, timeout=300) as response:
                    [verdict] = json.load(response)["verdicts"]
                self.results[verdict["status"]] += 1
            except OSError as error:
                self.results[type(error).__name__] += 1


def soak(folder: Path, minutes: float, rows: int, seed: int) -> None:
    images = [file.read_bytes() for file in photographs(folder, 4, 256)]
    (folder / "data").mkdir()
    in_own_process(write_tiny, folder / "data", rows)
    command = [sys.executable, "-m", "vieval_plugin"]
    lines = []
    with fake_server(
        latency=0.5, capacity=16, fault_share=0.1, permanent_share=0.02, seed=seed
    ) as url:
        judge = {"model": "fake", "base_url": url, "num_concurrent": 8, "timeout": 20}
        for name in ("serve", "score"):
            options = {
                "store": {"path": str(folder / f"{name}.sqlite")},
                "backbones": {"judge": judge},
            }
            (folder / f"{name}.yaml").write_text(json.dumps(options))
        serve = [
            *command,
            "serve",
            "--reward",
            "r=vqascore",
            "--config",
            str(folder / "serve.yaml"),
            "--port",
            "0",
        ]
        score = [*command, "score", str(folder / "data"), "--out", str(folder / "out")]
        score += ["--config", str(folder / "score.yaml"), "--judge", "viescore"]
        score += ["--rows-per-shard", str(ROWS_A_SHARD)]
        with (
            (folder / "serve.log").open("w") as log,
            (folder / "score.log").open("w") as progress,
        ):
            server = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True)
            assert server.stderr is not None
            first = server.stderr.readline()
            address = local_address(first)
            threading.Thread(
                target=lambda: log.writelines(server.stderr or ()), daemon=True
            ).start()
            worker = subprocess.Popen(score, stdout=progress, stderr=progress)
            clients = Clients(address, images, seed)
            begun = time.monotonic()
            kills = 0
            try:
                for step in range(1, 13):
                    while time.monotonic() < begun + step * minutes * 5:
                        time.sleep(1)
                        if time.monotonic() > begun + (kills + 1) * KILL_EVERY:
                            kills += 1
                            worker.kill()
                            worker.wait()
                            worker = subprocess.Popen(
                                score, stdout=progress, stderr=progress
                            )
                    done = len(list((folder / "out").rglob("*.parquet")))
                    sizes = [
                        mebibytes(*folder.glob(f"{name}.sqlite*"))
                        for name in ("serve", "score")
                    ]
                    numbers = [
                        *levels(server.pid),
                        sizes[0],
                        *levels(worker.pid),
                        sizes[1],
                    ]
                    texts = [f"{number:.0f}" for number in numbers]
                    lines.append(
                        [
                            f"{step * minutes / 12:.0f}",
                            f"{clients.results.total():,}",
                            *texts,
                            str(done),
                        ]
                    )
                    print(
                        " ".join(lines[-1]),
                        dict(clients.results),
                        file=sys.stderr,
                        flush=True,
                    )
            finally:
                clients.stop.set()
                for process in (server, worker):
                    process.send_signal(signal.SIGTERM)
                codes = [process.wait(60) for process in (server, worker)]
    header = ["minute", "samples", "MiB", "files", "threads", "store MiB"]
    table([*header, *(f"shards: {name}" for name in [*header[2:], "finished"])], lines)
    print(
        f"verdicts of the server: {dict(clients.results)}; {kills} kills; exit codes at SIGTERM: "
        f"{codes}"
    )
    lost = sum(
        number for status, number in clients.results.items() if "Error" in status
    )
    print(
        f"requests of the server without a verdict: {lost}; {accounted(folder / 'out')}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
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
