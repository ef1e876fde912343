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

BEHAVIOURS = [
    json.loads(line)
    for line in Path(__file__)
    .parent.joinpath("backends", "service_behaviours.jsonl")
    .read_text()
    .splitlines()
]
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
            if self._times[number] < rule.get("times", 1 << 30) and meets(
                request, rule.get("if", {})
            ):
                self._times[number] += 1
                return response(rule, reply)
        return streamed(reply) if request.get("stream") else web.json_response(reply)


def streamed(reply):
    """A reply as server-sent events, with its usage in the last."""
    [choice] = reply["choices"]
    pieces = [
        {"content": piece}
        for piece in choice["message"]["content"].partition(" ")
        if piece
    ]
    events = [{"choices": [{"index": 0, "delta": piece}]} for piece in pieces]
    end = {
        "index": 0,
        "delta": {},
        "finish_reason": choice["finish_reason"],
        "logprobs": choice["logprobs"],
    }
    events += [{"choices": [end]}, {"choices": [], "usage": reply["usage"]}]
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return web.Response(
        text=f"{text}data: [DONE]\n\n", content_type="text/event-stream"
    )


def meets(request, condition):
    """Return whether a request is one that a condition is about."""
    messages = json.dumps(request["messages"])
    field, most = condition.get("above", ("", 0))
    limit, least = condition.get("below", ("", 0))
    given = request.get(limit, request.get("max_completion_tokens", 0)) if limit else 0
    return (
        (condition.get("has") is None or condition["has"] in request)
        and (condition.get("lacks") is None or condition["lacks"] not in request)
        and (not field or request.get(field, 0) > most)
        and (not limit or given < least)
        and condition.get("words", "") in messages
        and (
            not condition.get("image")
            or ("image_url" in messages and QUESTION not in messages)
        )
        and (not condition.get("any_image") or "image_url" in messages)
        and messages.count('"image_url": {') >= condition.get("images", 0)
        and (not condition.get("loose_schema") or bool(loose_nodes(request)))
    )


def response(rule, reply):
    if "answer" in rule:
        reply["choices"][0] |= rule["answer"]
        return web.json_response(reply)
    headers = rule.get("headers", {})
    if "text" in rule:
        return web.Response(
            text=rule["text"],
            status=rule["status"],
            headers=headers,
            content_type="text/html",
        )
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
    for child in [
        *node.get("properties", {}).values(),
        *node.get("anyOf", ()),
        *filter(None, [node.get("items")]),
    ]:
        yield from _loose(child)
