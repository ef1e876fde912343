"""Generators' answers as samples, and their judging.

A host's generator answers with JSON, `{"text": ..., "images": [paths]}`, with the folder that it
saves into, or with a path. A model wrote that text, so a file that it names is an output only below
folders that are trusted.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vieval_plugin.config import Config
from vieval_plugin.judges.protocol import (
    CONDITION_ROLES,
    Image,
    Sample,
    Status,
    Verdict,
)
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import (
    Generation,
    Provenance,
    Unjudged,
    fingerprint,
    response_json,
    unjudged,
    unjudged_json,
)
from vieval_plugin.run import scheduler
from vieval_plugin.run.evaluate import outcomes_of
from vieval_plugin.run.prepare import PreparedJudge
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.text.untrusted import is_below, real
from vieval_plugin.text.wording import plural
from vieval_plugin.text.yaml_json import JsonObject, read_json

#: Below the working folder, and where lmms-eval's generators save unless they are told otherwise.
_LOGS = Path("logs")


def trusted_folders(options: Config, *folders: Path) -> tuple[Path, ...]:
    """Return the folders below which an output may lie: those given, those of the options and
    the host's default.
    """
    return (_LOGS, *options.generate.trusted, *folders)


def output_file(
    path_in_answer: Path,
    conditions: Sample,
    trusted: Sequence[Path],
) -> tuple[Path | None, str]:
    """Return the image file of an answer, with links resolved, or None and the reason.

    Args:
        path_in_answer: the path as the answer has it.
        conditions: what the generator was given, none of whose files is its output.
        trusted: folders below which the file must lie once links are followed.
    """
    name = repr(str(path_in_answer)[:200])
    try:
        # first of all, because a path too long to be one costs `realpath` a call of the system for
        # each of its parts
        if not path_in_answer.is_file():
            return None, f"the generator returned a path to a missing image: {name}"
        path = real(path_in_answer)
        if not any(is_below(path, folder) for folder in trusted):
            return None, (
                "the generator returned a file outside its output folders (if it "
                "saves there, add the folder to generate.trusted in the "
                f"options): {name}"
            )
        if any(_is_file_of(image.source, path) for image in conditions.images.values()):
            return (
                None,
                f"the generator returned one of its own input images: {name}",
            )
    except (OSError, ValueError):
        return None, f"the generator returned an invalid path: {name}"
    return path, ""


def _is_file_of(source: Path | bytes, path: Path) -> bool:
    return isinstance(source, Path) and source.is_file() and source.samefile(path)


#: The finding of an answer with more images than were asked for: the first ones are judged.
MORE_IMAGES = "more images than requested"

#: Statuses that an answer without an image may have; its text is then the reason.
_FAILED = tuple(
    map(str, (Status.API_ERROR, Status.REFUSAL, Status.TOOL_ERROR, Status.NO_IMAGE))
)
_SECONDS = "generation_seconds"
_TOKENS = "generation_tokens"
_JUDGING = "judging_tokens"


@dataclass(frozen=True)
class Answer:
    """A generator's answer."""

    #: Image files that it names.
    images: tuple[Path, ...]
    text: str = ""
    #: Cost of making the images, by name.
    cost: Mapping[str, float] | None = None
    #: Status of a missing image; None without one, as of words of a model.
    status: Status | None = None


@dataclass(frozen=True)
class GeneratedImage:
    """An image to judge, or the lack of one."""

    sample: Sample
    #: Making of the image.
    generation: Generation
    #: Reason why there is no image; empty where there is one.
    reason: str = ""
    #: Findings on the answer.
    findings: tuple[str, ...] = ()
    #: Status of a sample without its image.
    status: Status = Status.NO_IMAGE


def read_answer(text: str, number: int) -> Answer:
    """Parse a generator's answer.

    Args:
        text: as it came: JSON, a folder, a path, or words that name no image.
        number: that of the prompt in its task; in a folder its images are called
            `{number:04d}_s{seed}.png`.

    >>> read_answer('{"text": "done", "images": ["a.png"], "seconds": 2}', 0).images
    (PosixPath('a.png'),)
    >>> read_answer("I cannot draw.", 0).images
    ()
    """
    stripped = text.strip()
    if stripped.startswith("{"):
        return _parse_answer(stripped)
    path = Path(stripped)
    try:
        if stripped and path.is_dir():
            return Answer(tuple(_folder_images(path, number)))
        is_line = bool(stripped) and "\n" not in stripped
        is_path = is_line and (
            path.is_file() or (bool(path.suffix) and path.is_absolute())
        )
    except (OSError, ValueError):  # words too long for a path, or with what no path has
        is_path = False
    return Answer((path,)) if is_path else Answer((), stripped)


def _parse_answer(text: str) -> Answer:
    try:
        document = read_json(text)
    except (ValueError, RecursionError):
        return Answer((), text)
    listed = document.get("images", []) if isinstance(document, dict) else None
    if not isinstance(listed, list):
        return Answer((), text)
    images = tuple(Path(path) for path in listed if isinstance(path, str) and path)
    status = document.get("status")
    failed = Status(status) if status in _FAILED else None
    return Answer(
        images,
        str(document.get("text", "")),
        _cost({_SECONDS: document.get("seconds")}),
        failed,
    )


def _cost(amounts: JsonObject) -> dict[str, float]:
    return {
        name: float(amount) for name, amount in amounts.items() if _is_amount(amount)
    }


def _is_amount(amount: Any) -> bool:
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        return False
    return abs(amount) < 1e15 and math.isfinite(amount)


