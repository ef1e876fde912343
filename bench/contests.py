"""Contests of four candidates that share images: is each candidate asked about once, how close to the ideal, what memory.

The candidates of a prompt are drawn from a pool, so that each is in several contests. The ideal
wall time is that of the questions about the candidates, each once: questions x latency / capacity.
Wanted: at most 1.10 of it, and as much memory for ten times the contests.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import (
    Cost,
    add_server_options,
    conditions,
    costs,
    fake_server,
    first_line,
    in_own_process,
    judged,
    options,
    photographs,
    require_ok,
    script_parser,
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
        outputs = []
        for number, file in enumerate(files[start : start + 2 * CANDIDATES]):
            identity = SampleId("own", "tig", f"m{number}", uid)
            image = Image(Path(file))
            texts = {"prompt": f"a cat, {uid}"}
            outputs.append(Sample(identity, {"output": image}, texts))
        for _ in range(each):
            draw.shuffle(outputs)
            for four in (outputs[:CANDIDATES], outputs[CANDIDATES:]):
                identity = SampleId("own", "tig", "", f"{uid}-{len(made)}")
                votes = Votes("ranking")
                made.append(Contest(identity, tuple(four), votes, group=uid))
    return made


def vieval(
    url: str, files: Sequence[str], each: int, concurrent: int
) -> tuple[Cost, int]:
    judge = prepare("viescore", "0shot", options(None))
    jobs = [Job(contest, judge) for contest in contests(files, each, seed=0)]
    with costs() as cost:
        progress = asyncio.run(judged(url, jobs, concurrent, None))
    require_ok(progress, len(jobs))
    return cost, len(jobs)


def main() -> None:
    parser = script_parser(first_line(__doc__))
    parser.add_argument("--contests", type=int, default=5000)
    parser.add_argument(
        "--each", type=int, default=10, help="contests that a candidate is in"
    )
    parser.add_argument(
        "--side", type=int, default=1024, help="of the pictures in pixels"
    )
    add_server_options(parser)
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
            candidates = number * CANDIDATES // given.each
            files = list(map(str, photographs(folder, candidates, given.side)))
            cost, judged_contests = in_own_process(
                vieval, url, files, given.each, given.capacity
            )
            ideal = 2 * len(files) * given.latency / given.capacity
            row = [
                judged_contests,
                len(files),
                served(url)["requests"],
                cost.wall,
                cost.wall / ideal,
                cost.before,
                cost.peak,
            ]
            rows.append(row)
    print(
        f"{here}. Contests of {CANDIDATES}, each candidate in {given.each}, seed 0.\n"
    )
    columns = {
        "contests": "",
        "candidates": "",
        "calls": "",
        "wall s": ".2f",
        "over ideal": ".3f",
        "MiB before": ".0f",
        "MiB peak": ".0f",
    }
    table(columns, rows)


if __name__ == "__main__":
    main()
