"""Builds a prompt pack from ImgEdit's rubric as lmms-eval has it: one text in a Python file for each type of edit.

The file is parsed and never executed, and its wording stays where it is.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

from vieval_plugin.errors import VievalError
from vieval_plugin.prompts.importing import raw, write_pack

_FILE = Path("tasks") / "imgedit" / "prompt.py"
_CONSTANT, _PLACE = "IMGEDIT_PROMPTS", "<edit_prompt>"
_SCORE = re.compile(r"^(.+): A number from 1 to 5\.$", re.MULTILINE)
_REMINDER = (
    "That answer could not be used: {{ reason }}. "
    "Please answer again in the response format above, with each score on a line of its own."
)


def installed() -> Path:
    """The file of the lmms-eval that is installed; VievalError where there is none."""
    found = importlib.util.find_spec("lmms_eval")
    for folder in (found.submodule_search_locations or ()) if found else ():
        if (Path(folder) / _FILE).is_file():
            return Path(folder) / _FILE
    raise VievalError(
        f"ImgEdit's rubric is read from lmms-eval's {_FILE}, which is not installed: pip install lmms-eval"
    )


def import_wording(source: Path, to: Path, context: str | None = None) -> list[Path]:
    """Write a pack of the rubric below `to` and return its folder: a question for each type, named by it.

    `source` is lmms-eval's file, or a checkout of lmms-eval. Raises VievalError saying in what the file is not as expected.
    """
    if context is not None:
        raise VievalError("this wording has no context file; leave --context out")
    path = source / "lmms_eval" / _FILE if source.is_dir() else source
    texts = _texts(path)
    questions = {
        kind: {"template": f"{kind}.jinja", "images": ["source", "output"], "scores": _SCORE.findall(text)}
        for kind, text in texts.items()
    }
    for kind, text in texts.items():
        if text.count(_PLACE) != 1 or len(set(questions[kind]["scores"])) != 3 or not re.fullmatch(r"\w+", kind):
            raise _unexpected(path, f"the text of {kind[:40]!r} has not one {_PLACE} and three scores from 1 to 5")
    manifest = {
        "judge": "imgedit_rubric",
        "name": "imgedit_rubric/lmms-eval",
        "replies": "lines",
        "questions": questions,
    }
    templates = {kind: raw(text.strip()).replace(_PLACE, "{{ instruction }}") for kind, text in texts.items()}
    return [write_pack(to / "lmms-eval", manifest, {**templates, "reminder": _REMINDER})]


def _texts(path: Path) -> dict[str, str]:
    try:
        module = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError) as error:
        raise VievalError(f"{path}: cannot be read as Python ({error}); pass lmms-eval's {_FILE}") from None
    for statement in module.body:
        if isinstance(statement, ast.Assign) and [ast.unparse(one) for one in statement.targets] == [_CONSTANT]:
            try:
                value = ast.literal_eval(statement.value)
            except (ValueError, TypeError, RecursionError, MemoryError):
                break
            if isinstance(value, dict) and value and all(isinstance(t, str) for pair in value.items() for t in pair):
                return value
            break
    raise _unexpected(path, f"no constant {_CONSTANT} with a text for each type of edit")


def _unexpected(path: Path, what: str) -> VievalError:
    return VievalError(
        f"{path}: {what}; this lmms-eval is not known here, name a pack of yours (judges.imgedit_rubric.pack)"
    )
