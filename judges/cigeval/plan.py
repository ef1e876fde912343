"""CIGEval's plan: which tool, if any, helps with which sub-question; and what is done with a bad
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from vieval_plugin.judges.cigeval.questions import (
    SCALE,
    Rate,
    Rating,
    Setup,
    SubQuestion,
    barred,
    program,
)
from vieval_plugin.judges.parsing import (
    Read,
    json_value,
    list_schema,
    object_schema,
    reply_schema,
)
from vieval_plugin.judges.protocol import (
    Asking,
    Chat,
    Image,
    Judge,
    Message,
    Sample,
    Status,
    Step,
)
from vieval_plugin.judges.structured_chat import ChatRequest, ask_all, score_request
from vieval_plugin.judges.tools import Tool, ToolOutcome, registry
from vieval_plugin.text.yaml_json import JsonObject

_NONE = frozenset({"", "none", "null", "no", "no_tool", "n/a"})


@dataclass(frozen=True)
class Entry:
    """Entry of a plan."""

    #: Number of the question.
    task_id: int
    #: Name of the tool; empty for none.
    tool: str
    #: Things to look for.
    entities: tuple[str, ...] = ()
    #: Reason for the choice.
    reasoning: str = ""


@dataclass(frozen=True)
class ToolChoice:
    """Tool chosen for a sub-question."""

    tool: Tool | None = None
    #: Things to look for.
    entities: tuple[str, ...] = ()
    #: Step of the choice.
    step: Step | None = None
    #: What is counted.
    finding: str = ""


def planned_items(
    sub_questions: Sequence[SubQuestion], setup: Setup
) -> list[list[SubQuestion]]:
    """The sub-questions of each entry of a plan: one, but by the released code two concepts
    share an entry.
    """
    shared = not setup.improves("plan_each_subject")
    items: dict[str, list[SubQuestion]] = {}
    for sub_question in sub_questions:
        name = sub_question.name
        if shared and name.startswith("concept_"):
            name = "concepts"
        items.setdefault(name, []).append(sub_question)
    return list(items.values())


def _item_words(item: Sequence[SubQuestion], setup: Setup) -> str:
    subjects = [str(sub_question.texts["subject"]) for sub_question in item]
    first, *further_subjects = subjects
    subject = first
    if further_subjects:
        subject = f"{first} (and likewise the {' and the '.join(further_subjects)})"
    return item[0].render(setup, form="plan", subject=subject)


def _plan_chat(
    items: Sequence[Sequence[SubQuestion]], images: Mapping[str, Image], setup: Setup
) -> Chat:
    sub_question = items[0][0]
    question = setup.wording.questions[f"plan/{sub_question.kind}"]
    entities = setup.improves("named_entity")
    pictures = [role.replace("_", " ") for role in question.images]
    item_words = [_item_words(item, setup) for item in items]
    variables = {
        **sub_question.texts,
        "pictures": pictures,
        "questions": item_words,
        "tools": setup.tools,
        "entities": entities,
    }
    text = setup.wording.render(question.template, variables)
    shown = [images[role] for role in question.images]
    message = Message("user", question.parts(shown, text))
    enforced = setup.enforced(schema(len(items), setup.tools, entities))
    return Chat((message,), ("plan",), enforced)


def plan(
    sub_questions: Sequence[SubQuestion], images: Mapping[str, Image], setup: Setup
) -> Asking[tuple[dict[str, ToolChoice], tuple[Step, ...]]]:
    """Ask for a plan over all images: what is chosen for each sub-question, and the plan's own
    steps.
    """
    if not setup.tools:
        return {sub_question.name: ToolChoice() for sub_question in sub_questions}, ()
    items = planned_items(sub_questions, setup)
    chat = _plan_chat(items, images, setup)
    [answer] = yield from ask_all([ChatRequest(chat, read_plan)], setup.wording)
    entries = {}
    for entry in answer.value or ():
        entries[entry.task_id] = _rename_tool(entry, setup)
    is_readable = answer.value is not None
    choices = {}
    for number, item in enumerate(items, start=1):
        item_entry = entries.get(number)
        for sub_question in item:
            choice = _choose(sub_question, item_entry, is_readable, setup)
            choices[sub_question.name] = choice
    return choices, answer.steps


def _rename_tool(entry: Entry, setup: Setup) -> Entry:
    """An entry whose tool has the registry's name, where the prompt pack calls it otherwise."""
    names = {}
    for name, ours in setup.wording.tools.items():
        names[tool_name(name)] = ours
    return replace(entry, tool=names.get(entry.tool, entry.tool))


