"""Runs the image tools of `UseTool` asks, in threads of their own beside the calls of models.

The pixels that tools get are decoded once for all of them, and the images that they make are kept
in bounded memory.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeAlias

import PIL.Image

from vieval_plugin import images
from vieval_plugin.backends.concurrency import DaemonPool
from vieval_plugin.backends.image_tools import grounding, text_reader
from vieval_plugin.backends.image_tools.image_memory import Decode, Decoded, Spill
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import (
    Failure,
    Image,
    Reply,
    Status,
    ToolResult,
    UseTool,
)
from vieval_plugin.judges.tools.highlight import highlight
from vieval_plugin.judges.tools.side_by_side import resized
from vieval_plugin.media.png import Pixels
from vieval_plugin.text.errors import VievalError, line_of

# more than there are cores on a small machine: a detector takes what several threads wait for as
# one batch
THREADS = 8
#: Bytes of images that tools may hold in memory.
MEMORY = 512 << 20
_JPEG_QUALITY = 95
_LONGEST_JPEG_SIDE = 65_500  # libjpeg's own


class Threads:
    """Threads for tools, which start when first needed. One run that is asked for twice at once is
    done once.

    Of `MEMORY` bytes half are for pixels that several runs may look at, and half for what tools
    draw, which goes into temporary files beyond that.
    """

    def __init__(self) -> None:
        self._decoded = Decoded(MEMORY // 2)
        self._spill = Spill(MEMORY // 2)
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
        """Decode images that tools are likely to be asked about, so that they are not decoded
        twice.
        """
        for image in pictures:
            self._decoded.look(image)

    def close(self) -> None:
        """Start no more work; what is running cannot be stopped, but need not be waited
        for.
        """
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._spill.close()

    def _run(self, ask: UseTool) -> Reply:
        reply = run(ask, self._decoded.pixels)
        if (
            not isinstance(reply, ToolResult)
            or reply.image is None
            or reply.image in ask.arguments.values()
        ):
            return reply
        return replace(reply, image=self._spill.keep(reply.image))


def run(ask: UseTool, pixels: Decode = images.pixels) -> Reply:
    """The tool's result, or a `Failure` with status `tool_error` that says in a line what went
    wrong.

    `pixels` decodes images.

    Raises:
        ToolMissing: the tool cannot run on this machine, so that no other ask for it can be
            answered either.
    """
    tool = tools.registry().get(ask.tool)
    try:
        if tool is not None and tool.run is not None:
            return tool.run(
                {
                    name: pixels(part) if isinstance(part, Image) else part
                    for name, part in ask.arguments.items()
                }
            )
        if tool is not None and tool.name in _RUNS:
            return _RUNS[tool.name](ask.arguments, pixels)
        return Failure(
            Status.TOOL_ERROR,
            f"unknown tool {ask.tool!r}",
        )
    except tools.ToolMissing:
        raise
    except VievalError as error:
        return Failure(Status.TOOL_ERROR, str(error))
    except (
        Exception
    ) as error:  # libraries below raise anything on images made to break them
        return Failure(
            Status.TOOL_ERROR,
            f"{ask.tool}: {type(error).__name__}: {line_of(error)}",
        )


def _highlight(arguments: Mapping[str, Any], pixels: Decode) -> ToolResult:
    """`image` with `boxes` highlighted; where `like` is given, resized to that image's size before.

    The result is a JPEG where the image is one and no side is too long for it, PNG otherwise, and
    the image's own file where nothing of it changes.
    """
    image = arguments["image"]
    boxes = tuple(arguments["boxes"])
    source = pixels(image)
    resized_source = source
    if "like" in arguments:
        resized_source = resized(source, pixels(arguments["like"]))
    highlighted = highlight(resized_source, boxes)
    if highlighted is source:
        return ToolResult(boxes, image=image)
    if images.is_jpeg(image) and max(highlighted.shape) <= _LONGEST_JPEG_SIDE:
        return ToolResult(boxes, image=images.vouch(encode_jpeg(highlighted)))
    return ToolResult(boxes, image=images.png_image(highlighted))


def encode_jpeg(pixels: Pixels) -> Image:
    """An array (height, width, 3) of RGB as a JPEG file in memory; VievalError where a side is too
    long for one.

    Its colours keep every pixel of theirs (4:4:4).
    """
    if (longest := max(pixels.shape)) > _LONGEST_JPEG_SIDE:
        raise VievalError(
            f"each side of a JPEG must have at most {_LONGEST_JPEG_SIDE} pixels, got "
            f"{longest}; use PNG"
        )
    file = io.BytesIO()
    PIL.Image.fromarray(pixels).save(
        file,
        "JPEG",
        quality=_JPEG_QUALITY,
        subsampling="4:4:4",
    )
    return Image(file.getvalue())


_Run: TypeAlias = Callable[[Mapping[str, Any], Decode], ToolResult | Failure]
#: Runs of tools that need a model or a cache: they are given images as they are, and who decodes
#: them.
_RUNS: Mapping[str, _Run] = {
    "grounding": grounding.run,
    "highlight": _highlight,
    "ocr": text_reader.run,
}
