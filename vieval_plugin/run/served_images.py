"""The images of prompts from a server of an image model, in a folder that a ranking reads."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vieval_plugin.backends.http.server import ServerOptions, Usage
from vieval_plugin.generation.image_api import GENERATIONS, ImageApi, make
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.judges.protocol import FAILED_CALLS, Sample
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.image_names import expected_name
from vieval_plugin.run.generated import prompt_of, read_answer
from vieval_plugin.text.errors import VievalError

#: Folder of a build's images until it is ranked: a run that was stopped goes on, and the next build
#: begins anew.
_UNFINISHED = "unfinished"
#: Characters of a server's words that a line has.
_SHOWN = 200


def make_images(
    model: str,
    server: ServerOptions,
    samples: Sequence[Sample],
    folder: Path,
    seed: int,
) -> list[str]:
    """Make the output of each sample, with a seed of its own, and call it by the sample's uid.

    Args:
        model: the image model's name on the server.
        server: how to call it.
        samples: of `expected_images`; an output that is there is replaced.
        folder: for the outputs, and until `finish_build` for what is known of this build.
        seed: of the first sample; each further one has the next number.

    Returns:
        Lines on what was made. An image that the server refuses to make is not there, and counts as
        a failure.

    Raises:
        VievalError: calls failed.
    """
    server = replace(
        server, path=GENERATIONS, hello={"model": model, "prompt": "a cat", "n": 1}
    )
    shown = [
        {role: image for role, image in s.images.items() if role != "output"}
        for s in samples
    ]
    conditions = [
        replace(sample, images=images)
        for sample, images in zip(samples, shown, strict=True)
    ]
    requests = [
        ImageRequest(s, prompt_of(s), seed=seed + number)
        for number, s in enumerate(conditions)
    ]
    usage = Usage()
    texts = make(ImageApi(model, server, folder / _UNFINISHED), requests, usage, seed)
    answers = [read_answer(text, 0) for text in texts]
    if failed := [answer for answer in answers if answer.status in FAILED_CALLS]:
        lost = f"{len(failed)} of {len(answers)} images were not made ({failed[0].text[:_SHOWN]})"
        raise VievalError(
            f"{model}: {lost}; run the same command again, which makes only these"
        )
    for sample, answer in zip(samples, answers, strict=True):
        file = folder / expected_name(sample.id.uid)
        file.unlink(missing_ok=True)
        for image in answer.images:
            write_whole(file, image.read_bytes())
    refused = [
        (sample, answer.text)
        for sample, answer in zip(samples, answers, strict=True)
        if not answer.images
    ]
    words = [
        f"{model} refused {sample.id.uid}: {text[:_SHOWN]}"
        for sample, text in refused[:1]
        if text
    ]
    line = (
        f"{model} made {sum(bool(answer.images) for answer in answers)} of {len(answers)} "
        f"images in {folder} (seed {seed})"
    )
    if usage.cached:
        stopped = (
            f"{usage.cached} images in {folder} are of a run that was stopped; remove the "
            "folder if that was another build"
        )
        return [stopped, line, *words]
    return [line, *words]


def finish_build(folder: Path) -> None:
    """Forget which images in a folder are of a build that is ranked, so that the next one makes
    its own.
    """
    shutil.rmtree(folder / _UNFINISHED, ignore_errors=True)