def _folder_images(folder: Path, number: int) -> Iterator[Path]:
    """A prompt's images among those of a task, by their seeds."""
    numbered = re.compile(rf"0*{number}_s(\d+)\.(png|jpe?g|webp)", re.IGNORECASE)
    images = []
    for path in folder.iterdir():
        if match := numbered.fullmatch(path.name):
            images.append((int(match[1]), path))
    yield from (path for _, path in sorted(images))


def generated_images(
    conditions: Sample,
    image_model: str,
    answers: Sequence[Answer],
    expected: int,
    trusted: Sequence[Path],
    tokens: Sequence[int | None] = (),
) -> list[GeneratedImage]:
    """Numbered images of a generator for one prompt; a missing one has a reason.

    Args:
        conditions: what it was given.
        image_model: what tables call it.
        answers: one for each time it was asked.
        expected: how many images each answer should have.
        trusted: folders below which the files that answers name must lie.
        tokens: how many tokens each answer had, where that is known.
    """
    generated = []
    for turn, answer in enumerate(answers):
        spent = tokens[turn] if turn < len(tokens) else None
        costs = {**(answer.cost or {}), **_cost({_TOKENS: spent})}
        cost_of_image = {name: value / expected for name, value in costs.items()}
        for index in range(expected):
            identity = replace(
                conditions.id,
                image_model=image_model,
                draw=turn * expected + index,
            )
            path, reason = _output(answer, index, conditions, trusted)
            images = {**conditions.images, **({"output": Image(path)} if path else {})}
            more = len(answer.images) > expected and index == 0
            sample = replace(conditions, id=identity, images=images)
            is_listed = index < len(answer.images)
            status = None if is_listed else answer.status
            generated.append(
                GeneratedImage(
                    sample,
                    Generation(str(path) if path else "", cost_of_image),
                    reason,
                    (MORE_IMAGES,) if more else (),
                    status or Status.NO_IMAGE,
                )
            )
    return generated


def _output(
    answer: Answer,
    index: int,
    conditions: Sample,
    trusted: Sequence[Path],
) -> tuple[Path | None, str]:
    """The file of an answer's image, or None and the reason."""
    if index < len(answer.images):
        return output_file(answer.images[index], conditions, trusted)
    text = " ".join(answer.text.split())[:160]
    if answer.status is not None:
        return None, text or f"the generator returned only the status {answer.status}"
    if answer.images:
        return (
            None,
            f"the generator returned {plural(len(answer.images), 'image')}, so image "
            f"{index + 1} is missing",
        )
    if text:
        return None, f"the generator returned only text: {text!r}"
    return None, "the generator returned neither an image nor text"


async def judge_generated(
    images: Sequence[GeneratedImage],
    prepared: PreparedJudge,
    options: Config,
    progress: Progress,
    bar: bool,
) -> list[Outcome]:
    """Judge all images together; return outcomes in order."""
    decided = {
        number: verdict
        for number, verdict in enumerate(map(missing_image_verdict, images))
        if verdict
    }
    outcomes = await outcomes_of(
        [image.sample for image in images],
        prepared,
        options,
        None,
        progress,
        bar,
        decided,
    )
    for image in images:
        progress.findings.update(image.findings)
    return [
        add_findings(image, outcome)
        for image, outcome in zip(images, outcomes, strict=True)
    ]


def missing_image_verdict(image: GeneratedImage) -> Verdict | None:
    """The verdict on an image that was never made; None for one that can be judged."""
    return unjudged(image.status, image.reason) if image.reason else None


def add_findings(image: GeneratedImage, outcome: Outcome) -> Outcome:
    """An outcome with the findings of the generation."""
    return scheduler.add_findings(outcome, image.findings)


def judged_response(
    image: GeneratedImage,
    outcome: Outcome,
    source: Provenance,
) -> str:
    """The response that a host stores for a judged image."""
    spent = outcome.input_tokens + outcome.output_tokens
    cost = {**image.generation.cost, **({_JUDGING: float(spent)} if spent else {})}
    return response_json(
        image.sample.id,
        outcome.verdict,
        source,
        fingerprint(image.sample),
        replace(image.generation, cost=cost),
    )


def unjudged_response(
    image: GeneratedImage,
    judge: str,
    setting: str,
) -> str:
    """The response that a host stores for an image that this judge is to judge later."""
    return unjudged_json(
        Unjudged(
            image.sample,
            image.generation,
            judge,
            setting,
            image.reason,
            image.findings,
            image.status,
        )
    )


def prompt_of(conditions: Sample) -> str:
    """Text for a generator: the instruction, the prompt, or a default for the kind.

    >>> from vieval_plugin.judges.protocol import SampleId
    >>> prompt_of(Sample(SampleId("b", "sdie", "", "1"), {}, {"subject": "dog"}))
    'Replace the dog of the first image by the dog of the second image, and change nothing else.'
    """
    for name in ("instruction", "prompt"):
        if conditions.texts.get(name, "").strip():
            return conditions.texts[name]
    subject = conditions.texts.get("subject", "subject")
    return (
        f"Replace the {subject} of the first image by the {subject} of the second image, "
        "and change nothing else."
    )


def condition_images(conditions: Sample) -> list[Image]:
    """The images that a generator is shown, in order."""
    return [
        conditions.images[role] for role in CONDITION_ROLES if role in conditions.images
    ]


def write_conditions(conditions: Sample, folder: Path) -> Sample:
    """Conditions whose images are files: those in memory are written to a folder, each named by
    its content.
    """

    def file(image: Image) -> Image:
        if not isinstance(image.source, bytes):
            return Image(image.source.absolute())
        path = folder / f"{hashlib.sha256(image.source).hexdigest()[:32]}.png"
        if not path.is_file():
            write_whole(path, image.source, "data")
        return Image(path)

    return replace(
        conditions,
        images={role: file(image) for role, image in conditions.images.items()},
    )
