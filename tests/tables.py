"""Tables of inputs and expected values, a JSONL file beside the test that reads them."""

import inspect
import json
from pathlib import Path

import pytest


def table(name):
    """Arguments of `pytest.mark.parametrize`: the columns of a file beside the caller, and its
    rows.

    A column `id` is no argument but the row's name.
    """
    file = Path(inspect.stack()[1].filename).with_name(name)
    lines = file.read_text(encoding="utf-8").splitlines()
    documents = [*map(json.loads, lines)]
    names = [document.pop("id", None) for document in documents]
    named = zip(documents, names, strict=True)
    rows = [pytest.param(*row.values(), id=name) for row, name in named]
    return tuple(documents[0]), rows
