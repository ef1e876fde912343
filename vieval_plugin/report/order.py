"""The order of image models that a user gives, such as an arena's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from vieval_plugin.errors import VievalError

_MOST_BYTES = 1 << 20


def read_order(path: Path) -> tuple[str, ...]:
    """Image models, the best first, from a file with one a line; empty lines do not count.

    Raises:
        VievalError: the file cannot be read, names one twice, or fewer than two.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(f"{path}: the order of image models cannot be read ({error})") from None
    if len(text) > _MOST_BYTES:
        raise VievalError(f"{path}: larger than {_MOST_BYTES} bytes, no order of image models is")
    names = tuple(filter(None, map(str.strip, text.splitlines())))
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise VievalError(f"{path}: names {repeated[0]!r} twice; an order has each image model once")
    if len(names) < 2:
        raise VievalError(f"{path}: an order has two image models or more, one a line, the best first")
    return names
