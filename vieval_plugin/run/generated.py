"""From what a generator answers to samples that can be judged, and the judging of all of them together.

A host's generator answers with JSON, `{"text": ..., "images": [paths]}`, with the folder that it saves into, or with a path.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vieval_plugin.config import Config
from vieval_plugin.judges.protocol import CONDITION_ROLES, Image, Sample, Status, Verdict
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import Made, Provenance, Unjudged, fingerprint, made_json, response_json
from vieval_plugin.run.evaluate import outcomes_of
from vieval_plugin.run.output_files import output_file
from vieval_plugin.run.prepare import PreparedJudge, unjudged
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.text.yaml_json import read_json

MORE_IMAGES = "more images than asked"
"""The finding of an answer with more images than were asked for: the first ones are judged."""

_FAILED = tuple(str(status) for status in (Status.API_ERROR, Status.REFUSAL, Status.TOOL_ERROR))
"""What an answer may say of itself where it has no image, beside that it has none."""
_SECONDS, _TOKENS, _JUDGING = "generation_seconds", "generation_tokens", "judging_tokens"


@dataclass(frozen=True)
class Answer:
    """A generator's answer: the image files that it names, its text, and what making them cost, by name.

    `status` is what an image has that is not there.
    """

    images: tuple[Path, ...]
    text: str = ""
    cost: Mapping[str, float] | None = None
    status: Status = Status.NO_IMAGE


@dataclass(frozen=True)
class MadeImage:
    """An image to judge, or the lack of one: the sample, how it was made, what was found.

    `reason` says why there is no image, and `status` in which way.
    """

    sample: Sample
    made: Made
    reason: str = ""
    findings: tuple[str, ...] = ()
    status: Status = Status.NO_IMAGE


def read_answer(text: str, number: int) -> Answer:
    """What a generator's answer names.

    Args:
        text: as it came: JSON, a folder, a path, or words that name no image.
        number: that of the prompt in its task; in a folder its images are called `{number:04d}_s{seed}.png`.

    >>> read_answer('{"text": "done", "images": ["a.png"], "seconds": 2}', 0).images
    (PosixPath('a.png'),)
    >>> read_answer("I cannot draw.", 0).images
    ()
    """
    stripped = text.strip()
    if stripped.startswith("{"):
        return _from_json(stripped)
    path = Path(stripped)
    try:
        if stripped and path.is_dir():
            return Answer(tuple(_of_folder(path, number)), "")
        named = (
            bool(stripped) and "\n" not in stripped and (path.is_file() or (bool(path.suffix) and path.is_absolute()))
        )
    except (OSError, ValueError):  # words too long for a path, or with what no path has
        named = False
    return Answer((path,), "") if named else Answer((), stripped)


def _from_json(text: str) -> Answer:
    try:
        document = read_json(text)
    except (ValueError, RecursionError):
        return Answer((), text)
    if not isinstance(document, dict) or not isinstance(document.get("images", []), list):
        return Answer((), text)
    images = tuple(Path(one) for one in document.get("images", []) if isinstance(one, str) and one)
    status = document.get("status")
    failed = Status(status) if status in _FAILED else Status.NO_IMAGE
    return Answer(images, str(document.get("text", "")), _cost({_SECONDS: document.get("seconds")}), failed)


def _cost(given: Mapping[str, object]) -> dict[str, float]:
    numbers = {name: one for name, one in given.items() if isinstance(one, (int, float)) and not isinstance(one, bool)}
    return {name: float(one) for name, one in numbers.items() if abs(one) < 1e15 and math.isfinite(one)}


def _of_folder(folder: Path, number: int) -> Iterator[Path]:
    """A prompt's images among those of a task, by their seeds."""
    numbered = re.compile(rf"0*{number}_s(\d+)\.(png|jpe?g|webp)", re.IGNORECASE)
    found = [(int(match[1]), path) for path in folder.iterdir() if (match := numbered.fullmatch(path.name))]
    yield from (path for _, path in sorted(found))


