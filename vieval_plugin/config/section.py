"""A section of the options: its fields and defaults, its paths, and what of it results carry,
less secrets.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, is_dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError

from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import SECRET_NAME, redacted
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
            raise VievalError(
                f"{cls.__name__} takes keyword arguments only; known fields: {names}"
            )
        try:
            return super().__call__(**fields)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise VievalError(
                f"{cls.__name__}: {field}: {first['msg']}; known fields: {names}"
            ) from None


class Section(BaseModel, metaclass=_OneLine):
    """Options that are read together; an unknown one is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True
    )


def forbid_unknown(options: type[Any]) -> None:
    """Have an unknown key of a dataclass of options, or of one within it, be an error."""
    options.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
    for annotation in get_type_hints(options).values():
        for part in (annotation, *get_args(annotation)):
            if is_dataclass(part) and isinstance(part, type):
                forbid_unknown(part)


def is_options_type(kind: Any) -> bool:
    """Return whether a type is one of options by name: a section, or a judge's own."""
    return isinstance(kind, type) and (
        is_dataclass(kind) or issubclass(kind, BaseModel)
    )


def described(model: type[Any]) -> dict[str, str]:
    """The options of a section by name, with what each is for."""
    if issubclass(model, BaseModel):
        return {
            name: info.description or "" for name, info in model.model_fields.items()
        }
    return {
        entry.name: str(entry.metadata.get("description", ""))
        for entry in dataclass_fields(model)
    }


#: Answer of `default_of` to an option that has no default.
REQUIRED = object()


def default_of(model: type[Any], name: str) -> Any:
    """The default of an option of a section; `REQUIRED` if it has no default."""
    if issubclass(model, BaseModel):
        info = model.model_fields[name]
        return (
            REQUIRED
            if info.is_required()
            else info.get_default(call_default_factory=True, validated_data={})
        )
    field = model.__dataclass_fields__[name]
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING else field.default


def held_by_name(model: type[Any], name: str) -> type[Any] | None:
    """The type of which an option holds several, each under a name of the user's, such as
    backbones; None for other options.
    """
    hint = get_type_hints(model).get(name)
    if get_origin(hint) is not Mapping:
        return None
    value_type = get_args(hint)[-1]
    return value_type if is_options_type(value_type) else None


def commented_lines(holder: Any, depth: int = 0) -> list[str]:
    """Each option of a section at its default, below a comment that says what it is for."""
    indent = "  " * depth
    lines = []
    for name, description in described(type(holder)).items():
        value = getattr(holder, name)
        comment = f"{indent}# {description}"
        if is_options_type(type(value)):
            section_lines = commented_lines(value, depth + 1)
            if section_lines:
                lines += [comment, f"{indent}{name}:", *section_lines]
        else:
            default = json.dumps(value, default=str)
            lines += [comment, f"{indent}{name}: {default}"]
            lines += _named_lines(type(holder), name, indent)
    return lines


def _named_lines(holder: type[Any], name: str, indent: str) -> list[str]:
    """The fields of one of the things that a mapping holds by name, such as a backbone, as a
    comment.
    """
    entry_type = held_by_name(holder, name)
    if entry_type is None:
        return []
    lines = [f"{indent}# of each:", f"{indent}#   NAME:"]
    for field, description in described(entry_type).items():
        default = default_of(entry_type, field)
        value = "..." if default is REQUIRED else json.dumps(default, default=str)
        lines += [f"{indent}#     {field}: {value}  # {description}"]
    return lines


def anchored(value: Any, folder: Path) -> Any:
    """The same options with every relative path starting at the file's folder."""
    if isinstance(value, Path):
        return path_of(value, folder)
    if isinstance(value, BaseModel):
        return value.model_copy(
            update={
                name: anchored(getattr(value, name), folder)
                for name in type(value).model_fields
            }
        )
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
    if isinstance(value, tuple):
        return tuple(anchored(member, folder) for member in value)
    return value


def _anchored_field(field: Any, value: Any, folder: Path) -> Any:
    """A text that may name a folder or a file names one if it is there."""
    if not field.metadata.get("folder"):
        return anchored(value, folder)
    path = path_of(value, folder)
    return str(path) if value and exists(path) else value


