"""The one line with which wrong input is refused, and tables of what is refused.

A row of a table has `input`, the `field` that the line must name and the `key` of its message, the
few words that no other refusal has; an `id` where inputs are long. A table is a list in a test, or
a JSONL file beside it where there are many::

    @pytest.mark.parametrize("case", refusal_table("label_rows.jsonl"))
    def test_labels_are_refused(case, tmp_path):
        case.check(refusal(read_labels, a_label_file(tmp_path / "labels.csv", [case.input])))
"""

import inspect
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from vieval_plugin.text.errors import VievalError


def refusal(function, *arguments, **named):
    """What a user reads when a call is refused, which is a line and no more."""
    with pytest.raises((VievalError, SystemExit)) as raised:
        function(*arguments, **named)
    line = str(raised.value)
    assert "\n" not in line
    return line


def refuses(pattern, function, /, *arguments, **named):
    """Require that a call is refused in a line that has a pattern."""
    line = refusal(function, *arguments, **named)
    assert re.search(pattern, line), line


@dataclass(frozen=True)
class Refusal:
    """An input that is refused, the field that the message names, and the key of the message."""

    input: Any
    field: str
    key: str

    def check(self, line: str) -> None:
        """Require that a message names the field and has the key."""
        assert self.field in line
        assert self.key.lower() in line.lower()


def refusal_table(rows):
    """Parameters from rows (input, field, key), or from a JSONL file beside the calling test."""
    if isinstance(rows, str):
        file = Path(inspect.stack()[1].filename).with_name(rows)
        lines = file.read_text(encoding="utf-8").splitlines()
        documents = [*map(json.loads, lines)]
        listed = [(row["input"], row["field"], row["key"]) for row in documents]
        names = [row.get("id", f"{row['field']}: {row['key']}") for row in documents]
    else:
        listed = [tuple(row) for row in rows]
        names = [f"{field}: {key}" for _, field, key in listed]
    named = zip(listed, names, strict=True)
    return [pytest.param(Refusal(*row), id=name) for row, name in named]
