"""The files of authors' logs: an object of uid -> row, or a list of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.yaml_json import read_json


def read_rows(path: Path) -> dict[str, Any]:
    """The rows of a file, none where it is not there; VievalError naming one that cannot be read."""
    if not path.exists():
        return {}
    rows = read_log(path)
    if not isinstance(rows, dict):
        raise VievalError(f"{path}: must be an object of uid -> answer")
    return rows


def read_log(path: Path) -> Any:
    """Parsed content of a file; VievalError naming one that cannot be read."""
    try:
        return read_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise VievalError(
            f"{path}: not readable as JSON ({error}); restore the file from the logs it came from"
        ) from None


def number(value: Any) -> float | None:
    """A number of a row as a finite float; None for anything else."""
    # the bound keeps out NaN, infinity and integers that no float can hold
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e300:
        return None
    return float(value)
