"""Test the store of replies: kept, shared by processes, and whole after a kill."""

import json
import math
import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from functools import partial

import pytest

from tests.fake_server import FakeServer, Fault
from tests.pictures import plain
from tests.refusals import refuses
from vieval_plugin import Backbone, Image, Sample, SampleId, evaluate
from vieval_plugin.backends.cache.store import (
    Store,
    key_of,
    parse_stored,
    question,
    to_stored,
)
from vieval_plugin.config import Config, StoreOptions
from vieval_plugin.judges.protocol import (
    Chat,
    Likelihood,
    Measurement,
    Message,
    Probabilities,
    Text,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new folder" / "replies.sqlite"


REPLIES = [Text("é \ud83d"), Text("a", 1, None), Text("a", cut=True)]
REPLIES += [Text("", None, None), Probabilities((0.1, 0.0), (0.1, 1 / 3))]


@pytest.mark.parametrize("reply", [*REPLIES, Measurement(-1e300)])
def test_replies_come_back_to_the_last_digit_for_the_next_who_opens_it(reply, path):
    store = Store(path)
    assert store.get("k") is None
    store.add("k", "m", reply)
    assert store.get("k") == parse_stored(to_stored(reply)) == reply
    store.close()
    assert Store(path).get("k") == reply


def test_the_first_reply_under_a_key_stays_and_is_the_one_to_use(path):
    one, other = Store(path), Store(path)
    assert one.add("k", "m", Text("first")) == Text("first")
    assert other.add("k", "m", Text("second")) == Text("first")
    assert one.get("k") == other.get("k") == Text("first")


PAIRS = [(math.nan, 1.0), (0.5, 1.5), (-0.1, 0.5), (0.6, 0.5), (True, True)]
NEVER = [Measurement(value) for value in (math.nan, math.inf, True)]
NEVER += [Probabilities((low,), (high,)) for low, high in [*PAIRS, ("0.5", "0.5")]]
NEVER += [Probabilities((0.5, 0.5), (0.5,)), Text("a", -1), Text("a", True)]


@pytest.mark.parametrize("reply", [*NEVER, Text("a", cut=1), Text(None)], ids=str)
def test_numbers_that_cannot_be_never_enter(reply, path):
    store = Store(path)
    with pytest.raises(ValueError, match=r".+"):
        store.add("k", "m", reply)
    assert store.get("k") is None


def test_a_key_follows_from_what_is_asked_in_any_order_of_its_parts():
    digest = lambda image: str(image.source)

    def key(*parts, path="label"):
        return key_of(question(Chat((Message("user", parts),), (path,)), digest))

    def likelihood(word):
        ask = Likelihood((Message("user", ("x",)),), (word,), ("l",))
        return key_of(question(ask, digest))

    one, two = Image(b"one"), Image(b"two")
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    orders = (one, two, "x"), (two, one, "x"), (one, "x", two), (one, "x"), ("x",)
    assert len({key(*parts) for parts in orders}) == 5
    assert key("x") == key("x", path="another label")
    asked = Message("user", ("x",))
    others = (Message("system", ("x",)),), (asked, Message("assistant", ("x",)))
    chats = [Chat(messages, ("l",)) for messages in ((asked,), *others)]
    chats.append(Chat((asked,), ("l",), {"type": "object"}))
    assert len({key_of(question(chat, digest)) for chat in chats}) == 4
    assert len({likelihood("Yes"), likelihood("No"), key("x")}) == 3
    key("half a character: \ud83d")


def test_info_export_and_clear(path):
    store, found_out = Store(path), "schemas one http://x/v1"
    for key, model in (("b", "one"), ("a", "one"), ("c", "two")):
        store.add(key, model, Text(key))
    store.remember(found_out, "enforced")
    counts = [(model, count) for model, count, _, _ in store.info()]
    assert counts == [("one", 2), ("two", 1)]
    assert all(0 < first <= last <= time.time() for _, _, first, last in store.info())
    rows = [(row["key"], row["model"], row["reply"]["text"]) for row in store.export()]
    assert rows == [("a", "one", "a"), ("b", "one", "b"), ("c", "two", "c")]
    assert store.clear("") == 0
    assert store.clear("one") == 2
    # what was found out about servers may be out of date
    assert store.remembered(found_out) is None
    assert [row["key"] for row in store.export()] == ["c"]
    assert store.clear() == 1
    store.close()
    assert Store(path).info() == []


def test_a_store_of_another_version_is_left_alone(path):
    store = Store(path)
    store.add("k", "m", Text("x"))
    store.remember("schema", "77")
    store.close()
    before = path.read_bytes()
    refuses(r"replies.sqlite: .* must have schema 3, got 77", Store, path)
    assert path.read_bytes() == before


def test_a_store_that_fails_in_the_middle_is_an_error_for_the_users_eyes(path):
    store = Store(path)
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE replies")
    adding = lambda: store.add("k", "m", Text("x"))
    for work in (lambda: store.get("k"), adding, store.info, store.clear):
        refuses("replies.sqlite: the reply cache failed", work)


def in_processes(*works):
    """Do each in a process of its own, at the same time; whether all went well."""
    begin, children = time.time() + 0.02, []
    for work in works:
        if not (child := os.fork()):
            code = 1
            try:
                while time.time() < begin:
                    pass
                work()
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    return [os.waitpid(child, 0)[1] for child in children] == [0] * len(works)


def test_processes_make_and_write_a_store_at_once(path):
    def writing(own):
        def write():
            store = Store(path)
            for i in range(150):
                store.add(f"{own} {i}", own, Text(own))
                store.add(f"both {i}", own, Text(own))
                assert store.get(f"{own} {i}") == Text(own)

        return write

    assert in_processes(*map(writing, "abcd"))
    store = Store(path)
    assert sum(count for _, count, _, _ in store.info()) == 5 * 150
    assert all(row["reply"]["text"] == row["model"] for row in store.export())


def test_a_turn_that_sqlite_does_not_wait_for_is_waited_for(path, monkeypatch):
    refusals = ["database is locked"] * 3

    class Busy(sqlite3.Connection):
        def execute(self, statement, *values):
            if "journal_mode" in statement and refusals:
                raise sqlite3.OperationalError(refusals.pop())
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Busy))
    Store(path).add("k", "m", Text("x"))
    assert refusals == []


