"""A judge that stays open."""

import asyncio
import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import PIL.Image
import pytest

from tests.fake_server import FakeServer, Fault
from tests.refusals import refusal, refuses
from tests.work import until
from vieval_plugin import (
    Backbone,
    Contest,
    Image,
    Judge,
    SampleId,
    Status,
    config,
    evaluate,
)
from vieval_plugin.api import conversion
from vieval_plugin.benchmarks import vieval_demo

PIXELS = np.random.RandomState(0).randint(0, 256, (40, 16, 16, 3)).astype(np.uint8)


@pytest.fixture
def judge(store, server):
    with Judge("viescore", model="fake", base_url=server.base_url) as opened:
        yield opened


def named(server):
    return {"model": "fake", "base_url": server.base_url}


def test_scores_are_those_of_evaluate(judge, server, tmp_path):
    samples = vieval_demo.load(tmp_path, "tig")[:6]
    backbone = Backbone(**named(server))
    apart = evaluate(samples, backbone=backbone, options=config.Config())
    assert judge(samples) == apart
    shown = [one.images["output"] for one in samples]
    prompts = [one.texts["prompt"] for one in samples]
    for aspect in ("O", "PQ"):
        scores = judge.score(shown, prompts, aspect=aspect).tolist()
        assert scores == [one.scores[aspect] for one in apart]
    assert judge.score(shown, prompts).tolist() == [one.scores["O"] for one in apart]


async def test_a_running_loop_is_no_hindrance(judge):
    here = judge.score(PIXELS[:2], "x")
    asked = judge.score_async(PIXELS[:2], "x"), judge.judge_async([])
    there, nothing = await asyncio.gather(*asked)
    assert (here == there).all()
    assert len(nothing) == 0
    assert len(evaluate(vieval_demo.load(None, "tie")[:1], judge="ssim")) == 1


def test_many_threads_ask_one_judge(judge):
    ask = lambda n: judge.score(PIXELS[n : n + 1], f"prompt {n}").tolist()
    with ThreadPoolExecutor(20) as pool:
        found = list(pool.map(ask, range(20)))
    assert found == list(map(ask, range(20)))


def test_a_failed_call_is_nan_and_told(store):
    def reply(body):
        said = str(body["messages"])
        scores = [8] if "giraffe" in said else [8, 8]
        answer = json.dumps({"score": scores, "reasoning": "r"})
        return "no idea" if "zebra" in said else answer

    with (
        FakeServer(reply=reply, schema_support="ignored") as server,
        Judge("viescore", **named(server)) as judge,
    ):
        scores = judge.score(PIXELS[:2], ["giraffe", "zebra"])
    assert np.isnan(scores).tolist() == [False, True]
    assert judge.last[1].status is Status.PARSE_FAILURE
    assert "parse_failure 1" in repr(judge.last)


def test_comparisons(store, server):
    judge = Judge("sharpness", options={"store": {"use": False}})
    flat = np.zeros((32, 32, 3), np.uint8) + np.arange(32, dtype=np.uint8)[:, None]
    noisy = np.random.RandomState(1).randint(0, 256, (32, 32, 3)).astype(np.uint8)
    preferred = judge.compare([flat, noisy, flat], [noisy, flat, flat], "x")
    assert preferred[0] == -preferred[1] < 0 == preferred[2]


def plainer(body):
    """The vote for the picture whose file is smaller."""
    content = body["messages"][-1]["content"]
    if isinstance(content, str):  # whether schemas are enforced
        return '{"probe": "vieval"}'
    images = [part["image_url"] for part in content if part["type"] == "image_url"]
    first, second = (len(image["url"]) for image in images)
    better = "both_bad" if first == second else "A" if first < second else "B"
    return json.dumps({"reasoning": "the plainer one", "better": better})


def test_a_judge_of_pairs_prefers_what_it_votes_for_in_whichever_order(store):
    plain, noisy = np.zeros((16, 16, 3), np.uint8), PIXELS[0]
    row = {"kind": "tig", "texts": {"prompt": "x"}}
    shown = {"a": plain, "b": noisy}.items()
    rows = [
        {**row, "images": {"output": it}, "image_model": name} for name, it in shown
    ]
    identity = SampleId("own", "tig", "", "1")
    contest = Contest(identity, tuple(conversion.samples(rows)))
    with (
        FakeServer(reply=plainer) as server,
        Judge("pairwise", **named(server)) as judge,
    ):
        pairs = [plain, noisy, plain], [noisy, plain, plain]
        assert judge.compare(*pairs, "x").tolist() == [1, -1, 0]
        compared = "compares images and does not score them; use `compare`"
        refuses(compared, judge.score, PIXELS[:1], "x")
        table = judge([contest]).to_pandas()
        [verdict] = judge([rows[0]])
    votes = table[["forward", "reverse", "preference"]].loc[0]
    assert list(votes) == ["first", "first", 1.0]
    assert verdict.status is Status.NOT_APPLICABLE


