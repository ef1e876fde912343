"""The schemas of our documents are those of the dataclasses that are written."""

import json
import runpy

import jsonschema
import pytest
import yaml

from tests.docs.pages import DOCS, FENCE, ROOT, written
from tests.documents import NAMES, SCHEMAS, validator
from vieval_plugin import config
from vieval_plugin.cli import main
from vieval_plugin.cli.config import FORMS, schema
from vieval_plugin.config import commented
from vieval_plugin.text.yaml_json import read_yaml

SCRIPT = runpy.run_path(str(DOCS / "make_schemas.py"))


def parsed(text):
    """The document of a YAML text; None where a host's tags are in it."""
    try:
        return read_yaml(text)
    except ValueError:
        return None


def without_defaults(schema):
    """A schema without the permission of any key, which older versions of pydantic leave out."""
    if isinstance(schema, list):
        return [*map(without_defaults, schema)]
    if not isinstance(schema, dict):
        return schema
    kept = {k: v for k, v in schema.items() if (k, v) != ("additionalProperties", True)}
    return {key: without_defaults(value) for key, value in kept.items()}


def form_of(document):
    """The form of a user's file, by its keys; None for what is another program's."""
    if not isinstance(document, dict):
        return None
    if "questions" in document:
        return "pack" if "judge" in document else "judge"
    if {"name", "kind"} <= {*document}:
        return "benchmark"
    return "options" if {*document} <= {*config.Config.model_fields} else None


def shipped():
    """Judge files, manifests and descriptions that are shipped, and those of all pages."""
    folders = ("prompt_templates", "vieval_plugin/benchmarks/described", "tests")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.yaml")]
    texts = {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in files}
    for page in written():
        blocks = FENCE.findall(page.read_text("utf-8"))
        for number, (_, language, text) in enumerate(blocks):
            if language == "yaml":
                texts[f"{page.name} {number}"] = text
    documents = {place: parsed(text) for place, text in texts.items()}
    forms = {place: (form_of(it), it) for place, it in documents.items()}
    return {place: file for place, file in forms.items() if file[0]}


FILES = shipped()


def test_files_of_every_form_are_checked():
    forms = [form for form, _ in FILES.values()]
    assert {*forms} == {*FORMS}
    assert len(forms) > 20, FILES.keys()


@pytest.mark.parametrize("place", FILES)
def test_a_file_has_the_form_of_its_schema(place):
    form, document = FILES[place]
    validator(f"{form}.json").validate(document)


def test_the_printed_options_have_the_form_of_their_schema():
    document = read_yaml(commented())
    validator("options.json").validate(document)
    document["backbones"]["judge"] = {"model": "m", "base_url": "host"}
    with pytest.raises(jsonschema.ValidationError):
        validator("options.json").validate(document)


@pytest.mark.parametrize("form", FORMS)
def test_the_schema_of_a_form_is_printed_and_kept(form, capsys):
    assert main(["config", "--schema", form]) == 0
    assert capsys.readouterr().out == schema(form)
    kept = json.loads((SCHEMAS / f"{form}.schema.json").read_text("utf-8"))
    made = json.loads(schema(form))
    assert without_defaults(kept) == without_defaults(made), "run `make tasks`"


@pytest.mark.parametrize("form", ["judge", "benchmark", "options"])
def test_an_unknown_key_is_marked(form):
    [_, document] = next(file for file in FILES.values() if file[0] == form)
    with pytest.raises(jsonschema.ValidationError, match="'promt' was unexpected"):
        validator(f"{form}.json").validate({**document, "promt": 1})


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_of_a_document_is_that_of_its_fields(name):
    file = SCHEMAS / name.replace(".json", ".schema.json")
    written = json.loads(file.read_text("utf-8"))
    made = json.loads(SCRIPT["schema"](name))
    assert written == made, "run `make tasks`"


def test_the_leaderboard_of_this_site_has_the_form_of_its_schema():
    document = json.loads((DOCS / "leaderboard" / "leaderboard.json").read_text())
    validator("leaderboard.json").validate(document)
    document["numbers"][0]["value"] = "nan"
    with pytest.raises(jsonschema.ValidationError):
        validator("leaderboard.json").validate(document)


SPACE = DOCS / "leaderboard" / "space"


@pytest.mark.skipif(not (SPACE / "index.html").exists(), reason="an sdist has no links")
def test_the_space_of_the_leaderboard_is_whole():
    """What Hugging Face needs of a static Space: a header that names a file that is there."""
    _, header, _ = (SPACE / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    fields = yaml.safe_load(header)
    assert fields["sdk"] == "static"
    assert len(fields["short_description"]) <= 60
    page = (SPACE / fields["app_file"]).read_text(encoding="utf-8")
    for name in ("leaderboard.csv", "leaderboard.json"):
        assert (SPACE / name).read_bytes() == (SPACE.parent / name).read_bytes()
    assert "<title>" in page
