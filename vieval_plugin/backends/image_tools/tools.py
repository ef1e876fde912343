"""Runs the image tools of `UseTool` asks, in threads of their own beside the calls of models.

The pixels that tools get are decoded once for all of them, and the images that they make are kept in bounded memory.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeAlias

from vieval_plugin import images
from vieval_plugin.backends.concurrency import DaemonPool
from vieval_plugin.backends.image_tools.image_memory import Decode, Decoded, Spill
from vieval_plugin.errors import VievalError
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import Failure, Image, Reply, Status, ToolResult, UseTool

# more than there are cores on a small machine: a detector takes what several threads wait for as one batch
THREADS = 8
RunHere: TypeAlias = Callable[[Mapping[str, Any], Decode], ToolResult]
"""The run of a tool that has it in this package: it is given images as they are, and who decodes them."""

MEMORY = 512 << 20
"""Bytes of images that tools may hold in memory."""


class Threads:
    """Threads for tools, which start when first needed. One run that is asked for twice at once is done once.

    Of `MEMORY` bytes half are for pixels that several runs may look at, and half for what tools draw, which goes into
    temporary files beyond that.
    """

    def __init__(self) -> None:
        self._decoded, self._spill = Decoded(MEMORY // 2), Spill(MEMORY // 2)
        self._pool = DaemonPool(THREADS, "tool")
        self._running: dict[object, Future[Reply]] = {}

    def start(self, ask: UseTool) -> Future[Reply]:
        """Begin running the tool of an ask, or join a run of the same tool with equal arguments."""
        key = ask.tool, tuple(sorted(ask.arguments.items()))
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = self._pool.submit(self._run, ask)
            running.add_done_callback(lambda _: self._running.pop(key, None))
        return running

    def look(self, pictures: Iterable[Image]) -> None:
        """Decode images that tools are likely to be asked about, so that they are not decoded twice."""
        for image in pictures:
            self._decoded.look(image)

    def close(self) -> None:
        """Begin nothing more; what is running cannot be stopped, but need not be waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._spill.close()

    def _run(self, ask: UseTool) -> Reply:
        reply = run(ask, self._decoded.pixels)
        if not isinstance(reply, ToolResult) or reply.image is None or reply.image in ask.arguments.values():
            return reply
        return replace(reply, image=self._spill.keep(reply.image))


def _run_here(name: str) -> RunHere | None:
    """The run of a tool that has it in this package, in the module of its name."""
    module = f"{__package__}.{name}"
    return importlib.import_module(module).run if importlib.util.find_spec(module) else None


def run(ask: UseTool, pixels: Decode = images.pixels) -> Reply:
    """The tool's result, or a `Failure` with status `tool_error` that says in a line what went wrong.

    `pixels` decodes images.

    Raises:
        ToolMissing: the tool cannot run on this machine, so that no other ask for it can be answered either.
    """
    tool = tools.registry().get(ask.tool)
    local_tool_runner = None if tool is None or tool.run is not None else _run_here(tool.name)
    try:
        if local_tool_runner is not None:
            return local_tool_runner(ask.arguments, pixels)
        if tool is not None and tool.run is not None:
            decoded = {name: pixels(part) if isinstance(part, Image) else part for name, part in ask.arguments.items()}
            return tool.run(decoded)
        return Failure(Status.TOOL_ERROR, f"no tool {ask.tool!r}")
    except tools.ToolMissing:
        raise
    except VievalError as error:
        return Failure(Status.TOOL_ERROR, str(error))
    except Exception as error:  # libraries below raise anything on images made to break them
        return Failure(Status.TOOL_ERROR, f"{ask.tool}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
