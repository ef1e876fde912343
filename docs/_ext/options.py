"""The page of options, from the types that an options file is read into."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from _ext import markdown

from vieval_plugin import config
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.config import section
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.run import plan
from vieval_plugin.serve import security
from vieval_plugin.text import errors

ENVIRONMENT = {
    "VIEVAL_GENERATOR_API_KEY": (
        "the key of `vieval rank --generator-url`, for a server that makes images"
    ),
    config.FILE_VARIABLE: (
        "the options file, for every command and for harnesses; `--config` goes before it"
    ),
    config.DATA_VARIABLE: (
        "the folder of prepared benchmarks; it goes before `data` in the options file"
    ),
    judge_registry.FOLDER_VARIABLE: "a folder of files that describe judges of your own",
    benchmark_registry.FOLDER_VARIABLE: "a folder of benchmarks of your own, each a folder",
    errors.MODEL_ENV_VAR: "the backbone's name, where no flag or options file names one",
    errors.BASE_URL_ENV_VAR: "its server's address, likewise",
    errors.OPENAI_BASE_URL_ENV_VAR: (
        f"the same where `{errors.BASE_URL_ENV_VAR}` is not set and a model is named"
    ),
    "OPENAI_API_KEY": (
        "the key of the backbone's server, unless `api_key_env` names another variable"
    ),
    "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY": "HTTP proxies of judge calls and downloads",
    "NO_PROXY": "names, suffixes and ranges of addresses that are reached without a proxy",
    "SSL_CERT_FILE, REQUESTS_CA_BUNDLE": (
        "PEM file of certificate authorities: in place of the system's, or beside them"
    ),
    security.TOKEN_VARIABLE: "the token that callers of `vieval serve` must send",
    plan.VARIABLE: (
        "`1` makes lmms-eval judge eight samples, print what the whole run would cost, and stop"
    ),
}


def page() -> str:
    """Every option of the options file by section, and the environment variables."""
    intro = (
        "An options file is YAML; name it by `--config FILE` or in the environment variable "
        "`VIEVAL_CONFIG`. "
        "`vieval config` prints one with every option at its default. An unknown option is an "
        "error.\n\n"
        "This page is generated from the types that the file is read into. "
        "The options of single judges stand with [the judges](judges.md)."
    )
    variables = markdown.table(
        ["variable", "meaning"],
        ([markdown.code(name), meaning] for name, meaning in ENVIRONMENT.items()),
    )
    sections = [
        part
        for name, kind in _sections("", config.Config)
        for part in (f"## {name}", option_table(kind))
    ]
    return markdown.page(
        "Options", intro, "## Environment variables", variables, *sections
    )


def _sections(prefix: str, kind: type[Any]) -> Iterator[tuple[str, type[Any]]]:
    """A type of options and those within it, but for the judges' own."""
    yield prefix or "Top level", kind
    for name, hint in typing.get_type_hints(kind).items():
        within = section.held_by_name(kind, name)
        if within or (section.is_options_type(hint) and prefix != "judges"):
            yield from _sections(
                f"{prefix}.{name}".lstrip(".") + (".NAME" if within else ""),
                within or hint,
            )


def option_table(kind: type[Any]) -> str:
    """Name, type, default and meaning of each option of a type, sections left out."""
    hints = typing.get_type_hints(kind)
    rows = [
        [
            markdown.code(name),
            _type(hints[name]),
            _default(kind, name),
            markdown.text(meaning) + _limits(kind, name),
        ]
        for name, meaning in section.described(kind).items()
        if not section.is_options_type(hints[name])
    ]
    return (
        markdown.table(["option", "type", "default", "meaning"], rows) if rows else ""
    )


def _type(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return " or ".join(map(markdown.code, map(str, inner)))
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_type(part) for part in inner if part is not types.NoneType)
    if origin is tuple:
        return f"list of {_type(inner[0])}"
    if origin is Mapping or hint is Mapping:
        return "mapping"
    names = {
        str: "text",
        Path: "path",
        bool: "true or false",
        int: "integer",
        float: "number",
    }
    return names.get(
        hint,
        "mapping"
        if section.is_options_type(hint)
        else getattr(hint, "__name__", str(hint)),
    )


def _default(kind: type[Any], name: str) -> str:
    value = section.default_of(kind, name)
    if value is section.REQUIRED:
        return "required"
    if value is None or value in ((), "", {}):
        return "none"
    if isinstance(value, bool):
        return markdown.code(str(value).lower())
    return (
        markdown.codes(value) if isinstance(value, tuple) else markdown.code(str(value))
    )


def _limits(kind: type[Any], name: str) -> str:
    """The bounds that are checked when the file is read."""
    if dataclasses.is_dataclass(kind):
        metadata = next(
            field for field in dataclasses.fields(kind) if field.name == name
        ).metadata
        bounds = {
            bound: metadata[bound]
            for bound in ("ge", "gt", "le", "lt")
            if bound in metadata
        }
    else:
        known = kind.model_fields[name].metadata
        bounds = {
            b: getattr(m, b)
            for m in known
            for b in ("ge", "gt", "le", "lt")
            if getattr(m, b, None) is not None
        }
    signs = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    return "".join(f"; {signs[bound]} {limit:g}" for bound, limit in bounds.items())
