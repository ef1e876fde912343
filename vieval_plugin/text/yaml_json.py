"""YAML and JSON that others wrote, within limits.

A few lines of YAML can stand for millions of values, by aliases of aliases, and a few kilobytes of
brackets nest deeper than Python can follow.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import yaml

JsonObject: TypeAlias = dict[str, Any]

_LONGEST = 1 << 20
_MOST_VALUES = 100_000
_DEEPEST = 60
# characters: hexadecimal numbers and those to base 60 take the square of their length
_LONGEST_NUMBER = 1000


def read_yaml(text: str) -> Any:
    """The value of a YAML document of at most 1 MiB, 100,000 values, aliases counted each time, and
    60 levels.

    Raises:
        ValueError: in one line, what is wrong with it.
    """
    import yaml

    if len(text) > _LONGEST:
        raise ValueError("longer than 1 MiB")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _require_small(node)
        return loader.construct_document(node)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = ""
        if mark:
            where = f"line {mark.line + 1}, column {mark.column + 1}: "
        raise ValueError(f"{where}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except (TypeError, OverflowError) as error:  # a date or number that is none
        raise ValueError(str(error)) from None


def read_json(text: str | bytes, **hooks: Any) -> Any:
    """The value of a JSON text; ValueError for any other, and for one of more than 60 levels.

    `hooks` are those of `json.loads`, such as `parse_constant`.
    """
    try:
        value = json.loads(text, **hooks)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _openings(text) <= _DEEPEST:
        return value
    level = []
    if type(value) is dict or type(value) is list:
        level = [value]
    for _ in range(_DEEPEST):
        # written for speed: reports read a hundred thousand texts
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return value
    raise ValueError("nested too deeply")


def _openings(text: str | bytes) -> int:
    """Number of opening brackets, which no text nests deeper than."""
    signs: Any = (b"{", b"[") if isinstance(text, bytes) else ("{", "[")
    return sum(map(text.count, signs))


def first_row(path: Path) -> dict[str, Any]:
    """The object in a file's first line; an empty one where none can be read."""
    try:
        with path.open(encoding="utf-8") as file:
            row = read_json(file.readline())
    except (OSError, ValueError):
        return {}
    if isinstance(row, dict):
        return row
    return {}


def _require_small(root: yaml.Node) -> None:
    """ValueError for a document that is too much once its aliases are spelt out; one that holds
    itself is endless.
    """
    import yaml

    waiting = [(root, 1)]
    values = 0
    while waiting:
        node, depth = waiting.pop()
        values += 1
        if values > _MOST_VALUES:
            raise ValueError(f"more than {_MOST_VALUES} values after expanding aliases")
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        if isinstance(node, yaml.MappingNode):
            waiting += [(child, depth + 1) for pair in node.value for child in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += [(child, depth + 1) for child in node.value]
        elif node.tag == "tag:yaml.org,2002:int" and len(node.value) > _LONGEST_NUMBER:
            where = f"in line {node.start_mark.line + 1}"
            raise ValueError(f"a number of {len(node.value)} digits {where}")
        elif any("\ud800" <= letter <= "\udfff" for letter in node.value):
            raise ValueError(f"incomplete character in line {node.start_mark.line + 1}")