_REMOVED = "[removed]"
#: The options whose fields are a server's or a host's, so that nobody here knows which of them are
#: secrets.
_FREE_FORM = re.compile(r"(^|_)(extra|headers|extra_body|model_args)$", re.IGNORECASE)
_SHORTEST_KEY = 16
_HAS_DIGIT = re.compile("[0-9]")  # as a key among words has
#: Fields of requests whose values may be long and are never secrets.
_HARMLESS = re.compile(
    "adapter|background|backend|chat_template|content|description|dtype|effort|enum|format|grammar|ignore|lora|modalities|guided_(choice|decoding_backend|grammar|regex)|mode|model|moderation|name|(negative_)?prompt|only|order|(output|response)_format|pattern|provider|quality|quantizations?|reasoning_effort|regex|required|role|sampler|scheduler|service_tier|size|sort|stop|stop_sequences|style|template|title|tool_choice|type|verbosity",
    re.IGNORECASE,
)


def redacted_options(value: Any, key: str = "", further: bool = False) -> Any:
    """JSON values of options without users and passwords in addresses, and without what is a secret
    by its name.

    Under `extra`, `headers` and `model_args` a text of 16 or more characters without spaces may be
    a secret whatever it is called, unless its field is known to hold none. Its digest stays, as two
    runs may differ in nothing else.

    >>> redacted_options({"base_url": ["http://me:pass@host/v1"], "extra": {"x": "0123456789abcdef", "top_k": 5}})
    {'base_url': ['http://host/v1'], 'extra': {'x': '[removed 9f9f5111]', 'top_k': 5}}
    """
    further = further or bool(_FREE_FORM.search(key))
    if isinstance(value, dict):
        # such as {"name": "api_key", "value": ...}
        names_secret = further and any(map(_names_secret, value.values()))
        fields = {}
        for name, item in value.items():
            is_secret = names_secret and not _HARMLESS.fullmatch(name)
            if is_secret or SECRET_NAME.search(name):
                fields[name] = _REMOVED
            else:
                fields[name] = redacted_options(item, name, further)
        return fields
    if isinstance(value, (list, tuple)):
        names_secret = further and any(map(_names_secret, value[:1]))
        return [
            _REMOVED
            if names_secret and number
            else redacted_options(item, key, further)
            for number, item in enumerate(value)
        ]
    return _safe_text(value, key, further) if isinstance(value, str) else value


def _names_secret(value: Any) -> bool:
    return isinstance(value, str) and bool(SECRET_NAME.search(value))


def _redacted_field(field: str, key: str) -> str:
    """A field `name=value` of a text of several, its value hidden as if it stood alone."""
    name, sign, value = field.partition("=")
    if not sign:
        return _safe_text(field, key, True)
    stripped_name = name.strip()
    if SECRET_NAME.search(stripped_name):
        return f"{name}={_REMOVED}"
    return f"{name}={_safe_text(value, stripped_name, True)}"


def _safe_text(text: str, key: str, further: bool) -> str:
    if not further:
        return redacted(text) if "//" in text or key == "base_url" else text
    is_harmless = bool(_HARMLESS.fullmatch(key))
    fields = re.split(r"([,;]\s*)", text)
    if not is_harmless and len(fields) > 1 and "=" in text:  # model_args, cookies
        # separators are at the odd places
        fields[::2] = [_redacted_field(field, key) for field in fields[::2]]
        return "".join(fields)
    parts = text.split()
    if len(parts) > 1 and SECRET_NAME.search(parts[0].rstrip(":=")):
        return f"{parts[0]} {_REMOVED}"  # Authorization: Bearer ...
    if not is_harmless and _may_be_key(parts):
        digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
        return f"{_REMOVED[:-1]} {digest[:8]}]"
    return redacted(text)


def _may_be_key(parts: Sequence[str]) -> bool:
    long_parts = [part for part in parts if len(part) >= _SHORTEST_KEY]
    if len(parts) < 3:
        return bool(long_parts)
    return any(map(_HAS_DIGIT.search, long_parts))
