"""The run loop of all clients: turns, jobs of one key, and clients that went away."""

import asyncio
from types import SimpleNamespace

import pytest

from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.serve.jobs import KeyedJob, RunLoop
from vieval_plugin.text.errors import VievalError

JUDGE = SimpleNamespace()


class Recorder:
    """A judge that notes what it is asked, and answers when it is let."""

    def __init__(self, live):
        self.begun, self.free = [], asyncio.Event()
        self.loop = RunLoop(self.judge, live)

    async def judge(self, job):
        self.begun.append(job.key)
        await self.free.wait()
        return Outcome(Verdict({"O": 1.0}, Status.OK))

    def ask(self, *keys, within=60.0):
        return asyncio.ensure_future(
            self.loop.outcomes([KeyedJob(key, None, JUDGE) for key in keys], within)
        )


async def test_clients_take_turns_and_no_more_are_under_way_than_may_be():
    recorder = Recorder(live=2)
    first, second = recorder.ask(*"abcdef"), recorder.ask(*"xy")
    await asyncio.sleep(0.01)
    assert recorder.begun == ["a", "b"]
    assert (recorder.loop.under_way, recorder.loop.waiting) == (2, 6)
    recorder.free.set()
    await asyncio.gather(first, second)
    assert recorder.begun == list("abcxdyef")


async def test_a_key_that_is_asked_for_twice_is_judged_once():
    recorder = Recorder(live=1)
    asks = [recorder.ask("a", "a", "b"), recorder.ask("b", "a")]
    await asyncio.sleep(0.01)
    recorder.free.set()
    outcomes = await asyncio.gather(*asks)
    assert recorder.begun == ["a", "b"]
    assert [len(own) for own in outcomes] == [3, 2]
    await recorder.ask("a")
    assert recorder.begun == ["a", "b", "a"]


async def test_what_a_lost_client_asked_for_is_finished_if_begun_and_dropped_if_not():
    recorder = Recorder(live=1)
    lost, other = recorder.ask("a", "b", "c"), recorder.ask("c", "d")
    await asyncio.sleep(0.01)
    lost.cancel()
    await asyncio.gather(lost, return_exceptions=True)
    recorder.free.set()
    assert len(await other) == 2
    assert recorder.begun in (["a", "c", "d"], ["a", "d", "c"])
    assert recorder.loop.waiting == 0


async def test_a_deadline_is_a_failure_and_no_score():
    recorder = Recorder(live=1)
    outcomes = await recorder.ask("a", "b", within=0.05)
    found = [(one.verdict.status, dict(one.verdict.scores)) for one in outcomes]
    assert found == [(Status.API_ERROR, {})] * 2
    await recorder.loop.close()
    assert recorder.begun == ["a"]


@pytest.mark.parametrize("error", [VievalError("it is away"), RuntimeError("a bug")])
async def test_an_error_is_the_failure_of_its_job_alone(error):
    async def judge(job):
        if job.key == "bad":
            raise error
        return Outcome(Verdict({"O": 1.0}, Status.OK))

    loop = RunLoop(judge, 4)
    jobs = [KeyedJob(key, None, JUDGE) for key in ("bad", "good")]
    bad, good = await loop.outcomes(jobs, 10.0)
    assert not bad.verdict.status.usable
    assert good.verdict.status is Status.OK
