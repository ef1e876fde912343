"""Memory of CIGEval in this process: all samples advance together, so that each holds the images its tools made.

Mask-guided edits, each with the difference tool at both sub-questions. A tiny model of transformers
answers the first questions of each wave, so that all of its libraries are in memory; the others are
given their answers. Wanted: the peak over all samples is at most 1.5 times that over a tenth of
them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from cigeval_tools import PLAN, cigeval, edits, without_loss
from common import (
    Cost,
    conditions,
    costs,
    first_line,
    in_own_process,
    photographs,
    script_parser,
    table,
)

from vieval_plugin.backends.http.openai import Sampling
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.image_tools import tools as image_tools
from vieval_plugin.backends.local.huggingface import TransformersBackend
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
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.router import Question
from vieval_plugin.run.runner import judge_in_batches

TINY_MODEL = Path(__file__).parents[1] / "tests" / "tiny_model.py"
ASKED = 4
RATING = '{"score": [5], "reasoning": "fine"}'


def copies(first: Sample, folder: Path, count: int) -> list[Sample]:
    """Samples whose files differ only in a few bytes behind the picture: quickly made."""
    contents = {}
    for role, image in first.images.items():
        contents[role] = Path(str(image.source)).read_bytes()
    samples = []
    for number in range(count):
        images = {}
        for role, content in contents.items():
            file = folder / f"{role}{number:05}"
            file.write_bytes(content + b"%08d" % number)
            images[role] = Image(file)
        identity = SampleId("own", "mie", "m", str(number))
        samples.append(Sample(identity, images, {"instruction": f"edit {number}"}))
    return samples


def judged(model: str, samples: list[Sample], bound: int) -> Cost:
    """Cost of a run whose tools may hold so many MiB of images."""
    image_tools.MEMORY = bound << 20
    judge = cigeval(
        [tool.name for tool in tools.planned() if tool.name != "difference"]
    )
    backend = TransformersBackend(
        model, usage=Usage(), sampling=Sampling(max_tokens=4), batch_size=2
    )

    def answer(asked: list[tuple[int, Question]]) -> list[Reply]:
        backend.answer(asked[:ASKED], [0] * len(samples))
        return [reply_to(ask) for _, ask in asked]

    jobs = [Job(sample, judge) for sample in samples]
    with costs() as cost:
        outcomes = judge_in_batches(jobs, answer, Progress())
    assert {outcome.verdict.status for outcome in outcomes} == {Status.OK}
    return cost


def reply_to(ask: Question) -> Text:
    """The answer that a question is given."""
    if isinstance(ask, Chat) and ask.path == ("plan",):
        return Text(PLAN)
    return Text(RATING)


def main() -> None:
    parser = script_parser(first_line(__doc__), samples=1000, side=1024)
    parser.add_argument(
        "--lossless", action="store_true", help="PNG files in place of JPEG"
    )
    parser.add_argument(
        "--bound", type=int, default=512, help="MiB of images made by tools"
    )
    given = parser.parse_args()
    print(conditions())
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = str(folder / "model")
        build = [sys.executable, TINY_MODEL, model]
        subprocess.run(build, check=True, capture_output=True)
        files = photographs(folder, 1, given.side)
        if given.lossless:
            files = without_loss(files)
        [first] = edits(files, folder)
        samples = copies(first, folder, given.samples)
        for count in (given.samples // 10, given.samples):
            cost = in_own_process(judged, model, samples[:count], given.bound)
            rows.append([count, cost.before, cost.peak, cost.cpu])
    columns = {
        "samples": "",
        "MiB before": ".0f",
        "MiB peak": ".0f",
        "CPU s": ".0f",
    }
    table(columns, rows)


if __name__ == "__main__":
    main()
