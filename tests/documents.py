"""Documents that commands write, checked against the JSON schemas that users get."""

import json
import os
from functools import cache
from pathlib import Path

import jsonschema

SCHEMAS = Path(__file__).resolve().parents[1] / "docs" / "schemas"
NAMES = ("findings.json", "card.json", "leaderboard.json")


@cache
def validator(name):
    text = (SCHEMAS / name.replace(".json", ".schema.json")).read_text("utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def require_valid(folder):
    """Fail for a document of ours in a folder that its schema does not allow."""
    for name in NAMES:
        file = Path(str(folder)) / name
        if os.path.isfile(file):  # also for what cannot be a path
            validator(name).validate(json.loads(file.read_text("utf-8")))
