"""Form of a manifest: that of a prompt pack, and that of a judge in one file, which is a pack that
describes its judge.

docs/guides/extending.md has the keys. What stands under `network` is each form's own, and read by
it.
"""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from vieval_plugin.prompts.scale import Combination, Order, Scale
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import did_you_mean

P = TypeVar("P", bound=BaseModel)


def _require_words(mapping: Any) -> Any:
    if not isinstance(mapping, dict):
        return mapping
    if any(isinstance(answer, bool) for answer in mapping):
        raise ValueError(
            "write words such as Yes and No in quotation marks, because YAML reads them as true "
            "and false"
        )
    return {str(answer): value for answer, value in mapping.items()}


#: A mapping whose keys are words that people or models answer with; numbers may be written as they
#: are.
ByWord = BeforeValidator(_require_words)


class StrictModel(BaseModel):
    """A part of a manifest, in which an unknown key is an error."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        defer_build=True,
    )


class QuestionSection(StrictModel):
    """A question: its words, the roles of its images in order, what its sub-scores mean.

    `order` is the pack's where it is absent.
    """

    template: str = ""
    text: str = ""
    images: tuple[str, ...] = ("output",)
    scores: tuple[str, ...] = ()
    order: Order | None = None

    @model_validator(mode="after")
    def _check_words(self) -> QuestionSection:
        if bool(self.text) == bool(self.template):
            raise ValueError("must have exactly one of text and template")
        return self


class About(StrictModel):
    """Facts on the network of a judge, for its user before the first run."""

    #: Licence of the weights as their authors state it, or that it is not known.
    licence: str
    #: Paper and repository.
    source: str
    #: Comparative and superlative of images with a higher number.
    more: str
    most: str
    #: What it measures, in words that follow "it measures".
    meaning: str
    #: Numbers that its authors publish, in the network's own unit.
    range: str
    #: What is downloaded.
    size: str


class Wording(StrictModel):
    """The wording that a network was trained with, which `vieval prompts import` reads."""

    #: Address of the authors' repository.
    repository: str
    #: Python files of it that hold the texts; a later one may use texts of an earlier one.
    files: tuple[str, ...]
    #: Names of the texts, those of a head together; they are joined.
    texts: tuple[tuple[str, ...], ...]
    #: Name in braces that stands for the question's text.
    place: str
    #: SHA-256 of the template that is made of them.
    digest: str


class Manifest(StrictModel):
    """A manifest as it is written; `judge` names the judge whose wording it is, and is absent
    where it describes one.
    """

    name: str
    judge: str = ""
    settings: tuple[str, ...] = ()
    replies: str = "json"
    optional: tuple[str, ...] = ()
    order: Order = "images_first"
    tools: dict[str, str] = {}
    questions: dict[str, QuestionSection] = Field(min_length=1)
    title: str = ""
    kinds: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    scale: tuple[float, float] | None = None
    sigmoid: tuple[float, float] | None = None
    better: Literal["higher", "lower"] = "higher"
    answers: Annotated[dict[str, float], ByWord] = {}
    combine: dict[str, Combination] = {}
    measure: dict[str, str] = {}
    require: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}
    network: dict[str, Any] = {}
    about: About | None = None
    wording: Wording | None = None

    @model_validator(mode="after")
    def _check_scale(self) -> Manifest:
        for key, ends in (("scale", self.scale), ("sigmoid", self.sigmoid)):
            if ends and not all(map(math.isfinite, ends)):
                raise ValueError(f"{key}: both numbers must be finite")
            if ends and ends[0] >= ends[1]:
                raise ValueError(
                    f"{key}: the first number must be less than the second (use better: lower to "
                    "reverse the scale)"
                )
        return self

    def to_score(self) -> Scale:
        """The mapping of a sub-score, or of a network's number, to a score."""
        low, high = self.scale or self.sigmoid or (0.0, 10.0)
        return Scale(
            "linear" if self.scale or not self.sigmoid else "sigmoid",
            low,
            high,
            self.better,
        )


#: Needs of a file in words, by pydantic's name of the fault.
_NEEDED = {
    "tuple_type": "a list such as [a, b]",
    "string_type": "a string",
    "dict_type": "keys with values",
    "model_type": "keys with values",
    "float_type": "a number",
    "int_type": "an integer",
    "bool_type": "true or false",
}


def parsed(
    file: Path, model: type[P], document: Any, location: tuple[str, ...] = ()
) -> P:
    """A document, or what stands at a place of it, in its form.

    Raises:
        VievalError: what is wrong with it; an unknown key with the nearest known one.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (*location, *first["loc"])))
        if first["type"] != "extra_forbidden":
            message = first["msg"].removeprefix("Value error, ")
            if first["type"] == "missing":
                message = "this key is required"
            elif needed := _NEEDED.get(first["type"]):
                message = f"must be {needed}, got {repr(first['input'])[:60]}"
            raise VievalError(
                f"{file}: {f'{where}: ' if where else ''}{message}"
            ) from None
        keys = _keys(model, first["loc"][:-1])
        hint = (
            did_you_mean(str(first["loc"][-1]), keys, 0.5)
            or f"; known keys: {', '.join(keys)}"
        )
        raise VievalError(f"{file}: unknown key {where}{hint}") from None


def _keys(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The keys that there are at a place, of the model that the path leads to or of all that may
    stand there.
    """
    models = [model]
    for name in path:
        fields = [part.model_fields.get(str(name)) for part in models]
        kinds: list[Any] = []
        for field in filter(None, fields):
            kinds += [field.annotation, *get_args(field.annotation)]
        # of alternatives the error names the one that was tried
        models = [
            k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)
        ] or models
    return list(dict.fromkeys(chain(*(part.model_fields for part in models))))
