"""The backbone and the options that a command's flags name."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli import BASE_URL_ENV_VAR, MODEL_ENV_VAR, OPENAI_BASE_URL_ENV_VAR

if TYPE_CHECKING:
    from vieval_plugin.backends.http.batches import BatchOptions
    from vieval_plugin.config import Backbone, Config

_PRICES = ("price_input", "price_cached_input", "price_output")
#: The flags that are fields of a backbone.
BACKBONE_OPTIONS = (
    "num_concurrent",
    "temperature",
    "max_tokens",
    "timeout",
    "patience",
    *_PRICES,
)


def backbone_of(
    name: str, options: argparse.Namespace, current: Config
) -> Backbone | None:
    """The backbone that flags name for a judge; VievalError where it asks a model and none is
    named anywhere.
    """
    from vieval_plugin.run.prepare import prepare

    if not prepare(name, options.setting, current).asks_a_model:
        return None
    backbone = named_backbone(options, current)
    require_model(name, current, backbone)
    return backbone


def options_in_force(options: argparse.Namespace) -> Config:
    """The options file, with what flags say of all backbones and scorers on top."""
    from vieval_plugin import config

    current = config.read(str(options.config)) if options.config else config.current()
    if options.fresh:
        current = current.asking_anew()
    if getattr(options, "lazy", False):
        _tell_lazy_in_vain(options.judge or (), current)
    if narrowing := {
        name: getattr(options, name)
        for name in ("aspects", "lazy")
        if getattr(options, name)
    }:
        current = current.model_copy(
            update={"judges": current.judges.model_copy(update=narrowing)}
        )
    if calibration := getattr(options, "calibration", None):
        current = current.model_copy(update={"calibration": calibration})
    return current.scored_by({"model": options.scorer}) if options.scorer else current


def _tell_lazy_in_vain(judges: Sequence[str], current: Config) -> None:
    """Say of which judges --lazy changes nothing."""
    from vieval_plugin.judges import registry as judge_registry
    from vieval_plugin.text.escaping import say

    for name in judges:
        narrowed = judge_registry.judge(name, current.judge_files).narrowed
        if (
            narrowed is None
            or narrowed((), True).aspects == narrowed((), False).aspects
        ):
            say(
                f"vieval: --lazy changes nothing: no answer of {name} decides the others",
                file=sys.stderr,
            )


def batch_of(options: argparse.Namespace, folder: Path) -> BatchOptions | None:
    """The way in which flags have questions asked by batches, with what was sent in a folder;
    None for calls.
    """
    from vieval_plugin.backends.http.batches import BatchOptions

    if not (options.batch or options.batch_files):
        return None
    return BatchOptions(
        options.batch_files or folder, has_service=not options.batch_files
    )


def named_backbone(options: argparse.Namespace, current: Config) -> Backbone | None:
    """The backbone that flags name, or that of the options with what they say of it; None where
    they say nothing.
    """
    from pydantic import ValidationError

    from vieval_plugin.config import Backbone
    from vieval_plugin.run.backbones import JUDGE
    from vieval_plugin.text.errors import VievalError

    model, base_url = options.model, options.base_url
    if JUDGE not in current.backbones:
        model = model or os.environ.get(MODEL_ENV_VAR)
        base_url = base_url or _addresses_of_environment(model)
    if model and getattr(options, "batch_files", None):
        base_url = base_url or ["http://batches.invalid/v1"]
    if bool(model) != bool(base_url):
        flag, missing, variable = ("--base-url", "--model", MODEL_ENV_VAR)
        if model:
            flag, missing, variable = ("--model", "--base-url", BASE_URL_ENV_VAR)
        raise VievalError(
            f"{flag} is set but {missing} is missing (or set {variable}); or leave out both and "
            f"set backbones.{JUDGE} in the options"
        )
    fields = {
        name: getattr(options, name)
        for name in BACKBONE_OPTIONS
        if getattr(options, name, None) is not None
    }
    if model:
        fields |= {"model": model, "base_url": tuple(base_url)}
    elif not fields or JUDGE not in current.backbones:
        return None
    else:
        fields = {**current.backbones[JUDGE].model_dump(exclude_unset=True), **fields}
    try:
        return Backbone.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise VievalError(
            f"--{str(first['loc'][0]).replace('_', '-')}: {first['msg']}"
        ) from None


def _addresses_of_environment(model: str | None) -> list[str]:
    """The address that the environment names; one that it names for every program serves a named
    model only.
    """
    if address := os.environ.get(BASE_URL_ENV_VAR):
        return [address]
    address = os.environ.get(OPENAI_BASE_URL_ENV_VAR)
    if not (model and address):
        return []
    _announce(address)
    return [address]


@cache
def _announce(address: str) -> None:
    """Say once which server the environment names."""
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.redaction import redacted

    say(
        f"vieval: the server is {redacted(address)} (from {OPENAI_BASE_URL_ENV_VAR})",
        file=sys.stderr,
    )


def require_model(name: str, current: Config, backbone: Backbone | None) -> None:
    """VievalError for a judge that asks a model where none is named."""
    from vieval_plugin.run.backbones import JUDGE
    from vieval_plugin.text.errors import VievalError, docs_url

    if not (backbone or current.backbones):
        raise VievalError(
            f"{name} asks a model, and none is named: pass --model and --base-url of a server, or "
            f"set {MODEL_ENV_VAR} and {BASE_URL_ENV_VAR}; or name it as backbones.{JUDGE} in the "
            f"options; see {docs_url('guides/scoring.md#choose-a-backbone')}"
        )
