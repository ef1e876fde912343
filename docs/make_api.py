"""Build the API page from the docstrings of the public modules: `make docs`, which writes it beside a copy of the docs.

Signatures and fields are the lines of the source; docstrings become Markdown.

Usage: make_api.py FOLDER
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import vieval_plugin

TITLE = """# API

This page is made from the docstrings by `make docs`; do not edit it.

Names under `vieval_plugin` are for programs that judge images.
The other modules are for packages that [extend VIEval](extending/README.md), and for programs that compute statistics.
"""
MODULES = {
    "judges.protocol": "What a judge is given, asks, hears and returns.",
    "judges.contests": "Contests, and how a judge of samples judges one.",
    "prompts.pack": "A prompt pack as judges use it.",
    "judges.spec": "How a judge describes itself.",
    "benchmarks.benchmark": "How a benchmark describes itself.",
    "meta_evaluation.observations": "What statistics see of a run.",
    "meta_evaluation.comparison": "Systems compared two by two.",
    "meta_evaluation.statistics": "A statistic, declared once, and the report object that lists a benchmark's.",
    "rewards.flow_grpo": "A judge as reward of batches of images, in a trainer's own process.",
    "rewards.verl_omni": "The same as a reward function of VeRL-Omni.",
    "rewards.prompt_writer": "The same of a language model that writes prompts.",
    "tasks": "The table of tasks, and the rows that other packages bring.",
    "stats.agreement": "Agreement of human raters.",
    "stats.binary": "Binary labels and preferences.",
    "stats.bootstrap": "Resampling and intervals.",
    "stats.comparison": "Whether one judge, or one generator, is better than another.",
    "stats.paired_correlations": "The same for averages of correlations.",
    "stats.compositional": "Winoground's scores.",
    "stats.correlation": "Correlations.",
    "stats.estimate": "A value with its interval: the one type for it.",
    "stats.pairwise": "Pairwise accuracy with tie calibration.",
    "stats.ranking": "Rankings.",
    "stats.votes": "Votes and accuracies.",
    "stats.orders": "Answers in two orders.",
    "stats.thresholds": "From scores to votes.",
}
SECTION = re.compile(r"(Args|Returns|Raises|Yields):$")


def page() -> str:
    """The whole page as Markdown."""
    homes: dict[str, list[str]] = {}
    for name in vieval_plugin.__all__:
        homes.setdefault(getattr(vieval_plugin, name).__module__, []).append(name)
    parts = [TITLE, "## vieval_plugin\n"]
    for module, names in homes.items():
        short = module.removeprefix("vieval_plugin.")
        if short in MODULES:
            parts += [f"`{'`, `'.join(names)}`: see [{module}](#{_anchor(module)}).\n"]
        else:
            parts += _entries(module, names)
    for short, what in MODULES.items():
        parts += [f"## vieval_plugin.{short}\n", f"{what}\n", *_entries(f"vieval_plugin.{short}", None)]
    return "\n".join(parts)


def _anchor(module: str) -> str:
    return module.replace(".", "")


def _entries(module: str, names: list[str] | None) -> Iterator[str]:
    """The public names of a module, or some of them, in the order of its source."""
    source = inspect.getsource(importlib.import_module(module))
    body = ast.parse(source).body
    for place, node in enumerate(body):
        name = _name(node)
        if not name or name.startswith("_") or (names is not None and name not in names):
            continue
        said = _said(body, place)
        if isinstance(node, ast.AnnAssign | ast.Assign) and not said and ast.unparse(node).find("TypeAlias") < 0:
            continue
        yield f"### {name}\n\n```python\n{_shown(node, source)}\n```\n"
        yield from _markdown(said)
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and not inner.name.startswith("_"):
                yield f"`{name}.{inner.name}`\n\n```python\n{_shown(inner, source)}\n```\n"
                yield from _markdown(ast.get_docstring(inner) or "")


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])
    return targets[0].id if isinstance(targets[0], ast.Name) else ""


def _said(body: list[ast.stmt], place: int) -> str:
    """The docstring of a definition, or the text under an assignment."""
    node = body[place]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return ast.get_docstring(node) or ""
    after = body[place + 1] if place + 1 < len(body) else None
    text = after.value if isinstance(after, ast.Expr) else None
    return inspect.cleandoc(text.value) if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""


def _shown(node: ast.stmt, source: str) -> str:
    """The head of a definition as it stands in the source: a function's signature, a class with its fields."""
    lines = source.splitlines()
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        first = _first_line(node)
        last = node.body[0]
        head = [*lines[first - 1 : last.lineno - 1], lines[last.lineno - 1][: last.col_offset]]
        return inspect.cleandoc("\n".join(head)).rstrip().removesuffix(":")
    if isinstance(node, ast.ClassDef):
        first = _first_line(node)
        fields = [one for one in node.body if isinstance(one, ast.AnnAssign | ast.Assign)]
        held = [line for one in fields if _name(one)[0] != "_" for line in lines[one.lineno - 1 : one.end_lineno]]
        return "\n".join([*lines[first - 1 : node.lineno], *held]).removesuffix(":")
    return "\n".join(lines[node.lineno - 1 : node.end_lineno])


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """The line where a definition begins for its callers, to whom a check of their arguments says nothing."""
    decorators = [decorator for decorator in node.decorator_list if ast.unparse(decorator) != "named_arguments"]
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _markdown(docstring: str) -> Iterator[str]:
    """A docstring's paragraphs, lists, sections and examples."""
    for block in re.split(r"\n\s*\n", docstring) if docstring else ():
        lines = block.splitlines()
        section = SECTION.match(lines[0])
        if block.lstrip().startswith(">>>") or block.startswith("    "):
            yield f"```python\n{inspect.cleandoc(block)}\n```\n"
        elif section and section[1] in ("Returns", "Yields"):
            yield f"**{section[1]}** {' '.join(line.strip() for line in lines[1:])}\n"
        elif section:
            named = [re.sub(r"^(\w+):", r"`\1`:", one) for one in _joined(lines[1:], "")]
            yield "\n".join([f"**{section[1]}**\n", *(f"- {one}" for one in named), ""])
        elif lines[0].startswith("- "):
            yield "\n".join([*(f"- {one}" for one in _joined(lines, "- ")), ""])
        else:
            yield " ".join(lines).removesuffix("::") + "\n"


def _joined(lines: list[str], mark: str) -> list[str]:
    """Entries whose continuation is indented further, each as one line."""
    depth = len(lines[0]) - len(lines[0].lstrip())
    entries: list[str] = []
    for line in lines:
        starts = line[depth:].startswith(mark) and not line[depth:].startswith(" ")
        if starts:
            entries.append(line[depth:].removeprefix(mark).strip())
        else:
            entries[-1] += f" {line.strip()}"
    return entries


if __name__ == "__main__":
    path = Path(sys.argv[1]) / "api.md"
    path.write_text(page(), encoding="utf-8")
    print(f"wrote {path}")
