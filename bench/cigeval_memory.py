"""Memory of CIGEval in this process: all samples advance together, so that each holds the images its tools made.

Mask-guided edits, each with the difference tool at both sub-questions. A tiny model of transformers
answers the first questions of each wave, so that all of its libraries are in memory; the others are
given their answers. Wanted: the peak over all samples is at most 1.5 times that over a tenth of
them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from cigeval_tools import PLAN, edits, without_loss
from common import Cost, conditions, costs, in_own_process, photographs, table

from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.image_tools import tools as image_tools
from vieval_plugin.backends.local.huggingface import TransformersBackend
from vieval_plugin.config import Config
from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import (
    Chat,
    Image,
    Reply,
    Sample,
    SampleId,
    Status,
    Text,
)
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.router import Question
from vieval_plugin.run.runner import judge_in_batches

TINY_MODEL = Path(__file__).parents[1] / "tests" / "tiny_model.py"
ASKED = 4
RATING = '{"score": [5], "reasoning": "fine"}'


def copies(first: Sample, folder: Path, count: int) -> list[Sample]:
    """Samples whose files differ only in a few bytes behind the picture: quickly made."""
    found = []
    for number in range(count):
        images = {}
        for role, image in first.images.items():
            file = folder / f"{role}{number:05}"
            file.write_bytes(Path(str(image.source)).read_bytes() + b"%08d" % number)
            images[role] = Image(file)
        found.append(
            Sample(
                SampleId("own", "mie", "m", str(number)),
                images,
                {"instruction": f"edit {number}"},
            )
        )
    return found


def judged(model: str, samples: list[Sample], bound: int) -> Cost:
    """Cost of a run whose tools may hold so many MiB of images."""
    image_tools.MEMORY = bound << 20
    removed = [tool.name for tool in tools.planned() if tool.name != "difference"]
    options = Config.model_validate({"judges": {"cigeval": {"removed": removed}}})
    judge = prepare("cigeval", "paper", options)
    backend = TransformersBackend(
        model, usage=Usage(), sampling=Sampling(max_tokens=4), batch_size=2
    )

    def answer(asked: list[tuple[int, Question]]) -> list[Reply]:
        backend.answer(asked[:ASKED], [0] * len(samples))
        return [
            Text(PLAN if isinstance(ask, Chat) and ask.path == ("plan",) else RATING)
            for _, ask in asked
        ]

    with costs() as cost:
        outcomes = judge_in_batches(
            [Job(sample, judge) for sample in samples], answer, Progress()
        )
    assert {outcome.verdict.status for outcome in outcomes} == {Status.OK}
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument(
        "--lossless", action="store_true", help="PNG files in place of JPEG"
    )
    parser.add_argument(
        "--bound", type=int, default=512, help="MiB of images made by tools"
    )
    given = parser.parse_args()
    print(conditions())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = str(folder / "model")
        subprocess.run(
            [sys.executable, TINY_MODEL, model], check=True, capture_output=True
        )
        files = photographs(folder, 1, given.side)
        [first] = edits(without_loss(files) if given.lossless else files, folder)
        samples = copies(first, folder, given.samples)
        rows = []
        for count in (given.samples // 10, given.samples):
            cost = in_own_process(judged, model, samples[:count], given.bound)
            rows.append(
                (
                    f"{count}",
                    f"{cost.before:.0f}",
                    f"{cost.peak:.0f}",
                    f"{cost.cpu:.0f}",
                )
            )
        table(("samples", "MiB before", "MiB peak", "CPU s"), rows)


if __name__ == "__main__":
    main()
