"""CIGEval's second form: for each sub-question the model itself calls tools, over several turns,
before it rates.

Source: Wang et al., A Unified Agentic Framework for Evaluating Conditional Image Generation (2025):
thought, action, observation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from vieval_plugin.judges.cigeval.plan import texts_of, tool_name, tool_schema
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
    list_schema,
    number_schema,
    object_schema,
    read_answer,
    reasoned,
    unread,
)
from vieval_plugin.judges.protocol import (
    Asking,
    Chat,
    Image,
    Judge,
    Message,
    Path,
    Sample,
    Schema,
    Scores,
    Status,
    Step,
    Trace,
)
from vieval_plugin.judges.structured_chat import (
    ChatRequest,
    StructuredChatOutcome,
    ask_all,
)
from vieval_plugin.judges.tools import Tool, ToolOutcome, failed, registry
from vieval_plugin.text.yaml_json import JsonObject

#: Tool calls for a sub-question.
TURNS = 3


@dataclass(frozen=True)
class Action:
    """Action of the model in a turn: use a tool, or give its score."""

    #: Name of the tool; empty for a score.
    tool: str = ""
    #: Things to look for.
    phrases: tuple[str, ...] = ()
    scores: Scores = ()


@dataclass
class _Conversation:
    sub_question: SubQuestion
    sample: Sample
    setup: Setup
    #: Turns so far.
    messages: list[Message]
    #: Steps so far.
    steps: list[Step]
    #: What is counted.
    findings: list[str]


def judge(setup: Setup) -> Judge:
    """CIGEval without a plan: each sub-question is a conversation of at most `TURNS` tool calls and
    a rating.

    SC is the lowest sub-score over 10, in [0, 1]. `findings` has the tools that were called and the
    calls that were bad.
    """
    return partial(program, setup=setup, begin=_begin)


def _begin(
    sub_questions: Sequence[SubQuestion],
    images: Mapping[str, Image],
    sample: Sample,
    setup: Setup,
) -> Asking[tuple[Trace, Rate]]:
    yield from ()
    return (), lambda sub_question: _converse(sub_question, sample, setup)


def _converse(
    sub_question: SubQuestion, sample: Sample, setup: Setup
) -> Asking[Rating]:
    """Turns until the model rates, or its tool calls are used up and it must."""
    tools = [
        tool
        for tool in setup.tools
        if not barred(
            tool,
            sub_question,
            setup,
        )
    ]
    turns = TURNS if tools else 0
    text = sub_question.render(
        setup,
        form="react",
        tools=tools,
        turns=turns,
    )
    pictures = sub_question.images.values()
    opening = Message("user", sub_question.question.parts(pictures, text))
    talk = _Conversation(
        sub_question,
        sample,
        setup,
        messages=[opening],
        steps=[],
        findings=[],
    )
    for turn in range(1, turns + 2):
        calls_left = turns + 1 - turn
        path = (sub_question.name, f"turn {turn}")
        turn_schema = schema(tools if calls_left else ())
        chat = Chat(tuple(talk.messages), path, turn_schema)
        request = ChatRequest(chat, _reader(turn_schema, bool(calls_left)))
        [answer] = yield from ask_all([request], setup.wording)
        talk.steps += answer.steps
        talk.findings += answer.findings
        did = answer.value
        if not did or not did.tool:
            break
        observation = yield from _observe(
            did,
            path,
            calls_left - 1,
            talk,
        )
        talk.messages += [_action_message(answer), observation]
    scores = did.scores if did else None
    return StructuredChatOutcome(scores, answer.steps), talk.steps, talk.findings


def _action_message(answer: StructuredChatOutcome[Action]) -> Message:
    usable = (step.answer for step in reversed(answer.steps) if step.status.usable)
    return Message("assistant", (next(usable),))


def _observe(
    did: Action, path: Path, calls_left: int, talk: _Conversation
) -> Asking[Message]:
    """Use a tool, and put what it found into a message."""
    observed = yield from _act(did, path, talk)
    failure = observed.failure
    variables = {
        "problem": failure.reason if failure else "",
        "note": "" if failure else registry()[did.tool].note,
        "found": observed.text,
        "pictures": [role.replace("_", " ") for role in observed.images],
        "left": calls_left,
    }
    wording = talk.setup.wording
    question = wording.questions["observation"]
    text = wording.render(question.template, variables)
    return Message("user", question.parts(observed.images.values(), text))


def _act(did: Action, path: Path, talk: _Conversation) -> Asking[ToolOutcome]:
    """Outcome of the tool, or why it could not be used."""
    tool = talk.setup.tool(did.tool)
    problem = barred(tool, talk.sub_question, talk.setup) if tool else ""
    if tool is None or tool.use is None or problem:
        reason = problem or f"unknown tool {did.tool[:60]!r}"
        talk.findings.append(
            "action: forbidden tool" if problem else "action: unknown tool"
        )
        step = Step(
            (*path, "action"),
            Status.PARSE_FAILURE,
            (),
            did.tool,
            reason,
        )
        talk.steps.append(step)
        return ToolOutcome(failure=failed([step]))
    talk.findings.append(f"action: {tool.name}")
    request = talk.sub_question.request(
        path,
        did.phrases,
        talk.sample,
        talk.setup,
    )
    outcome = yield from tool.use(request)
    if outcome.failure:
        talk.findings.append(f"tool failed: {tool.name}")
    talk.steps += outcome.steps
    return outcome


def _reader(turn_schema: Schema, may_use_tools: bool) -> Callable[[str], Read[Action]]:
    # a tool that does not exist is told to the model, and so is one that it may not use
    properties = {**turn_schema["properties"], "tool": {}}

    def read(text: str) -> Read[Action]:
        try:
            fields, exact = read_answer(text, {**turn_schema, "properties": properties})
        except ValueError as error:
            return unread(error)
        name = tool_name(fields["tool"])
        scores = tuple(fields["score"])
        reasoning = fields["reasoning"]
        if name and may_use_tools:
            action = Action(name, texts_of(fields["phrases"]))
            return Read(Status.OK, action, reason=fields["thought"])
        if name or not scores or not reasoning.strip():
            return unread("expected a tool, or a score with its reasoning")
        return reasoned(Action(scores=scores), scores, reasoning, exact)

    return read


def schema(tools: Sequence[Tool]) -> JsonObject:
    """JSON schema of a turn: a call of one of the tools or, with the tool `none`, a score."""
    text = {"type": "string", "maxLength": 600}
    properties = {
        "thought": text,
        "tool": tool_schema(tools),
        "phrases": {"type": "array", "items": text, "maxItems": 4},
        "score": list_schema(
            number_schema(0, SCALE),
            0 if tools else 1,
            1,
        ),
        "reasoning": text,
    }
    return object_schema(properties)