@pytest.mark.parametrize(("fresh", "requests"), [(False, 0), (True, 2)])
def test_fresh_asks_anew_at_each_call_and_others_do_not(store, server, fresh, requests):
    with Judge("viescore", **named(server), fresh=fresh) as judge:
        judge.score(PIXELS[:1], "x")
        before = server.stats()["requests"]
        judge.score(PIXELS[:1], "x")
        assert server.stats()["requests"] - before == requests


def test_an_interrupt_leaves_what_there_is_and_a_judge_that_can_be_asked_again(store):
    interrupted = threading.Event()

    def interrupt():
        until(lambda: server.stats()["statuses"].get("200", 0) > 8)
        os.kill(os.getpid(), signal.SIGINT)

    # from the thirtieth on they hang, so that the run is not over before it is interrupted
    is_hanging = lambda number: number > 30 and not interrupted.is_set()
    faults = lambda number, _: Fault("hang") if is_hanging(number) else None
    with (
        FakeServer(latency=0.05, capacity=4, faults=faults) as server,
        Judge("vqascore", **named(server), num_concurrent=4) as judge,
    ):
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            judge.score(PIXELS, "x")
        told = [one.status for one in judge.last]
        assert len(told) == 40
        assert 0 < told.count(Status.OK) < 40
        assert set(told) == {Status.OK, Status.MISSING}
        until(lambda: not server.stats()["in_flight"])
        asked = server.stats()["requests"]
        time.sleep(0.5)
        # nothing goes on behind the caller's back
        assert server.stats()["requests"] == asked
        interrupted.set()
        assert not np.isnan(judge.score(PIXELS, "x")).any()
        assert server.stats()["requests"] <= 40 + 4


def test_a_judge_is_closed_and_opened_again(judge):
    first = judge.score(PIXELS[:1], "x")
    judge.close()
    judge.close()
    assert judge.score(PIXELS[:1], "x") == first


def test_a_server_that_is_away_is_one_line(store):
    away = {"model": "fake", "base_url": "http://127.0.0.1:9/v1"}
    with Judge("viescore", **away, patience=0.2, retries=0) as judge:
        line = refusal(judge.score, PIXELS[:1], "x")
    assert "has not answered for" in line
    assert "command" not in line  # a trainer runs none
    assert "has not answered for" in judge.last[0].reason


def test_a_judge_that_knows_no_generated_images_says_so_before_it_is_asked(store):
    unsupported = "ssim does not support text-to-image .tig.; it supports mie, tie"
    refuses(unsupported, Judge("ssim").score, PIXELS[:1], "x")
    refuses(unsupported, Judge("ssim").compare, PIXELS[:1], PIXELS[:1], "x")


def test_an_aspect_that_is_not_rated_costs_no_call(judge, server):
    known = "unknown aspect 'Q'; the judge rates SC, PQ, O"
    refuses(known, judge.score, PIXELS[:1], "x", aspect="Q")
    assert server.stats()["requests"] == 0


def test_a_field_changes_the_backbone_of_the_options(store, server):
    options = {"backbones": {"judge": named(server)}}
    with Judge("vqascore", options=options, num_concurrent=3) as judge:
        assert judge.options.backbones["judge"].num_concurrent == 3
        assert judge.score(PIXELS[:1], "x").shape == (1,)


def test_a_table_of_pandas_and_one_of_a_notebook(judge):
    pytest.importorskip("pandas")
    evil = "<script>alert(1)</script>"
    whole = {"kind": "tig", "uid": evil, "texts": {"prompt": evil}}
    found = judge([{**whole, "images": {"output": PIXELS[0]}}, {"kind": "tig"}])
    table = found.to_pandas()
    assert list(table["status"]) == ["ok", "not_applicable"]
    assert table["O"].isna().tolist() == [False, True]
    assert table["prompt"][0] == evil
    shown = found._repr_html_()
    assert "<script" not in shown
    # a notebook sets no formula in what others wrote
    assert '<table class="tex2jax_ignore mathjax_ignore">' in shown
    assert shown.count("<img ") == 1
    assert "the sample has no output image" in shown
    assert (found[:1].scores() == found.scores()[:1]).all()


def test_one_image_has_one_score(store, tmp_path):
    file = tmp_path / "noise.png"
    pixels = np.random.RandomState(0).randint(0, 255, (64, 64, 3), np.uint8)
    PIL.Image.fromarray(pixels).save(file)
    forms = [file, str(file), file.read_bytes(), PIL.Image.open(file), pixels]
    with Judge("sharpness") as judge:
        score = lambda image: judge.score(image, "grains of sand")
        scores = [score(image) for image in [*forms, Image(file)]]
        assert score([file]).shape == (1,)
        assert asyncio.run(judge.score_async(file, "grains of sand")) == scores[0]
    assert all(type(score) is float for score in scores)
    assert len(set(scores)) == 1
    assert scores[0] > 0.5


def test_a_judge_without_a_model_needs_no_usable_store(store, capsys):
    store.write_text("something else")
    samples = vieval_demo.load(None, "tie")[:1]
    with Judge("ssim") as judge:
        assert judge(samples)[0].status is Status.OK
    assert "continuing without the reply cache" in capsys.readouterr().err
    with Judge("viescore", model="m", base_url="http://x") as asking:
        refuses("not a SQLite database", asking, samples)
