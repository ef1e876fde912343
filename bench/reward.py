"""A judge as reward: what one image costs on an open judge, and a batch, beside a bare client in the same run.

    python bench/reward.py

The fake server answers after 20 ms and works on so many requests at once. One VIEScore verdict is
two questions, asked at the same time. The bare client is aiohttp and nothing else: it reads the
file, encodes it, sends the same two requests and parses the replies; it has no store, checks no
image and reads no verdict.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import PIL.Image
from common import (
    bare_loop,
    conditions,
    fake_server,
    first_line,
    first_requests,
    options,
    photographs,
    post_bare,
    samples,
    script_parser,
    table,
)

from vieval_plugin import Judge
from vieval_plugin.api import conversion
from vieval_plugin.run.prepare import prepare

LATENCY = 0.02
CAPACITY = 32
SINGLE = 100
BATCH = 200
WARM = 10
CONCURRENT = (8, CAPACITY)
PROMPT = "a hillside at dusk"
STORE_OFF = {"store": {"use": False}}
Options = dict[str, Any]


def requests_of(files: Sequence[Path]) -> list[list[tuple[Path, dict[str, Any]]]]:
    """The requests of each file's verdict."""
    judge = prepare("viescore", None, options(None))
    return [list(first_requests([judge.program(sample)])) for sample in samples(files)]


def bare_single(url: str, files: Sequence[Path]) -> list[float]:
    """Milliseconds of each file's two requests, sent together over open connections."""

    async def measure() -> list[float]:
        times = []
        async with aiohttp.ClientSession() as session:
            for both in requests_of(files):
                begun = time.perf_counter()
                posts = [post_bare(session, url, file, body) for file, body in both]
                await asyncio.gather(*posts)
                times.append(1000 * (time.perf_counter() - begun))
        return times

    return asyncio.run(measure())


def timed(call: Callable[[Any], Any], inputs: Sequence[Any]) -> list[float]:
    """Milliseconds of each call."""
    times = []
    for value in inputs:
        begun = time.perf_counter()
        call(value)
        times.append(1000 * (time.perf_counter() - begun))
    return times


def score(judge: Judge, image: Any) -> None:
    judge.score([image], PROMPT)


def single_row(who: str, times: Sequence[float]) -> list[str]:
    """A row of the table of single images."""
    measured = times[WARM:]
    high = sorted(measured)[int(0.9 * SINGLE)]
    return [who, f"{median(measured):.1f}", f"{high:.1f}"]


def single_rows(url: str, files: Sequence[Path], kept: Options) -> list[list[str]]:
    """The table of single images, one call after another."""
    pictures = []
    for file in files:
        picture = PIL.Image.open(file).convert("RGB")
        pictures.append(picture.resize((512, 512)))
    server = {
        "model": "fake",
        "base_url": url,
        "num_concurrent": CAPACITY,
    }
    times = {"bare client, JPEG file of 160 KB": bare_single(url, files)}
    with Judge("viescore", options=kept, **server) as judge:
        ask = partial(score, judge)
        times["open judge, JPEG file of 160 KB"] = timed(ask, files)
        times["the same from the store"] = timed(ask, files)
        times["open judge, PIL image 512 x 512 (PNG)"] = timed(ask, pictures)
    times["of which writing PNG"] = timed(conversion.image, pictures)
    with Judge("viescore", options=STORE_OFF, image_format="jpeg", **server) as judge:
        times["open judge, PIL image 512 x 512 (JPEG)"] = timed(
            partial(score, judge), pictures
        )
    write_jpeg = partial(conversion.image, form="jpeg")
    times["of which writing JPEG"] = timed(write_jpeg, pictures)
    return [single_row(who, values) for who, values in times.items()]


def bare_batch(url: str, files: Sequence[Path], concurrent: int) -> float:
    """Seconds of the bare client for a batch."""
    requests = []
    for both in requests_of(files):
        requests += both
    begun = time.perf_counter()
    asyncio.run(bare_loop(url, requests, concurrent))
    return time.perf_counter() - begun


def judge_batch(
    url: str,
    files: Sequence[Path],
    warm: Sequence[Path],
    concurrent: int,
    options: Options,
) -> float:
    """Seconds of an open judge for a batch."""
    server = {
        "model": "fake",
        "base_url": url,
        "num_concurrent": concurrent,
    }
    with Judge("viescore", options=options, fresh=True, **server) as judge:
        judge.score(warm, PROMPT)
        begun = time.perf_counter()
        judge.score(files, PROMPT)
        return time.perf_counter() - begun


def main() -> None:
    parser = script_parser(first_line(__doc__))
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="of each batch, by turns; the fastest is shown",
    )
    given = parser.parse_args()
    here = conditions()
    seconds: dict[tuple[int, str], list[float]] = defaultdict(list)
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(latency=LATENCY, capacity=CAPACITY) as url,
    ):
        folder = Path(name)
        files = photographs(folder, WARM + SINGLE + BATCH * given.rounds, 1024)
        warm = files[:WARM]
        batches = files[WARM + SINGLE :]
        kept = {"store": {"path": folder / "replies.sqlite"}}
        rows = single_rows(url, files[: WARM + SINGLE], kept)
        for turn in range(given.rounds):
            batch = batches[turn * BATCH : (turn + 1) * BATCH]
            for concurrent in CONCURRENT:
                bare = bare_batch(url, batch, concurrent)
                seconds[concurrent, "bare client"].append(bare)
                alone = judge_batch(url, batch, warm, concurrent, STORE_OFF)
                seconds[concurrent, "open judge"].append(alone)
                stored = judge_batch(url, batch, warm, concurrent, kept)
                seconds[concurrent, "open judge, with its store"].append(stored)
    print(
        f"{here}. {SINGLE} single calls after {WARM} to warm up, one after another; "
        f"{LATENCY * 1000:.0f} ms of latency.\n"
    )
    table(("one image", "median ms", "90% below"), rows)
    fastest = {key: min(times) for key, times in seconds.items()}
    batch_rows = []
    for (concurrent, who), best in fastest.items():
        over = best / fastest[concurrent, "bare client"]
        batch_rows.append([who, concurrent, best, over])
    columns = {
        f"{BATCH} images": "",
        "requests at once": "",
        "s": ".2f",
        "over bare": ".3f",
    }
    table(columns, batch_rows)


if __name__ == "__main__":
    main()
