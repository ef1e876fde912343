"""CIGEval's plan: which tool, if any, helps with which sub-question; and what is done with a bad one."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vieval_plugin.judges.cigeval.questions import Setup, SubQuestion, barred
from vieval_plugin.judges.parsing import ONE_ANSWER, json_value
from vieval_plugin.judges.protocol import Ask, Chat, Image, Message, Reply, Status, Step
from vieval_plugin.judges.refusals import refuses
from vieval_plugin.judges.structured_chat import Asked, Read, ask_all
from vieval_plugin.judges.tools import Tool, registry

_NONE = frozenset({"", "none", "null", "no", "no_tool", "n/a"})


@dataclass(frozen=True)
class Entry:
    """What a plan says of the question with that number: the tool's name (empty for none), what to look for, and why."""

    task_id: int
    tool: str
    entities: tuple[str, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True)
class Chosen:
    """What is done for a sub-question: its `tool`, if any, and what to look for; `finding` is what is counted."""

    tool: Tool | None = None
    entities: tuple[str, ...] = ()
    step: Step | None = None
    finding: str = ""


def planned_items(asked: Sequence[SubQuestion], setup: Setup) -> list[list[SubQuestion]]:
    """The sub-questions of each entry of a plan: one, but by the released code two concepts share an entry."""
    shared = not setup.improves("plan_each_subject")
    items: dict[str, list[SubQuestion]] = {}
    for one in asked:
        items.setdefault("concepts" if shared and one.name.startswith("concept_") else one.name, []).append(one)
    return list(items.values())


def _in_words(item: Sequence[SubQuestion], setup: Setup) -> str:
    first, *others = (str(one.texts["subject"]) for one in item)
    subject = f"{first} (and likewise the {' and the '.join(others)})" if others else first
    return item[0].render(setup, form="plan", subject=subject)


def plan(
    asked: Sequence[SubQuestion], images: Mapping[str, Image], setup: Setup
) -> Generator[list[Ask], list[Reply], tuple[dict[str, Chosen], tuple[Step, ...]]]:
    """Ask for a plan over all images: what is chosen for each sub-question, and the plan's own steps."""
    if not setup.tools:
        return {one.name: Chosen() for one in asked}, ()
    items = planned_items(asked, setup)
    question = setup.wording.questions[f"plan/{asked[0].kind}"]
    entities = setup.improves("named_entity")
    text = setup.wording.render(
        question.template,
        {
            **asked[0].texts,
            "pictures": [role.replace("_", " ") for role in question.images],
            "questions": [_in_words(item, setup) for item in items],
            "tools": setup.tools,
            "entities": entities,
        },
    )
    message = Message("user", (*(images[role] for role in question.images), text))
    chat = Chat((message,), ("plan",), setup.enforced(schema(len(items), setup.tools, entities)))
    [answer] = yield from ask_all([Asked(chat, read_plan)], setup.wording, setup.options.reminders)
    entries = {entry.task_id: _by_our_name(entry, setup) for entry in answer.value or ()}
    chosen = {}
    for one in asked:
        number = next(number for number, item in enumerate(items, start=1) if one in item)
        chosen[one.name] = _choose(one, entries.get(number), answer.value is not None, setup)
    return chosen, answer.steps


def _by_our_name(entry: Entry, setup: Setup) -> Entry:
    """An entry whose tool has the registry's name, where the prompt pack calls it otherwise."""
    names = {tool_name(name): ours for name, ours in setup.wording.tools.items()}
    return replace(entry, tool=names.get(entry.tool, entry.tool))


def _choose(asked: SubQuestion, entry: Entry | None, readable: bool, setup: Setup) -> Chosen:
    """The tool of an entry, or none with what is wrong with it."""
    path = ("plan", asked.name)

    def without(status: Status, reason: str, finding: str) -> Chosen:
        return Chosen(step=Step(path, status, answer=entry.tool if entry else "", reason=reason), finding=finding)

    if entry is None:
        if not readable:
            return without(Status.PARSE_FAILURE, "there is no readable plan", "plan: unreadable")
        return without(Status.PARSE_FAILURE, "the plan has no entry for this question", "plan: no entry")
    if not entry.tool:
        return without(Status.OK, entry.reasoning, "plan: no tool")
    tool = next((tool for tool in setup.tools if tool.name == entry.tool), None)
    if tool is None:
        known = entry.tool in registry()
        reason = f"the tool {entry.tool[:60]!r} {'was not offered' if known else 'does not exist'}"
        return without(Status.PARSE_FAILURE, reason, f"plan: {'tool not offered' if known else 'unknown tool'}")
    if why := barred(tool, asked, setup):
        return without(Status.PARSE_FAILURE, why, "plan: forbidden tool")
    entities = entry.entities if setup.improves("named_entity") else ()
    step = Step(path, Status.OK, answer=tool.name, reason=entry.reasoning)
    return Chosen(tool, entities, step, f"plan: {tool.name}")


def read_plan(text: str) -> Read[tuple[Entry, ...]]:
    """The entries of a plan: an object with a list under `plan`, or the list itself."""
    document = json_value(text)
    listed = document.get("plan") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        status = Status.REFUSAL if refuses(text) else Status.PARSE_FAILURE
        return Read(status, reason="no list of entries under plan")
    try:
        entries = tuple(_entry(one) for one in listed)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Read(Status.PARSE_FAILURE, reason="an entry of the plan lacks its task_id, or is no object")
    if len({entry.task_id for entry in entries}) < len(
        {(entry.task_id, entry.tool, entry.entities) for entry in entries}
    ):
        return Read(Status.PARSE_FAILURE, reason=f"a task_id with {ONE_ANSWER}")
    return Read(Status.OK, entries, reason=f"{len(entries)} entries")


def tool_name(given: object) -> str:
    """A tool's name as a model writes it (`Scene Graph`), as the registry has it; empty for none."""
    name = "_".join(str(given if given is not None else "").strip().lower().replace("-", " ").split())
    return "" if name in _NONE else name


def texts_of(given: object) -> tuple[str, ...]:
    """A text or a list of texts as a model gives it."""
    listed = given if isinstance(given, list) else [given]
    return tuple(one.strip() for one in listed if isinstance(one, str) and one.strip())


def _entry(given: Any) -> Entry:
    used = given.get("used", True)
    if isinstance(used, str):
        used = used.strip().lower() in ("true", "yes", "1")
    name = tool_name(given.get("tool")) if used else ""
    return Entry(int(given["task_id"]), name, texts_of(given.get("entities")), str(given.get("reasoning", "")))


def schema(count: int, tools: Sequence[Tool], entities: bool) -> dict[str, Any]:
    """JSON schema of a plan with `count` entries."""
    text = {"type": "string", "maxLength": 300}
    properties: dict[str, Any] = {
        "task_id": {"type": "integer", "minimum": 1, "maximum": count},
        "used": {"type": "boolean"},
        "tool": {"enum": ["none", *(tool.name for tool in tools)]},
        **({"entities": {"type": "array", "items": text, "maxItems": 4}} if entities else {}),
        "reasoning": text,
    }
    entry = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"plan": {"type": "array", "items": entry, "minItems": count, "maxItems": count}},
        "required": ["plan"],
        "additionalProperties": False,
    }
