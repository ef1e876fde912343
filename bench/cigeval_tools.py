"""CIGEval with tools: how long a run waits for them, and how fast the two that need no model are.

Mask-guided edits of JPEG photographs against the fake server. Every plan has the difference tool
look at both sub-questions, so that each sample takes a comparison, the highlighted images and three
calls. Judged once more without tools, and with the same photographs as PNG. The boxes of a run are
printed as a hash, to be compared with those of another version.
"""

from __future__ import annotations

import argparse
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
    in_own_process,
    judged,
    photographs,
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
    Status,
    Text,
    ToolResult,
    UseTool,
)
from vieval_plugin.judges.tools.difference import difference
from vieval_plugin.judges.tools.highlight import highlight
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import prepare
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
            self.only_tools += 0 if self.models else now - self.since
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
        return (
            replace(reply, text=PLAN)
            if isinstance(reply, Text) and ask.path == ("plan",)
            else reply
        )


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
        yield Sample(
            SampleId("own", "mie", "m", str(number)),
            images,
            {"instruction": f"invert patch {number}"},
        )


def without_loss(files: list[Path]) -> list[Path]:
    """The same photographs as PNG."""
    for file in files:
        with PIL.Image.open(file) as picture:
            picture.save(file.with_suffix(".png"), **SAVED[".png"])
    return [file.with_suffix(".png") for file in files]


def timed(
    url: str, samples: list[Sample], concurrent: int, with_tools: bool
) -> tuple[Cost, Waiting, str]:
    """What a run costs, how it waited, and a hash of the boxes that its tools found."""
    waiting = Waiting()
    boxes = {}
    removed = [
        tool.name
        for tool in tools.planned()
        if not with_tools or tool.name != "difference"
    ]
    config = Config.model_validate({"judges": {"cigeval": {"removed": removed}}})
    judge = prepare("cigeval", "paper", config)
    start = Threads.start

    def watched(self: Threads, ask: UseTool) -> Future[Reply]:
        loop = asyncio.get_running_loop()
        waiting.change(tools=1)
        future = start(self, ask)
        future.add_done_callback(
            lambda _: loop.call_soon_threadsafe(waiting.change, 0, -1)
        )
        return future

    def found(number: int, outcome: Outcome) -> None:
        boxes[number] = [
            step.answer
            for step in outcome.verdict.trace
            if step.path[-1] == "difference"
        ]

    jobs = (Job(sample, judge) for sample in samples)
    Threads.start = watched  # type: ignore[method-assign]
    with costs() as cost:
        progress = asyncio.run(
            judged(
                url,
                jobs,
                concurrent,
                None,
                found,
                lambda answer: Planner(answer, waiting),
            )
        )
    Threads.start = start  # type: ignore[method-assign]
    assert set(progress.statuses) == {Status.OK}, progress.lines()
    return (
        cost,
        waiting,
        hashlib.sha256(json.dumps(boxes, sort_keys=True).encode()).hexdigest()[:12],
    )


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
    first, second = (pixels(sample.images[role]) for role in ("source", "output"))
    boxes = (Box(100, 100, 400, 500),)
    images = {"first": sample.images["source"], "second": sample.images["output"]}
    compare = UseTool("difference", images, ("difference",))

    def show(form: str) -> Image:
        held = {"image": sample.images["output"], "boxes": boxes, "form": form}
        result = run_tool(UseTool("highlight", held, ("highlight",)))
        assert isinstance(result, ToolResult)
        assert result.image is not None
        return result.image

    measured = {
        "difference, pixels": lambda: difference(first, second),
        "difference, files to boxes": lambda: run_tool(compare),
        "highlight, pixels": lambda: highlight(first, boxes),
        "highlight, file to JPEG": lambda: show("jpeg"),
        "highlight, file to PNG": lambda: show("png"),
    }
    rows = [
        (name, f"{(ms := milliseconds(function)):.1f}", f"{1000 / ms:.0f}")
        for name, function in measured.items()
    ]
    table(("tool", "CPU ms an image", "images/s"), rows)
    exact = highlight(second, boxes).astype(int)
    for form in ("jpeg", "png"):
        apart = np.abs(pixels(show(form)) - exact)
        print(
            f"{form}: values differ by {apart.mean():.2f} in the mean and by {apart.max()} at "
            "most\n"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--capacity", type=int, default=32)
    given = parser.parse_args()
    print(conditions())
    with (
        tempfile.TemporaryDirectory() as name,
        fake_server(latency=given.latency, capacity=given.capacity) as url,
    ):
        files = photographs(Path(name), given.samples, given.side)
        photos = list(edits(files, Path(name)))
        lossless = list(edits(without_loss(files), Path(name)))
        alone(photos[0])
        rows = []
        for what, samples, with_tools in (
            ("JPEG, without tools", photos, False),
            ("JPEG, with tools", photos, True),
            ("PNG, with tools", lossless, True),
        ):
            cost, waiting, boxes = in_own_process(
                timed, url, samples, given.capacity, with_tools
            )
            calls = 3 if with_tools else 2
            ideal = given.samples * calls * given.latency / given.capacity
            rows.append((
                what,
                f"{cost.wall:.1f}",
                f"{cost.cpu:.1f}",
                f"{ideal:.1f}",
                f"{waiting.any_tool / cost.wall:.0%}",
                f"{waiting.only_tools / cost.wall:.0%}",
                f"{cost.peak:.0f}",
                boxes,
            ))  # fmt: skip
        columns = (
            "wall s",
            "CPU s",
            "calls alone s",
            "some tool under way",
            "nothing but tools",
            "MiB",
            "boxes",
        )
        table(("run", *columns), rows)
        print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
