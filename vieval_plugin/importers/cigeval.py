"""Builds a user's prompt pack from the CIGEval authors' wording: texts in their Python sources,
which are never executed.

Source: Wang et al., A Unified Agentic Framework for Evaluating Conditional Image Generation (2025),
whose released code (HITsz-TMG/Agentic-CIGEval) has them in three files, with places in braces that
it fills one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from vieval_plugin.importers import python_texts
from vieval_plugin.importers.importing import (
    jinja_template,
    question_of,
    require_checkout,
    unexpected,
    write_pack,
)
from vieval_plugin.importers.python_texts import Texts
from vieval_plugin.prompts.packs import built_in, load
from vieval_plugin.text.escaping import say
from vieval_plugin.text.wording import plural

_PROMPTS = Path("agent/prompt_agent.py")
_NOTES = Path("evaluate.py")
_GRAPH = Path("tools/scene_graph.py")
_PLAN = "Tool_Decide"
_SCENE_GRAPH = "sgPrompt"
_FUNCTION = "get_tool_text"
_ONE_IMAGE = "_llava"
_MOST_NAMED = 3

_TASKS = {
    "tig": "Text_Guided_IG",
    "tie": "Text_Guided_IE",
    "mie": "Mask_Guided_IE",
    "cig": "Control_Guided_IG",
    "sdig": "Subject_Driven_IG",
    "sdie": "Subject_Driven_IE",
    "mcic": "Multi_Concept_IC",
}
# Which of our sub-questions their tasks 1 and 2 are; both concepts are asked about in the same
# words.
_FIRST = ("edit", "control", "subject", "concept_1", "concept_2")
_TOOLS = {
    "Highlight": "grounding",
    "SceneGraph": "scene_graph",
    "MaskFocus": "difference",
}

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_TEXTS = {
    "text": "{{ prompt }}",
    "instruction": "{{ instruction }}",
    "subject": "{{ subject }}",
}
_KIND_NAMES = {
    **dict.fromkeys(("tig", "cig", "mcic"), ("text",)),
    **dict.fromkeys(("tie", "mie"), ("instruction",)),
    "sdig": ("text", "subject"),
    "sdie": ("subject",),
}
_TOOL_TEXT = "tool_text"
_HEAD = f'{{% set {_TOOL_TEXT} %}}{{% include "{_TOOL_TEXT}.jinja" %}}{{% endset %}}'
_GRAPHS = {
    "scene_graph": "{{ told[0] }}",
    "scene_graph_1": "{{ told[0] }}",
    "scene_graph_2": "{{ told[1] }}",
}
_REMINDER = (
    "That answer could not be used: {{ reason }}. "
    "Please answer again in the JSON format asked for above, with nothing around it."
)


def import_wording(source: Path, to: Path, context: str | None = None) -> list[Path]:
    """Write a pack of the authors' wording below `to` and return its folder, for the form with a
    plan.

    `source` is a checkout of their repository. Answers are in the authors' JSON, which no schema of
    ours is enforced on, and the plan calls tools by the authors' names. Texts for backbones that
    take one image (`..._llava`) are left out, which is printed. Raises VievalError naming the file
    and the text that is missing or is not as it was; nothing half-written is left.

    Images come first, as in our pack: the order in which the authors send them was not found.
    """
    require_checkout(source, context)
    path = source / _PROMPTS
    _, author_texts = python_texts.read(path)
    ours = load(built_in("cigeval")[-1]).questions
    rated = {key: _name(key) for key in ours if key.partition("/")[0] in _TASKS}
    rated_names = list(rated.values())
    planned = {kind: _plan_names(kind, rated_names) for kind in _TASKS}
    plan_names = chain.from_iterable(planned.values())
    needed = dict.fromkeys([_PLAN, *plan_names, *rated_names])
    if missing := [name for name in needed if name not in author_texts]:
        first_missing = ", ".join(missing[:_MOST_NAMED])
        raise unexpected(
            path,
            f"lacks {first_missing} ({plural(len(missing), 'text')} missing in total)",
        )
    graph_text = python_texts.read(source / _GRAPH)[1].get(_SCENE_GRAPH)
    if graph_text is None:
        raise unexpected(source / _GRAPH, f"lacks the text {_SCENE_GRAPH}")
    texts = {
        "reminder": _REMINDER,
        _TOOL_TEXT: _tool_text(source / _NOTES),
    }
    texts["scene_graph"] = _jinja_template(
        source / _GRAPH,
        _SCENE_GRAPH,
        graph_text,
        variables={},
    )
    for kind, parts in planned.items():
        texts[f"plan_{kind}"] = _plan_template(path, author_texts, kind, parts)
    for key, name in rated.items():
        variables = _variables(*key.split("/"))
        variables[_TOOL_TEXT] = f"{{{{ {_TOOL_TEXT} }}}}"
        template = _jinja_template(
            path,
            name,
            author_texts[name],
            variables=variables,
            once=_TOOL_TEXT,
        )
        texts[key.replace("/", "_")] = _HEAD + template
    files = {key: key.replace("/", "_") for key in ours}
    questions = {
        key: question_of(ours[key], file)
        for key, file in files.items()
        if file in texts
    }
    # the authors plan on the concepts side by side
    questions["plan/mcic"]["images"] = ["concepts", "output"]
    manifest = {
        "judge": "cigeval",
        "name": "cigeval/authors",
        "settings": ["paper"],
        "replies": "free_json",
        "tools": _TOOLS,
        "questions": questions,
    }
    folder = write_pack(to / "authors", manifest, texts)
    left_out = [name for name in author_texts if name.endswith(_ONE_IMAGE)]
    if left_out:
        say(f"skipped texts for backbones that accept one image: {', '.join(left_out)}")
    return [folder]


def _plan_template(
    path: Path, author_texts: Texts, kind: str, parts: Iterable[str]
) -> str:
    variables = _variables(kind)
    templates = (
        _jinja_template(path, part, author_texts[part], variables) for part in parts
    )
    return _jinja_template(
        path,
        _PLAN,
        author_texts[_PLAN],
        variables={"task": "".join(templates)},
        once="task",
    )


def _name(key: str) -> str:
    """Authors' name of the text that rates a sub-question of ours."""
    kind, _, question = key.partition("/")
    number = 1 if question in _FIRST or kind == "tig" else 2
    return f"{_TASKS[kind]}_Task_{number}_evaluation"


