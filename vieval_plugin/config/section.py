"""A section of the options: its fields with what they are for, their defaults, and nothing else allowed in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, is_dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from vieval_plugin.errors import VievalError
from vieval_plugin.text.untrusted import exists, path_of

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:  # which has no public name
    ModelMetaclass = type(BaseModel)


class _OneLine(ModelMetaclass):
    """Calls whose errors are one line; what reads options words the errors of validation itself."""

    def __call__(cls, *arguments: Any, **fields: Any) -> Any:
        names = ", ".join(described(cls))
        if arguments:
            raise VievalError(f"{cls.__name__}: name each field: {names}")
        try:
            return super().__call__(**fields)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise VievalError(f"{cls.__name__}: {place}: {first['msg']}; the fields are {names}") from None


class Section(BaseModel, metaclass=_OneLine):
    """Options that are read together; an unknown one is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def forbid_unknown(options: type[Any]) -> None:
    """Have an unknown key of a dataclass of options, or of one within it, be an error."""
    options.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
    for annotation in get_type_hints(options).values():
        for part in (annotation, *get_args(annotation)):
            if is_dataclass(part) and isinstance(part, type):
                forbid_unknown(part)


def described(model: type[Any]) -> dict[str, str]:
    """The options of a section by name, with what each is for."""
    if issubclass(model, BaseModel):
        return {name: info.description or "" for name, info in model.model_fields.items()}
    return {entry.name: str(entry.metadata.get("description", "")) for entry in dataclass_fields(model)}


REQUIRED = object()
"""What `default_of` says of an option that has no default."""


def default_of(model: type[Any], name: str) -> Any:
    """The default of an option of a section; `REQUIRED` where there is none."""
    if issubclass(model, BaseModel):
        info = model.model_fields[name]
        return REQUIRED if info.is_required() else info.get_default(call_default_factory=True)
    field = next(candidate for candidate in dataclass_fields(model) if candidate.name == name)
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING else field.default


def held_by_name(model: type[Any], name: str) -> type[Any] | None:
    """The type of which an option holds several, each under a name of the user's, such as backbones; None for other options."""
    hint = get_type_hints(model).get(name)
    value_types = get_args(hint)[-1:] if get_origin(hint) is Mapping else ()
    return (
        value_types[0]
        if value_types
        and isinstance(value_types[0], type)
        and (is_dataclass(value_types[0]) or issubclass(value_types[0], BaseModel))
        else None
    )


def anchored(value: Any, folder: Path) -> Any:
    """The same options with every relative path starting at the file's folder."""
    if isinstance(value, Path):
        return path_of(value, folder)
    if isinstance(value, BaseModel):
        names = type(value).model_fields
        return value.model_copy(update={name: anchored(getattr(value, name), folder) for name in names})
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value,
            **{
                entry.name: _anchored_field(entry, getattr(value, entry.name), folder)
                for entry in dataclass_fields(value)
            },
        )
    if isinstance(value, Mapping):
        return {name: anchored(member, folder) for name, member in value.items()}
    return tuple(anchored(member, folder) for member in value) if isinstance(value, tuple) else value


def _anchored_field(field: Any, value: Any, folder: Path) -> Any:
    """A text that may name a folder or a file names one if it is there."""
    if not field.metadata.get("folder"):
        return anchored(value, folder)
    named = path_of(value, folder)
    return str(named) if value and exists(named) else value
