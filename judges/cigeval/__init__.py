"""CIGEval: an agent that plans which tool helps with which sub-question, and rates each on what the
tool shows.

Source: Wang et al., A Unified Agentic Framework for Evaluating Conditional Image Generation (2025).
What it does is what the released code does; departures from it have names (see
questions.CIGEvalOptions). It rates semantic consistency only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vieval_plugin.judges import tools
from vieval_plugin.judges.cigeval import plan, react
from vieval_plugin.judges.cigeval.questions import IMPROVEMENTS, CIGEvalOptions, Setup
from vieval_plugin.judges.conversation import (
    Exchange,
    TrainingExample,
    TrainingUnit,
    final_chats,
)
from vieval_plugin.judges.protocol import Judge, Message, SampleId
from vieval_plugin.judges.spec import Export, JudgeSpec, Needs, require_wording
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.text.errors import VievalError, install_advice

__all__ = ["IMPROVEMENTS", "SPEC", "CIGEvalOptions", "build"]

PLAIN = "paper"
REACT = "react"
_PLANNED_BY_US = frozenset(("named_entity", "plan_each_subject"))


def build(options: CIGEvalOptions, wording: Pack, setting: str = PLAIN) -> Judge:
    """CIGEval with a prompt pack: with a plan (`paper`), with turns (`react`), or with a plan and
    without a tool (`no_<tool>`).

    SC is the lowest sub-score over 10, in [0, 1]. `findings` has what was planned or called, and
    which tools failed.

    Raises:
        VievalError: the options or the pack name an unknown tool, the options change a plan that
            the pack words itself, or a package that a tool needs is not installed.
    """
    require_wording(SPEC, wording, REACT if setting == REACT else PLAIN)
    _require_known(options, wording)
    used = _offered(options, setting)
    advice = install_advice("tools")
    tools.require(used, f"{advice}, or add it to the option judges.{SPEC.name}.removed")
    setup = Setup(wording, options, used)
    return react.judge(setup) if setting == REACT else plan.judge(setup)


def _require_known(options: CIGEvalOptions, wording: Pack) -> None:
    _require_tools(f"judges.{SPEC.name}.removed", options.removed)
    _require_tools(f"prompt pack {wording.name}: tools", wording.tools.values())
    unworded = _PLANNED_BY_US & set(options.improvements)
    if wording.tools and unworded:
        improvement = min(unworded)
        raise VievalError(
            f"judges.{SPEC.name}.improvements: {improvement} does not apply to prompt "
            f"pack {wording.name}, which has its own wording of the plan; remove it, "
            "or use another pack"
        )


def _require_tools(where: str, names: Iterable[str]) -> None:
    tool_names = [tool.name for tool in tools.planned()]
    for name in names:
        if name not in tool_names:
            known_tools = ", ".join(tool_names)
            raise VievalError(
                f"{where}: unknown tool {name!r}; known tools: {known_tools}"
            )


def _offered(options: CIGEvalOptions, setting: str) -> tuple[tools.Tool, ...]:
    excluded = {*options.removed, setting.removeprefix("no_")}
    return tuple(tool for tool in tools.planned() if tool.name not in excluded)


def units(identity: SampleId, exchanges: Sequence[Exchange]) -> list[TrainingUnit]:
    """An example a conversation, with loss on every turn of the model's.

    A conversation that goes on in another is part of that one and no example of its own.
    """
    conversations = {}
    for path, (chat, answer) in final_chats(exchanges).items():
        conversations[path] = (*chat.messages, Message("assistant", (answer,)))
    training_units = []
    for path, messages in conversations.items():
        if any(_continues(longer, messages) for longer in conversations.values()):
            continue
        trained = []
        for index, message in enumerate(messages):
            if message.role == "assistant":
                trained.append(index)
        name = f"{identity}/{'/'.join(path)}"
        sub_task = path[-1]
        example = TrainingExample(
            name,
            sub_task,
            messages,
            tuple(trained),
        )
        training_units.append(TrainingUnit(sub_task, sub_task, None, (example,)))
    return training_units


def _continues(longer: Sequence[Message], messages: Sequence[Message]) -> bool:
    count = len(messages)
    return len(longer) > count and longer[:count] == messages


SPEC = JudgeSpec(
    name="cigeval",
    title="CIGEval",
    aspects=("SC",),
    method="a plan of image tools, then ratings that use their results",
    needs={
        "tig": Needs(("output",), ("prompt",)),
        "mie": Needs(("source", "output"), ("instruction",)),
        "tie": Needs(("source", "output"), ("instruction",)),
        "sdig": Needs(("subject", "output"), ("prompt",)),
        "sdie": Needs(("source", "subject", "output")),
        "mcic": Needs(
            (("concepts", "concept_1"), ("concepts", "concept_2"), "output"),
            ("prompt",),
        ),
        "cig": Needs(("control", "output"), ("prompt",)),
    },
    options=CIGEvalOptions,
    build=build,
    settings=(PLAIN, REACT, *(f"no_{tool.name}" for tool in tools.planned())),
    pack=lambda options, setting: options.pack,
    uses_tools=lambda options, setting: bool(_offered(options, setting)),
    calls=lambda options, setting: "2 to 4" if setting != REACT else "2 or more",
    rounds=lambda options, setting: 2,
    setting_labels=lambda options, setting: (setting, *sorted(options.improvements)),
    stepwise=True,
    export=Export(units, human_aspect="SC"),
)
