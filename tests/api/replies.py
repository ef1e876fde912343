"""Replies of a server that cannot be read."""

import json

from tests.fake_server import _parts, score_count


def unreadable(first):
    """A backbone whose first so many replies about the prompt say nothing."""
    asked = []

    def reply(request):
        parts = [
            part for turn in request["messages"] for part in _parts(turn["content"])
        ]
        text = " ".join(part.get("text", "") for part in parts)
        asked.extend(["x"] * ("a red cube" in text))
        if "a red cube" in text and len(asked) <= first:
            return "nothing"
        return json.dumps({"score": [7] * score_count(text), "reasoning": "fine"})

    return reply, asked
