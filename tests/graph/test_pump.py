"""The task behind a stream: cancelled once, waited for, and never in the consumer's way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from loopwright.graph.pump import Pump
from loopwright.testing import Gate

pytestmark = pytest.mark.anyio


class Source:
    """Gives three numbers, then waits until it is cancelled and cleans up behind a gate."""

    def __init__(self) -> None:
        self.waits, self.may_end = Gate(), Gate()
        self.cancelled = 0

    async def __aiter__(self) -> AsyncIterator[int]:
        for number in range(3):
            yield number
        try:
            await self.waits.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            await self._clean_up()
            raise

    async def _clean_up(self) -> None:
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


async def consume(pump: Pump) -> list[int]:
    async with aclosing(pump.chunks()) as chunks:
        return [chunk async for chunk in chunks]


async def test_a_consumer_that_is_cancelled_again_and_again_cancels_the_task_once() -> None:
    source, over = Source(), Gate()
    pump = Pump(aiter(source), tracing=False)
    pump.on_end(over.open)
    consumer = asyncio.ensure_future(consume(pump))
    await source.waits.reached()
    while not consumer.done():
        consumer.cancel()
        await asyncio.sleep(0)
    assert source.cancelled == 1
    assert not over.is_open
    source.may_end.open()
    await over.wait()
    assert source.cancelled == 1


async def test_a_consumer_that_leaves_waits_for_the_end_of_the_task() -> None:
    source, over = Source(), Gate()
    source.may_end.open()
    pump = Pump(aiter(source), tracing=False)
    pump.on_end(over.open)
    async with aclosing(pump.chunks()) as chunks:
        assert await anext(chunks) == 0
    assert over.is_open


async def test_a_slow_consumer_does_not_hold_up_the_source() -> None:
    source = Source()
    pump = Pump(aiter(source), tracing=False)
    await source.waits.reached()
    source.waits.open()
    assert await consume(pump) == [0, 1, 2]


async def test_what_the_source_raises_comes_behind_its_chunks() -> None:
    async def failing() -> AsyncIterator[int]:
        yield 1
        raise ValueError("wrong")

    got = []
    with pytest.raises(ValueError, match="wrong"):
        async for chunk in Pump(failing(), tracing=False).chunks():
            got.append(chunk)
    assert got == [1]


async def test_a_task_that_is_over_calls_back_at_once() -> None:
    source, over = Source(), Gate()
    source.waits.open()
    pump = Pump(aiter(source), tracing=False)
    await consume(pump)
    pump.on_end(over.open)
    assert over.is_open


async def test_a_task_that_is_cut_off_is_over_when_all_is_written() -> None:
    source, written, over = Source(), Gate(), Gate()
    source.may_end.open()
    pump = Pump(aiter(source), tracing=False, settle=written.wait)
    pump.on_end(over.open)
    consumer = asyncio.ensure_future(consume(pump))
    await source.waits.reached()
    consumer.cancel()
    await written.reached()
    assert not over.is_open
    written.open()
    await over.wait()


async def test_a_task_that_the_loop_has_cancelled_is_not_cancelled_again() -> None:
    source, before = Source(), asyncio.all_tasks()
    pump = Pump(aiter(source), tracing=False)
    consumer = asyncio.ensure_future(consume(pump))
    await source.waits.reached()
    for task in asyncio.all_tasks() - before:
        task.cancel()
    source.may_end.open()
    await asyncio.wait([consumer])
    assert source.cancelled == 1


async def test_a_source_that_ends_well_is_not_waited_for() -> None:
    source = Source()
    source.waits.open()
    pump = Pump(aiter(source), tracing=False, settle=Gate().wait)
    assert await consume(pump) == [0, 1, 2]
