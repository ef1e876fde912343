"""Descriptions of scorers: a small YAML in which a user says what a reward model is asked and what its number means.

The keys of `Written` are the same for all forms; what stands under `network` is each form's own, and read by it.
docs/scorers.md has them all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.scorer import Scale
from vieval_plugin.judges.spec import EVERY_KIND
from vieval_plugin.prompts import packs
from vieval_plugin.prompts.sandbox import PackEnvironment, PromptTemplateError
from vieval_plugin.text.suggestions import did_you_mean
from vieval_plugin.text.untrusted import exists, isfile, path_of, real
from vieval_plugin.text.yaml_json import read_yaml

FILE = "scorer.yaml"
"""What the description in a folder is called."""

_TEMPLATE = "template"

P = TypeVar("P", bound=BaseModel)


class Part(BaseModel):
    """A part of a description, in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _Score(Part):
    linear: tuple[float, float] | None = None
    sigmoid: tuple[float, float] | None = None
    better: Literal["higher", "lower"] = "higher"

    @model_validator(mode="after")
    def _check_range(self) -> _Score:
        if (self.linear is None) == (self.sigmoid is None):
            raise ValueError("one of linear and sigmoid is needed")
        low, high = self.linear or self.sigmoid or (0.0, 0.0)
        if not low < high:
            raise ValueError("the first number must be less than the second (better: lower turns a score round)")
        return self


class Written(Part):
    """A description as it is written."""

    form: str
    aspect: Literal["SC", "PQ", "O"] = "O"
    kinds: tuple[str, ...] = (EVERY_KIND,)
    images: tuple[str | tuple[str, ...], ...] = ("output",)
    texts: tuple[str | tuple[str, ...], ...] = ()
    text: str | None = None
    template: str | None = None
    score: _Score
    network: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_texts_and_images(self) -> Written:
        if (self.text is None) == (self.template is None):
            raise ValueError("one of text and template is needed")
        if not self.images:
            raise ValueError("images: at least one is needed")
        return self


@dataclass(frozen=True)
class Description:
    """A description that was read. `network` is for its form; `hash` covers the file and its template."""

    path: Path
    name: str
    form: str
    aspect: str
    kinds: tuple[str, ...]
    images: tuple[tuple[str, ...], ...]
    texts: tuple[tuple[str, ...], ...]
    scale: Scale
    network: Mapping[str, Any]
    hash: str
    environment: PackEnvironment

    def render(self, variables: Mapping[str, Any]) -> str:
        """The words of the ask. VievalError names what is wrong with the template, or what the sample lacked for it."""
        try:
            return self.environment.text(_TEMPLATE, variables).strip()
        except PromptTemplateError as error:
            raise VievalError(f"{self.path}: {error}") from None

    def parsed(self, model: type[P]) -> P:
        """Settings under `network`, as its form has them. VievalError names an unknown key and the nearest known one."""
        return _parsed(self.path, model, dict(self.network), ("network",))

    def place(self, named: str) -> str:
        """A path that begins at the description's folder, where there is something there; else the text as it is."""
        path = path_of(named, self.path.parent)
        return str(path) if named and exists(path) else named


def is_one(model: str) -> bool:
    """Return whether what options call a scorer's weights is a description: a YAML file, or a folder that has one."""
    return _file(model) is not None


def load(model: str) -> Description:
    """The description in a YAML file, or in a folder under the name scorer.yaml.

    Raises:
        VievalError: there is none, or what is wrong with it, in one line.
    """
    file = _file(model)
    if file is None:
        raise VievalError(
            f"{model or 'nothing'}: a described scorer needs its description, a YAML file or a folder with {FILE}: "
            "name=FILE in --model_args, --scorer FILE, or scorers.scorer.model"
        )
    try:
        return _load(file, file.stat().st_mtime_ns)
    except OSError as error:
        raise VievalError(f"{file}: the description cannot be read ({error.strerror})") from None


def _file(model: str) -> Path | None:
    path = path_of(model)
    if model and isfile(path / FILE):
        return path / FILE
    return path if path.suffix in (".yaml", ".yml") else None


@lru_cache(maxsize=8)
def _load(file: Path, modified_ns: int) -> Description:
    try:
        text = file.read_text(encoding="utf-8")
        document = read_yaml(text)
    except (ValueError, UnicodeDecodeError) as error:
        raise VievalError(f"{file}: not YAML ({error})") from None
    if not isinstance(document, dict):
        raise VievalError(f"{file}: a description is a mapping; docs/scorers.md has its keys")
    written = _parsed(file, Written, document, ())
    words = written.text if written.text is not None else packs.read_text(file.parent, str(written.template))
    try:
        environment = PackEnvironment({_TEMPLATE: words})
    except PromptTemplateError as error:
        raise VievalError(f"{file}: {error}") from None
    low, high = written.score.linear or written.score.sigmoid or (0.0, 1.0)
    return Description(
        file,
        real(file.parent).name if file.name == FILE else file.stem,
        written.form,
        written.aspect,
        written.kinds,
        _alternatives(written.images),
        _alternatives(written.texts),
        Scale("linear" if written.score.linear else "sigmoid", low, high, written.score.better),
        written.network,
        hashlib.sha256(f"{text}\0{words}".encode()).hexdigest()[:16],
        environment,
    )


def _alternatives(named: tuple[str | tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    return tuple((names,) if isinstance(names, str) else names for names in named)


def _parsed(file: Path, model: type[P], document: Any, place: tuple[str, ...]) -> P:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (*place, *first["loc"])))
        if first["type"] != "extra_forbidden":
            message = first["msg"].removeprefix("Value error, ")
            raise VievalError(f"{file}: {where or 'the description'}: {message}") from None
        keys = _keys(model, first["loc"][:-1])
        hint = did_you_mean(str(first["loc"][-1]), keys, 0.5) or f"; keys are {', '.join(keys)}"
        raise VievalError(f"{file}: unknown key {where}{hint}") from None


def _keys(model: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    """The keys that there are at a place, of the model that the path leads to or of all that may stand there."""
    models = [model]
    for name in place:
        fields = [part.model_fields[str(name)].annotation for part in models if str(name) in part.model_fields]
        kinds = [kind for field in fields for kind in (field, *get_args(field))]
        # of alternatives the error names the one that was tried
        models = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)] or models
    return list(dict.fromkeys(key for part in models for key in part.model_fields))
