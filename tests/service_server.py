"""A server that behaves as a hosted model, gateway or server was reported to: rules as data over
the fake server.

A rule has the requests that it is about (`if`), how often it holds (`times`), and what they get: a
`status` with a `body` or `text`, or an `answer`, whose fields replace those of the only choice.
`image` is about questions with images less those of the sight check, which `any_image` has too.
"""

import json
from collections import Counter
from pathlib import Path

from aiohttp import web

from tests.fake_server import FakeServer, colour_asked_for, completion, read_request
from vieval_plugin.backends.http.sight import QUESTION

FILE = Path(__file__).with_name("backends") / "service_behaviours.jsonl"
BEHAVIOURS = [*map(json.loads, FILE.read_text().splitlines())]
STRICT = {"$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "exclusiveMaximum",
          "exclusiveMinimum", "format", "items", "maximum", "maxItems", "minimum", "minItems", "multipleOf", "pattern",
          "properties", "required", "title", "type"}  # fmt: skip


class ServiceServer(FakeServer):
    """A fake server under rules; it keeps the requests that it was sent."""

    def __init__(self, rules, **settings):
        super().__init__(**settings)
        self.rules, self.asked, self._times = rules, [], Counter()

    async def _counted(self, http):
        raw = await http.read()
        request, prompt = read_request(raw)
        self.asked.append(request)
        reply = completion(self.settings, request, prompt)
        if colour := colour_asked_for(raw):
            reply["choices"][0]["message"]["content"] = colour
        for number, rule in enumerate(self.rules):
            is_due = self._times[number] < rule.get("times", 1 << 30)
            if is_due and meets(request, rule.get("if", {})):
                self._times[number] += 1
                return response(rule, reply)
        return streamed(reply) if request.get("stream") else web.json_response(reply)


def streamed(reply):
    """A reply as server-sent events, with its usage in the last."""
    [choice] = reply["choices"]
    said = filter(None, choice["message"]["content"].partition(" "))
    deltas = [{"index": 0, "delta": {"content": piece}} for piece in said]
    kept = {name: choice[name] for name in ("finish_reason", "logprobs")}
    deltas.append({"index": 0, "delta": {}, **kept})
    events = [{"choices": [delta]} for delta in deltas]
    events.append({"choices": [], "usage": reply["usage"]})
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    whole = f"{text}data: [DONE]\n\n"
    return web.Response(text=whole, content_type="text/event-stream")


def meets(request, condition):
    """Return whether a request is one that a condition is about."""
    messages = json.dumps(request["messages"])
    field, most = condition.get("above", ("", 0))
    limit, least = condition.get("below", ("", 0))
    given = request.get(limit, request.get("max_completion_tokens", 0)) if limit else 0
    has_image = "image_url" in messages
    is_question = has_image and QUESTION not in messages
    return all(
        (
            condition.get("has") is None or condition["has"] in request,
            condition.get("lacks") is None or condition["lacks"] not in request,
            not field or request.get(field, 0) > most,
            not limit or given < least,
            condition.get("words", "") in messages,
            not condition.get("image") or is_question,
            not condition.get("any_image") or has_image,
            messages.count('"image_url": {') >= condition.get("images", 0),
            not condition.get("loose_schema") or bool(loose_nodes(request)),
        )
    )


def response(rule, reply):
    if "answer" in rule:
        reply["choices"][0] |= rule["answer"]
        return web.json_response(reply)
    headers = rule.get("headers", {})
    if "text" in rule:
        about = {"status": rule["status"], "headers": headers}
        return web.Response(text=rule["text"], content_type="text/html", **about)
    return web.json_response(rule["body"], status=rule["status"], headers=headers)


def loose_nodes(request):
    """The nodes of a request's schema that a strict service refuses."""
    if "response_format" not in request:
        return []
    return list(_loose(request["response_format"]["json_schema"]["schema"]))


def _loose(node):
    has_type = "type" in node or "anyOf" in node or "$ref" in node
    if not has_type or not node.keys() <= STRICT:
        yield node
    if node.get("type") == "object":
        closed = node.get("additionalProperties") is False
        if not closed or set(node.get("required", ())) != set(node["properties"]):
            yield node
    below = [*node.get("properties", {}).values(), *node.get("anyOf", ())]
    for child in [*below, *filter(None, [node.get("items")])]:
        yield from _loose(child)
