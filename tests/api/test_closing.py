"""A judge that is closed, let go of or interrupted while it judges."""

import asyncio
import threading

import numpy as np
import pytest

from tests.fake_server import FakeServer
from tests.work import until
from vieval_plugin import Judge, Status, VievalError
from vieval_plugin.run.loop import LoopThread

PIXELS = np.zeros((4, 16, 16, 3), np.uint8)


@pytest.fixture
def slow(store):
    with FakeServer(latency=30) as server:
        yield server


def judge_by(server):
    return Judge("vqascore", model="fake", base_url=server.base_url)


def loops():
    return [thread for thread in threading.enumerate() if thread.name == "vieval"]


def test_who_waits_for_a_judge_that_is_closed_is_told_in_a_line(slow):
    judge, told = judge_by(slow), []

    def ask():
        try:
            judge.score(PIXELS, "x")
        except BaseException as error:
            told.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: slow.stats()["in_flight"])
    judge.close()
    asking.join(60)
    assert [type(error) for error in told] == [VievalError]
    assert "the judge was closed while it was judging" in str(told[0])
    assert [one.status for one in judge.last] == [Status.MISSING] * 4


async def test_a_judge_that_nobody_holds_any_more_ends_where_its_last_call_is_cancelled(
    slow,
):
    before = len(loops())
    asked = asyncio.create_task(judge_by(slow).score_async(PIXELS, "x"))
    await asyncio.to_thread(until, lambda: slow.stats()["in_flight"])
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    del asked
    await asyncio.to_thread(until, lambda: len(loops()) == before)


def test_any_interrupt_ends_the_work_first():
    under_way, ended = threading.Event(), threading.Event()

    async def work():
        under_way.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    class Interrupted(LoopThread):
        def begin(self, begun):
            future = super().begin(begun)

            def result(timeout=None):
                raise TimeoutError("an alarm of the caller's")

            future.result = result
            assert under_way.wait(60)
            return future

    with Interrupted() as loop:
        with pytest.raises(TimeoutError):
            loop.call(work())
        assert ended.is_set()


def test_a_closed_loop_is_asked_in_vain_and_not_for_ever():
    async def work():
        return 1

    loop = LoopThread()
    loop.close()
    with pytest.raises(VievalError, match="closed while it was judging"):
        loop.call(work())
