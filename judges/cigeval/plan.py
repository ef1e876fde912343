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
    number_schema,
    object_schema,
    reply_schema,
    unread,
)
from vieval_plugin.judges.protocol import (
    Asking,
    Chat,
    Image,
    Judge,
    Message,
    Sample,
    Scores,
    Status,
    Step,
    Trace,
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
    subject, *further_subjects = [
        str(sub_question.texts["subject"]) for sub_question in item
    ]
    if further_subjects:
        subject += f" (and likewise the {' and the '.join(further_subjects)})"
    return item[0].render(setup, form="plan", subject=subject)


def _plan_chat(
    items: Sequence[Sequence[SubQuestion]],
    images: Mapping[str, Image],
    setup: Setup,
) -> Chat:
    sub_question = items[0][0]
    question = setup.wording.questions[f"plan/{sub_question.kind}"]
    entities = setup.improves("named_entity")
    pictures = [role.replace("_", " ") for role in question.images]
    variables = {
        **sub_question.texts,
        "pictures": pictures,
        "questions": [_item_words(item, setup) for item in items],
        "tools": setup.tools,
        "entities": entities,
    }
    text = setup.wording.render(question.template, variables)
    shown = [images[role] for role in question.images]
    enforced = setup.enforced(schema(len(items), setup.tools, entities))
    return Chat(
        (Message("user", question.parts(shown, text)),),
        ("plan",),
        enforced,
    )


def plan(
    sub_questions: Sequence[SubQuestion],
    images: Mapping[str, Image],
    setup: Setup,
) -> Asking[tuple[dict[str, ToolChoice], Trace]]:
    """Ask for a plan over all images: what is chosen for each sub-question, and the plan's own
    steps.
    """
    if not setup.tools:
        return {sub_question.name: ToolChoice() for sub_question in sub_questions}, ()
    items = planned_items(sub_questions, setup)
    chat = _plan_chat(items, images, setup)
    [answer] = yield from ask_all([ChatRequest(chat, read_plan)], setup.wording)
    entries = {
        entry.task_id: _rename_tool(entry, setup) for entry in answer.value or ()
    }
    absence = "no entry" if answer.value is not None else "unreadable"
    choices = {}
    for number, item in enumerate(items, start=1):
        for sub_question in item:
            choice = _choose(
                sub_question,
                entries.get(number),
                absence,
                setup,
            )
            choices[sub_question.name] = choice
    return choices, answer.steps


def _rename_tool(entry: Entry, setup: Setup) -> Entry:
    """An entry whose tool has the registry's name, where the prompt pack calls it otherwise."""
    names = {tool_name(name): ours for name, ours in setup.wording.tools.items()}
    return replace(entry, tool=names.get(entry.tool, entry.tool))


_ABSENCES = {
    "unreadable": "the plan cannot be read",
    "no entry": "the plan has no entry for this question",
}


def _choose(
    sub_question: SubQuestion,
    entry: Entry | None,
    absence: str,
    setup: Setup,
) -> ToolChoice:
    """The tool of an entry, or none with what is wrong with it; `absence` says why there is no
    entry.
    """
    path = ("plan", sub_question.name)
    if entry is None:
        step = Step(
            path,
            Status.PARSE_FAILURE,
            reason=_ABSENCES[absence],
        )
        return ToolChoice(step=step, finding=f"plan: {absence}")
    step = Step(
        path,
        Status.OK,
        answer=entry.tool,
        reason=entry.reasoning,
    )
    if not entry.tool:
        return ToolChoice(step=step, finding="plan: no tool")
    tool = setup.tool(entry.tool)
    if tool is None:
        is_known = entry.tool in registry()
        problem = "was not offered" if is_known else "does not exist"
        finding = "tool not offered" if is_known else "unknown tool"
        reason = f"the tool {entry.tool[:60]!r} {problem}"
    elif reason := barred(tool, sub_question, setup):
        finding = "forbidden tool"
    else:
        entities = entry.entities if setup.improves("named_entity") else ()
        return ToolChoice(tool, entities, step, f"plan: {tool.name}")
    step = replace(step, status=Status.PARSE_FAILURE, reason=reason)
    return ToolChoice(step=step, finding=f"plan: {finding}")


def read_plan(text: str) -> Read[tuple[Entry, ...]]:
    """The entries of a plan: an object with a list under `plan`, or the list itself."""
    try:
        document, _ = json_value(text, "{[")
    except ValueError as error:
        return unread(error)
    raw_entries = document.get("plan") if isinstance(document, dict) else document
    if not isinstance(raw_entries, list):
        return unread("`plan` must be a list of entries")
    try:
        entries = tuple(_entry(plan_entry) for plan_entry in raw_entries)
    except (
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        AttributeError,
    ):
        return unread("each entry of the plan must be an object with a task_id")
    task_ids = {entry.task_id for entry in entries}
    tasks = {(entry.task_id, entry.tool, entry.entities) for entry in entries}
    if len(task_ids) < len(tasks):
        return unread("a task_id must not occur twice with different tools")
    return Read(Status.OK, entries, reason=f"{len(entries)} entries")


def tool_name(written: object) -> str:
    """A tool's name as a model writes it (`Scene Graph`), as the registry has it; empty for
    none.
    """
    text = "" if written is None else str(written)
    name = "_".join(text.lower().replace("-", " ").split())
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
    entities = texts_of(fields.get("entities"))
    reasoning = str(fields.get("reasoning", ""))
    return Entry(int(fields["task_id"]), name, entities, reasoning)


def tool_schema(tools: Sequence[Tool]) -> JsonObject:
    """JSON schema of the name of a tool, or `none`."""
    return {"type": "string", "enum": ["none", *(tool.name for tool in tools)]}


def schema(count: int, tools: Sequence[Tool], entities: bool) -> JsonObject:
    """JSON schema of a plan with `count` entries."""
    text = {"type": "string", "maxLength": 300}
    phrases = {"type": "array", "items": text, "maxItems": 4}
    properties = {
        "task_id": number_schema(1, count, "integer"),
        "used": {"type": "boolean"},
        "tool": tool_schema(tools),
        **({"entities": phrases} if entities else {}),
        "reasoning": text,
    }
    return object_schema(
        {
            "plan": list_schema(
                object_schema(properties),
                count,
                count,
            )
        }
    )


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
) -> Asking[tuple[Trace, Rate]]:
    choices, steps = yield from plan(sub_questions, images, setup)
    return steps, lambda sub_question: _rate(
        sub_question,
        choices[sub_question.name],
        sample,
        setup,
    )


def _rating_request(
    sub_question: SubQuestion,
    used: Tool | None,
    outcome: ToolOutcome,
    setup: Setup,
) -> ChatRequest[Scores]:
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
    answer_schema = reply_schema(
        1,
        SCALE,
        0,
        wording.keys_shown(question.template),
        wording.manifest.optional,
    )
    chat = Chat((message,), (sub_question.name, "rating"), enforced)
    return score_request(chat, answer_schema, as_shown=enforced is None)


def _rate(
    sub_question: SubQuestion,
    choice: ToolChoice,
    sample: Sample,
    setup: Setup,
) -> Asking[Rating]:
    """The tool and then the rating of a sub-question."""
    outcome = ToolOutcome()
    used: Tool | None = None
    findings = [choice.finding] if choice.finding else []
    if choice.tool and choice.tool.use:
        request = sub_question.request(
            (sub_question.name,),
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
