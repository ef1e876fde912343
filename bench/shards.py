"""A folder of shards against the same calls by a bare client: 10,000 rows of parquet files, judged by one process.

    python bench/shards.py

The fake server answers after 200 ms, then after a lognormal time with a median of 200 ms and a 99th
percentile of 2 s. The bare client has the same requests at once as `vieval score` allows, reads the
same images from files, and writes nothing. `--rows-only N` measures the bookkeeping instead: N rows
judged by a pixel metric, without a server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow
from common import (
    bare_loop,
    conditions,
    fake_server,
    first_requests,
    in_own_process,
    memory,
    options,
    photographs,
    samples,
    served,
    table,
)
from pyarrow import parquet

from vieval_plugin.records import Provenance
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.shards.folder import open_folder
from vieval_plugin.run.shards.inputs import InputFile
from vieval_plugin.run.shards.passes import passes_over
from vieval_plugin.run.shards.plan import new_plan
from vieval_plugin.run.shards.schema import VerdictSchema

MEDIAN = 0.2
CONCURRENT = 32
ROWS_A_FILE = 2_500
SPREAD = (
    math.log(10) / 2.3263
)  # the 99th percentile of a lognormal distribution is ten times its median


@dataclass(frozen=True)
class Run:
    """A command's seconds of wall time and of CPU with its children, and the highest memory of a
    process in MiB.
    """

    wall: float
    cpu: float
    peak: float


def vieval(*arguments: str) -> Run:
    """Run the command line in a process of its own, and end with what it said where it fails."""
    wall = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "vieval_plugin", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(
            f"vieval {' '.join(arguments)} ended with {process.returncode}"
        )
    return Run(
        time.perf_counter() - wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    )


def without_store(folder: Path) -> Path:
    """Write an options file by which no reply is kept."""
    file = folder / "options.yaml"
    file.write_text(json.dumps({"store": {"use": False}}))
    return file


def write_parquet(files: Sequence[Path], folder: Path) -> None:
    """Write the images of `common.samples` and their prompts as parquet files of `ROWS_A_FILE`
    rows.
    """
    folder.mkdir()
    rows = [
        (file, sample.texts["prompt"])
        for file, sample in zip(files, samples(files), strict=True)
    ]
    for number, start in enumerate(range(0, len(rows), ROWS_A_FILE)):
        part = rows[start : start + ROWS_A_FILE]
        columns = {
            "uid": [file.stem for file, _ in part],
            "image": [file.read_bytes() for file, _ in part],
            "prompt": [prompt for _, prompt in part],
        }
        parquet.write_table(
            pyarrow.table(columns),
            folder / f"part-{number:04}.parquet",
            row_group_size=512,
        )


def beside_the_bare_client(rows: int, rounds: int) -> None:
    """Print how long a folder of shards takes beside the bare client, by the distribution of the
    latency.
    """
    lines = []
    with tempfile.TemporaryDirectory() as name:
        files = photographs(Path(name), rows, 256)
        in_own_process(write_parquet, files, Path(name, "data"))
        judge = prepare("viescore", "0shot", options(None))
        for latency, spread in (("200 ms", 0.0), ("lognormal", SPREAD)):
            for turn in range(rounds):
                with fake_server(
                    latency=MEDIAN, spread=spread, capacity=CONCURRENT
                ) as url:
                    requests = list(
                        first_requests(
                            judge.program(sample) for sample in samples(files)
                        )
                    )
                    begun = time.perf_counter()
                    cpu = time.process_time()
                    asyncio.run(bare_loop(url, requests, CONCURRENT))
                    bare = time.perf_counter() - begun
                    bare_cpu = time.process_time() - cpu
                    calls = len(requests)
                    assert served(url)["requests"] == calls
                with fake_server(
                    latency=MEDIAN, spread=spread, capacity=CONCURRENT
                ) as url:
                    config = without_store(Path(name))
                    out = Path(name, f"out-{latency}-{turn}")
                    server = (
                        "--model",
                        "fake",
                        "--base-url",
                        url,
                        "--num-concurrent",
                        str(CONCURRENT),
                    )
                    run = vieval(
                        "score",
                        str(Path(name, "data")),
                        "--out",
                        str(out),
                        "--config",
                        str(config),
                        *server,
                    )
                    asked = served(url)["requests"]
                each = (
                    f"{bare_cpu / calls * 1000:.2f}",
                    f"{run.cpu / calls * 1000:.2f}",
                )
                ratio = f"{run.wall / bare:.3f}"
                lines.append(
                    (
                        latency,
                        f"{rows}",
                        f"{asked}",
                        f"{bare:.1f}",
                        f"{run.wall:.1f}",
                        ratio,
                        *each,
                        f"{run.peak:.0f}",
                    )
                )
                print(" ".join(lines[-1]), file=sys.stderr, flush=True)
    header = (
        "latency",
        "rows",
        "calls",
        "bare s",
        "shards s",
        "over bare",
        "bare ms a call",
        "shards ms a call",
        "MiB",
    )
    table(header, lines)


def write_tiny(data: Path, rows: int) -> None:
    """Write parquet files of tiny images, all different."""
    image = photographs(data, 1, 32)[0]
    content = image.read_bytes()
    image.unlink()
    for number, start in enumerate(range(0, rows, 50_000)):
        part = range(start, min(start + 50_000, rows))
        columns = {
            "uid": [str(row) for row in part],
            "image": [content + b"%08d" % row for row in part],
            "prompt": [f"a hillside at dusk, number {row}" for row in part],
        }
        parquet.write_table(
            pyarrow.table(columns),
            data / f"part-{number:04}.parquet",
            row_group_size=5_120,
        )


def bookkeeping(rows: int) -> None:
    """Print what the rows of a pixel metric cost, and what going on from a finished plan costs."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name, "data")
        out = str(Path(name, "out"))
        data.mkdir()
        in_own_process(
            write_tiny, data, rows
        )  # the memory of whoever starts a process counts as the process's own
        score = (
            "score",
            str(data),
            "--out",
            out,
            "--judge",
            "sharpness",
            "--config",
            str(without_store(Path(name))),
        )
        commands = {
            "judged": score,
            "again": score,
            "`shards`": ("shards", out),
            "`shards --verify`": ("shards", out, "--verify"),
            "`report`": ("report", out, "--out", str(Path(name, "report"))),
            "`rank`": ("rank", out),
        }
        lines = []
        for what, arguments in commands.items():
            run = vieval(*arguments)
            lines.append(
                (
                    what,
                    f"{rows}",
                    f"{run.wall:.1f}",
                    f"{run.cpu:.1f}",
                    f"{rows / run.wall:.0f}",
                    f"{run.peak:.0f}",
                )
            )
            print(" ".join(lines[-1]), file=sys.stderr, flush=True)
    table(("", "rows", "wall s", "CPU s", "rows a second", "MiB"), lines)


