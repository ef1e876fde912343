"""Writes the JSON schemas of `findings.json`, `card.json` and `leaderboard.json`, and those of
the files of users that `vieval config --schema` prints: `make tasks`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vieval_plugin.card.card import Card
from vieval_plugin.cli.config import FORMS
from vieval_plugin.cli.config import schema as file_schema
from vieval_plugin.leaderboard.writing import LeaderboardDocument
from vieval_plugin.media.files import write_whole
from vieval_plugin.report.files import FindingsDocument

FOLDER = Path(__file__).parent / "schemas"
DOCUMENTS = {
    "findings.json": FindingsDocument,
    "card.json": Card,
    "leaderboard.json": LeaderboardDocument,
}


def schema(name: str) -> str:
    """The JSON schema of the document of a name, by the fields of its dataclass."""
    document = TypeAdapter(DOCUMENTS[name]).json_schema(mode="serialization")
    _close(document)
    for definition in document.get("$defs", {}).values():
        _close(definition)
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return f"{json.dumps(dialect | document, indent=1)}\n"


def _close(definition: dict[str, Any]) -> None:
    """Require all fields of an object, and no other."""
    if "properties" in definition:
        definition["required"] = list(definition["properties"])
        definition["additionalProperties"] = False


def main() -> None:
    """Write the files."""
    for name in DOCUMENTS:
        write_whole(FOLDER / name.replace(".json", ".schema.json"), [schema(name)])
    for form in FORMS:
        write_whole(FOLDER / f"{form}.schema.json", [file_schema(form)])


if __name__ == "__main__":
    main()
