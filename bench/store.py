"""The store of replies: how many a second it takes and gives, for one process and for two on one file.

Every reply is on its way to the disk when `put` returns, so the baseline that is written is a file
to which each reply is appended as a line of JSON and flushed. It answers no question until it is
read as a whole, which is the baseline that is read. The longest single call is shown because it
holds up everything else in its process.
"""

from __future__ import annotations

import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from common import conditions, first_line, script_parser, table

from vieval_plugin.backends.cache.store import Store, key_of, parse_stored, to_stored
from vieval_plugin.judges.protocol import Text

ANSWER = {
    "score": [7, 8],
    "reasoning": "The edit was made, and little else has changed. " * 5,
}


REPLY = Text(json.dumps(ANSWER), 900, 80)


@dataclass(frozen=True)
class Timed:
    """When many calls began and ended, and the seconds that the longest took."""

    start: float
    ended: float
    longest: float


def timed(call: Callable[[str], object], keys: Iterable[str]) -> Timed:
    start = time.perf_counter()
    before = start
    longest = 0.0
    for key in keys:
        call(key)
        now = time.perf_counter()
        longest = max(longest, now - before)
        before = now
    return Timed(start, before, longest)


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
            entry = {
                "key": key,
                "model": "fake",
                "reply": to_stored(REPLY),
            }
            lines.write(f"{json.dumps(entry)}\n")
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
    parser = script_parser(first_line(__doc__))
    parser.add_argument("--replies", type=int, default=20_000, help="of each process")
    given = parser.parse_args()
    here = conditions()
    actions = (
        ("lines of JSON, written", append, "replies.jsonl", 1),
        ("lines of JSON, all read", load, "replies.jsonl", 1),
        ("store, written", write, "one.sqlite", 1),
        ("store, read", read, "one.sqlite", 1),
        ("store, written by two processes", write, "two.sqlite", 2),
        ("store, read by two processes", read, "two.sqlite", 2),
    )
    rows = []
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as name,
        ProcessPoolExecutor(2, mp_context=context) as pool,
    ):
        list(pool.map(time.sleep, [0.5, 0.5]))  # both processes are up
        for who, action, file, processes in actions:
            files = [Path(name) / file] * processes
            counts = [given.replies] * processes
            runs = list(pool.map(action, files, range(processes), counts))
            start = min(run.start for run in runs)
            ended = max(run.ended for run in runs)
            longest = max(run.longest for run in runs)
            replies = sum(counts)
            rows.append([who, replies, replies / (ended - start), longest * 1000])
    print(f"{here}. Replies of {len(REPLY.text)} characters.\n")
    columns = {
        "": "",
        "replies": "",
        "replies a second": ".0f",
        "longest call ms": ".1f",
    }
    table(columns, rows)


if __name__ == "__main__":
    main()
