"""The store of replies: how many a second it takes and gives, for one process and for two on one file.

Every reply is on its way to the disk when `put` returns, so the baseline that is written is a file
to which each reply is appended as a line of JSON and flushed. It answers no question until it is
read as a whole, which is the baseline that is read. The longest single call is shown because it
holds up everything else in its process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from common import conditions, table

from vieval_plugin.backends.cache.store import Store, key_of, parse_stored, to_stored
from vieval_plugin.judges.protocol import Text

REPLY = Text(
    json.dumps(
        {
            "score": [7, 8],
            "reasoning": "The edit was made, and little else has changed. " * 5,
        }
    ),
    900,
    80,
)


@dataclass(frozen=True)
class Timed:
    """When many calls began and ended, and the seconds that the longest took."""

    begun: float
    ended: float
    longest: float


def timed(call: Callable[[str], object], keys: Iterable[str]) -> Timed:
    begun = before = time.perf_counter()
    longest = 0.0
    for key in keys:
        call(key)
        now = time.perf_counter()
        longest = max(longest, now - before)
        before = now
    return Timed(begun, before, longest)


def keys(who: int, count: int) -> list[str]:
    return [key_of({"process": who, "question": number}) for number in range(count)]


def write(file: Path, who: int, count: int) -> Timed:
    store = Store(file)
    took = timed(lambda key: store.add(key, "fake", REPLY), keys(who, count))
    store.close()
    return took


def read(file: Path, who: int, count: int) -> Timed:
    store = Store(file)

    def get(key: str) -> None:
        assert store.get(key) is not None

    took = timed(get, keys(who, count))
    store.close()
    return took


def append(file: Path, who: int, count: int) -> Timed:
    with file.open("a", encoding="utf-8") as lines:

        def put(key: str) -> None:
            lines.write(
                json.dumps({"key": key, "model": "fake", "reply": to_stored(REPLY)})
                + "\n"
            )
            lines.flush()

        return timed(put, keys(who, count))


def load(file: Path, who: int, count: int) -> Timed:
    with file.open(encoding="utf-8") as lines:
        replies = {}

        def take(line: str) -> None:
            entry = json.loads(line)
            replies[entry["key"]] = parse_stored(entry["reply"])

        took = timed(take, lines)
    assert set(keys(who, count)) <= set(replies)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replies", type=int, default=20_000, help="of each process")
    given = parser.parse_args()
    here = conditions()
    count = given.replies
    rows = []
    with (
        tempfile.TemporaryDirectory() as name,
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        list(pool.map(time.sleep, [0.5, 0.5]))  # both processes are up
        for who, action, file, processes in (
            ("lines of JSON, written", append, "replies.jsonl", 1),
            ("lines of JSON, all read", load, "replies.jsonl", 1),
            ("store, written", write, "one.sqlite", 1),
            ("store, read", read, "one.sqlite", 1),
            ("store, written by two processes", write, "two.sqlite", 2),
            ("store, read by two processes", read, "two.sqlite", 2),
        ):
            path = Path(name) / file
            took = list(
                pool.map(
                    action, [path] * processes, range(processes), [count] * processes
                )
            )
            wall = max(one.ended for one in took) - min(one.begun for one in took)
            longest = max(one.longest for one in took)
            rows.append(
                (
                    who,
                    f"{processes * count}",
                    f"{processes * count / wall:.0f}",
                    f"{longest * 1000:.1f}",
                )
            )
    print(f"{here}. Replies of {len(REPLY.text)} characters.\n")
    table(("", "replies", "replies a second", "longest call ms"), rows)


if __name__ == "__main__":
    main()
