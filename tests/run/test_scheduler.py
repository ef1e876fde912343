"""Both schedulers drive judge programs to the same outcomes: in waves, or each at its own pace."""

import asyncio
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.playing import label_of
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Message,
    Status,
    Step,
    Text,
    Verdict,
)
from vieval_plugin.run.scheduler import run_concurrently, run_in_batches


def chat(label):
    return Chat((Message("user", (label,)),), (label,))


def program(name, *widths, raises_at=None):
    """Asks as many questions a round as `widths` says; its trace holds the replies in order."""
    heard = []
    for turn, width in enumerate(widths):
        if turn == raises_at:
            raise KeyError(name)
        replies = yield [chat(f"{name}.{turn}.{i}") for i in range(width)]
        heard += [reply.text for reply in replies]
    return Verdict({}, Status.OK, trace=tuple(Step((t,), Status.OK) for t in heard))


def reply(ask):
    return Text(f"re {label_of(ask)}", input_tokens=2, output_tokens=3)


def heard(outcome):
    return [step.label for step in outcome.verdict.trace]


def in_waves(programs):
    waves = []

    def answer(asked):
        waves.append(asked)
        return [reply(ask) for _, ask in asked]

    return run_in_batches(programs, answer), waves


def concurrently(programs, live=4, answer=None):
    """Outcomes by number, in the order in which programs ended."""
    ended = {}

    async def at_once(number, ask):
        return reply(ask)

    how = {"live": live, "on_outcome": ended.__setitem__}
    asyncio.run(run_concurrently(programs, answer or at_once, **how))
    return ended


# Waves.


@pytest.mark.parametrize("count", [1, 3])
def test_a_wave_must_be_answered_in_full(count):
    def breaking(asked):
        raise KeyError("b")

    for error, answer in (
        (ValueError, lambda asked: [Text("x")] * count),
        (KeyError, breaking),
    ):
        with pytest.raises(error, match="zip|b"):
            run_in_batches([program("a", 2)], answer)


def test_an_exception_in_a_program_is_its_samples_failure_and_no_others():
    later, at_once = program("b", 1, 1, raises_at=1), program("c", 1, raises_at=0)
    [whole, *broken], waves = in_waves([program("a", 1, 1), later, at_once])
    assert heard(whole) == ["re a.0.0", "re a.1.0"]
    for name, outcome in zip("bc", broken, strict=True):
        verdict = outcome.verdict
        assert (verdict.scores, verdict.status) == ({}, Status.TOOL_ERROR)
        assert verdict.reason == f"the judge's program failed: KeyError: '{name}'"
    # what it cost before is counted
    assert (broken[0].output_tokens, len(waves)) == (3, 2)


def test_the_traceback_of_a_program_that_broke_is_for_those_who_look_for_it(caplog):
    caplog.set_level(logging.INFO, "vieval")
    in_waves([program("a", 1, raises_at=0)])
    assert not caplog.records
    caplog.set_level(logging.DEBUG, "vieval")
    in_waves([program("a", 1, raises_at=0)])
    [record] = caplog.records
    assert record.exc_info[0] is KeyError


# Each at its own pace.


def test_a_program_does_not_wait_for_the_slow_ones():
    gate = asyncio.Event()

    async def answer(number, ask):
        if number == 0:
            await gate.wait()
        if label_of(ask) == "b.2.0":
            gate.set()
        return reply(ask)

    ended = concurrently([program("a", 1), program("b", 1, 1, 1)], answer=answer)
    assert list(ended) == [1, 0]


def test_replies_come_back_in_the_order_of_the_asks():
    async def answer(number, ask):
        # the last ask is answered first
        await asyncio.sleep(0.01 * (3 - int(label_of(ask)[-1])))
        return reply(ask)

    [outcome] = concurrently([program("a", 3)], answer=answer).values()
    assert heard(outcome) == [f"re a.0.{number}" for number in range(3)]


def test_only_so_many_programs_exist_at_once():
    made, ended, alive = [], [], []

    def programs():
        for number in range(50):
            made.append(number)
            alive.append(len(made) - len(ended))
            yield program(str(number), 1, 1)

    async def answer(number, ask):
        await asyncio.sleep(0)
        return reply(ask)

    note = lambda number, _: ended.append(number)
    asyncio.run(run_concurrently(programs(), answer, live=7, on_outcome=note))
    assert sorted(ended) == made == list(range(50))
    assert max(alive) == 7


@pytest.mark.parametrize("where", ["answer", "outcome", "iterable"])
async def test_an_exception_ends_the_run_and_stops_everything_else(where):
    begun, stopped, all_begun = set(), set(), asyncio.Event()
    hanging = {"a.0.0", "a.0.1"} | ({"bad.1.1"} if where == "answer" else set())

    def programs():
        yield program("a", 2)
        yield program("bad", 1, 2)
        if where == "iterable":
            raise KeyError("bad")

    async def answer(number, ask):
        if label_of(ask) in hanging:
            begun.add(label_of(ask))
            if begun == hanging:
                all_begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                stopped.add(label_of(ask))
                raise
        if where == "answer" and label_of(ask) == "bad.1.0":
            await all_begun.wait()
            raise KeyError("bad")
        return reply(ask)

    def ended(number, outcome):
        if where == "outcome":
            raise KeyError("bad")

    before = asyncio.all_tasks()
    running = run_concurrently(programs(), answer, live=2, on_outcome=ended)
    with pytest.raises(KeyError, match="bad"):
        await asyncio.wait_for(running, 120)
    assert asyncio.all_tasks() == before
    assert stopped == begun == hanging


# Both.


def test_tokens_of_all_rounds_add_up_and_failures_cost_none():
    def answer(asked):
        failure = Failure(Status.API_ERROR, "no")
        is_bad = lambda ask: label_of(ask) == "a.0.1"
        return [failure if is_bad(ask) else reply(ask) for _, ask in asked]

    def one():
        yield [chat("a.0.0"), chat("a.0.1")]
        yield [chat("a.1.0")]
        return Verdict({}, Status.OK)

    [outcome] = run_in_batches([one()], answer)
    assert (outcome.input_tokens, outcome.output_tokens) == (4, 6)


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=8),
    st.integers(1, 5),
    st.randoms(use_true_random=False),
)
def test_both_schedulers_give_the_same_outcomes(shapes, live, random):
    def programs():
        return [program(str(number), *widths) for number, widths in enumerate(shapes)]

    async def answer(number, ask):
        for _ in range(random.randrange(4)):
            await asyncio.sleep(0)
        return reply(ask)

    outcomes, waves = in_waves(programs())
    ended = concurrently(iter(programs()), live, answer)
    assert ended == dict(enumerate(outcomes))
    assert len(waves) == len({n for s in shapes for n, width in enumerate(s) if width})
    assert [len(heard(outcome)) for outcome in outcomes] == list(map(sum, shapes))
