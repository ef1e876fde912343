"""An assertion for the tests of image models: the images of a build are not worse than those of
the last one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL.Image

from vieval_plugin.api import gate
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import redacted

Generator = Callable[[str, int], PIL.Image.Image | None]


def assert_not_worse(
    images: Path | str | Generator,
    *,
    prompts: Path | str,
    baseline: Path | str,
    margin: float,
    **arguments: Any,
) -> None:
    """Assert that images are not worse than a baseline by more than a margin, as `vieval rank
    --margin` decides it.

    It may be called in an async test too.

    Args:
        images: a folder with an image a prompt, called by its uid, or a function of a prompt's text
            and a seed that returns its image, or None where it makes none, which counts as a
            failure.
        prompts: their file, `.txt`, `.csv` or `.jsonl`.
        baseline: verdicts of an earlier build, an anchor, or a folder of images.
        margin: how much worse the images may be, from 0 to 1, in the unit of the judge's score.
        **arguments: further ones of `vieval_plugin.api.gate`, such as `judge`, `model`, `base_url`,
            `html`, a page, and `seed`, that of the first prompt.

    Raises:
        AssertionError: the images are worse, the result is inconclusive, or the gate
            could not decide; with the reasons.

    >>> assert_not_worse("new/", prompts="prompts.csv", baseline="last.jsonl", margin=0.05)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    AssertionError: The gate could not decide.
    cannot read prompts.csv...
    """
    with tempfile.TemporaryDirectory(prefix="vieval-") as folder:
        draw = images if callable(images) else None
        inputs = [Path(folder, "new") if callable(images) else images]
        if Path(baseline).is_dir():
            inputs.append(baseline)
        else:
            arguments["against"] = baseline
        try:
            conclusion = gate(
                *inputs, prompts=prompts, margin=margin, draw=draw, **arguments
            )
        except VievalError as error:
            raise AssertionError(
                f"The gate could not decide.\n{redacted(str(error))}"
            ) from None
    conclusion.write_build_files()
    if conclusion.outcome:
        raise AssertionError("\n".join(conclusion.answers[0].lines))
