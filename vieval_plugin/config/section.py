"""A section of the options: its fields with what they are for, their defaults, and nothing else allowed in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, is_dataclass
from dataclasses import fields as dataclass_fields
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from vieval_plugin.errors import VievalError

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
            wrong = ".".join(map(str, first["loc"]))
            raise VievalError(f"{cls.__name__}: {wrong}: {first['msg']}; the fields are {names}") from None


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
    return {one.name: str(one.metadata.get("description", "")) for one in dataclass_fields(model)}


REQUIRED = object()
"""What `default_of` says of an option that has no default."""


def default_of(model: type[Any], name: str) -> Any:
    """The default of an option of a section; `REQUIRED` where there is none."""
    if issubclass(model, BaseModel):
        info = model.model_fields[name]
        return REQUIRED if info.is_required() else info.get_default(call_default_factory=True)
    field = next(one for one in dataclass_fields(model) if one.name == name)
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING else field.default


def held_by_name(model: type[Any], name: str) -> type[Any] | None:
    """What an option holds several of, each under a name of the user's, such as backbones; None for other options."""
    hint = get_type_hints(model).get(name)
    held = get_args(hint)[-1:] if get_origin(hint) is Mapping else ()
    return (
        held[0]
        if held and isinstance(held[0], type) and (is_dataclass(held[0]) or issubclass(held[0], BaseModel))
        else None
    )
