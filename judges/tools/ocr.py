"""Text in an image, read by RapidOCR, whose models come inside its package (see
backends/image_tools/text_reader.py).
"""

from __future__ import annotations

from vieval_plugin.judges.protocol import Asking
from vieval_plugin.judges.tools import Request, Tool, ToolOutcome, failed, use_tools

NAME = "ocr"


def use(request: Request) -> Asking[ToolOutcome]:
    """The text in each image of the sub-question; the images stay as they are."""
    asks = [request.ask(NAME, role) for role in request.images]
    results, steps = yield from use_tools(asks)
    lines = []
    for role, result in zip(request.images, results, strict=True):
        text = " / ".join(result.text.splitlines()) or "none found"
        lines.append(f"Text in the {role} picture: {text}")
    return ToolOutcome(
        text="\n".join(lines),
        steps=steps,
        failure=failed(steps),
    )


TOOL = Tool(
    NAME,
    description="reads the text that is visible in the pictures. Of help when the question is "
    "about words, signs or labels in a picture.",
    cost="about a second a picture",
    note=(
        "A program read the text in the pictures. It may misread ornate letters; trust your "
        "eyes where they differ."
    ),
    use=use,
    needs=("rapidocr", "onnxruntime"),
)
