"""Pickles of plain values, read without `pickle`: whatever a body holds, nothing in it is looked up, called or imported.

Opcodes come from `pickletools.genops`, which only parses. Those that build dict, list, tuple, str, bytes, int, float,
bool and None are followed here, and any other ends the reading. Values form a tree: a list that stands in two places
is copied, and copies count as operations, as lists of lists that share their members are small to send and endless to
walk.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vieval_plugin.errors import VievalError

_MOST_OPERATIONS, _MOST_DEPTH, _MOST_DIGITS = 200_000, 8, 16
_MARK = object()
_TEXTS = frozenset(
    {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BINFLOAT"}
)
_NUMBERS = frozenset({"BININT", "BININT1", "BININT2", "LONG1"})
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: Mapping[str, Callable[[], Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_FORBIDDEN = (
    "the body holds an object ({}), and only dict, list, tuple, str, bytes, int, float, bool and None are read; of a NumPy "
    "array of prompts send list(map(str, prompts))"
)


def read_pickle(content: bytes) -> Any:
    """The plain value that a pickle holds.

    Raises:
        VievalError: it is no pickle, is cut off, or holds anything else.

    >>> read_pickle(pickle.dumps({"images": [b"x"], "prompts": ("a", None, 1.5, True)}))
    {'images': [b'x'], 'prompts': ('a', None, 1.5, True)}
    """
    stack = _Stack()
    try:
        for opcode, argument, _ in pickletools.genops(io.BytesIO(content)):
            stack.follow(opcode.name, argument)
    except VievalError:
        raise
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise VievalError(f"the body is no pickle that can be read ({' '.join(str(error).split())[:100]})") from None
    return stack.result()


def write_pickle(value: Any) -> bytes:
    """The pickle of a plain value, for clients of any Python 3."""
    return pickle.dumps(value, protocol=3)


@dataclass
class _Stack:
    """Values under construction, each with how deeply it is nested, and the memo."""

    values: list[tuple[Any, int]] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)
    operations: int = 0
    stopped: bool = False

    def follow(self, name: str, argument: Any) -> None:
        """Do what an opcode says; VievalError for one that builds no plain value."""
        self._count()
        if name in _TEXTS or name in _NUMBERS:
            self._push(argument)
            if isinstance(argument, int) and argument.bit_length() > 8 * _MOST_DIGITS:
                raise VievalError("the body holds a number that is too large")
        elif name in _CONSTANTS:
            self._push(_CONSTANTS[name])
        elif name in _EMPTY:
            self._push(_EMPTY[name](), 1)
        elif name == "MARK":
            self._push(_MARK)
        elif name in ("MEMOIZE", "BINPUT", "LONG_BINPUT"):
            self.memo[len(self.memo) if argument is None else argument] = self.values[-1][0]
        elif name in ("BINGET", "LONG_BINGET"):
            self._push(*self._copy(self.memo[argument]))
        elif name == "STOP":
            self.stopped = True
        elif name not in ("PROTO", "FRAME"):
            self._join(name)

    def result(self) -> Any:
        """The one value that is left at the end."""
        if not self.stopped or len(self.values) != 1 or self.values[0][0] is _MARK:
            raise VievalError("the body is no whole pickle")
        return self.values[0][0]

    def _join(self, name: str) -> None:
        """Put values together into a tuple, or into the list or dict that stands before them."""
        if name in _TUPLES:
            self._tuple(self._taken(_TUPLES[name]))
        elif name == "TUPLE":
            self._tuple(self._since_mark())
        elif name in ("APPEND", "APPENDS"):
            self._append(self._taken(1) if name == "APPEND" else self._since_mark())
        elif name in ("SETITEM", "SETITEMS"):
            self._set(self._taken(2) if name == "SETITEM" else self._since_mark())
        else:
            raise VievalError(_FORBIDDEN.format(f"opcode {name}"))

    def _push(self, value: Any, depth: int = 0) -> None:
        if depth > _MOST_DEPTH:
            raise VievalError(f"the body is nested more than {_MOST_DEPTH} levels deep")
        self.values.append((value, depth))

    def _count(self) -> None:
        self.operations += 1
        if self.operations > _MOST_OPERATIONS:
            raise VievalError(f"the body has more than {_MOST_OPERATIONS} operations")

    def _copy(self, value: Any) -> tuple[Any, int]:
        """A value of the memo as one of its own, and how deeply it is nested."""
        self._count()
        if isinstance(value, dict):
            pairs = {key: self._copy(member) for key, member in value.items()}
            return {key: member for key, (member, _) in pairs.items()}, _depth(list(pairs.values()))
        if isinstance(value, (list, tuple)):
            members = [self._copy(member) for member in value]
            return type(value)(member for member, _ in members), _depth(members)
        if value is _MARK:
            raise ValueError("a mark is no value")
        return value, 0

    def _taken(self, number: int) -> list[tuple[Any, int]]:
        """The last values, off the stack."""
        taken = self.values[len(self.values) - number :]
        if len(taken) < number or any(value is _MARK for value, _ in taken):
            raise ValueError("values are missing")
        del self.values[len(self.values) - number :]
        return taken

    def _since_mark(self) -> list[tuple[Any, int]]:
        marks = (n for n, (value, _) in enumerate(reversed(self.values)) if value is _MARK)
        if (number := next(marks, None)) is None:
            raise ValueError("no mark")
        taken = self._taken(number)
        self.values.pop()
        return taken

    def _tuple(self, members: list[tuple[Any, int]]) -> None:
        self._push(tuple(value for value, _ in members), _depth(members) if members else 1)

    def _append(self, members: list[tuple[Any, int]]) -> None:
        (target, depth), *_ = self._taken(1)
        if not isinstance(target, list):
            raise ValueError("nothing to append to")
        target.extend(value for value, _ in members)
        self._push(target, max(depth, _depth(members)))

    def _set(self, members: list[tuple[Any, int]]) -> None:
        (target, depth), *_ = self._taken(1)
        keys = [value for value, _ in members[::2]]
        if not isinstance(target, dict) or len(members) % 2 or not all(isinstance(key, str) for key in keys):
            raise VievalError("a dict of the body has a key that is no text")
        target.update(zip(keys, (value for value, _ in members[1::2]), strict=True))
        self._push(target, max(depth, _depth(members)))


def _depth(members: list[tuple[Any, int]]) -> int:
    return 1 + max((depth for _, depth in members), default=0)
