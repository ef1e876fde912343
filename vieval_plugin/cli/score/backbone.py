"""The backbone and the options that a command's flags name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vieval_plugin.cli import tell

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
    from vieval_plugin.run.backbones import require_model
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
    from vieval_plugin.run import backbones

    in_files = bool(getattr(options, "batch_files", None))
    fields = backbone_fields(options)
    return backbones.named_backbone(fields, current, _announce, in_files)


def backbone_fields(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of a backbone that flags set."""
    values = vars(options)
    names = ("model", "base_url", *BACKBONE_OPTIONS)
    return {name: values[name] for name in names if values.get(name) is not None}


@cache
def _announce(line: str) -> None:
    """Say once which server the environment names."""
    tell(line)
