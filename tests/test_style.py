"""Few names fit any value, and few docstrings open with a clause."""

import ast
import re
from functools import cache
from pathlib import Path

from tests import bounds

ROOT = Path(__file__).parents[1]
# names that fit any value, and so tell a reader nothing of this one
EMPTY_NAMES = frozenset((ROOT / "tests" / "vague_names.txt").read_text().split())
CLAUSE_OPENINGS = re.compile(
    r"(What|Whether|How|Why|Those|One|All|Who|Where|When|Which|As|That|These|Less|So|Up|Of|In|By|From)\b"
)


@cache
def trees():
    paths = [*(ROOT / "vieval_plugin").rglob("*.py"), *(ROOT / "judges").rglob("*.py")]
    return {path: ast.parse(path.read_text()) for path in paths}


def bound_names(tree):
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                yield name


DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def docstrings(tree):
    nodes = (node for node in ast.walk(tree) if isinstance(node, DOCUMENTED))
    return [*filter(None, map(ast.get_docstring, nodes))]


def test_few_names_fit_any_value():
    found = [name for tree in trees().values() for name in bound_names(tree)]
    kept = [it for it in found if it not in ("self", "cls", "_") and it[:2] != "__"]
    names = [name.strip("_").lower() for name in kept]
    empty = [name for name in names if name in EMPTY_NAMES]
    assert len(empty) <= bounds.EMPTY_NAMES * len(names), len(empty)


def test_few_docstrings_open_with_a_clause():
    texts = [text for tree in trees().values() for text in docstrings(tree)]
    clauses = [text for text in texts if CLAUSE_OPENINGS.match(text)]
    openings = [text.splitlines()[0] for text in clauses]
    assert len(clauses) <= bounds.CLAUSES * len(texts), openings


def test_no_line_of_a_docstring_is_longer_than_a_reader_likes():
    longer = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path, tree in trees().items()
        for text in docstrings(tree)
        for line in text.splitlines()
        if len(line) > bounds.DOCSTRING_LINE
    ]
    assert longer == []
