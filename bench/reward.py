"""A judge as reward: what one image costs on an open judge, and a batch, beside a bare client in the same run.

    python bench/reward.py

The fake server answers after 20 ms and works on so many requests at once. One VIEScore verdict is
two questions, asked at the same time. The bare client is aiohttp and nothing else: it reads the
file, encodes it, sends the same two requests and parses the replies; it has no store, checks no
image and reads no verdict.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import tempfile
import time
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
    first_requests,
    options,
    photographs,
    samples,
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


def requests_of(files: Sequence[Path]) -> list[list[tuple[Path, dict[str, Any]]]]:
    """The requests of each file's verdict."""
    judge = prepare("viescore", None, options(None))
    return [list(first_requests([judge.program(sample)])) for sample in samples(files)]


def bare_single(url: str, files: Sequence[Path]) -> list[float]:
    """Milliseconds of each file's two requests, sent together over open connections."""

    async def post(
        session: aiohttp.ClientSession, file: Path, body: dict[str, Any]
    ) -> None:
        data = base64.b64encode(file.read_bytes()).decode()
        body["messages"][0]["content"][0]["image_url"]["url"] = (
            f"data:image/jpeg;base64,{data}"
        )
        async with session.post(f"{url}/chat/completions", json=body) as response:
            json.loads((await response.json())["choices"][0]["message"]["content"])

    async def all_of_them() -> list[float]:
        taken = []
        async with aiohttp.ClientSession() as session:
            for both in requests_of(files):
                begun = time.perf_counter()
                await asyncio.gather(
                    *(post(session, file, body) for file, body in both)
                )
                taken.append(1000 * (time.perf_counter() - begun))
        return taken

    return asyncio.run(all_of_them())


def timed(call: Callable[[Any], Any], inputs: Sequence[Any]) -> list[float]:
    taken = []
    for one in inputs:
        begun = time.perf_counter()
        call(one)
        taken.append(1000 * (time.perf_counter() - begun))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="of each batch, by turns; the fastest is shown",
    )
    given_options = parser.parse_args()
    here = conditions()
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(latency=LATENCY, capacity=CAPACITY) as url,
    ):
        folder = Path(name)
        files = photographs(folder, WARM + SINGLE + BATCH * given_options.rounds, 1024)
        warm = files[:WARM]
        single = files[WARM : WARM + SINGLE]
        rest = files[WARM + SINGLE :]
        pictures = [
            PIL.Image.open(file).convert("RGB").resize((512, 512))
            for file in warm + single
        ]
        kept = {"store": {"path": folder / "replies.sqlite"}}
        rows = []

        def note(who: str, taken: Sequence[float]) -> None:
            rows.append(
                (
                    who,
                    f"{median(taken[WARM:]):.1f}",
                    f"{sorted(taken[WARM:])[int(0.9 * SINGLE)]:.1f}",
                )
            )

        note("bare client, JPEG file of 160 KB", bare_single(url, warm + single))
        model = {"model": "fake", "base_url": url, "num_concurrent": CAPACITY}
        with Judge("viescore", options=kept, **model) as judge:
            note(
                "open judge, JPEG file of 160 KB",
                timed(lambda one: judge.score([one], PROMPT), warm + single),
            )
            note(
                "the same from the store",
                timed(lambda one: judge.score([one], PROMPT), warm + single),
            )
            note(
                "open judge, PIL image 512 x 512 (PNG)",
                timed(lambda one: judge.score([one], PROMPT), pictures),
            )
        note("of which writing PNG", timed(conversion.image, pictures))
        with Judge(
            "viescore", options={"store": {"use": False}}, image_format="jpeg", **model
        ) as judge:
            note(
                "open judge, PIL image 512 x 512 (JPEG)",
                timed(lambda one: judge.score([one], PROMPT), pictures),
            )
        note(
            "of which writing JPEG",
            timed(lambda one: conversion.image(one, "jpeg"), pictures),
        )
        taken: dict[tuple[int, str], list[float]] = {}

        def ask_bare(requests: Sequence[Any], concurrent: int) -> None:
            asyncio.run(bare_loop(url, requests, concurrent))

        def batch(who: str, concurrent: int, call: Callable[[], Any]) -> None:
            begun = time.perf_counter()
            call()
            taken.setdefault((concurrent, who), []).append(time.perf_counter() - begun)

        alone = {"store": {"use": False}}
        turns = [
            (turn, concurrent)
            for turn in range(given_options.rounds)
            for concurrent in CONCURRENT
        ]
        for turn, concurrent in turns:
            some = rest[turn * BATCH : (turn + 1) * BATCH]
            both = [request for one in requests_of(some) for request in one]
            batch("bare client", concurrent, partial(ask_bare, both, concurrent))
            for who, named in (
                ("open judge", alone),
                ("open judge, with its store", kept),
            ):
                with Judge(
                    "viescore",
                    options=named,
                    fresh=True,
                    **{**model, "num_concurrent": concurrent},
                ) as judge:
                    judge.score(warm, PROMPT)
                    batch(who, concurrent, lambda: judge.score(some, PROMPT))  # noqa: B023
    print(
        f"{here}. {SINGLE} single calls after {WARM} to warm up, one after another; "
        f"{LATENCY * 1000:.0f} ms of latency.\n"
    )
    table(("one image", "median ms", "90% below"), rows)
    fastest = {which: min(seconds) for which, seconds in taken.items()}
    header = (f"{BATCH} images", "requests at once", "s", "over bare")
    over = {
        which: seconds / fastest[which[0], "bare client"]
        for which, seconds in fastest.items()
    }
    table(
        header,
        [
            (who, f"{n}", f"{fastest[n, who]:.2f}", f"{over[n, who]:.3f}")
            for n, who in fastest
        ],
    )


if __name__ == "__main__":
    main()
