"""Praise: what a critic likes in an image, and then how much. A judge of two steps that rates
SC.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vieval_plugin.judges.conversation import (
    Exchange,
    TrainingExample,
    TrainingUnit,
    final_chats,
)
from vieval_plugin.judges.parsing import Read, reply_schema
from vieval_plugin.judges.protocol import (
    Chat,
    Judge,
    Message,
    Program,
    Sample,
    SampleId,
    Status,
    Step,
    Verdict,
)
from vieval_plugin.judges.spec import Export, JudgeSpec, Needs, option, require_wording
from vieval_plugin.judges.structured_chat import ChatRequest, ask_all, score_request
from vieval_plugin.prompts.pack import Pack

KIND, STRICT = "kind", "strict"


@dataclass(frozen=True)
class PraiseOptions:
    """What can be set."""

    pack: str = option(
        str(Path(__file__).parent / "prompts" / "praise_v1"), "prompt pack", folder=True
    )
    points: int = option(2, "how many things the critic names", ge=1, le=5)


def build(options: PraiseOptions, wording: Pack, setting: str = KIND) -> Judge:
    """The judge: SC in [0, 1]; `strict` halves it."""
    require_wording(SPEC, wording, setting)

    def program(sample: Sample) -> Program:
        question = wording.questions["likes"]
        text = wording.render(
            question.template, {**sample.texts, "points": options.points}
        )
        first = Message(
            "user", (*(sample.images[role] for role in question.images), text)
        )
        chat = Chat((first,), ("praise", "likes"), _list_schema(options.points))
        [liked] = yield from ask_all([ChatRequest(chat, _read_list)], wording)
        if liked.value is None:
            return Verdict({}, liked.final.status, trace=liked.steps)
        said = Message("assistant", (liked.steps[-1].answer,))
        then = Message(
            "user", (wording.render(wording.questions["score"].template, {}),)
        )
        chat = Chat((first, said, then), ("praise", "score"), reply_schema(1))
        [scored] = yield from ask_all([score_request(chat)], wording)
        trace = (*liked.steps, *scored.steps)
        if scored.value is None:
            return Verdict({}, scored.final.status, trace=trace)
        share = 0.5 if setting == STRICT else 1.0
        return Verdict(
            {"SC": scored.value[0] / 10 * share},
            Status.OK,
            ", ".join(liked.value),
            trace,
        )

    return program


def _list_schema(count: int) -> dict[str, object]:
    like = {"type": "string", "maxLength": 80}
    likes = {"type": "array", "items": like, "minItems": count, "maxItems": count}
    return {
        "type": "object",
        "properties": {"likes": likes},
        "required": ["likes"],
        "additionalProperties": False,
    }


def _read_list(text: str) -> Read[tuple[str, ...]]:
    try:
        listed = json.loads(text)["likes"]
        return Read(Status.OK, tuple(str(one) for one in listed))
    except (ValueError, KeyError, TypeError):
        return Read(Status.PARSE_FAILURE, reason="no list under likes")


def titles(trace: Sequence[Step]) -> dict[tuple[str, ...], str]:
    """The step that all others belong to, in words."""
    return {("praise",): "what the critic likes"} if trace else {}


def units(identity: SampleId, found: Sequence[Exchange]) -> list[TrainingUnit]:
    """The whole conversation as one example."""
    chats = final_chats(found)
    if ("praise", "score") not in chats:
        return []
    chat, answer = chats["praise", "score"]
    messages = (*chat.messages, Message("assistant", (answer,)))
    example = TrainingExample(str(identity), "praise", messages, (1, 3))
    return [TrainingUnit("praise", "praise", None, (example,))]


SPEC = JudgeSpec(
    name="praise",
    title="Praise",
    aspects=("SC",),
    needs={"tig": Needs(("output",), ("prompt",))},
    options=PraiseOptions,
    build=build,
    settings=(KIND, STRICT),
    pack=lambda options, setting: options.pack,
    stepwise=True,
    titles=titles,
    export=Export(units),
)
