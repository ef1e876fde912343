"""Models of hosts: backbones from their users' arguments, and the folders into which their
generators save.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vieval_plugin import config
from vieval_plugin.config import Backbone, Config
from vieval_plugin.run.backbones import JUDGE
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import SECRET_NAME, redacted
from vieval_plugin.text.yaml_json import JsonObject

_ATTRIBUTES = (
    # lmms-eval's models
    "output_dir",
    "output_image_dir",
    "response_persistent_folder",
    "generated_image_dir",
    # VLMEvalKit's Bagel
    "out_img_dir",
)


@dataclass(frozen=True)
class ForeignHost:
    """Words of a host for a backbone."""

    model: str
    #: Way in which arguments are given.
    way: str
    #: Reason why secrets are no arguments: others see them.
    exposure_reason: str


def given_backbone(
    fields: JsonObject, backbones: Mapping[str, Backbone], host: ForeignHost
) -> Backbone:
    """Make the backbone with these fields, or take `backbones.judge` of the options where there are
    none.

    `backbones` are the options' backbones. VievalError says which field is wrong, or that it holds
    a secret that the host shows.
    """
    hidden = [name for name in fields if SECRET_NAME.search(name)]
    if hidden:
        raise VievalError(
            f"do not pass {hidden[0]}= ({host.exposure_reason}); set the environment variable "
            "OPENAI_API_KEY, or pass api_key_env=<variable with the key>"
        )
    if not fields:
        if JUDGE in backbones:
            return backbones[JUDGE]
        raise VievalError(
            f"{host.model} requires {host.way}, or backbones.judge in the options file "
            "($VIEVAL_CONFIG)"
        )
    values = dict(fields)
    urls = str(values.get("base_url", "")).split(";")
    if "base_url" in values:
        values["base_url"] = tuple(urls)
    if "model" in values:
        values["model"] = str(values["model"])
    if any(redacted(url) != url for url in urls):
        raise VievalError(
            f"do not pass a user, password or query in base_url= ({host.exposure_reason}); set the "
            "address under backbones.judge in the options file ($VIEVAL_CONFIG), and pass no "
            "arguments"
        )
    try:
        return Backbone.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise VievalError(
            f"{host.model}: argument {'.'.join(map(str, first['loc']))}: "
            f"{first['msg']}; known arguments: {', '.join(Backbone.model_fields)}"
        ) from None


def scorer_options(fields: JsonObject) -> Config:
    """Return the options with these fields of a scorer, without those that are empty."""
    given = {name: value for name, value in fields.items() if value}
    return config.current().scored_by(given)


def output_folders(model: Any) -> tuple[Path, ...]:
    """Return the folders into which a host's model saves images; none for one that names none,
    or is only a name.
    """
    folders = (getattr(model, name, None) for name in _ATTRIBUTES)
    paths = (folder for folder in folders if isinstance(folder, str | Path))
    return tuple(map(Path, filter(str, paths)))
