"""A judge that stays open."""

import asyncio
import os
import signal
import threading
import time

import numpy as np
import PIL.Image
import pytest

from tests.fake_server import FakeServer, Fault
from tests.work import until
from vieval_plugin import (
    Backbone,
    Contest,
    Image,
    Judge,
    SampleId,
    Status,
    VievalError,
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


def test_scores_are_those_of_evaluate(judge, server, tmp_path):
    samples = vieval_demo.load(tmp_path, "tig")[:6]
    apart = evaluate(
        samples,
        backbone=Backbone(model="fake", base_url=server.base_url),
        options=config.Config(),
    )
    assert judge(samples) == apart
    images, prompts = (
        [one.images["output"] for one in samples],
        [one.texts["prompt"] for one in samples],
    )
    assert judge.score(images, prompts).tolist() == [one.scores["O"] for one in apart]
    assert judge.score(images, prompts, aspect="PQ").tolist() == [
        one.scores["PQ"] for one in apart
    ]


def test_connections_stay_open(judge, server):
    for number in range(5):
        judge.score(PIXELS[number : number + 1], "x")
    assert (
        server.stats()["requests"] == 11
    )  # with the one that asks whether schemas are enforced
    assert judge.progress.usage.calls == 11


async def test_a_running_loop_is_no_hindrance(judge):
    here = judge.score(PIXELS[:2], "x")
    there = await asyncio.gather(
        judge.score_async(PIXELS[:2], "x"), judge.judge_async([])
    )
    assert (here == there[0]).all()
    assert len(there[1]) == 0
    assert len(evaluate(vieval_demo.load(None, "tie")[:1], judge="ssim")) == 1


def test_many_threads_ask_one_judge(judge):
    found = {}

    def ask(number):
        found[number] = judge.score(PIXELS[number : number + 1], f"prompt {number}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [found[n].tolist() for n in range(20)] == [
        judge.score(PIXELS[n : n + 1], f"prompt {n}").tolist() for n in range(20)
    ]


def test_a_failed_call_is_nan_and_told(store):
    def reply(body):
        said = str(body["messages"])
        scores = "[8]" if "giraffe" in said else "[8, 8]"
        return (
            "no idea" if "zebra" in said else f'{{"score": {scores}, "reasoning": "r"}}'
        )

    with FakeServer(reply=reply, schema_support="ignored") as server:
        judge = Judge("viescore", model="fake", base_url=server.base_url)
        scores = judge.score(PIXELS[:2], ["giraffe", "zebra"])
        judge.close()
    assert np.isnan(scores).tolist() == [False, True]
    assert judge.last[1].status is Status.PARSE_FAILURE
    assert "parse_failure 1" in repr(judge.last)


def test_comparisons(store, server):
    judge = Judge("sharpness", options={"store": {"use": False}})
    flat = np.zeros((32, 32, 3), np.uint8) + np.arange(32, dtype=np.uint8)[:, None]
    noisy = np.random.RandomState(1).randint(0, 256, (32, 32, 3)).astype(np.uint8)
    preferred = judge.compare([flat, noisy, flat], [noisy, flat, flat], "x")
    assert preferred[0] == -preferred[1] < 0 == preferred[2]


def test_a_judge_of_pairs_prefers_what_it_votes_for_in_whichever_order(store):
    def reply(body):
        content = body["messages"][-1]["content"]
        if isinstance(content, str):  # whether schemas are enforced
            return '{"probe": "vieval"}'
        first, second = (
            len(part["image_url"]["url"])
            for part in content
            if part["type"] == "image_url"
        )
        better = "both_bad" if first == second else "A" if first < second else "B"
        return f'{{"reasoning": "the plainer one", "better": "{better}"}}'

    plain, noisy = np.zeros((16, 16, 3), np.uint8), PIXELS[0]
    with (
        FakeServer(reply=reply) as server,
        Judge("pairwise", model="fake", base_url=server.base_url) as judge,
    ):
        assert judge.compare(
            [plain, noisy, plain], [noisy, plain, plain], "x"
        ).tolist() == [1, -1, 0]
        with pytest.raises(
            VievalError, match="compares images and does not score them; use `compare`"
        ):
            judge.score(PIXELS[:1], "x")
        table = judge([*_contests(plain, noisy)]).to_pandas()
        assert list(table[["forward", "reverse", "preference"]].loc[0]) == [
            "first",
            "first",
            1.0,
        ]
        [verdict] = judge(
            [{"kind": "tig", "images": {"output": plain}, "texts": {"prompt": "x"}}]
        )
        assert verdict.status is Status.NOT_APPLICABLE


def _contests(a, b):
    both = [
        conversion.samples(
            [
                {
                    "kind": "tig",
                    "image_model": name,
                    "images": {"output": one},
                    "texts": {"prompt": "x"},
                }
            ]
        )[0]
        for name, one in (("a", a), ("b", b))
    ]
    yield Contest(SampleId("own", "tig", "", "1"), tuple(both))


def test_fresh_asks_anew_at_each_call_and_others_do_not(store, server):
    for fresh, requests in ((False, 0), (True, 2)):
        with Judge(
            "viescore", model="fake", base_url=server.base_url, fresh=fresh
        ) as judge:
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
    faults = lambda number, _: (
        Fault("hang") if number > 30 and not interrupted.is_set() else None
    )
    with FakeServer(latency=0.05, capacity=4, faults=faults) as server:
        named = {"model": "fake", "base_url": server.base_url, "num_concurrent": 4}
        with Judge("vqascore", **named) as judge:
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
            assert (
                server.stats()["requests"] == asked
            )  # nothing goes on behind the caller's back
            interrupted.set()
            assert not np.isnan(judge.score(PIXELS, "x")).any()
            assert server.stats()["requests"] <= 40 + 4


def test_a_judge_is_closed_and_opened_again(judge):
    first = judge.score(PIXELS[:1], "x")
    judge.close()
    judge.close()
    assert judge.score(PIXELS[:1], "x") == first


def test_a_server_that_is_away_is_one_line(store):
    judge = Judge(
        "viescore",
        model="fake",
        base_url="http://127.0.0.1:9/v1",
        patience=0.2,
        retries=0,
    )
    with pytest.raises(VievalError, match="has not answered for") as raised:
        judge.score(PIXELS[:1], "x")
    assert "command" not in str(raised.value)  # a trainer runs none
    assert "has not answered for" in judge.last[0].reason
    judge.close()


def test_a_judge_that_knows_no_generated_images_says_so_before_it_is_asked(store):
    for ask in (
        lambda judge: judge.score(PIXELS[:1], "x"),
        lambda judge: judge.compare(PIXELS[:1], PIXELS[:1], "x"),
    ):
        with pytest.raises(
            VievalError,
            match="ssim does not support text-to-image .tig.; it supports mie, tie",
        ):
            ask(Judge("ssim"))


def test_an_aspect_that_is_not_rated_costs_no_call(judge, server):
    with pytest.raises(
        VievalError, match="unknown aspect 'Q'; the judge rates SC, PQ, O"
    ):
        judge.score(PIXELS[:1], "x", aspect="Q")
    assert server.stats()["requests"] == 0


def test_a_field_changes_the_backbone_of_the_options(store, server):
    options = {"backbones": {"judge": {"model": "fake", "base_url": server.base_url}}}
    with Judge("vqascore", options=options, num_concurrent=3) as judge:
        assert judge.options.backbones["judge"].num_concurrent == 3
        assert judge.score(PIXELS[:1], "x").shape == (1,)


def test_a_table_of_pandas_and_one_of_a_notebook(judge):
    pytest.importorskip("pandas")
    evil = "<script>alert(1)</script>"
    found = judge(
        [
            {
                "kind": "tig",
                "uid": evil,
                "images": {"output": PIXELS[0]},
                "texts": {"prompt": evil},
            },
            {"kind": "tig"},
        ]
    )
    table = found.to_pandas()
    assert list(table["status"]) == ["ok", "not_applicable"]
    assert table["O"].isna().tolist() == [False, True]
    assert table["prompt"][0] == evil
    shown = found._repr_html_()
    assert "<script" not in shown
    assert (
        '<table class="tex2jax_ignore mathjax_ignore">' in shown
    )  # a notebook sets no formula in what others wrote
    assert shown.count("<img ") == 1
    assert "the sample has no output image" in shown
    assert (found[:1].scores() == found.scores()[:1]).all()


def test_one_image_has_one_score(store, tmp_path):
    file = tmp_path / "noise.png"
    PIL.Image.fromarray(
        np.random.RandomState(0).randint(0, 255, (64, 64, 3), np.uint8)
    ).save(file)
    picture = PIL.Image.open(file)
    given = (
        file,
        str(file),
        file.read_bytes(),
        picture,
        np.asarray(picture),
        Image(file),
    )
    with Judge("sharpness") as judge:
        scores = [judge.score(image, "grains of sand") for image in given]
        assert judge.score([file], "grains of sand").shape == (1,)
        assert asyncio.run(judge.score_async(file, "grains of sand")) == scores[0]
    assert all(type(score) is float for score in scores)
    assert len(set(scores)) == 1
    assert scores[0] > 0.5


def test_a_judge_that_asks_no_model_goes_on_without_a_store_that_it_cannot_use(
    store, capsys
):
    store.write_text("something else")
    with Judge("ssim") as judge:
        assert judge(vieval_demo.load(None, "tie")[:1])[0].status is Status.OK
    assert "continuing without the reply cache" in capsys.readouterr().err
    with (
        pytest.raises(VievalError, match="not a SQLite database"),
        Judge("viescore", model="m", base_url="http://x") as asking,
    ):
        asking(vieval_demo.load(None, "tie")[:1])
