"""Questions that are asked again past the store, as often as `attempts` says."""

import pytest

from tests.api.replies import unreadable
from tests.fake_server import FakeServer
from tests.pictures import plain
from vieval_plugin import Judge


@pytest.mark.parametrize(
    ("attempts", "calls", "status"),
    [(1, 2, "parse_failure"), (2, 4, "parse_failure"), (3, 5, "ok")],
)
def test_only_the_unanswered_question_is_asked_again(attempts, calls, status, store):
    reply, asked = unreadable(4)  # each attempt has a reminder
    with FakeServer(reply=reply, schema_support="ignored") as server:
        named = {"model": "fake", "base_url": server.base_url, "attempts": attempts}
        with Judge("viescore", **named) as judge:
            score = judge.score(plain("red"), "a red cube")
            quality = server.stats()["requests"] - len(asked)
            assert judge.last[0].status == status
            assert len(asked) == calls
            again = judge.score(plain("red"), "a red cube")
        assert (score == again) or (score != score and again != again)
        # what had an answer was not asked again
        assert server.stats()["requests"] - len(asked) == quality
