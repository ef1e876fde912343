"""A user's own prompts, from the file that the option `generate.prompts` names: one line a prompt, as in a samples
file.
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.readers.sample_rows import BadLine, address_among, lines_of_file, samples_of_line
from vieval_plugin.text.untrusted import isfile

NAME = "generate_prompts"
PART = "prompts"


def load(root: Path, part: str) -> list[Sample]:
    """The prompts of a file as conditions.

    Args:
        root: the file; images that a line names start at its folder.
        part: the only one there is.

    Raises:
        VievalError: with the line, for one that is no prompt, repeats another or names an image that is not there.
    """
    sample_lines: dict[str, tuple[int, Sample]] = {}
    for number, line in lines_of_file(root):
        try:
            for prompt_sample, files in samples_of_line(root.parent, number, line, None, NAME):
                uid = prompt_sample.id.uid
                if problem := _problem(prompt_sample) or address_among(files):
                    raise BadLine(problem)
                if uid in sample_lines:
                    raise BadLine(f"the uid {uid!r} is that of line {sample_lines[uid][0]} as well; give each its own")
                identity = SampleId(NAME, part, "", uid)
                sample_lines[uid] = (
                    number,
                    Sample(
                        identity,
                        prompt_sample.images,
                        prompt_sample.texts,
                        {},
                        prompt_sample.tags,
                        prompt_sample.kind,
                        prompt_sample.group,
                        category=prompt_sample.category,
                    ),
                )
        except BadLine as bad:
            raise VievalError(f"{root}: line {number}: {bad}") from None
    if not sample_lines:
        raise VievalError(f"{root}: no prompts in it; each line is an object with kind, texts and, for edits, images")
    return [sample for _, sample in sample_lines.values()]


def _problem(sample: Sample) -> str:
    """Reason that a line is no prompt, in words; empty where it is one."""
    if "output" in sample.images:
        return "it names an output, which is what the generator is to make; `vieval score` judges images that are there"
    if sample.id.image_model or sample.id.draw:
        return "a prompt has no image_model and no draw"
    if not sample.kind:
        return "it has no kind, such as tig"
    missing_roles = [role for role, image in sample.images.items() if not _is_file(image)]
    return f"the image {missing_roles[0]} is not there: {sample.images[missing_roles[0]]!r}" if missing_roles else ""


def _is_file(image: Image) -> bool:
    return isinstance(image.source, bytes) or isfile(image.source)


def _missing(root: Path, part: str) -> list[str]:
    try:
        load(root, part)
    except VievalError as error:
        return [str(error)]
    return []


BENCHMARK = Benchmark(
    NAME,
    {PART: None},
    load,
    _missing,
    OfGenerators(),
    source="a file of the user's, named by the option generate.prompts",
    licence="the user's own",
    trainable=True,
    generates=True,
    root="prompts",
    note="A generator makes the images, from the user's own prompts.",
)
