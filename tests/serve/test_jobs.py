"""The run loop of all clients: turns and errors; the protocols' tests show the rest."""

import asyncio
from types import SimpleNamespace

import pytest

from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.run.scheduler import Outcome
from vieval_plugin.serve.jobs import KeyedJob, RunLoop
from vieval_plugin.text.errors import VievalError

JUDGE = SimpleNamespace()
GOOD = Outcome(Verdict({"O": 1.0}, Status.OK))


async def test_clients_take_turns_and_no_more_are_under_way_than_may_be():
    begun, free = [], asyncio.Event()

    async def judge(job):
        begun.append(job.key)
        await free.wait()
        return GOOD

    loop = RunLoop(judge, 2)
    asks = [[KeyedJob(key, None, JUDGE) for key in keys] for keys in ("abcdef", "xya")]
    first, second = (asyncio.ensure_future(loop.outcomes(ask, 60.0)) for ask in asks)
    await asyncio.sleep(0.01)
    assert begun == ["a", "b"]
    assert (loop.under_way, loop.waiting) == (2, 6)
    free.set()
    outcomes = await asyncio.gather(first, second)
    assert begun == list("abcxdyef")
    assert [len(own) for own in outcomes] == [6, 3]


@pytest.mark.parametrize("error", [VievalError("it is away"), RuntimeError("a bug")])
async def test_an_error_is_the_failure_of_its_job_alone(error):
    async def judge(job):
        if job.key == "bad":
            raise error
        return GOOD

    loop = RunLoop(judge, 4)
    jobs = [KeyedJob(key, None, JUDGE) for key in ("bad", "good")]
    bad, good = await loop.outcomes(jobs, 10.0)
    assert not bad.verdict.status.usable
    assert good.verdict.status is Status.OK
