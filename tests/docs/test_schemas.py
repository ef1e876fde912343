"""The schemas of our documents are those of the dataclasses that are written."""

import json
import runpy

import jsonschema
import pytest

from tests.docs.pages import DOCS
from tests.documents import NAMES, SCHEMAS, validator

SCRIPT = runpy.run_path(str(DOCS / "make_schemas.py"))


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_of_a_document_is_that_of_its_fields(name):
    file = SCHEMAS / name.replace(".json", ".schema.json")
    written, made = (
        json.loads(file.read_text("utf-8")),
        json.loads(SCRIPT["schema"](name)),
    )
    assert written == made, "run `make tasks`"


def test_the_leaderboard_of_this_site_has_the_form_of_its_schema():
    document = json.loads((DOCS / "leaderboard" / "leaderboard.json").read_text())
    validator("leaderboard.json").validate(document)
    document["numbers"][0]["value"] = "nan"
    with pytest.raises(jsonschema.ValidationError):
        validator("leaderboard.json").validate(document)
