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
from vieval_plugin.judges.parsing import Read, json_value, object_schema, reply_schema
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
        items.setdefault(
            "concepts"
            if shared and sub_question.name.startswith("concept_")
            else sub_question.name,
            [],
        ).append(sub_question)
    return list(items.values())


def _item_words(item: Sequence[SubQuestion], setup: Setup) -> str:
    first, *further_subjects = (
        str(sub_question.texts["subject"]) for sub_question in item
    )
    subject = (
        f"{first} (and likewise the {' and the '.join(further_subjects)})"
        if further_subjects
        else first
    )
    return item[0].render(setup, form="plan", subject=subject)


def _plan_chat(
    items: Sequence[Sequence[SubQuestion]], images: Mapping[str, Image], setup: Setup
) -> Chat:
    sub_question = items[0][0]
    question = setup.wording.questions[f"plan/{sub_question.kind}"]
    entities = setup.improves("named_entity")
    text = setup.wording.render(
        question.template,
        {
            **sub_question.texts,
            "pictures": [role.replace("_", " ") for role in question.images],
            "questions": [_item_words(item, setup) for item in items],
            "tools": setup.tools,
            "entities": entities,
        },
    )
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
    entries = {
        entry.task_id: _rename_tool(entry, setup) for entry in answer.value or ()
    }
    choices = {}
    for sub_question in sub_questions:
        number = next(
            number for number, item in enumerate(items, start=1) if sub_question in item
        )
        choices[sub_question.name] = _choose(
            sub_question, entries.get(number), answer.value is not None, setup
        )
    return choices, answer.steps


def _rename_tool(entry: Entry, setup: Setup) -> Entry:
    """An entry whose tool has the registry's name, where the prompt pack calls it otherwise."""
    names = {tool_name(name): ours for name, ours in setup.wording.tools.items()}
    return replace(entry, tool=names.get(entry.tool, entry.tool))


def _choose(
    sub_question: SubQuestion, entry: Entry | None, readable: bool, setup: Setup
) -> ToolChoice:
    """The tool of an entry, or none with what is wrong with it."""
    path = ("plan", sub_question.name)

    def failed_choice(status: Status, reason: str, finding: str) -> ToolChoice:
        return ToolChoice(
            step=Step(path, status, answer=entry.tool if entry else "", reason=reason),
            finding=finding,
        )

    if entry is None:
        if not readable:
            return failed_choice(
                Status.PARSE_FAILURE, "the plan could not be read", "plan: unreadable"
            )
        return failed_choice(
            Status.PARSE_FAILURE,
            "the plan has no entry for this question",
            "plan: no entry",
        )
    if not entry.tool:
        return failed_choice(Status.OK, entry.reasoning, "plan: no tool")
    tool = next((tool for tool in setup.tools if tool.name == entry.tool), None)
    if tool is None:
        registered = entry.tool in registry()
        reason = f"the tool {entry.tool[:60]!r} {'was not offered' if registered else 'does not exist'}"
        return failed_choice(
            Status.PARSE_FAILURE,
            reason,
            f"plan: {'tool not offered' if registered else 'unknown tool'}",
        )
    if why := barred(tool, sub_question, setup):
        return failed_choice(Status.PARSE_FAILURE, why, "plan: forbidden tool")
    entities = entry.entities if setup.improves("named_entity") else ()
    step = Step(path, Status.OK, answer=tool.name, reason=entry.reasoning)
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
    if len({entry.task_id for entry in entries}) < len(
        {(entry.task_id, entry.tool, entry.entities) for entry in entries}
    ):
        return Read(
            Status.PARSE_FAILURE, reason="a task_id occurs twice with different tools"
        )
    return Read(Status.OK, entries, reason=f"{len(entries)} entries")


def tool_name(written: object) -> str:
    """A tool's name as a model writes it (`Scene Graph`), as the registry has it; empty for
    none.
    """
    name = "_".join(
        str(written if written is not None else "")
        .strip()
        .lower()
        .replace("-", " ")
        .split()
    )
    return "" if name in _NONE else name


def texts_of(written: object) -> tuple[str, ...]:
    """A text or a list of texts as a model gives it."""
    texts = written if isinstance(written, list) else [written]
    return tuple(
        text.strip() for text in texts if isinstance(text, str) and text.strip()
    )


def _entry(fields: Any) -> Entry:
    used = fields.get("used", True)
    if isinstance(used, str):
        used = used.strip().lower() in ("true", "yes", "1")
    name = tool_name(fields.get("tool")) if used else ""
    return Entry(
        int(fields["task_id"]),
        name,
        texts_of(fields.get("entities")),
        str(fields.get("reasoning", "")),
    )


def schema(count: int, tools: Sequence[Tool], entities: bool) -> JsonObject:
    """JSON schema of a plan with `count` entries."""
    text = {"type": "string", "maxLength": 300}
    properties: JsonObject = {
        "task_id": {"type": "integer", "minimum": 1, "maximum": count},
        "used": {"type": "boolean"},
        "tool": {"type": "string", "enum": ["none", *(tool.name for tool in tools)]},
        **(
            {"entities": {"type": "array", "items": text, "maxItems": 4}}
            if entities
            else {}
        ),
        "reasoning": text,
    }
    entries = {
        "type": "array",
        "items": object_schema(properties),
        "minItems": count,
        "maxItems": count,
    }
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
        sub_question, choices[sub_question.name], sample, setup
    )


def _rating_request(
    sub_question: SubQuestion, used: Tool | None, outcome: ToolOutcome, setup: Setup
) -> ChatRequest[tuple[float, ...]]:
    """The question for a rating, with what a tool found."""
    text = sub_question.render(
        setup,
        form="rating",
        note=used.note if used else "",
        found=outcome.text,
        tool=used.name if used else "",
        told=list(outcome.image_texts.values()),
    )
    question = sub_question.question
    images = {**sub_question.images, **outcome.images}
    message = Message("user", question.parts(images.values(), text))
    wording = setup.wording
    enforced = setup.enforced(reply_schema(1))
    keys = wording.keys_shown(question.template)
    answer_schema = reply_schema(1, SCALE, 0, keys, wording.manifest.optional)
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
        outcome = yield from choice.tool.use(
            sub_question.request((sub_question.name,), choice.entities, sample, setup)
        )
        if outcome.failure:
            findings.append(f"tool failed: {choice.tool.name}")
            outcome = ToolOutcome(steps=outcome.steps)
        else:
            used = choice.tool
    request = _rating_request(sub_question, used, outcome, setup)
    [answer] = yield from ask_all([request], setup.wording)
    planned = (choice.step,) if choice.step else ()
    return (
        answer,
        (*planned, *outcome.steps, *answer.steps),
        (*findings, *answer.findings),
    )
