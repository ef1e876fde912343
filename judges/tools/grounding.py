"""Place of a named object in an image: GroundingDINO (see backends/image_tools/grounding.py), then
the highlight.

Source: Liu et al., Grounding DINO (ECCV 2024), used as by Wang et al., A Unified Agentic Framework
for Evaluating Conditional Image Generation (2025): box and text thresholds 0.2, the best box a
phrase.
"""

from __future__ import annotations

from vieval_plugin.judges.protocol import Asking
from vieval_plugin.judges.tools import Request, Tool, ToolOutcome, failed, use_tools
from vieval_plugin.judges.tools.highlight import highlighted

NAME = "grounding"


def use(request: Request) -> Asking[ToolOutcome]:
    """Each image of the sub-question with what the phrases name highlighted; one in which
    nothing is found stays.
    """
    what = {"phrases": request.phrases, "detector": request.detector}
    asks = [request.ask(NAME, role, **what) for role in request.images]
    results, steps = yield from use_tools(asks)
    failure = failed(steps)
    if failure:
        return ToolOutcome(steps=steps, failure=failure)
    boxes = {
        role: result.boxes
        for role, result in zip(
            request.images,
            results,
            strict=True,
        )
    }
    lines = [
        f"In the {role} picture it found nothing, and darkened nothing."
        for role in boxes
        if not boxes[role]
    ]
    images, more = yield from highlighted(request, boxes)
    return ToolOutcome(
        images,
        "\n".join(lines),
        (*steps, *more),
        failed(more),
    )


TOOL = Tool(
    NAME,
    description="finds a named thing in the pictures and darkens everything else. Of help when a "
    "question is about one "
    "particular thing or region; of none when it is about the picture as a whole.",
    cost="one pass of a detector for each picture",
    note="A detector looked for what the question is about and darkened everything else. Give "
    "your attention to the bright parts; the darkness is no property of the pictures.",
    use=use,
    needs=("torch", "transformers"),
)
