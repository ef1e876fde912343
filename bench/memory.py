"""Memory of a long run: what the process holds after every thousand samples, with no latency to wait for.

Beside VIEval, with its store and without, a bare loop over the same HTTP client that sends the same
requests. Wanted: flat, once the kept images (48 MiB at most) have found their size.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import (
    bare_loop,
    conditions,
    copies,
    fake_server,
    first_line,
    first_requests,
    in_own_process,
    judged,
    memory,
    options,
    require_ok,
    samples,
    script_parser,
    served,
    table,
)

from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import prepare


class Readings:
    """Memory at the start and after every so many."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.seen = 0
        self.mib = [memory()]

    def count(self, *_: object) -> None:
        self.seen += 1
        if self.seen % self.every == 0:
            self.mib.append(memory())


def vieval(
    url: str, files: Sequence[str], every: int, concurrent: int, store: Path | None
) -> list[float]:
    judge = prepare("viescore", "0shot", options(None))
    jobs = (Job(sample, judge) for sample in samples(map(Path, files)))
    readings = Readings(every)
    progress = asyncio.run(judged(url, jobs, concurrent, store, readings.count))
    require_ok(progress, len(files))
    return readings.mib


def bare(url: str, files: Sequence[str], every: int, concurrent: int) -> list[float]:
    judge = prepare("viescore", "0shot", options(None))
    requests = first_requests(
        judge.program(sample) for sample in samples(map(Path, files))
    )
    readings = Readings(2 * every)  # two questions a sample
    asyncio.run(bare_loop(url, requests, concurrent, readings.count))
    return readings.mib


def main() -> None:
    parser = script_parser(first_line(__doc__))
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument(
        "--side", type=int, default=256, help="of the pictures in pixels"
    )
    parser.add_argument("--concurrent", type=int, default=32)
    given = parser.parse_args()
    here = conditions()
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(capacity=given.concurrent) as url,
    ):
        folder = Path(name)
        pictures = copies(folder, given.samples, given.side)
        kilobytes = pictures[0].stat().st_size / 1000
        files = list(map(str, pictures))  # a Path remembers ever more
        run = (url, files, given.every, given.concurrent)
        bare_mib = in_own_process(bare, *run)
        storeless_mib = in_own_process(vieval, *run, None)
        store_mib = in_own_process(vieval, *run, folder / "store.sqlite")
        assert set(served(url)["statuses"]) == {"200"}
    print(
        f"{here}. {given.samples} samples with pictures of {kilobytes:.1f} KB, MiB in "
        "memory.\n"
    )
    rows = []
    readings = zip(bare_mib, storeless_mib, store_mib, strict=True)
    for place, mib in enumerate(readings):
        rows.append([place * given.every, *mib])
    columns = {
        "samples": "",
        "bare loop": ".1f",
        "VIEval, no store": ".1f",
        "VIEval, store": ".1f",
    }
    table(columns, rows)


if __name__ == "__main__":
    main()
