"""A list of what is in an image, told by a multimodal model: objects, their attributes, how they
relate.

The prompt depends on the image alone, so an image that many samples share is described once:
backends answer equal questions from their store, and ask those in flight once.
"""

from __future__ import annotations

import json

from vieval_plugin.judges.parsing import (
    Read,
    json_value,
    object_schema,
    read_answer,
    unread,
)
from vieval_plugin.judges.protocol import Asking, Chat, Message, Status
from vieval_plugin.judges.structured_chat import ChatRequest, ask_all, joined_steps
from vieval_plugin.judges.tools import Request, Tool, ToolOutcome, failed
from vieval_plugin.text.yaml_json import JsonObject

NAME = "scene_graph"
BACKBONE = "scene_graph"
_MAX_ITEMS = 40


def use(request: Request) -> Asking[ToolOutcome]:
    """A description of each image of the sub-question as JSON; the images stay as they are."""
    question = request.wording.questions[NAME]
    text = request.wording.render(question.template, {})
    as_asked = request.wording.is_enforced
    questions = []
    for role, image in request.images.items():
        message = Message("user", question.parts([image], text))
        chat = Chat(
            (message,),
            (*request.path, f"{NAME} {role}"),
            schema() if as_asked else None,
            max_tokens=1536,
            backbone=BACKBONE,
            stop_repeating=True,
        )
        questions.append(ChatRequest(chat, read if as_asked else read_freely))
    answers = yield from ask_all(questions, request.wording)
    graphs = {
        role: answer.value or ""
        for role, answer in zip(request.images, answers, strict=True)
    }
    lines = [
        f"Scene graph of the {role} picture: {graph}" for role, graph in graphs.items()
    ]
    return ToolOutcome(
        text="\n".join(lines),
        steps=joined_steps(answers),
        failure=failed([answer.final for answer in answers]),
        image_texts=graphs,
    )


def read(text: str) -> Read[str]:
    """The scene graph of a reply, as compact JSON of at most 40 objects and relations each."""
    properties: JsonObject = {"objects": {}, "relations": {}}
    try:
        graph, _ = read_answer(text, {**schema(), "properties": properties})
    except ValueError as error:
        return unread(error)
    if not all(isinstance(items, list) for items in graph.values()):
        return unread("objects and relations must be lists")
    shortened = {key: items[:_MAX_ITEMS] for key, items in graph.items()}
    return Read(Status.OK, json.dumps(shortened, ensure_ascii=False))


def read_freely(text: str) -> Read[str]:
    """The scene graph of a reply in whatever JSON the wording left it to choose."""
    try:
        graph, _ = json_value(text, "{[")
    except ValueError as error:
        return unread(error)
    if not graph:
        return unread("the JSON object or list is empty")
    return Read(Status.OK, json.dumps(graph, ensure_ascii=False))


def schema() -> JsonObject:
    """JSON schema of a scene graph."""
    text = {"type": "string", "maxLength": 60}
    attributes = {
        "type": "array",
        "items": text,
        "maxItems": 12,
    }
    items = {
        "objects": {"name": text, "attributes": attributes},
        "relations": dict.fromkeys(("subject", "relation", "object"), text),
    }
    properties = {
        key: {
            "type": "array",
            "items": object_schema(item),
            "maxItems": _MAX_ITEMS,
        }
        for key, item in items.items()
    }
    return object_schema(properties)


TOOL = Tool(
    NAME,
    description="lists the things in each picture with their attributes and relations. Of help "
    "when a question depends "
    "on several things, their number, their colours or how they stand to one another.",
    cost="a call of a multimodal model for each picture",
    note=(
        "A model listed what it saw in each picture. Use the lists as hints and check them "
        "against the pictures."
    ),
    use=use,
)
