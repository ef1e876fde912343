"""The prompts that images in folders were made of: a text file, a CSV file, or JSONL as a samples file has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.readers.sample_rows import BadLine, lines_of_file, row_of_line
from vieval_plugin.readers.sample_table import NumberedRow, is_table, rows_of_table


@dataclass(frozen=True)
class PromptRow:
    """Conditions of one image, in the form of a samples file's line; `named` says that the file gives it a uid."""

    number: int
    row: dict[str, Any]
    uid: str
    named: bool


def prompts_of(path: Path) -> list[PromptRow]:
    """The prompts of a file, in order: each line of a `.txt`, each row of a `.csv`, each object of another file.

    A prompt without a uid is called by the number of its line.

    Raises:
        VievalError: the file cannot be read or is empty, and for the first line that is no prompt, names an image
        model,
            a draw or an output, or has the uid of another.
    """
    prompts: dict[str, PromptRow] = {}
    for number, row in _rows(path):
        if problem := str(row) if isinstance(row, BadLine) else _problem(row):
            raise VievalError(f"{path}: line {number}: {problem}")
        assert not isinstance(row, BadLine)
        named = row.get("uid") is not None
        uid = str(row["uid"] if named else number)
        if uid in prompts:
            raise VievalError(
                f"{path}: lines {prompts[uid].number} and {number} are both {uid!r}; give each a uid of its own"
            )
        prompts[uid] = PromptRow(number, row, uid, named)
    if not prompts:
        raise VievalError(f"{path}: no prompts in it")
    return list(prompts.values())


def _rows(path: Path) -> Iterator[NumberedRow]:
    if is_table(path):
        yield from rows_of_table(path)
        return
    for number, line in lines_of_file(path):
        try:
            yield number, {"texts": {"prompt": line.decode()}} if path.suffix.lower() == ".txt" else row_of_line(line)
        except UnicodeDecodeError:
            yield number, BadLine("not UTF-8")
        except BadLine as bad:
            yield number, bad


def _problem(row: dict[str, Any]) -> str:
    """Reason that a row is no prompt, in words; empty where it is one."""
    images = row.get("images", {})
    if isinstance(images, dict) and "output" in images:
        return (
            "it names an output, and the outputs are those of the folder; leave --prompts out to judge a samples file"
        )
    if row.get("image_model") or row.get("draw"):
        return (
            "a prompt has no image_model and no draw: folders are image models, and UID_1.png is the second of a prompt"
        )
    uid = row.get("uid", "")
    return "" if isinstance(uid, (str, int)) and not isinstance(uid, bool) else "uid must be a text"
