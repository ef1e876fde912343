"""Questions that are asked again past the store, as often as `attempts` says."""

import json

import pytest

from tests.fake_server import FakeServer, _parts, score_count
from tests.pictures import plain
from vieval_plugin import Judge


def unreadable(first):
    """A backbone whose first so many replies about the prompt say nothing."""
    asked = []

    def reply(request):
        text = " ".join(part.get("text", "") for turn in request["messages"] for part in _parts(turn["content"]))
        asked.extend(["x"] * ("a red cube" in text))
        if "a red cube" in text and len(asked) <= first:
            return "nothing"
        return json.dumps({"score": [7] * score_count(text), "reasoning": "fine"})

    return reply, asked


@pytest.mark.parametrize(
    ("attempts", "calls", "status"), [(1, 2, "parse_failure"), (2, 4, "parse_failure"), (3, 5, "ok")]
)
def test_only_the_question_without_an_answer_is_asked_again(attempts, calls, status, store):
    reply, asked = unreadable(4)  # each attempt has a reminder
    with (
        FakeServer(reply=reply, schema_support="ignored") as server,
        Judge("viescore", model="fake", base_url=server.base_url, attempts=attempts) as judge,
    ):
        score = judge.score(plain("red"), "a red cube")
        quality = server.stats()["requests"] - len(asked)
        assert judge.last[0].status == status
        assert len(asked) == calls
        again = judge.score(plain("red"), "a red cube")
        assert (score == again) or (score != score and again != again)
        assert server.stats()["requests"] - len(asked) == quality  # what had an answer was not asked again
