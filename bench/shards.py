"""A folder of shards against the same calls by a bare client: 10,000 rows of parquet files, judged by one process.

    python bench/shards.py

The fake server answers after 200 ms, then after a lognormal time with a median of 200 ms and a 99th
percentile of 2 s. The bare client has the same requests at once as `vieval score` allows, reads the
same images from files, and writes nothing. `--rows-only N` measures the bookkeeping instead: N rows
judged by a pixel metric, without a server.
"""

from __future__ import annotations

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
    first_line,
    first_requests,
    in_own_process,
    memory,
    options,
    photographs,
    samples,
    script_parser,
    served,
    table,
)
from pyarrow import parquet

from vieval_plugin.readers.places import place_of
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
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        command = " ".join(arguments)
        raise SystemExit(f"vieval {command} ended with {process.returncode}")
    seconds = time.perf_counter() - wall
    cpu = usage.ru_utime + usage.ru_stime
    return Run(seconds, cpu, usage.ru_maxrss / 1024)


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
    prompts = [sample.texts["prompt"] for sample in samples(files)]
    for number, start in enumerate(range(0, len(files), ROWS_A_FILE)):
        part = files[start : start + ROWS_A_FILE]
        columns = {
            "uid": [file.stem for file in part],
            "image": [file.read_bytes() for file in part],
            "prompt": prompts[start : start + ROWS_A_FILE],
        }
        path = folder / f"part-{number:04}.parquet"
        parquet.write_table(pyarrow.table(columns), path, row_group_size=512)


def bare_client(url: str, files: Sequence[Path]) -> tuple[float, float, int]:
    """Seconds of wall time and of CPU that the bare client takes, and its calls."""
    judge = prepare("viescore", "0shot", options(None))
    requests = list(first_requests(judge.program(sample) for sample in samples(files)))
    wall = time.perf_counter()
    cpu = time.process_time()
    asyncio.run(bare_loop(url, requests, CONCURRENT))
    wall = time.perf_counter() - wall
    cpu = time.process_time() - cpu
    assert served(url)["requests"] == len(requests)
    return wall, cpu, len(requests)


def score_folder(url: str, data: Path, out: Path, config: Path) -> Run:
    """Judge a folder of shards."""
    command = ["score", str(data), "--out", str(out), "--config", str(config)]
    command += ["--model", "fake", "--base-url", url]
    command += ["--num-concurrent", str(CONCURRENT)]
    return vieval(*command)


def beside_the_bare_client(rows: int, rounds: int) -> None:
    """Print how long a folder of shards takes beside the bare client, by the distribution of the
    latency.
    """
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = photographs(folder, rows, 256)
        in_own_process(write_parquet, files, folder / "data")
        config = without_store(folder)
        for latency, spread in (("200 ms", 0.0), ("lognormal", SPREAD)):
            server = {
                "latency": MEDIAN,
                "spread": spread,
                "capacity": CONCURRENT,
            }
            for turn in range(rounds):
                with fake_server(**server) as url:
                    bare, bare_cpu, calls = bare_client(url, files)
                out = folder / f"out-{latency}-{turn}"
                with fake_server(**server) as url:
                    run = score_folder(url, folder / "data", out, config)
                    asked = served(url)["requests"]
                line = [
                    latency,
                    str(rows),
                    str(asked),
                    f"{bare:.1f}",
                    f"{run.wall:.1f}",
                    f"{run.wall / bare:.3f}",
                    f"{bare_cpu / calls * 1000:.2f}",
                    f"{run.cpu / calls * 1000:.2f}",
                    f"{run.peak:.0f}",
                ]
                lines.append(line)
                print(" ".join(line), file=sys.stderr, flush=True)
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
    [image] = photographs(data, 1, 32)
    content = image.read_bytes()
    image.unlink()
    for number, start in enumerate(range(0, rows, 50_000)):
        part = range(start, min(start + 50_000, rows))
        columns = {
            "uid": [str(row) for row in part],
            "image": [content + b"%08d" % row for row in part],
            "prompt": [f"a hillside at dusk, number {row}" for row in part],
        }
        path = data / f"part-{number:04}.parquet"
        parquet.write_table(pyarrow.table(columns), path, row_group_size=5_120)


def bookkeeping(rows: int) -> None:
    """Print what the rows of a pixel metric cost, and what going on from a finished plan costs."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name, "data")
        out = str(Path(name, "out"))
        data.mkdir()
        # the memory of whoever starts a process counts as the process's own
        in_own_process(write_tiny, data, rows)
        config = str(without_store(Path(name)))
        score = ["score", str(data), "--out", out]
        score += ["--judge", "sharpness", "--config", config]
        commands = {
            "judged": score,
            "again": score,
            "`shards`": ["shards", out],
            "`shards --verify`": ["shards", out, "--verify"],
            "`report`": ["report", out, "--out", str(Path(name, "report"))],
            "`rank`": ["rank", out],
        }
        lines = []
        for what, arguments in commands.items():
            run = vieval(*arguments)
            line = [
                what,
                str(rows),
                f"{run.wall:.1f}",
                f"{run.cpu:.1f}",
                f"{rows / run.wall:.0f}",
                f"{run.peak:.0f}",
            ]
            lines.append(line)
            print(" ".join(line), file=sys.stderr, flush=True)
    table(("", "rows", "wall s", "CPU s", "rows a second", "MiB"), lines)


def manifest(shards: int) -> None:
    """Print what planning, listing and resuming so many shards takes; their files are empty
    ones, so this is simulated.
    """
    files = []
    for number in range(shards // 100):
        path = f"part-{number:06}.parquet"
        files.append(InputFile(path, 10**8, "0" * 32, (51_200,)))
    plan = new_plan(
        place_of(Path("/data")),
        tuple(files),
        512,
        {"output": "image"},
        None,
        Provenance("sharpness", (), ("PQ",)),
        VerdictSchema(("PQ",)),
    )
    lines = []

    def timed(what: str, function: Callable[[], object]) -> None:
        wall = time.perf_counter()
        cpu = time.process_time()
        function()
        wall = time.perf_counter() - wall
        cpu = time.process_time() - cpu
        peak = f"{memory('VmHWM'):.0f}"
        lines.append([what, str(shards), f"{wall:.1f}", f"{cpu:.1f}", peak])

    with tempfile.TemporaryDirectory() as name:
        verdicts = Path(name, "verdicts")
        verdicts.mkdir()
        folder = open_folder(name)
        timed("plan written", lambda: folder.create_plan(plan))
        timed("plan read", folder.plan)
        timed("shards named", lambda: sum(1 for _ in plan.shards()))
        for shard in plan.shards():
            (verdicts / f"{shard.name}.parquet").touch()
        timed("files listed", folder.names)
        done = folder.names()
        timed("passes left", lambda: sum(1 for _ in passes_over(plan.shards(), done)))
        mib = Path(name, "plan.json").stat().st_size / 2**20
        lines.append([f"plan.json: {mib:.1f} MiB", "", "", "", ""])
    table(("", "shards", "wall s", "CPU s", "MiB at most"), lines)


def main() -> None:
    parser = script_parser(first_line(__doc__))
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
