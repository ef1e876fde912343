"""Folders of images side by side: those that a server or a function makes, and their judging, as
samples or, by a judge of contests, as contests between each two folders.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import PIL.Image

from vieval_plugin.backends.http.server import ServerOptions, Usage
from vieval_plugin.config import Backbone, Config
from vieval_plugin.generation.image_api import GENERATIONS, ImageApi, make
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.judges.contests import Contest, Judged, candidates_of
from vieval_plugin.judges.protocol import (
    FAILED_CALLS,
    Sample,
    SampleId,
    Status,
    Verdict,
)
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.image_names import expected_name
from vieval_plugin.readers.samples import SampleRow, SampleSource
from vieval_plugin.records import OWN, Provenance
from vieval_plugin.run.evaluate import outcomes_of, provenance_of
from vieval_plugin.run.generated import Answer, prompt_of, read_answer
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome, add_findings
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.wording import plural

#: Folder of a build's images until it is ranked: a run that was stopped goes on, and the next build
#: begins anew.
_UNFINISHED = "unfinished"
#: Advice where images cannot be made.
NO_FOLDER = (
    "--generator-url requires --prompts, --generator-model and exactly one image folder"
)
#: Characters of a server's words that a line has.
_SHOWN = 200
#: Modes of pictures that PNG files do not have.
_WITHOUT_PNG = (
    "CMYK",
    "YCbCr",
    "LAB",
    "HSV",
    "RGBX",
    "RGBa",
)


def _decided(rows: Sequence[SampleRow], judged: Sequence[Judged]) -> dict[int, Verdict]:
    """Verdicts already decided by the reader, by sample number."""
    # whose image a contest lacks is looked up in the contest
    by_sample = {
        row.sample.id: row.verdict
        for row in rows
        if row.verdict and row.verdict.status is not Status.NO_IMAGE
    }
    decided = {}
    for number, item in enumerate(judged):
        for sample in candidates_of(item):
            if sample.id in by_sample:
                decided[number] = by_sample[sample.id]
    return decided


async def judge_folders(
    source: SampleSource,
    prepared: PreparedJudge,
    options: Config,
    backbone: Backbone | None,
    progress: Progress,
    label: str = "",
    bar: bool = False,
) -> tuple[list[Judged], list[Outcome], Provenance]:
    """Judge the images of several folders, paired by prompt; what a call or a tool failed on is
    judged once more.

    Args:
        source: of `read_folders`.
        prepared: the judge.
        options: those in force.
        backbone: the model that a command names.
        progress: counts calls and failures.
        label: what reports call these verdicts (default: the backbone's model).
        bar: whether to show a progress bar.

    Returns:
        Samples or contests, their outcomes, and who judged.

    Raises:
        VievalError: a judge of contests has no two image models with an image of one prompt.
    """
    rows = list(source)
    contests = prepared.spec.rates == "contest"
    judged = [row.sample for row in rows]
    if contests:
        judged = [*contests_between(rows)]
        if not judged:
            raise VievalError(
                f"{prepared.spec.name} compares image models, but {source.name} has "
                "no prompt with images of two models; add a folder of another model"
            )
    decided = _decided(rows, judged)
    outcomes = await outcomes_of(
        judged,
        prepared,
        options,
        backbone,
        progress,
        bar,
        decided,
    )
    failed = [
        number
        for number, outcome in enumerate(outcomes)
        if outcome.verdict.status in FAILED_CALLS and number not in decided
    ]
    if failed:
        progress.statuses -= Counter(
            outcomes[number].verdict.status for number in failed
        )
        again = await outcomes_of(
            [judged[number] for number in failed],
            prepared,
            options,
            backbone,
            progress,
            bar,
        )
        for number, outcome in zip(failed, again, strict=True):
            outcomes[number] = outcome
    if not contests:
        outcomes = list(map(add_findings, outcomes, (row.findings for row in rows)))
    provenance = provenance_of(prepared, options, backbone)
    return judged, outcomes, replace(provenance, label=label)


def contests_between(rows: Sequence[SampleRow]) -> list[Contest]:
    """Contests between each two image models: the n-th image of a prompt by one against the n-th
    by the other.
    """
    by_prompt = defaultdict(list)
    for sample in (row.sample for row in rows if isinstance(row.sample, Sample)):
        by_prompt[sample.kind, sample.id.uid, sample.id.draw].append(sample)
    contests = []
    for (kind, uid, draw), candidates in by_prompt.items():
        for first, second in combinations(candidates, 2):
            name = f"{uid} {first.id.image_model} {second.id.image_model}"
            contests.append(
                Contest(
                    SampleId(OWN, kind, "", name, draw),
                    (first, second),
                    group=first.group,
                    tags=first.tags,
                )
            )
    return contests


def image_server(
    url: str | None,
    model: str | None,
    folders: Sequence[Path],
    key: str,
    seed: int,
) -> Callable[[Sequence[Sample]], list[str]] | None:
    """Image generator on a server; None without a server.

    Args:
        url: address of the server.
        model: the image model's name on it.
        folders: of images, which must be one.
        key: of the server.
        seed: of the first image; each further one has the next number.

    Raises:
        VievalError: there is an address without a model, a model without an address, or not one
            folder.
    """
    if not (url or model):
        return None
    if not (url and model) or len(folders) > 1 or folders[0].is_file():
        raise VievalError(NO_FOLDER)
    return partial(
        make_images,
        model=model,
        server=ServerOptions((url,), key),
        folder=folders[0],
        seed=seed,
    )


def _image_request(sample: Sample, seed: int) -> ImageRequest:
    conditions = {
        role: image for role, image in sample.images.items() if role != "output"
    }
    sample = replace(sample, images=conditions)
    return ImageRequest(sample, prompt_of(sample), seed=seed)


def _write_outputs(
    samples: Sequence[Sample],
    answers: Sequence[Answer],
    folder: Path,
) -> Iterator[tuple[Sample, str]]:
    """Replace the outputs; the samples that the server refused, with its reasons."""
    for sample, answer in zip(samples, answers, strict=True):
        file = folder / expected_name(sample.id.uid)
        file.unlink(missing_ok=True)
        for image in answer.images:
            write_whole(file, image.read_bytes())
        if not answer.images:
            yield sample, answer.text


def make_images(
    samples: Sequence[Sample],
    model: str,
    server: ServerOptions,
    folder: Path,
    seed: int,
) -> list[str]:
    """Make the output of each sample, with a seed of its own, and call it by the sample's uid.

    Args:
        samples: of `read_folders`, with an output each; one that is there is replaced.
        model: the image model's name on the server.
        server: how to call it.
        folder: for the outputs, and until `finish_build` for what is known of this build.
        seed: of the first sample; each further one has the next number.

    Returns:
        Lines on what was made. An image that the server refuses to make is not there, and counts as
        a failure.

    Raises:
        VievalError: calls failed.
    """
    server = replace(
        server,
        path=GENERATIONS,
        hello={
            "model": model,
            "prompt": "a cat",
            "n": 1,
        },
    )
    requests = [
        _image_request(sample, seed + number) for number, sample in enumerate(samples)
    ]
    usage = Usage()
    texts = make(ImageApi(model, server, folder / _UNFINISHED), requests, usage, seed)
    answers = [read_answer(text, 0) for text in texts]
    _require_images(answers, model)
    refused = list(_write_outputs(samples, answers, folder))
    lines = []
    if usage.cached:
        lines.append(
            f"kept {plural(usage.cached, 'image')} in {folder} from an interrupted run; "
            "remove the folder if they are from a different build"
        )
    generated = sum(bool(answer.images) for answer in answers)
    lines.append(
        f"{model} generated {generated} of {len(answers)} images in {folder} (seed "
        f"{seed})"
    )
    for sample, text in refused[:1]:
        if text:
            lines.append(f"{model} refused {sample.id.uid}: {text[:_SHOWN]}")
    return lines


def _require_images(answers: Sequence[Answer], model: str) -> None:
    failed = [answer for answer in answers if answer.status in FAILED_CALLS]
    if failed:
        reason = failed[0].text[:_SHOWN]
        raise VievalError(
            f"{model}: failed to generate {len(failed)} of {len(answers)} images "
            f"({reason}); run the same command again to generate only these"
        )


def finish_build(folder: Path) -> None:
    """Forget which images in a folder are of a build that is ranked, so that the next one makes
    its own.
    """
    shutil.rmtree(folder / _UNFINISHED, ignore_errors=True)


def draw_images(
    draw: Callable[[str, int], PIL.Image.Image | None],
    samples: Sequence[Sample],
    folder: Path,
    seed: int,
) -> None:
    """Make the output of each sample by a function, and call it by the sample's uid.

    Args:
        draw: of a prompt's text and a seed; it returns the image, or None where it makes none,
            which counts as a failure.
        samples: of `read_folders`, with an output each; one that is there is replaced.
        folder: for the outputs.
        seed: of the first sample; each further one has the next number.

    Raises:
        VievalError: it returns something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number, sample in enumerate(samples):
        file = folder / expected_name(sample.id.uid)
        file.unlink(missing_ok=True)
        picture = draw(prompt_of(sample), seed + number)
        if picture is not None:
            storable(picture).save(file)


def storable(picture: object) -> PIL.Image.Image:
    """A picture in a mode that PNG has; VievalError for anything else, and for values whose range
    is not known.
    """
    if not isinstance(picture, PIL.Image.Image) or 0 in picture.size:
        raise VievalError(
            "`images` must return PIL images with pixels, or None, got "
            f"{picture!r:.80}; use PIL.Image.fromarray for arrays"
        )
    if picture.mode in ("F", "I"):
        raise VievalError(
            "`images` must return images with 8 bits per channel, got mode "
            f"{picture.mode!r}; scale the values to 0 to 255 and use "
            "convert('RGB')"
        )
    return picture.convert("RGB") if picture.mode in _WITHOUT_PNG else picture
