"""Arguments as people pass them in Python: what is not what is wanted is a VievalError in one
line, before any work.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, TypeVar

from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import redacted

C = TypeVar("C", bound=Callable[..., Any])
_LONGEST = 120


def described(value: Any) -> str:
    """The type of a value, and where it is short the value.

    >>> described("x.png"), described(None), described(inspect.signature(described))
    ("str 'x.png'", 'NoneType', 'inspect.Signature')
    """
    module = type(value).__module__
    kind = type(value).__qualname__
    kind = kind if module == "builtins" else f"{module}.{kind}"
    if isinstance(value, (str, int, float)):
        return f"{kind} {redacted(repr(value))}"[:_LONGEST]
    return kind


def require(
    value: Any, types: type | tuple[type, ...], name: str, expected: str
) -> None:
    """Raise VievalError for a value of none of these types; a truth value is not a
    number.
    """
    is_truth_value = isinstance(value, bool) and types is int
    if is_truth_value or not isinstance(value, types):
        raise VievalError(f"{name} is {described(value)}; pass {expected}")


def require_mapping(value: Any, types: type, name: str, expected: str) -> None:
    """Raise VievalError for anything but a mapping from texts to values of a type."""
    require(value, (dict, Mapping), name, expected)
    for key, entry in value.items():
        if not isinstance(key, str) or not isinstance(
            entry,
            types,
        ):  # a name for each costs more than to look
            require(key, str, f"a key of {name}", expected)
            require(
                entry,
                types,
                f"{name}[{key!r}]"[:_LONGEST],
                expected,
            )


def require_several(value: Any, name: str, expected: str) -> None:
    """Raise VievalError for anything but an iterable in order: a text, a mapping or a
    set is not one.
    """
    is_unordered = isinstance(value, (str, bytes, Mapping, Set))
    if is_unordered or not isinstance(value, Iterable):
        raise VievalError(f"{name} is {described(value)}; pass {expected}")


def require_all(
    values: Any,
    types: type | tuple[type, ...],
    name: str,
    expected: str,
) -> tuple[Any, ...]:
    """The values of an iterable in order; VievalError if it is invalid, or where one is
    of none of these types.
    """
    if not isinstance(values, tuple):
        require_several(values, name, expected)
    entries = tuple(values)
    for number, entry in enumerate(entries):
        if not isinstance(entry, types):
            require(entry, types, f"{name}[{number}]", expected)
    return entries


def named_arguments(call: C) -> C:
    """Have a function or a class refuse arguments that it does not take with a VievalError that
    names those it takes.
    """
    if isinstance(call, type):
        call.__init__ = named_arguments(call.__init__)  # type: ignore[misc]
        return call

    @functools.wraps(call)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except TypeError:
            signature = inspect.signature(call)
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                name = call.__qualname__.removesuffix(".__init__")
                parameters = _parameters_text(signature)
                raise VievalError(f"{name}: {error}; it {parameters}") from None
            raise

    return checked  # type: ignore[return-value]


def _parameters_text(signature: inspect.Signature) -> str:
    """The arguments of a function: with their types those that it needs, as `name=` those that
    must be named.
    """
    needed = []
    optional = []
    for argument in signature.parameters.values():
        if argument.name == "self" or argument.kind == argument.VAR_KEYWORD:
            continue
        if argument.default is argument.empty:
            needed.append(f"{argument.name}: {argument.annotation}")
        elif argument.kind == argument.KEYWORD_ONLY:
            optional.append(f"{argument.name}=")
        else:
            optional.append(argument.name)
    sentences = []
    if needed:
        sentences.append(f"needs {', '.join(needed)}")
    if optional:
        sentences.append(f"may have {', '.join(optional)}")
    return "; ".join(sentences)
