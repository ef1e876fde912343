"""A model of T2I-Eval by script: it knows what is in the pictures, answers every question of both
modes from that.

It looks a sample up by the text of the prompt (extractions, evaluations) or by the bytes of the
picture (answers), and reads the question out of the conversation, as a model would.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.playing import images_of, label_of, text_of
from vieval_plugin.judges.protocol import (
    Ask,
    Chat,
    Image,
    Message,
    Reply,
    Sample,
    SampleId,
    Text,
)
from vieval_plugin.judges.t2i_eval.structure import Attribute, Entity, Relation


@dataclass(frozen=True)
class Scene:
    """A prompt, its right structure, and the score of its picture in every question."""

    prompt: str
    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...] = ()
    quality: float = 7.0
    drawn: bytes = b""

    @property
    def picture(self) -> Image:
        return Image(self.drawn or b"picture of " + self.prompt.encode())

    @property
    def sample(self) -> Sample:
        identity = SampleId("own", "tig", "m", self.prompt[:12])
        return Sample(identity, {"output": self.picture}, {"prompt": self.prompt})

    @property
    def counts(self) -> tuple[int, int, int]:
        """Questions of appearance, of attributes, of relations."""
        attributes = sum(len(entity.attributes) for entity in self.entities)
        return len(self.entities), attributes, len(self.relations)


def entity(name: str, quantity: str = "unspecified", **attributes: str) -> Entity:
    held = {"existence": "yes", "quantity": quantity, **attributes}
    return Entity(name, tuple(Attribute(k, v) for k, v in held.items()))


def extraction_json(scene: Scene, captions: bool) -> str:
    """The right extraction, as JSON in the asked shape."""
    asked = lambda entity, one: f"What is the {one.name} of the {entity.name}?"
    entities = []
    for e in scene.entities:
        described = {"name": e.name}
        described |= {"caption": f"a {e.name} seen"} if captions else {}
        described["appearance_question"] = f"Does the {e.name} look real?"
        described["attributes"] = [
            {"name": a.name, "value": a.value, "question": asked(e, a)}
            for a in e.attributes
        ]
        entities.append(described)
    relations = []
    for r in scene.relations:
        question = f"How do {' and '.join(r.entities)} relate?"
        named = {"entities": list(r.entities), "value": r.value}
        relations.append({**named, "question": question})
    return json.dumps({"entities": entities, "relations": relations})


@dataclass
class Script:
    """Replies to every chat of the judge; `faults` maps a label to the reply given instead."""

    scenes: tuple[Scene, ...]
    faults: dict[str, str] = field(default_factory=dict)
    chats: list[Chat] = field(default_factory=list)

    def __call__(self, ask: Ask) -> Reply:
        assert isinstance(ask, Chat)
        self.chats.append(ask)
        if label_of(ask) in self.faults:
            return Text(self.faults[label_of(ask)])
        return Text(self.answer(ask))

    def answer(self, ask: Chat) -> str:
        label = label_of(ask)
        if label == "extraction":
            captions = any(isinstance(p, Image) for p in ask.messages[0].parts)
            return extraction_json(self._by_prompt(ask), captions)
        if label in ("answers", "evaluation"):
            return self._whole(ask)
        stage = label.rsplit("/", 1)[1]
        if stage == "score":
            # a model that agrees with what it explained before: the number is in its own
            # explanation
            said = json.loads(str(ask.messages[-2].parts[0]))["explanation"]
            return json.dumps({"score": float(re.search(r"worth ([\d.]+)", said)[1])})  # type: ignore[index]
        if stage == "quality":
            return json.dumps({"reasoning": "close", "score": 4})
        key = "answer" if stage == "answer" else "explanation"
        scene = self._by_picture(ask) or self._by_prompt(ask)
        worth = scene.quality - (1 if label.startswith("appearance") else 0)
        said = f"{label} is worth {worth:g}"
        both: dict[str, Any] = {key: said}
        if stage == "judgement":
            seen = {} if label.startswith("appearance") else {"answer": "seen"}
            both = {**seen, "explanation": said, "score": worth}
        return json.dumps(both)

    def _whole(self, ask: Chat) -> str:
        """An answer under every name that the schema asks for."""
        assert ask.schema is not None
        scene = self._by_picture(ask) or self._by_prompt(ask)
        reply: dict[str, object] = {}
        for name, part in ask.schema["properties"].items():
            values = {"answer": f"{name} seen", "explanation": f"{name} explained"}
            values["score"] = scene.quality
            whole = f"{name} of the picture"
            asked = part.get("properties")
            reply[name] = {key: values[key] for key in asked} if asked else whole
        return json.dumps(reply)

    def _by_prompt(self, ask: Chat) -> Scene:
        words = text_of(ask)
        return next(scene for scene in self.scenes if scene.prompt in words)

    def _by_picture(self, ask: Chat) -> Scene | None:
        shown = images_of(ask)
        return next((scene for scene in self.scenes if scene.picture in shown), None)


def over_http(model: Script) -> Callable[[dict[str, Any]], str]:
    """The same model behind a server, which labels a request by its schema."""

    def reply(request: dict[str, Any]) -> str:
        parts = lambda message: tuple(map(_part, _parts(message["content"])))
        messages = tuple(Message(m["role"], parts(m)) for m in request["messages"])
        schema = request["response_format"]["json_schema"]["schema"]
        if "probe" in schema["properties"]:
            return '{"probe": "vieval"}'
        label = tuple(_label(schema["properties"], messages).split("/"))
        return model.answer(Chat(messages, label, schema))

    return reply


def _parts(content: Any) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _part(part: dict[str, Any]) -> str | Image:
    if part["type"] == "text":
        return str(part["text"])
    return Image(base64.b64decode(part["image_url"]["url"].split(",", 1)[1]))


def _label(asked: dict[str, Any], messages: tuple[Message, ...]) -> str:
    if "entities" in asked:
        return "extraction"
    if any(name.startswith("question_") for name in asked):
        return "answers"
    if set(asked) == {"reasoning", "score"}:
        return "overall/quality"
    looks = "how good something in it looks" in str(messages[0].parts[-1])
    kind = "appearance" if looks else "intrinsic"
    stage = "judgement" if len(asked) > 1 else next(iter(asked))
    return f"{kind}/1/{stage}"
