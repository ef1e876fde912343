"""The backbone that a judge is given by name: on top of what options say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vieval_plugin import config
from vieval_plugin.config import Backbone, Config
from vieval_plugin.errors import VievalError
from vieval_plugin.run.backbones import JUDGE
from vieval_plugin.run.evaluate import resolved
from vieval_plugin.text.suggestions import did_you_mean

_ALIKE = 0.6


def with_backbone(
    options: Config | Mapping[str, Any] | None, named: Mapping[str, Any], arguments: Iterable[str]
) -> Config:
    """The options of a judge.

    Args:
        options: those of a file, as a mapping or read already; None for those that VIEVAL_CONFIG names.
        named: fields of the backbone, in place of theirs; None stands for one that is not named.
        arguments: the names that may be meant where a field is none.

    Raises:
        VievalError: an option or field that there is not, with the nearest, or one that it cannot have.
    """
    base = resolved(options)
    fields = {name: value for name, value in named.items() if value is not None}
    if unknown := sorted(set(fields) - set(Backbone.model_fields)):
        known = [*Backbone.model_fields, *arguments]
        suggestion = did_you_mean(unknown[0], known, least=_ALIKE) or f"; it may have {', '.join(known)}"
        raise VievalError(f"Judge has no argument {unknown[0]!r}{suggestion}")
    if ("model" in fields) != ("base_url" in fields):
        raise VievalError("model and base_url go together; or pass neither and set backbones.judge in the options")
    if not fields:
        return base
    if "model" not in fields and JUDGE not in base.backbones:
        raise VievalError(f"{min(fields)} is a field of the backbone; pass model and base_url too")
    configured = {} if "model" in fields else base.backbones[JUDGE].model_dump()
    options_of_judge = config.from_mapping({"backbones": {JUDGE: {**configured, **fields}}}, "Judge")
    return base.model_copy(update={"backbones": {**base.backbones, **options_of_judge.backbones}})
