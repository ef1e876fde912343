"""Judges that are copied, pickled or sent to other processes open again there."""

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

from tests.builders import a_contest, a_sample
from vieval_plugin import Image, Judge, Verdicts, VievalError, config

PIXELS = np.random.RandomState(0).randint(0, 256, (3, 16, 16, 3)).astype(np.uint8)
WAYS = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


def scores_of(judge):
    return judge.score(PIXELS, "x")


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_an_open_judge_asks_the_same(way, store, server):
    named = {"model": "fake", "base_url": server.base_url, "num_concurrent": 3}
    with Judge("viescore", **named) as judge:
        scores = scores_of(judge)
        with WAYS[way](judge) as other:
            assert (repr(other), len(other.last)) == (repr(judge), 0)
            assert (scores_of(other) == scores).all()
        asked = server.stats()["requests"]
        assert (scores_of(judge) == scores).all()
        assert server.stats()["requests"] == asked


def test_all_that_a_judge_was_made_with_is_kept(monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-nobody-may-see-this")
    options = {"store": {"use": False}, "judges": {"reminders": 0}}
    about = {"model": "m", "base_url": ["http://a/v1", "http://b/v1"]}
    about |= {"api_key_env": "MY_KEY", "temperature": 0.5, "options": options}
    about |= {"fresh": True, "image_format": "jpeg", "bar": True}
    judge = Judge("cigeval", setting="react", **about)
    written = pickle.dumps(judge)
    assert b"nobody-may-see" not in written
    assert b"MY_KEY" in written
    # what another process names is not asked for
    monkeypatch.setattr(config, "current", None)
    copied = pickle.loads(written)
    assert copied.options == judge.options
    for name in ("_fresh", "_format", "_bar"):
        assert getattr(copied, name) == getattr(judge, name)
    assert copied.prepared.provenance == judge.prepared.provenance


def test_weights_stay_those_that_were_named():
    copied = pickle.loads(pickle.dumps(Judge("clip_score", scorer="/weights")))
    assert copied.options.scorers["clip_score"].model == "/weights"


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_other_processes_open_it_again(method):
    with Judge("sharpness", options={"store": {"use": False}}) as judge:
        scores = scores_of(judge)
        with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as pool:
            assert (pool.submit(judge.score, PIXELS, "x").result(120) == scores).all()


def test_samples_verdicts_and_errors_cross_too():
    sample = a_sample(images={"output": Image(b"x")}, prompt="x")
    contest = a_contest(images={"output": Image(b"x")})
    with Judge("sharpness", options={"store": {"use": False}}) as judge:
        judge.score(PIXELS, "x")
    for value in (sample, contest, judge.last, judge.options, judge.last[0]):
        assert pickle.loads(pickle.dumps(value)) == value
    assert isinstance(pickle.loads(pickle.dumps(judge.last)), Verdicts)
    assert str(pickle.loads(pickle.dumps(VievalError("one line")))) == "one line"
