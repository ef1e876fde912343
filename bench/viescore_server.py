"""VIEScore against a server: how close to the ideal, and what it costs the client.

The fake server answers after a set latency and works on so many requests at once, so that the ideal
wall time is calls x latency / capacity. Compared in one run: a bare loop over the same HTTP client
that sends the same requests with the same concurrency, VIEval without its store, with an empty one
and with a full one, and lmms-eval's `openai` model, which VIEval drives in waves, with the host's
PNG and with its JPEG.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import (
    Cost,
    add_server_options,
    bare_loop,
    conditions,
    costs,
    fake_server,
    first_line,
    first_requests,
    in_own_process,
    judged,
    options,
    photographs,
    require_ok,
    samples,
    script_parser,
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
    require_ok(progress, len(jobs))
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
    instances = []
    for number, sample in enumerate(samples(files)):
        request = JudgeRequest(sample, "viescore", "0shot")
        arguments = ("", {}, request, number, "own", "test")
        metadata = {"task": "own", "doc_id": number, "repeats": 1}
        instances.append(Instance("vieval_judge", arguments, 0, metadata))
    with costs() as cost:
        vieval_judge(model, instances)
    return cost


@dataclass(frozen=True)
class Measured:
    """What judging so many samples cost, and the calls that the server counted."""

    cost: Cost
    samples: int
    calls: int


def measured(
    url: str, judge: Callable[..., Cost], files: Sequence[Path], *arguments: object
) -> Measured:
    """Measure a way to judge in a process of its own."""
    cost = in_own_process(judge, url, files, *arguments)
    counted = served(url)
    assert set(counted["statuses"]) <= {"200"}, counted
    return Measured(cost, len(files), counted["requests"])


def row(who: str, run: Measured, ideal: float, baseline: float) -> list[str]:
    """A row of the table.

    Args:
        who: what was measured.
        run: its fastest run.
        ideal: seconds that the server takes for a call.
        baseline: those of the bare loop.
    """
    cost = run.cost
    ratios = ["-", "-"]
    calls = 2 * run.samples  # two questions a sample
    if run.calls:
        calls = run.calls
        over_ideal = cost.wall / (calls * ideal)
        over_bare = cost.wall / calls / baseline
        ratios = [f"{over_ideal:.3f}", f"{over_bare:.3f}"]
    return [
        who,
        str(run.samples),
        str(run.calls),
        f"{cost.wall:.2f}",
        *ratios,
        f"{1000 * cost.cpu / calls:.2f}",
        f"{cost.before:.0f}",
        f"{cost.peak:.0f}",
    ]


def main() -> None:
    parser = script_parser(first_line(__doc__))
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
    add_server_options(parser)
    given = parser.parse_args()
    here = conditions()
    capacity = given.capacity
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(latency=given.latency, capacity=capacity) as url,
    ):
        folder = Path(name)
        files = photographs(folder, given.samples, 1024)
        size = statistics.mean(file.stat().st_size for file in files) / 1000
        runs: dict[str, list[Measured]] = defaultdict(list)
        for turn in range(given.rounds):
            runs["bare loop"].append(measured(url, bare, files, capacity))
            stores = {
                "VIEval, no store": None,
                "VIEval, empty store": folder / f"{turn}.sqlite",
                "VIEval, all in the store": folder / f"{turn}.sqlite",
            }
            for who, store in stores.items():
                runs[who].append(measured(url, vieval, files, capacity, store))
        fewer = files[: given.host_samples]
        if fewer:
            for encoding in ("PNG", "JPEG"):
                run = measured(url, host_openai, fewer, capacity, encoding)
                runs[f"lmms-eval `openai`, {encoding}"].append(run)
    print(
        f"{here}. 1024x1024 JPEG of {size:.0f} KB on average; the fastest of "
        f"{given.rounds} rounds.\n"
    )
    fastest = {}
    for who, rounds in runs.items():
        fastest[who] = min(rounds, key=lambda run: run.cost.wall)
    bare_run = fastest["bare loop"]
    baseline = bare_run.cost.wall / bare_run.calls
    ideal = given.latency / capacity
    columns = [
        "",
        "samples",
        "calls",
        "wall s",
        "over ideal",
        "over bare",
        "CPU ms a call",
        "MiB before",
        "MiB peak",
    ]
    table(columns, [row(who, run, ideal, baseline) for who, run in fastest.items()])


if __name__ == "__main__":
    main()
