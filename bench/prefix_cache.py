"""Tokens of VIEScore that a server takes from its prefix cache, with the images first and with the
text first.

The server must report `usage.prompt_tokens_details.cached_tokens` and empty its cache on
`POST /reset_prefix_cache`: vLLM does with `--enable-prompt-tokens-details` and
`VLLM_SERVER_DEV_MODE=1` in its environment.  Each row begins with an empty cache, no answer comes
from a store, and all images differ.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from common import conditions, judged, options, photographs, table

from vieval_plugin.config import Config
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import prepare

HEADER = ["kind", "side", "order", "calls", "tokens in", "cached", "share"]
ORDERS = {"images first": "0shot", "text first": "text_first"}


def samples(kind: str, files: Sequence[Path]) -> Iterator[Sample]:
    """Samples of a task type, an edit for each two files."""
    roles = ["output"]
    text = "prompt"
    if kind == "tie":
        roles = ["source", "output"]
        text = "instruction"
    count = len(roles)
    for number in range(len(files) // count):
        sample_files = files[number * count : (number + 1) * count]
        images = dict(zip(roles, map(Image, sample_files), strict=True))
        identity = SampleId("own", kind, "", str(number))
        yield Sample(identity, images, {text: f"a hill, number {number}"}, kind=kind)


def once() -> Config:
    """Options under which a reply that cannot be read is not asked for again: a reminder begins as
    the question did, whatever the order.
    """
    defaults = options(None)
    judges = defaults.judges.model_copy(update={"reminders": 0})
    return defaults.model_copy(update={"judges": judges})


def row(
    server: str, model: str, kind: str, side: int, order: str, count: int
) -> list[str]:
    """Tokens of a run of one order, and how many of them were cached."""
    reset = urllib.request.Request(f"{server}/reset_prefix_cache", method="POST")
    urllib.request.urlopen(reset).read()
    judge = prepare("viescore", ORDERS[order], once())
    pictures = 2 * count if kind == "tie" else count
    with tempfile.TemporaryDirectory() as folder:
        files = photographs(Path(folder), pictures, side)
        jobs = [Job(sample, judge) for sample in samples(kind, files)]
        run = judged(f"{server}/v1", jobs, 4, max_tokens=64, model=model)
        usage = asyncio.run(run).usage
    return [
        kind,
        str(side),
        order,
        f"{usage.calls:,}",
        f"{usage.input_tokens:,}",
        f"{usage.cached_tokens:,}",
        f"{usage.cached_tokens / usage.input_tokens:.0%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="http://127.0.0.1:8765")
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--sides", type=int, nargs="+", default=[128, 512, 1024])
    given = parser.parse_args()
    print(conditions())
    rows = []
    for kind in ("tig", "tie"):
        for side in given.sides:
            for order in ORDERS:
                cells = row(given.server, given.model, kind, side, order, given.samples)
                rows.append(cells)
    table(HEADER, rows)


if __name__ == "__main__":
    main()
