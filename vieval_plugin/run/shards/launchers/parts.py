"""Parts of a run, for job arrays and launchers that start the same command many times."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vieval_plugin.text.errors import VievalError

_VARIABLES = (
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"),
    ("RANK", "WORLD_SIZE", ""),
)


def part_of(option: str, environment: Mapping[str, str]) -> tuple[int, int]:
    """The number of a part from 0, and how many there are.

    Args:
        option: `I/N`, with I from 1; or `auto` for what the variables of a Slurm array or of
            torchrun say.
        environment: the variables.

    Raises:
        VievalError: it is neither, or there are no such variables.

    >>> part_of("2/8", {}), part_of("auto", {"RANK": "0", "WORLD_SIZE": "4"})
    ((1, 8), (0, 4))
    """
    if option != "auto":
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", option)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise VievalError(
                f"--part {option[:40]!r} is no part of a run; write it as 1/8 ... 8/8, or auto"
            )
        return int(match[1]) - 1, int(match[2])
    for number, total, first in _VARIABLES:
        texts = [
            environment.get(number, ""),
            environment.get(total, ""),
            environment.get(first, "0"),
        ]
        if all(text.isdecimal() for text in texts):
            part, parts = int(texts[0]) - int(texts[2]), int(texts[1])
            if 0 <= part < parts:
                return part, parts
            raise VievalError(
                f"{number}={texts[0]} is no part of {total}={parts}; say --part I/N (arrays in "
                "steps of one)"
            )
    variables = " nor ".join(f"{number} and {total}" for number, total, _ in _VARIABLES)
    raise VievalError(f"--part auto: neither {variables} are set; say --part I/N")