def _choose(
    sub_question: SubQuestion, entry: Entry | None, readable: bool, setup: Setup
) -> ToolChoice:
    """The tool of an entry, or none with what is wrong with it."""
    path = ("plan", sub_question.name)

    def failed_choice(status: Status, reason: str, finding: str) -> ToolChoice:
        return ToolChoice(
            step=Step(
                path,
                status,
                answer=entry.tool if entry else "",
                reason=reason,
            ),
            finding=finding,
        )

    if entry is None:
        if not readable:
            return failed_choice(
                Status.PARSE_FAILURE,
                "the plan cannot be read",
                "plan: unreadable",
            )
        return failed_choice(
            Status.PARSE_FAILURE,
            "the plan has no entry for this question",
            "plan: no entry",
        )
    if not entry.tool:
        return failed_choice(Status.OK, entry.reasoning, "plan: no tool")
    tool = setup.tool(entry.tool)
    if tool is None:
        problem = "does not exist"
        finding = "plan: unknown tool"
        if entry.tool in registry():
            problem = "was not offered"
            finding = "plan: tool not offered"
        reason = f"the tool {entry.tool[:60]!r} {problem}"
        return failed_choice(Status.PARSE_FAILURE, reason, finding)
    why = barred(tool, sub_question, setup)
    if why:
        return failed_choice(Status.PARSE_FAILURE, why, "plan: forbidden tool")
    entities = entry.entities if setup.improves("named_entity") else ()
    step = Step(
        path,
        Status.OK,
        answer=tool.name,
        reason=entry.reasoning,
    )
    return ToolChoice(tool, entities, step, f"plan: {tool.name}")


def read_plan(text: str) -> Read[tuple[Entry, ...]]:
    """The entries of a plan: an object with a list under `plan`, or the list itself."""
    try:
        document, _ = json_value(text, "{[")
    except ValueError as error:
        return Read(Status.PARSE_FAILURE, reason=str(error))
    raw_entries = document.get("plan") if isinstance(document, dict) else document
    if not isinstance(raw_entries, list):
        return Read(Status.PARSE_FAILURE, reason="`plan` must be a list of entries")
    try:
        entries = tuple(_entry(plan_entry) for plan_entry in raw_entries)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return Read(
            Status.PARSE_FAILURE,
            reason="each entry of the plan must be an object with a task_id",
        )
    task_ids = {entry.task_id for entry in entries}
    tasks = {(entry.task_id, entry.tool, entry.entities) for entry in entries}
    if len(task_ids) < len(tasks):
        return Read(
            Status.PARSE_FAILURE,
            reason="a task_id must not occur twice with different tools",
        )
    return Read(Status.OK, entries, reason=f"{len(entries)} entries")


def tool_name(written: object) -> str:
    """A tool's name as a model writes it (`Scene Graph`), as the registry has it; empty for
    none.
    """
    text = "" if written is None else str(written)
    words = text.lower().replace("-", " ").split()
    name = "_".join(words)
    return "" if name in _NONE else name


def texts_of(written: object) -> tuple[str, ...]:
    """A text or a list of texts as a model gives it."""
    texts = written if isinstance(written, list) else [written]
    stripped = (text.strip() for text in texts if isinstance(text, str))
    return tuple(filter(None, stripped))