def made_images(
    conditions: Sample,
    image_model: str,
    answers: Sequence[Answer],
    wanted: int,
    trusted: Sequence[Path],
    tokens: Sequence[int | None] = (),
) -> list[MadeImage]:
    """The images that a generator made under the same conditions, numbered; one that is lacking is there with the reason.

    Args:
        conditions: what it was given.
        image_model: what tables call it.
        answers: one for each time it was asked.
        wanted: how many images each answer should have.
        trusted: folders below which the files that answers name must lie.
        tokens: how many tokens each answer had, where that is known.
    """
    found = []
    for turn, answer in enumerate(answers):
        spent = tokens[turn] if turn < len(tokens) else None
        cost = {**(answer.cost or {}), **_cost({_TOKENS: spent})}
        for place in range(wanted):
            identity = replace(conditions.id, image_model=image_model, draw=turn * wanted + place)
            path, reason = _output(answer, place, conditions, trusted)
            images = {**conditions.images, **({"output": Image(path)} if path else {})}
            more = len(answer.images) > wanted and place == 0
            each = {name: value / wanted for name, value in cost.items()}
            sample = replace(conditions, id=identity, images=images)
            status = Status.NO_IMAGE if place < len(answer.images) else answer.status
            made = Made(str(path) if path else "", each)
            found.append(MadeImage(sample, made, reason, (MORE_IMAGES,) if more else (), status))
    return found


def _output(answer: Answer, place: int, conditions: Sample, trusted: Sequence[Path]) -> tuple[Path | None, str]:
    """The file of an answer's image, or None and the reason why there is none."""
    if place < len(answer.images):
        return output_file(answer.images[place], conditions, trusted)
    said = " ".join(answer.text.split())[:160]
    if answer.status is not Status.NO_IMAGE:
        return None, said or f"the generator answered with nothing but {answer.status}"
    if answer.images:
        return None, f"the generator answered with {len(answer.images)} images, and this is number {place + 1}"
    return None, f"the generator answered with text only: {said!r}" if said else "the generator answered with nothing"


async def judge_made(
    made: Sequence[MadeImage], prepared: PreparedJudge, options: Config, progress: Progress, bar: bool
) -> list[Outcome]:
    """Judge all images in one go, by the backbone of the options or by what measures; outcomes in order."""
    decided = {number: verdict for number, one in enumerate(made) if (verdict := undrawn(one))}
    found = await outcomes_of([one.sample for one in made], prepared, options, None, progress, bar, decided)
    for one in made:
        progress.findings.update(one.findings)
    return [with_findings(one, outcome) for one, outcome in zip(made, found, strict=True)]


def undrawn(one: MadeImage) -> Verdict | None:
    """The verdict on an image that was never made; None for one that can be judged."""
    return unjudged(one.status, one.reason) if one.reason else None


def with_findings(one: MadeImage, outcome: Outcome) -> Outcome:
    """An outcome with what was found when the image was made."""
    verdict = outcome.verdict
    return replace(outcome, verdict=replace(verdict, findings=(*verdict.findings, *one.findings)))


def judged_json(one: MadeImage, outcome: Outcome, source: Provenance) -> str:
    """What a host stores for a judged image."""
    spent = outcome.input_tokens + outcome.output_tokens
    cost = {**one.made.cost, **({_JUDGING: float(spent)} if spent else {})}
    judged = fingerprint(one.sample)
    return response_json(one.sample.id, outcome.verdict, source, judged, replace(one.made, cost=cost))


def unjudged_json(one: MadeImage, judge: str, setting: str) -> str:
    """What a host stores for an image that this judge is to judge later."""
    return made_json(Unjudged(one.sample, one.made, judge, setting, one.reason, one.findings, one.status))


def prompt_of(conditions: Sample) -> str:
    """The words for a generator: the instruction or the prompt; where there is neither, what the kind asks it to do.

    >>> from vieval_plugin.judges.protocol import SampleId
    >>> prompt_of(Sample(SampleId("b", "sdie", "", "1"), {}, {"subject": "dog"}))
    'Replace the dog of the first image by the dog of the second image, and change nothing else.'
    """
    texts = conditions.texts
    subject = texts.get("subject", "subject")
    sentence = (
        f"Replace the {subject} of the first image by the {subject} of the second image, and change nothing else."
    )
    return next((texts[name] for name in ("instruction", "prompt") if texts.get(name, "").strip()), sentence)


def given_images(conditions: Sample) -> list[Image]:
    """The images that a generator is shown, in order."""
    return [conditions.images[role] for role in CONDITION_ROLES if role in conditions.images]


def on_disk(conditions: Sample, folder: Path) -> Sample:
    """Conditions whose images are files: those in memory are written to a folder, each named by its content."""

    def file(image: Image) -> Image:
        if not isinstance(image.source, bytes):
            return Image(image.source.absolute())
        path = folder / f"{hashlib.sha256(image.source).hexdigest()[:32]}.png"
        if not path.is_file():
            write_whole(path, image.source, "generate.folder")
        return Image(path)

    return replace(conditions, images={role: file(image) for role, image in conditions.images.items()})
