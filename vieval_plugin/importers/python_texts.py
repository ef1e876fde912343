"""Texts that stand in somebody's Python file, read without executing any of it."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from vieval_plugin.text.errors import VievalError

_MOST_BYTES = 128 << 10
_MOST_NAMED = 3


def read(path: Path, pass_this: str) -> ast.Module:
    """A file as a tree. VievalError names the file and says what is wrong with it, and to `pass_this` instead."""
    try:
        if not path.is_file():
            raise VievalError(f"{path}: there is no such file; pass {pass_this}")
        if path.stat().st_size > _MOST_BYTES:
            raise VievalError(f"{path}: larger than {_MOST_BYTES} bytes, which no file of prompts is; pass {pass_this}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of their spelling, which is not ours to mend
            return ast.parse(path.read_text(encoding="utf-8-sig"))
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        raise VievalError(f"{path}: cannot be read as Python ({message[:200]}); pass {pass_this}") from None


def names(module: ast.Module) -> list[str]:
    """Names that a module assigns at its top, in order."""
    return list(_assigned(module))


def constants(path: Path, module: ast.Module, names: Sequence[str]) -> dict[str, str]:
    """The texts that a module gives these names, each once, at its top and as a literal.

    Raises VievalError naming the file and the first name of which that is not so, or the names that are missing.
    """
    times = Counter(
        node.id for node in ast.walk(module) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )
    if missing := [name for name in names if not times[name]]:
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        raise unexpected(path, f"has no {', '.join(missing[:_MOST_NAMED])}{more}")
    values = _assigned(module)
    for name in names:
        if times[name] > 1:
            raise unexpected(path, f"assigns {name} {times[name]} times")
        if name not in values:
            raise unexpected(path, f"does not assign {name} by itself at its top")
    return {name: literal(path, name, values[name]) for name in names}


def literal(path: Path, name: str, value: ast.expr) -> str:
    """The text that an expression is; VievalError if it would have to be computed, or is none that can be sent."""
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
        raise unexpected(path, f"line {value.lineno}: {name} is no literal text")
    try:
        value.value.encode("utf-8")
    except UnicodeEncodeError:
        raise unexpected(path, f"line {value.lineno}: {name} has half a character") from None
    return value.value


def function_literals(path: Path, module: ast.Module, function: str) -> list[str]:
    """The different texts that a function returns or assigns as literals, in order, without empty ones.

    Raises VievalError if there is not one such function, or one of its texts would have to be computed.
    """
    function_definitions = [
        statement for statement in module.body if isinstance(statement, ast.FunctionDef) and statement.name == function
    ]
    if len(function_definitions) != 1:
        raise unexpected(
            path,
            f"has {len(function_definitions) or 'no'} {'functions' if function_definitions else 'function'} {function}",
        )
    values = [
        node.value
        for node in ast.walk(function_definitions[0])
        if isinstance(node, (ast.Return, ast.Assign)) and node.value is not None
    ]
    for value in values:
        if _computed(value):
            raise unexpected(path, f"line {value.lineno}: a text of {function} is no literal text")
    texts = [
        literal(path, f"a text of {function}", value)
        for value in sorted(values, key=lambda statement: statement.lineno)
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    ]
    return [text for text in dict.fromkeys(texts) if text]


def unexpected(path: Path, what: str) -> VievalError:
    """The one line that says in what a file is not as it was when its importer was written."""
    return VievalError(f"{path}: {what}; was the repository changed?")


def _computed(value: ast.expr) -> bool:
    """Return whether an expression makes a text out of literals: a pattern, a sum, or a method of one."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Attribute) and _has_text(value.func.value)
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.BinOp) and _has_text(value))


def _has_text(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Constant) and isinstance(node.value, str) for node in ast.walk(value))


def _assigned(module: ast.Module) -> dict[str, ast.expr]:
    assignments: dict[str, ast.expr] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            [target], value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, value = statement.target, statement.value
        else:
            continue
        if isinstance(target, ast.Name):
            assignments[target.id] = value
    return assignments
