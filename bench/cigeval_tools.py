"""CIGEval with tools: how long a run waits for them, and how fast the two that need no model are.

Mask-guided edits of JPEG photographs against the fake server. Every plan has the difference tool
look at both sub-questions, so that each sample takes a comparison, the highlighted images and three
calls. Judged once more without tools, and with the same photographs as PNG. The boxes of a run are
printed as a hash, to be compared with those of another version.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import PIL.Image
from common import (
    Answer,
    Cost,
    conditions,
    costs,
    fake_server,
    first_line,
    in_own_process,
    judged,
    photographs,
    require_ok,
    script_parser,
    table,
)

from vieval_plugin.backends.image_tools.tools import Threads
from vieval_plugin.backends.image_tools.tools import run as run_tool
from vieval_plugin.config import Config
from vieval_plugin.images import pixels
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import (
    Box,
    Image,
    Reply,
    Sample,
    SampleId,
    Text,
    ToolResult,
    UseTool,
)
from vieval_plugin.judges.tools.difference import difference
from vieval_plugin.judges.tools.highlight import highlight
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import PreparedJudge, prepare
from vieval_plugin.run.router import Question
from vieval_plugin.run.scheduler import Outcome

SAVED: dict[str, dict[str, int]] = {
    ".jpg": {"quality": 85},
    ".png": {"compress_level": 1},
}
PLAN = json.dumps(
    {
        "plan": [
            {"task_id": n, "used": True, "tool": "difference", "reasoning": "fine"}
            for n in (1, 2)
        ]
    }
)


@dataclass
class Waiting:
    """Seconds in which tools were wanted, and those of them in which no call of a model was
    under way.
    """

    models: int = 0
    tools: int = 0
    since: float = 0.0
    any_tool: float = 0.0
    only_tools: float = 0.0

    def change(self, models: int = 0, tools: int = 0) -> None:
        now = time.perf_counter()
        if self.tools:
            self.any_tool += now - self.since
        if self.tools and not self.models:
            self.only_tools += now - self.since
        self.since = now
        self.models += models
        self.tools += tools


class Planner:
    """The server's backbone, whose plans are replaced by one that uses tools."""

    def __init__(self, inner: Answer, waiting: Waiting) -> None:
        self._inner = inner
        self._waiting = waiting

    async def __call__(self, ask: Question, repeat: int) -> Reply:
        self._waiting.change(models=1)
        try:
            reply = await self._inner(ask, repeat)
        finally:
            self._waiting.change(models=-1)
        if isinstance(reply, Text) and ask.path == ("plan",):
            return replace(reply, text=PLAN)
        return reply


def edits(files: list[Path], folder: Path) -> Iterator[Sample]:
    """Each photograph with an edited copy of its own: a patch of a fifth of the side is
    inverted.
    """
    for number, file in enumerate(files):
        with PIL.Image.open(file) as source:
            pixels = np.array(source)
        side = pixels.shape[0] // 5
        pixels[side : 2 * side, side : 2 * side] ^= 128
        output = folder / f"edited{number:05}{file.suffix}"
        PIL.Image.fromarray(pixels).save(output, **SAVED[file.suffix])
        images = {"source": Image(file), "output": Image(output)}
        texts = {"instruction": f"invert patch {number}"}
        yield Sample(SampleId("own", "mie", "m", str(number)), images, texts)


def without_loss(files: list[Path]) -> list[Path]:
    """The same photographs as PNG."""
    lossless = []
    for file in files:
        target = file.with_suffix(".png")
        with PIL.Image.open(file) as picture:
            picture.save(target, **SAVED[".png"])
        lossless.append(target)
    return lossless


def cigeval(removed: list[str]) -> PreparedJudge:
    """CIGEval without some of its tools."""
    options = Config.model_validate({"judges": {"cigeval": {"removed": removed}}})
    return prepare("cigeval", "paper", options)


