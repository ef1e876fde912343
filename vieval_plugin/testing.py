"""An assertion for the tests of image models: the images of a build are not worse than those of the last one."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import PIL.Image

from vieval_plugin.cli import main
from vieval_plugin.generation.requests import as_png
from vieval_plugin.media.files import write_whole
from vieval_plugin.readers.prompt_rows import prompts_of
from vieval_plugin.report.answer import Answer
from vieval_plugin.run.generated import prompt_of
from vieval_plugin.run.served_images import conditions_of
from vieval_plugin.text.errors import ExitCode

Generator = Callable[[str, int], PIL.Image.Image]


def assert_not_worse(
    images: Path | str | Generator,
    *,
    prompts: Path | str,
    baseline: Path | str,
    margin: float,
    judge: str = "viescore",
    flags: Sequence[str] = (),
    seed: int = 0,
) -> None:
    """Assert that images are not worse than a baseline by more than a margin, as `vieval rank --margin` decides it.

    In an async test, call it by `asyncio.to_thread`.

    Args:
        images: a folder with an image a prompt, called by its uid, or a function of a prompt's text and a seed that
            returns its image.
        prompts: their file, `.txt`, `.csv` or `.jsonl`.
        baseline: verdicts of an earlier build, an anchor, or a folder of images.
        margin: how much worse the images may be, from 0 to 1, in the unit of the judge's score.
        judge: a judge that scores each image.
        flags: further flags of `vieval rank`, such as `["--model", NAME, "--base-url", URL, "--html", "page.html"]`.
        seed: of the first prompt; each further one has the next number.

    Raises:
        AssertionError: the images are worse, it cannot be told, or nothing was decided; with the reasons.

    >>> assert_not_worse("new/", prompts="prompts.csv", baseline="last.jsonl", margin=0.05)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    AssertionError: Nothing was decided.
    last.jsonl: no such file or folder...
    """
    with tempfile.TemporaryDirectory(prefix="vieval-") as folder:
        scratch = Path(folder)
        if callable(images):
            rows = prompts_of(Path(prompts))
            for number, row in enumerate(rows.rows):
                picture = images(prompt_of(conditions_of(rows, number)), seed + number)
                write_whole(scratch / "new" / f"{row.uid}.png", as_png(picture))
            images = scratch / "new"
        other = [str(baseline)] if Path(baseline).is_dir() else ["--against", str(baseline)]
        result = scratch / "result.json"
        command = ["rank", str(images), *other, "--prompts", str(prompts), "--margin", str(margin), "--judge", judge]
        code = main([*command, "--json", str(result), *flags])
        if code > max(ExitCode):
            raise KeyboardInterrupt
        if code:
            answer = json.loads(result.read_text(encoding="utf-8"))["answers"][0]
            raise AssertionError("\n".join(Answer(**answer).lines))
