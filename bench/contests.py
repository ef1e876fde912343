"""Contests of four candidates that share images: is each candidate asked about once, how close to the ideal, what memory.

The candidates of a prompt are drawn from a pool, so that each is in several contests. The ideal
wall time is that of the questions about the candidates, each once: questions x latency / capacity.
Wanted: at most 1.10 of it, and as much memory for ten times the contests.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import (
    Cost,
    conditions,
    costs,
    fake_server,
    in_own_process,
    judged,
    options,
    photographs,
    served,
    table,
)

from vieval_plugin.judges.contests import Contest, Votes
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import prepare

CANDIDATES = 4


def contests(files: Sequence[str], each: int, seed: int) -> list[Contest]:
    """Contests of four outputs, every output in `each` of them; one prompt has eight outputs."""
    draw = random.Random(seed)
    made: list[Contest] = []
    for start in range(0, len(files), 2 * CANDIDATES):
        uid = str(start)
        outputs = [
            Sample(
                SampleId("own", "tig", f"m{n}", uid),
                {"output": Image(Path(file))},
                {"prompt": f"a cat, {uid}"},
            )
            for n, file in enumerate(files[start : start + 2 * CANDIDATES])
        ]
        for _ in range(each):
            draw.shuffle(outputs)
            for four in (outputs[:CANDIDATES], outputs[CANDIDATES:]):
                name = f"{uid}-{len(made)}"
                made.append(
                    Contest(
                        SampleId("own", "tig", "", name),
                        tuple(four),
                        Votes("ranking"),
                        group=uid,
                    )
                )
    return made


def vieval(
    url: str, files: Sequence[str], each: int, concurrent: int
) -> tuple[Cost, int]:
    judge = prepare("viescore", "0shot", options(None))
    jobs = [Job(contest, judge) for contest in contests(files, each, seed=0)]
    with costs() as cost:
        progress = asyncio.run(judged(url, jobs, concurrent, None))
    assert {str(status): n for status, n in progress.statuses.items()} == {
        "ok": len(jobs)
    }, progress.lines()
    return cost, len(jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--contests", type=int, default=5000)
    parser.add_argument(
        "--each", type=int, default=10, help="contests that a candidate is in"
    )
    parser.add_argument(
        "--side", type=int, default=1024, help="of the pictures in pixels"
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
    rows = []
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(latency=given.latency, capacity=given.capacity) as url,
    ):
        for number in (given.contests // 10, given.contests):
            folder = Path(name) / str(number)
            folder.mkdir()
            files = [
                str(file)
                for file in photographs(
                    folder, number * CANDIDATES // given.each, given.side
                )
            ]
            cost, found = in_own_process(vieval, url, files, given.each, given.capacity)
            counted = served(url)
            ideal = 2 * len(files) * given.latency / given.capacity
            cells = (
                f"{cost.wall:.2f}",
                f"{cost.wall / ideal:.3f}",
                f"{cost.before:.0f}",
                f"{cost.peak:.0f}",
            )
            rows.append((f"{found}", f"{len(files)}", f"{counted['requests']}", *cells))
    print(
        f"{here}. Contests of {CANDIDATES}, each candidate in {given.each}, seed 0.\n"
    )
    header = (
        "contests",
        "candidates",
        "calls",
        "wall s",
        "over ideal",
        "MiB before",
        "MiB peak",
    )
    table(header, rows)


if __name__ == "__main__":
    main()
