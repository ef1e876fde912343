"""Images of one task judged together: how close to the ideal, beside a task that calls the judge for each document.

The second way is what tasks of lmms-eval do: `process_results` in the host's four threads, each
asking one question after another. The ideal wall time is questions x latency / capacity. Wanted: at
most 1.10 of it for the first.
"""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from common import (
    add_server_options,
    conditions,
    fake_server,
    first_line,
    photographs,
    require_ok,
    script_parser,
    served,
    table,
)

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
    images = []
    for number, file in enumerate(files):
        identity = SampleId("b", "tig", "m", str(number))
        texts = {"prompt": f"a cat, {number}"}
        sample = Sample(identity, {"output": Image(Path(file))}, texts)
        images.append(GeneratedImage(sample, Generation(file)))
    prepared = prepare("viescore", None, options)
    progress = Progress()
    begun = time.monotonic()
    asyncio.run(judge_generated(images, prepared, options, progress, bar=False))
    wall = time.monotonic() - begun
    require_ok(progress, len(files))
    return wall


def each_document(url: str, files: Sequence[str]) -> float:
    """The host's own loop over documents, with a `process_results` that asks two questions."""
    from lmms_eval.evaluator import _thread_map_ordered

    def process_results(file: str) -> None:
        data = base64.b64encode(Path(file).read_bytes()).decode()
        image = {
            "type": "image_url",
            "image_url": {"url": f"data:image/jpeg;base64,{data}"},
        }
        for question in ("does it show a cat?", "is it natural?"):
            content = [image, {"type": "text", "text": question}]
            body = {
                "model": "fake",
                "messages": [{"role": "user", "content": content}],
            }
            request = urllib.request.Request(
                f"{url}/chat/completions",
                json.dumps(body).encode(),
                {"Content-Type": "application/json"},
            )
            urllib.request.urlopen(request).read()

    begun = time.monotonic()
    _thread_map_ordered(process_results, files, HOSTS_THREADS)
    return time.monotonic() - begun


def main() -> None:
    parser = script_parser(first_line(__doc__))
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument(
        "--side", type=int, default=512, help="of the pictures in pixels"
    )
    add_server_options(parser)
    given = parser.parse_args()
    here = conditions()
    ideal = QUESTIONS * given.prompts * given.latency / given.capacity
    rows = []
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(latency=given.latency, capacity=given.capacity) as url,
    ):
        files = list(map(str, photographs(Path(name), given.prompts, given.side)))
        wall = together(url, files, given.capacity)
        rows.append(["together", served(url)["requests"], wall, wall / ideal])
        wall = each_document(url, files)
        rows.append(["each document", served(url)["requests"], wall, wall / ideal])
    print(
        f"{here}. {given.prompts} prompts, {given.latency * 1000:.0f} ms, capacity "
        f"{given.capacity}.\n"
    )
    columns = {
        "judged": "",
        "calls": "",
        "wall s": ".2f",
        "over ideal": ".3f",
    }
    table(columns, rows)


if __name__ == "__main__":
    main()
