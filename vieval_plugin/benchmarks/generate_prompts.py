"""A user's own prompts, from the file that the option `generate.prompts` names: one line a prompt, as in a samples file."""

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
    found: dict[str, tuple[int, Sample]] = {}
    for number, line in lines_of_file(root):
        try:
            for given, files in samples_of_line(root.parent, number, line, None, NAME):
                uid = given.id.uid
                if wrong := _wrong(given) or address_among(files):
                    raise BadLine(wrong)
                if uid in found:
                    raise BadLine(f"the uid {uid!r} is that of line {found[uid][0]} as well; give each its own")
                identity = SampleId(NAME, part, "", uid)
                found[uid] = (
                    number,
                    Sample(
                        identity,
                        given.images,
                        given.texts,
                        {},
                        given.tags,
                        given.kind,
                        given.group,
                        category=given.category,
                    ),
                )
        except BadLine as bad:
            raise VievalError(f"{root}: line {number}: {bad}") from None
    if not found:
        raise VievalError(f"{root}: no prompts in it; each line is an object with kind, texts and, for edits, images")
    return [sample for _, sample in found.values()]


def _wrong(given: Sample) -> str:
    """Why a line is no prompt, in words; empty where it is one."""
    if "output" in given.images:
        return "it names an output, which is what the generator is to make; `vieval score` judges images that are there"
    if given.id.image_model or given.id.draw:
        return "a prompt has no image_model and no draw"
    if not given.kind:
        return "it has no kind, such as tig"
    absent = [role for role, image in given.images.items() if not _is_file(image)]
    return f"the image {absent[0]} is not there: {given.images[absent[0]]!r}" if absent else ""


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
