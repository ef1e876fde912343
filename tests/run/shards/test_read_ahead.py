"""Rows are read ahead of those who judge them, by no more than so many bytes."""

import asyncio
import threading

import pytest

from vieval_plugin.run.shards.read_ahead import ReadAhead


def counted(count, read):
    for number in range(count):
        read.append(number)
        yield number


async def test_no_more_than_so_many_bytes_are_read_and_not_taken():
    read, taken = [], []
    async for number in ReadAhead(counted(50, read), lambda number: 10, max_bytes=40):
        await asyncio.sleep(0.002)
        taken.append(number)
        # four that wait, the one that is being handed over, and the next, which waits for room
        assert len(read) - len(taken) <= 6
    assert taken == list(range(50))


async def test_an_item_larger_than_the_bound_is_read_alone():
    ahead = ReadAhead(iter([1, 100, 1]), lambda size: size, max_bytes=10)
    assert [size async for size in ahead] == [1, 100, 1]


async def test_an_error_is_told_after_what_was_read():
    def items():
        yield 1
        raise ValueError("damaged")

    ahead = aiter(ReadAhead(items(), lambda item: 1))
    assert await anext(ahead) == 1
    with pytest.raises(ValueError, match="damaged"):
        await anext(ahead)


async def test_nothing_is_read_after_the_end():
    read = []
    ahead = ReadAhead(counted(1000, read), lambda number: 10, max_bytes=40)
    async for _ in ahead:
        break
    ahead.close()
    assert len(read) < 20
    assert not [thread for thread in threading.enumerate() if thread.name == "read"]
