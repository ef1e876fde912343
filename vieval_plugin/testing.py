"""An assertion for the tests of image models: the images of a build are not worse than those of
the last one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import PIL.Image

from vieval_plugin.cli import main
from vieval_plugin.judges.protocol import Sample
from vieval_plugin.readers.image_folder import read_folders
from vieval_plugin.readers.image_names import expected_name
from vieval_plugin.report.answer import Answer
from vieval_plugin.run.generated import prompt_of
from vieval_plugin.text.errors import ExitCode

#: Modes of pictures that PNG files do not have.
_WITHOUT_PNG = ("CMYK", "YCbCr", "LAB", "HSV", "RGBX", "RGBa")

Generator = Callable[[str, int], PIL.Image.Image | None]


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
    """Assert that images are not worse than a baseline by more than a margin, as `vieval rank
    --margin` decides it.

    In an async test, call it by `asyncio.to_thread`.

    Args:
        images: a folder with an image a prompt, called by its uid, or a function of a prompt's text
            and a seed that returns its image, or None where it makes none, which counts as a
            failure.
        prompts: their file, `.txt`, `.csv` or `.jsonl`.
        baseline: verdicts of an earlier build, an anchor, or a folder of images.
        margin: how much worse the images may be, from 0 to 1, in the unit of the judge's score.
        judge: a judge that scores each image.
        flags: further flags of `vieval rank`, such as `["--model", NAME, "--base-url", URL,
            "--html", "page.html"]`.
        seed: of the first prompt; each further one has the next number.

    Raises:
        AssertionError: the images are worse, it cannot be told, or nothing was decided; with the
            reasons.

    >>> assert_not_worse("new/", prompts="prompts.csv", baseline="last.jsonl", margin=0.05)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    AssertionError: Nothing was decided.
    prompts.csv: the samples cannot be read...
    """
    with tempfile.TemporaryDirectory(prefix="vieval-") as folder:
        result, new = Path(folder, "result.json"), Path(folder, "new")
        if callable(images):
            new.mkdir()
            for number, row in enumerate(
                read_folders([new], Path(prompts), unmade=True)
            ):
                picture = images(prompt_of(cast(Sample, row.sample)), seed + number)
                if picture is not None:
                    _storable(picture).save(new / expected_name(row.sample.id.uid))
            images = new
        other = (
            [str(baseline)] if Path(baseline).is_dir() else ["--against", str(baseline)]
        )
        command = [
            "rank",
            str(images),
            *other,
            "--prompts",
            str(prompts),
            "--margin",
            str(margin),
            "--judge",
            judge,
        ]
        try:
            code = main([*command, "--json", str(result), *flags])
        except SystemExit:
            raise AssertionError(
                "Nothing was decided.\nvieval rank takes no such margin or flags: see stderr"
            ) from None
        if code > max(ExitCode):
            raise KeyboardInterrupt
        if code:
            answer = json.loads(result.read_text(encoding="utf-8"))["answers"][0]
            raise AssertionError("\n".join(Answer(**answer).lines))


def _storable(picture: PIL.Image.Image) -> PIL.Image.Image:
    """A picture in a mode that PNG has; AssertionError for anything else, and for values whose
    range is not known.
    """
    if not isinstance(picture, PIL.Image.Image) or 0 in picture.size:
        raise AssertionError(
            "Nothing was decided.\n`images` must return PIL images with pixels, or None, got "
            f"{picture!r:.80}; use PIL.Image.fromarray for an array"
        )
    if picture.mode in ("F", "I"):
        raise AssertionError(
            "Nothing was decided.\n`images` must return pictures of 8 bits a colour, got mode "
            f"{picture.mode!r}; scale the values to 0 to 255 and use convert('RGB')"
        )
    return picture.convert("RGB") if picture.mode in _WITHOUT_PNG else picture
