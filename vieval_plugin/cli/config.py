"""Print an options file, or the options of a run.

The file has every option with its default and meaning. Keep the lines that you change, and set
VIEVAL_CONFIG or pass --config to use the file.

Examples:
    # write an options file to edit
    vieval config > vieval.yaml
    # print the options of existing verdicts
    vieval config --of verdicts.jsonl
    # write a schema for editors
    vieval config --schema judge > judge.schema.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from vieval_plugin.cli import EXCLUSIVE, Options, flag

#: Files of users that have a JSON Schema.
Form: TypeAlias = Literal["judge", "benchmark", "options", "pack"]
FORMS: tuple[Form, ...] = get_args(Form)


class PrintingOptions(Options, group=EXCLUSIVE):
    """Options of `vieval config`."""

    schema: Form | None = flag(
        "print the JSON Schema of a judge file, a benchmark file, an options file or the "
        "manifest of a prompt pack"
    )
    of: Path | None = flag(
        "print the options that produced these results", metavar="RESULTS"
    )


def run(options: PrintingOptions) -> int:
    from vieval_plugin import config
    from vieval_plugin.results.lookup import open_results
    from vieval_plugin.text.escaping import say

    if options.schema:
        say(*schema(options.schema).splitlines())
        return 0
    if options.of is None:
        say(*config.commented().splitlines())
        return 0
    texts: dict[str, str] = {}
    for record in open_results([options.of]).records:
        source = record.provenance
        backbone = source.backbone or "no model"
        label = " ".join([source.judge, *source.settings, "by", backbone])
        texts.setdefault(label, _yaml_text(source.options))
    for name, text in texts.items():
        say(f"# {name}", *text.removesuffix("\n").split("\n"))
    return 0


def schema(form: str) -> str:
    """JSON Schema of a file of a form."""
    from pydantic import BaseModel

    from vieval_plugin.benchmarks.loading.description import Description
    from vieval_plugin.config import Config
    from vieval_plugin.judges.answer_formats import NAMES
    from vieval_plugin.prompts.schema import Manifest

    models: dict[str, type[BaseModel]] = {"benchmark": Description, "options": Config}
    document = models.get(form, Manifest).model_json_schema()
    if form not in models:
        document["properties"]["replies"]["enum"] = NAMES
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return f"{json.dumps(dialect | document, indent=1)}\n"


def _yaml_text(document: Mapping[str, Any]) -> str:
    """Resolved options as the text of an options file."""
    import yaml

    return str(yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True))
