"""Difference of two images.

Source: Wang et al., A Unified Agentic Framework for Evaluating Conditional Image Generation (2025).
The released code shows the single largest box, and so does this tool unless `all_differences` is
among the improvements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vieval_plugin.judges.protocol import (
    Asking,
    Box,
    Failure,
    Status,
    Step,
    ToolResult,
    UseTool,
)
from vieval_plugin.judges.tools import Request, Tool, ToolOutcome, failed, use_tools
from vieval_plugin.judges.tools.highlight import highlighted
from vieval_plugin.judges.tools.side_by_side import resized
from vieval_plugin.media.png import Pixels

NAME = "difference"
BLUR = 5
THRESHOLD = 45
DILATION = 3
SHARE = 0.005
_WHITE = 250


def difference(
    first: Pixels,
    second: Pixels,
    counts: NDArray[np.bool_] | None = None,
) -> list[Box]:
    """Boxes, in pixels of `first`, where the two images (height, width, 3) differ; largest first.

    `second` is resized to `first`. Both are blurred (5 x 5); where the grey value of their absolute
    difference is above 45 they differ, and so do the neighbours (3 x 3). The boxes are those around
    connected areas, if larger than 0.5% of the image, and overlapping ones are merged. `counts`
    (height, width) limits the search to where it is true.
    """
    import cv2

    second = resized(second, first)
    second_blurred = cv2.GaussianBlur(second, (BLUR, BLUR), 0)
    distance = cv2.absdiff(cv2.GaussianBlur(first, (BLUR, BLUR), 0), second_blurred)
    grey = cv2.cvtColor(distance, cv2.COLOR_RGB2GRAY)
    _, differs = cv2.threshold(grey, THRESHOLD, 255, cv2.THRESH_BINARY)
    if counts is not None:
        differs[~counts] = 0
    differs = cv2.dilate(differs, np.ones((DILATION, DILATION), np.uint8))
    contours, _ = cv2.findContours(
        differs,
        cv2.RETR_EXTERNAL,
        cv2.CHAIN_APPROX_SIMPLE,
    )
    smallest = SHARE * differs.size
    boxes = []
    for x, y, width, height in [cv2.boundingRect(contour) for contour in contours]:
        if width * height > smallest:
            boxes.append(Box(x, y, x + width, y + height))
    return sorted(merged(boxes), key=area, reverse=True)


def area_that_counts(mask: Pixels, inside: bool) -> NDArray[np.bool_]:
    """Area in which differences count, (height, width), from a mask (height, width, 3) whose
    near-white pixels were to change.

    That reads black-and-white masks, and sources in which the area was painted white or cut out.
    `inside` is that area; outside begins beyond the reach of the blur, so that the rim of a change
    is not taken for a second one.
    """
    import cv2

    white: NDArray[np.bool_] = np.all(mask >= _WHITE, axis=2)
    if inside:
        return white
    reach = np.ones((BLUR, BLUR), np.uint8)
    return np.equal(cv2.dilate(white.astype(np.uint8), reach), 0)


def merged(boxes: Sequence[Box]) -> list[Box]:
    """The boxes with overlapping ones replaced by the box around both, until none overlap."""
    disjoint_boxes: list[Box] = []
    waiting = list(boxes)
    while waiting:
        box = waiting.pop()
        touching = [
            disjoint_box
            for disjoint_box in disjoint_boxes
            if _overlap(box, disjoint_box)
        ]
        if not touching:
            disjoint_boxes.append(box)
            continue
        disjoint_boxes = [
            disjoint_box
            for disjoint_box in disjoint_boxes
            if disjoint_box not in touching
        ]
        sides = map(astuple, (box, *touching))
        left, top, right, bottom = zip(*sides, strict=True)
        corner = (max(right), max(bottom))
        waiting.append(Box(min(left), min(top), *corner))
    return disjoint_boxes


def run(arguments: Mapping[str, Any]) -> ToolResult:
    """The boxes where `first` and `second` differ; with a `mask` those inside its area, or
    outside (`side`).
    """
    first = arguments["first"]
    second = arguments["second"]
    counts = None
    if arguments.get("mask") is not None:
        mask = resized(arguments["mask"], first)
        counts = area_that_counts(mask, arguments["side"] == "inside")
    return ToolResult(tuple(difference(first, second, counts)))


def use(request: Request) -> Asking[ToolOutcome]:
    """Both images of the sub-question with the difference highlighted, the second at the first's
    size.

    With a mask, the question whether the edit succeeded looks inside it, any other one outside.
    """
    if len(request.images) != 2:
        reason = f"{NAME} requires exactly 2 images, got {len(request.images)}"
        step = Step(
            (*request.path, NAME),
            Status.TOOL_ERROR,
            reason=reason,
        )
        return ToolOutcome(steps=(step,), failure=Failure(step.status, reason))
    first, second = request.images.values()
    arguments: dict[str, Any] = {"first": first, "second": second}
    if request.mask:
        arguments |= {
            "mask": request.mask,
            "side": "inside" if request.question == "edit" else "outside",
        }
    path = (*request.path, NAME)
    [result], steps = yield from use_tools([UseTool(NAME, arguments, path)])
    failure = failed(steps)
    if failure:
        return ToolOutcome(steps=steps, failure=failure)
    boxes = (
        result.boxes if "all_differences" in request.improvements else result.boxes[:1]
    )
    boxes_by_role = dict.fromkeys(request.images, boxes)
    images, more = yield from highlighted(request, boxes_by_role, first)
    text = (
        ""
        if boxes
        else "No region was found in which they clearly differ, so nothing is darkened."
    )
    return ToolOutcome(images, text, (*steps, *more), failed(more))


def _overlap(first: Box, second: Box) -> bool:
    is_beside = first.right <= second.left or second.right <= first.left
    return not (is_beside or first.bottom <= second.top or second.bottom <= first.top)


def area(box: Box) -> int:
    """Pixels of a box."""
    return (box.right - box.left) * (box.bottom - box.top)


TOOL = Tool(
    NAME,
    description="compares two pictures of the same scene, an original and its edited version, "
    "and marks where they differ. Of help when the question is what an edit changed or left "
    "alone; of none when the two show different scenes.",
    cost="a few milliseconds",
    note="A program compared the two pictures and darkened everything but the region in which "
    "they differ. Give your "
    "attention to the bright region; the darkness is no property of the pictures.",
    use=use,
    run=run,
    needs=("cv2",),
)