def picture(number):
    return Image(plain((number, 0, 0)))


def judged(url, store=None):
    """Verdicts of 200 samples."""
    options = Config(store=StoreOptions(use=store is not None, path=store))
    backbone = Backbone(model="fake", base_url=url, num_concurrent=8, retries=1)
    samples = []
    for n in range(200):
        images, texts = {"output": picture(n)}, {"prompt": f"picture {n}"}
        samples.append(Sample(SampleId("b", "tig", "m", str(n)), images, texts))
    return evaluate(samples, judge="viescore", backbone=backbone, options=options)


def test_after_kill_9_only_what_was_in_flight_is_asked_again(tmp_path):
    questions, store = Counter(), tmp_path / "r.sqlite"
    told, tell = os.pipe()
    if not (child := os.fork()):  # before the server starts its thread
        os.close(tell)
        try:
            judged(os.read(told, 999).decode(), store)
        finally:
            os._exit(1)

    killed = threading.Event()
    killed.set()

    def noting(number, request):
        questions[json.dumps(request["messages"])] += 1
        # so that the run is not over before it is killed
        return Fault("hang") if number > 200 and not killed.is_set() else None

    with FakeServer(latency=0.02, faults=noting) as server:
        whole = judged(server.base_url)
        assert len(questions) == 401  # with the probe for schemas
        questions.clear()
        server.reset_stats()
        killed.clear()
        os.write(tell, server.base_url.encode())
        while server.stats()["statuses"].get("200", 0) < 150:
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        killed.set()
        assert len(questions) < 401
        resumed = judged(server.base_url, store)
        assert len(questions) == 401
        assert sum(questions.values()) <= 401 + 8
        assert judged(server.base_url, store) == resumed == whole
        assert sum(questions.values()) <= 401 + 8
