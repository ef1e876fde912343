"""VIEScore against a server: how close to the ideal, and what it costs the client.

The fake server answers after a set latency and works on so many requests at once, so that the ideal
wall time is calls x latency / capacity. Compared in one run: a bare loop over the same HTTP client
that sends the same requests with the same concurrency, VIEval without its store, with an empty one
and with a full one, and lmms-eval's `openai` model, which VIEval drives in waves, with the host's
PNG and with its JPEG.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import (
    Cost,
    bare_loop,
    conditions,
    costs,
    fake_server,
    first_requests,
    in_own_process,
    judged,
    options,
    photographs,
    samples,
    served,
    table,
)

from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import prepare


def bare(url: str, files: Sequence[Path], concurrent: int) -> Cost:
    judge = prepare("viescore", "0shot", options(None))
    requests = list(first_requests(judge.program(sample) for sample in samples(files)))
    with costs() as cost:
        asyncio.run(bare_loop(url, requests, concurrent))
    return cost


def vieval(
    url: str, files: Sequence[Path], concurrent: int, store: Path | None
) -> Cost:
    judge = prepare("viescore", "0shot", options(None))
    jobs = [Job(sample, judge) for sample in samples(files)]
    with costs() as cost:
        progress = asyncio.run(judged(url, jobs, concurrent, store))
    assert {str(status) for status in progress.statuses} == {"ok"}, progress.lines()
    return cost


def host_openai(
    url: str, files: Sequence[Path], concurrent: int, encoding: str
) -> Cost:
    """lmms-eval's `openai` as a backbone; it reads the encoding of images from the environment."""
    os.environ["LMMS_IMAGE_ENCODE_FORMAT"] = encoding
    from lmms_eval.api.instance import Instance
    from lmms_eval.models.chat.openai import OpenAICompatible

    from vieval_plugin.hosts.lmms_eval.answering import JudgeRequest
    from vieval_plugin.hosts.lmms_eval.host_model import vieval_judge

    model = OpenAICompatible(
        model_version="fake", base_url=url, api_key="none", num_concurrent=concurrent
    )
    instances = [
        Instance(
            "vieval_judge",
            ("", {}, JudgeRequest(sample, "viescore", "0shot"), number, "own", "test"),
            0,
            about,
        )
        for number, sample in enumerate(samples(files))
        for about in [{"task": "own", "doc_id": number, "repeats": 1}]
    ]
    with costs() as cost:
        vieval_judge(model, instances)
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument(
        "--host-samples",
        type=int,
        default=100,
        help="samples for lmms-eval's own model, 0 for none",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="times each of ours and the bare loop runs, by turns",
    )
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument(
        "--capacity",
        type=int,
        default=32,
        help="of the server; requests in flight, too",
    )
    given = parser.parse_args()
    here = conditions()
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(latency=given.latency, capacity=given.capacity) as url,
    ):
        folder = Path(name)
        files = photographs(folder, given.samples, 1024)
        size = statistics.mean(file.stat().st_size for file in files) / 1000
        runs: dict[str, list[tuple[Cost, int, int]]] = {}

        def note(who: str, cost: Cost, used: int) -> None:
            counted = served(url)
            assert set(counted["statuses"]) <= {"200"}, counted
            runs.setdefault(who, []).append((cost, used, counted["requests"]))

        for turn in range(given.rounds):
            store = folder / f"{turn}.sqlite"
            note(
                "bare loop",
                in_own_process(bare, url, files, given.capacity),
                len(files),
            )
            note(
                "VIEval, no store",
                in_own_process(vieval, url, files, given.capacity, None),
                len(files),
            )
            note(
                "VIEval, empty store",
                in_own_process(vieval, url, files, given.capacity, store),
                len(files),
            )
            note(
                "VIEval, all in the store",
                in_own_process(vieval, url, files, given.capacity, store),
                len(files),
            )
        if fewer := files[: given.host_samples]:
            for encoding in ("PNG", "JPEG"):
                cost = in_own_process(host_openai, url, fewer, given.capacity, encoding)
                note(f"lmms-eval `openai`, {encoding}", cost, len(fewer))
    print(
        f"{here}. 1024x1024 JPEG of {size:.0f} KB on average; the fastest of {given.rounds} "
        "rounds.\n"
    )
    fastest = {
        who: min(measured, key=lambda run: run[0].wall)
        for who, measured in runs.items()
    }
    cost, _, calls = fastest["bare loop"]
    baseline = cost.wall / calls
    rows = []
    for who, (cost, used, calls) in fastest.items():
        ideal = calls * given.latency / given.capacity
        ratios = (
            (f"{cost.wall / ideal:.3f}", f"{cost.wall / calls / baseline:.3f}")
            if calls
            else ("-", "-")
        )
        cpu = cost.cpu / (calls or 2 * used) * 1000  # two questions a sample
        memory = (f"{cost.before:.0f}", f"{cost.peak:.0f}")
        rows.append(
            (
                who,
                f"{used}",
                f"{calls}",
                f"{cost.wall:.2f}",
                *ratios,
                f"{cpu:.2f}",
                *memory,
            )
        )
    header = (
        "",
        "samples",
        "calls",
        "wall s",
        "over ideal",
        "over bare",
        "CPU ms a call",
        "MiB before",
        "MiB peak",
    )
    table(header, rows)


if __name__ == "__main__":
    main()