def _plan_names(kind: str, rated: list[str]) -> list[str]:
    """The texts that say in a plan what a task is, in the order in which the authors join them."""
    tasks = [f"{_TASKS[kind]}_Task_{number}" for number in (1, 2)]
    present = (task for task in tasks if f"{task}_evaluation" in rated)
    return [f"{_TASKS[kind]}_Rule", *present]


def _variables(kind: str, question: str = "") -> dict[str, str]:
    """Variables of a kind's texts by placeholder; of several concepts, only what asks about one
    has its name.
    """
    names = list(_KIND_NAMES[kind])
    if question.startswith("concept"):
        names.append("subject")
    return {name: _TEXTS[name] for name in names}


def _jinja_template(
    path: Path, name: str, text: str, variables: Texts, once: str = ""
) -> str:
    """A text as a Jinja template, each placeholder being its variable; there is exactly one of
    `once`.
    """
    template, names = jinja_template(
        f"{path}: {name}",
        text,
        _PLACEHOLDER,
        variables,
    )
    count = names.count(once)
    if once and count != 1:
        raise unexpected(
            path, f"{name} must have one placeholder {{{once}}}, got {count}"
        )
    return template


def _tool_text(path: Path) -> str:
    """Text that a rating is told of a tool: one text of what is highlighted, and one of the scene
    graphs of one image or two.
    """
    texts: dict[str, str] = {}
    module, _ = python_texts.read(path)
    where = f"{path}: a text of {_FUNCTION}"
    for text in python_texts.function_literals(module, _FUNCTION):
        template, names = jinja_template(
            where,
            text.strip(),
            _PLACEHOLDER,
            _GRAPHS,
        )
        placeholders = " ".join(sorted(set(names)))
        if placeholders in texts:
            places = ", ".join(names) or "none"
            raise unexpected(
                path,
                f"{_FUNCTION} has two texts with the same placeholders ({places})",
            )
        texts[placeholders] = template
    kinds = ("", "scene_graph_1 scene_graph_2", "scene_graph")
    if texts.keys() != set(kinds):
        raise unexpected(
            path,
            f"{_FUNCTION} must have three texts: one for a note, one for two scene "
            "graphs and one for a single scene graph",
        )
    highlighted, two, single = map(texts.__getitem__, kinds)
    return (
        f'{{% if tool in ("grounding", "difference") %}}{highlighted}'
        f'{{% elif tool == "scene_graph" and told | length == 2 %}}{two}'
        f'{{% elif tool == "scene_graph" %}}{single}{{% endif %}}'
    )
