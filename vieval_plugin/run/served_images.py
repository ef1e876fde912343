"""The images of prompts from a server of an image model, kept in a folder that a ranking reads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from vieval_plugin.backends.http.server import ServerOptions, Usage
from vieval_plugin.generation.image_api import GENERATIONS, ImageApi, make
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.judges.protocol import Sample, Status
from vieval_plugin.readers.prompt_rows import Prompts
from vieval_plugin.readers.samples import samples_in_row
from vieval_plugin.run.generated import prompt_of, read_answer
from vieval_plugin.text.errors import VievalError

_UNFINISHED = "unfinished"
"""Folder of the images that are made until all are: a run that was stopped goes on, and the next build begins anew."""


def make_images(model: str, server: ServerOptions, prompts: Prompts, folder: Path, seed: int) -> Iterator[str]:
    """Make an image a prompt, with a seed of its own, and call it by the prompt's uid.

    Args:
        model: the image model's name on the server.
        server: how to call it.
        prompts: those of a file.
        folder: for the images; those of the same uids are replaced.
        seed: of the first prompt; each further one has the next number.

    Returns:
        Lines on what was made. An image that the server refuses to make is not there, and counts as a failure.

    Raises:
        VievalError: calls failed, a prompt cannot be read, or its uid is no file's name.
    """
    server = replace(server, path=GENERATIONS, hello={"model": model, "prompt": "a cat", "n": 1})
    api = ImageApi(model, server, folder / _UNFINISHED)
    conditions = [conditions_of(prompts, number) for number in range(len(prompts.rows))]
    requests = [ImageRequest(s, prompt_of(s), seed=seed + number) for number, s in enumerate(conditions)]
    usage = Usage()
    answers = [read_answer(text, 0) for text in make(api, requests, usage, seed)]
    failed = [answer for answer in answers if answer.status in (Status.API_ERROR, Status.TOOL_ERROR)]
    if failed:
        lost = f"{len(failed)} of {len(answers)} images were not made ({failed[0].text[:200]})"
        raise VievalError(f"{model}: {lost}; run the same command again, which makes only these")
    for row, answer in zip(prompts.rows, answers, strict=True):
        file = folder / f"{row.uid}.png"
        file.unlink(missing_ok=True)
        for image in answer.images:
            shutil.copyfile(image, file)
    shutil.rmtree(folder / _UNFINISHED, ignore_errors=True)
    if usage.cached:
        yield f"{usage.cached} images in {folder} are of a run that was stopped; remove the folder if that was another build"
    yield f"{model} made {sum(bool(answer.images) for answer in answers)} of {len(answers)} images in {folder} (seed {seed})"


def conditions_of(prompts: Prompts, number: int) -> Sample:
    """The conditions of a prompt by its position; VievalError where it cannot be read or its uid is no file name."""
    row = prompts.rows[number]
    if Path(f"{row.uid}.png").name != f"{row.uid}.png":
        raise VievalError(f"the uid {row.uid!r} is no file's name; give the prompt another")
    [judged] = samples_in_row(prompts.folder, row.number, {**row.row, "uid": row.uid}, None, prompts.unit)
    assert isinstance(judged.sample, Sample)  # a prompt has no outputs to be a contest of
    if judged.verdict and judged.verdict.status is Status.PARSE_FAILURE:
        raise VievalError(f"{prompts.unit} {row.number}: {judged.verdict.reason}")
    return judged.sample