def timed(
    url: str, samples: list[Sample], concurrent: int, with_tools: bool
) -> tuple[Cost, Waiting, str]:
    """What a run costs, how it waited, and a hash of the boxes that its tools found."""
    waiting = Waiting()
    boxes = {}
    removed = [tool.name for tool in tools.planned()]
    if with_tools:
        removed.remove("difference")
    judge = cigeval(removed)
    start = Threads.start

    def watched(self: Threads, ask: UseTool) -> Future[Reply]:
        loop = asyncio.get_running_loop()
        waiting.change(tools=1)
        future = start(self, ask)
        future.add_done_callback(
            lambda _: loop.call_soon_threadsafe(waiting.change, 0, -1)
        )
        return future

    def note_boxes(number: int, outcome: Outcome) -> None:
        trace = outcome.verdict.trace
        boxes[number] = [step.answer for step in trace if step.path[-1] == "difference"]

    def planning(answer: Answer) -> Answer:
        return Planner(answer, waiting)

    jobs = (Job(sample, judge) for sample in samples)
    Threads.start = watched  # type: ignore[method-assign]
    with costs() as cost:
        run = judged(url, jobs, concurrent, None, note_boxes, planning)
        progress = asyncio.run(run)
    Threads.start = start  # type: ignore[method-assign]
    require_ok(progress, len(samples))
    serialized = json.dumps(boxes, sort_keys=True).encode()
    return cost, waiting, hashlib.sha256(serialized).hexdigest()[:12]


def milliseconds(function: Callable[[], object], rounds: int = 20) -> float:
    function()
    times = []
    for _ in range(rounds):
        began = time.process_time()
        function()
        times.append(1000 * (time.process_time() - began))
    return statistics.median(times)


def alone(sample: Sample) -> None:
    """Each tool by itself: on pixels, and from file to result as a run has it."""
    source = sample.images["source"]
    output = sample.images["output"]
    first = pixels(source)
    second = pixels(output)
    boxes = (Box(100, 100, 400, 500),)
    images = {"first": source, "second": output}
    compare = UseTool("difference", images, ("difference",))

    def show(form: str) -> Image:
        arguments = {"image": output, "boxes": boxes, "form": form}
        result = run_tool(UseTool("highlight", arguments, ("highlight",)))
        assert isinstance(result, ToolResult)
        assert result.image is not None
        return result.image

    functions = {
        "difference, pixels": lambda: difference(first, second),
        "difference, files to boxes": lambda: run_tool(compare),
        "highlight, pixels": lambda: highlight(first, boxes),
        "highlight, file to JPEG": lambda: show("jpeg"),
        "highlight, file to PNG": lambda: show("png"),
    }
    rows = []
    for name, function in functions.items():
        ms = milliseconds(function)
        rows.append([name, ms, 1000 / ms])
    columns = {
        "tool": "",
        "CPU ms an image": ".1f",
        "images/s": ".0f",
    }
    table(columns, rows)
    exact = highlight(second, boxes).astype(int)
    for form in ("jpeg", "png"):
        apart = np.abs(pixels(show(form)) - exact)
        print(
            f"{form}: values differ by {apart.mean():.2f} in the mean and by "
            f"{apart.max()} at most\n"
        )


def main() -> None:
    parser = script_parser(first_line(__doc__), samples=500, side=1024, capacity=32)
    parser.add_argument("--latency", type=float, default=0.2)
    given = parser.parse_args()
    print(conditions())
    rows = []
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(latency=given.latency, capacity=given.capacity) as url,
    ):
        folder = Path(name)
        files = photographs(folder, given.samples, given.side)
        photos = list(edits(files, folder))
        lossless = list(edits(without_loss(files), folder))
        alone(photos[0])
        for what, samples, with_tools in (
            ("JPEG, without tools", photos, False),
            ("JPEG, with tools", photos, True),
            ("PNG, with tools", lossless, True),
        ):
            cost, waiting, boxes = in_own_process(
                timed, url, samples, given.capacity, with_tools
            )
            calls = 3 if with_tools else 2
            row = [
                what,
                cost.wall,
                cost.cpu,
                given.samples * calls * given.latency / given.capacity,
                waiting.any_tool / cost.wall,
                waiting.only_tools / cost.wall,
                cost.peak,
                boxes,
            ]
            rows.append(row)
    columns = {
        "run": "",
        "wall s": ".1f",
        "CPU s": ".1f",
        "calls alone s": ".1f",
        "some tool under way": ".0%",
        "nothing but tools": ".0%",
        "MiB": ".0f",
        "boxes": "",
    }
    table(columns, rows)
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