def _entry(fields: Any) -> Entry:
    used = fields.get("used", True)
    if isinstance(used, str):
        used = used.strip().lower() in ("true", "yes", "1")
    name = tool_name(fields.get("tool")) if used else ""
    task_id = int(fields["task_id"])
    entities = texts_of(fields.get("entities"))
    reasoning = str(fields.get("reasoning", ""))
    return Entry(task_id, name, entities, reasoning)


def schema(count: int, tools: Sequence[Tool], entities: bool) -> JsonObject:
    """JSON schema of a plan with `count` entries."""
    text = {"type": "string", "maxLength": 300}
    tool_names = ["none", *(tool.name for tool in tools)]
    properties: JsonObject = {
        "task_id": {
            "type": "integer",
            "minimum": 1,
            "maximum": count,
        }
    }
    properties["used"] = {"type": "boolean"}
    properties["tool"] = {"type": "string", "enum": tool_names}
    if entities:
        properties["entities"] = {
            "type": "array",
            "items": text,
            "maxItems": 4,
        }
    properties["reasoning"] = text
    entries = list_schema(object_schema(properties), count, count)
    return object_schema({"plan": entries})


def judge(setup: Setup) -> Judge:
    """The judge that plans.

    SC is the lowest sub-score over 10, in [0, 1]. `findings` has what was planned for each
    sub-question and which tools failed.
    """
    return partial(program, setup=setup, begin=_begin)


def _begin(
    sub_questions: Sequence[SubQuestion],
    images: Mapping[str, Image],
    sample: Sample,
    setup: Setup,
) -> Asking[tuple[tuple[Step, ...], Rate]]:
    choices, steps = yield from plan(sub_questions, images, setup)
    return steps, lambda sub_question: _rate(
        sub_question,
        choices[sub_question.name],
        sample,
        setup,
    )


def _rating_request(
    sub_question: SubQuestion, used: Tool | None, outcome: ToolOutcome, setup: Setup
) -> ChatRequest[tuple[float, ...]]:
    """The question for a rating, with what a tool found."""
    tool = used or Tool("")
    text = sub_question.render(
        setup,
        form="rating",
        note=tool.note,
        found=outcome.text,
        tool=tool.name,
        told=list(outcome.image_texts.values()),
    )
    question = sub_question.question
    images = {**sub_question.images, **outcome.images}
    message = Message("user", question.parts(images.values(), text))
    wording = setup.wording
    enforced = setup.enforced(reply_schema(1))
    keys = wording.keys_shown(question.template)
    answer_schema = reply_schema(
        1,
        SCALE,
        0,
        keys,
        wording.manifest.optional,
    )
    chat = Chat((message,), (sub_question.name, "rating"), enforced)
    return score_request(chat, answer_schema, as_shown=enforced is None)


def _rate(
    sub_question: SubQuestion, choice: ToolChoice, sample: Sample, setup: Setup
) -> Asking[Rating]:
    """The tool and then the rating of a sub-question."""
    outcome = ToolOutcome()
    used: Tool | None = None
    findings = [choice.finding] if choice.finding else []
    if choice.tool is not None and choice.tool.use is not None:
        path = (sub_question.name,)
        request = sub_question.request(
            path,
            choice.entities,
            sample,
            setup,
        )
        outcome = yield from choice.tool.use(request)
        if outcome.failure:
            findings.append(f"tool failed: {choice.tool.name}")
            outcome = ToolOutcome(steps=outcome.steps)
        else:
            used = choice.tool
    question = _rating_request(sub_question, used, outcome, setup)
    [answer] = yield from ask_all([question], setup.wording)
    steps = [choice.step] if choice.step else []
    steps += [*outcome.steps, *answer.steps]
    return answer, steps, [*findings, *answer.findings]
