"""Images of one task judged together: how close to the ideal, beside a task that calls the judge for each document.

The second way is what tasks of lmms-eval do: `process_results` in the host's four threads, each
asking one question after another. The ideal wall time is questions x latency / capacity. Wanted: at
most 1.10 of it for the first.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from common import conditions, fake_server, photographs, served, table

from vieval_plugin.config import Backbone, Config, StoreOptions
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.records import Generation
from vieval_plugin.run.generated import GeneratedImage, judge_generated
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.progress import Progress

HOSTS_THREADS = 4
QUESTIONS = 2


def together(url: str, files: Sequence[str], concurrent: int) -> float:
    backbone = Backbone(model="fake", base_url=(url,), num_concurrent=concurrent)
    options = Config(backbones={"judge": backbone}, store=StoreOptions(use=False))
    made = [
        GeneratedImage(
            Sample(
                SampleId("b", "tig", "m", str(n)),
                {"output": Image(Path(file))},
                {"prompt": f"a cat, {n}"},
            ),
            Generation(file),
        )
        for n, file in enumerate(files)
    ]
    prepared = prepare("viescore", None, options)
    progress = Progress()
    begun = time.monotonic()
    asyncio.run(judge_generated(made, prepared, options, progress, bar=False))
    wall = time.monotonic() - begun
    assert {str(status): n for status, n in progress.statuses.items()} == {
        "ok": len(files)
    }, progress.lines()
    return wall


def each_document(url: str, files: Sequence[str]) -> float:
    """The host's own loop over documents, with a `process_results` that asks two questions."""
    from lmms_eval.evaluator import _thread_map_ordered

    def process_results(file: str) -> None:
        image = base64.b64encode(Path(file).read_bytes()).decode()
        shown = {
            "type": "image_url",
            "image_url": {"url": f"data:image/jpeg;base64,{image}"},
        }
        for question in ("does it show a cat?", "is it natural?"):
            said = [
                {"role": "user", "content": [shown, {"type": "text", "text": question}]}
            ]
            body = json.dumps({"model": "fake", "messages": said}).encode()
            request = urllib.request.Request(
                f"{url}/chat/completions", body, {"Content-Type": "application/json"}
            )
            urllib.request.urlopen(request).read()

    begun = time.monotonic()
    _thread_map_ordered(process_results, files, HOSTS_THREADS)
    return time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument(
        "--side", type=int, default=512, help="of the pictures in pixels"
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
    ideal = QUESTIONS * given.prompts * given.latency / given.capacity
    rows = []
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(latency=given.latency, capacity=given.capacity) as url,
    ):
        files = [
            str(file) for file in photographs(Path(name), given.prompts, given.side)
        ]
        for way in ("together", "each document"):
            wall = (
                together(url, files, given.capacity)
                if way == "together"
                else each_document(url, files)
            )
            rows.append(
                (
                    way,
                    str(served(url)["requests"]),
                    f"{wall:.2f}",
                    f"{wall / ideal:.3f}",
                )
            )
    print(
        f"{here}. {given.prompts} prompts, {given.latency * 1000:.0f} ms, capacity "
        f"{given.capacity}.\n"
    )
    table(("judged", "calls", "wall s", "over ideal"), rows)


if __name__ == "__main__":
    main()
