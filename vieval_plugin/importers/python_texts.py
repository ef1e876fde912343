"""Read string constants from a Python file without executing it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from vieval_plugin.text.errors import VievalError, system_reason

#: Texts by name.
Texts: TypeAlias = Mapping[str, str]

CHECKOUT = "a checkout of the authors' repository"
_MOST_BYTES = 128 << 10
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def read(path: Path, earlier: Texts | None = None) -> tuple[ast.Module, dict[str, str]]:
    """Parse a file; return its tree and its top-level string constants by name.

    A text is a literal, a sum of texts, a name of one (also of `earlier` files), or one of these
    stripped. VievalError names the file and says what is wrong with it.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError(
                f"too large for a prompts file (limit {_MOST_BYTES} bytes)"
            )
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of their spelling, which is not ours to mend
            module = ast.parse(path.read_text(encoding="utf-8-sig"))
        texts = dict(earlier or {})
        for statement in module.body:
            text = (
                _text(statement.value, texts)
                if isinstance(statement, ast.Assign)
                else None
            )
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    texts.pop(node.id, None)
                    texts |= {} if text is None else {node.id: text}
        return module, texts
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError) as error:
        message = system_reason(error)
        raise VievalError(
            f"{path}: cannot be read as Python ({message[:200]}); pass {CHECKOUT}"
        ) from None


def function_literals(module: ast.Module, function: str) -> list[str]:
    """The different texts that a function returns or assigns as literals, in order, without
    empty ones.
    """
    values = []
    for definition in module.body:
        if isinstance(definition, ast.FunctionDef) and definition.name == function:
            for node in ast.walk(definition):
                if isinstance(node, (ast.Return, ast.Assign)) and isinstance(
                    node.value,
                    ast.Constant,
                ):
                    values.append(node.value)
    texts = [
        _text(value, {}) for value in sorted(values, key=lambda value: value.lineno)
    ]
    return [text for text in dict.fromkeys(texts) if text]


def _text(node: ast.expr, constants: Texts) -> str | None:
    """Text of an expression; None if it is not a constant string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return None if _HALF_CHARACTER.search(node.value) else node.value
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        start = _text(node.left, constants)
        end = _text(node.right, constants)
        return None if start is None or end is None else start + end
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "strip"
    ):
        text = None if node.args else _text(node.func.value, constants)
        return None if text is None else text.strip()
    return None