def manifest(shards: int) -> None:
    """Print what planning, listing and resuming so many shards takes; their files are empty
    ones, so this is simulated.
    """
    files = tuple(
        InputFile(f"part-{number:06}.parquet", 10**8, "0" * 32, (51_200,))
        for number in range(shards // 100)
    )
    provenance = Provenance("sharpness", (), ("PQ",))
    schema = VerdictSchema(("PQ",))
    plan = new_plan(
        Path("/data"), files, 512, {"output": "image"}, None, provenance, schema
    )
    lines = []
    with tempfile.TemporaryDirectory() as name:
        Path(name, "verdicts").mkdir()
        folder = open_folder(name)

        def timed(what: str, function: Callable[[], object]) -> None:
            wall = time.perf_counter()
            cpu = time.process_time()
            function()
            cost = (
                f"{time.perf_counter() - wall:.1f}",
                f"{time.process_time() - cpu:.1f}",
            )
            lines.append((what, f"{shards}", *cost, f"{memory('VmHWM'):.0f}"))

        timed("plan written", lambda: folder.create_plan(plan))
        timed("plan read", folder.plan)
        timed("shards named", lambda: sum(1 for _ in plan.shards()))
        for shard in plan.shards():
            Path(name, "verdicts", f"{shard.name}.parquet").touch()
        timed("files listed", folder.names)
        done = folder.names()
        timed("passes left", lambda: sum(1 for _ in passes_over(plan.shards(), done)))
        lines.append(
            (
                f"plan.json: {Path(name, 'plan.json').stat().st_size / 2**20:.1f} MiB",
                "",
                "",
                "",
                "",
            )
        )
    table(("", "shards", "wall s", "CPU s", "MiB at most"), lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--rows-only",
        type=int,
        metavar="N",
        help="measure the bookkeeping of so many rows instead",
    )
    parser.add_argument(
        "--manifest",
        type=int,
        metavar="N",
        help="simulate the plan and the listing of so many shards",
    )
    given = parser.parse_args()
    print(f"{conditions()}.\n")
    if given.manifest:
        manifest(given.manifest)
    elif given.rows_only:
        bookkeeping(given.rows_only)
    else:
        beside_the_bare_client(given.rows, given.rounds)


if __name__ == "__main__":
    main()
