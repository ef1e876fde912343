"""Tables of inputs and expected values, a JSONL file beside the test that reads them."""

import inspect
import json
from pathlib import Path


def table(name):
    """Arguments of `pytest.mark.parametrize`: the columns of a file beside the caller, and its rows."""
    file = Path(inspect.stack()[1].filename).with_name(name)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return tuple(rows[0]), [tuple(row.values()) for row in rows]
