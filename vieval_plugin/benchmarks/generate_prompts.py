"""A user's own prompts, from the table that the option `generate.prompts` names: one
row per prompt.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.meta_evaluation.generators import OfGenerators
from vieval_plugin.readers.absent_images import absent_image
from vieval_plugin.readers.prompt_rows import prompts_of
from vieval_plugin.readers.sample_rows import address_among, samples_of_row
from vieval_plugin.readers.tables import BadLine
from vieval_plugin.text.errors import VievalError

NAME = "generate_prompts"
PART = "prompts"


def load(root: Path, part: str) -> list[Sample]:
    """The prompts of a file as conditions.

    Args:
        root: the file, see `prompts_of`; images that a row names start at its folder.
        part: the only one there is.

    Raises:
        VievalError: with the row, for one that is no prompt, repeats another or names an image that
            is not there.
    """
    prompts = prompts_of(root)
    samples: dict[str, Sample] = {}
    for prompt in prompts.rows:
        row = {**prompt.row, "uid": prompt.uid}
        try:
            for sample, files in samples_of_row(
                prompts.folder,
                prompt.number,
                row,
                None,
                NAME,
            ):
                no_kind = "" if sample.kind else "it must have a kind, such as tig"
                problem = address_among(files) or no_kind or absent_image(sample)
                if problem:
                    raise BadLine(problem)
                if sample.id.uid in samples:
                    raise BadLine(
                        f"the uid {sample.id.uid!r} is used twice; use a different uid for each row"
                    )
                identity = SampleId(
                    NAME,
                    part,
                    "",
                    sample.id.uid,
                )
                samples[sample.id.uid] = replace(sample, id=identity)
        except BadLine as bad:
            raise VievalError(
                f"{root}: {prompts.unit} {prompt.number}: {bad}"
            ) from None
    return list(samples.values())


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
    source="the user's file in the option generate.prompts",
    licence="the user's own",
    trainable=True,
    generates=True,
    root="prompts",
    note="Generates images from the user's prompts.",
)
