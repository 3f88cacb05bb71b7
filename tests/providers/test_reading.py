"""A stream is read to its end, its error, or an abort, whichever comes first."""

import asyncio
from collections.abc import AsyncIterator
from contextvars import ContextVar

import pytest

from loopwright.providers.reading import AbortableReader
from loopwright.signals import AbortSignal

pytestmark = pytest.mark.anyio


async def items(*values: int, error: BaseException | None = None) -> AsyncIterator[int]:
    for value in values:
        yield value
    if error is not None:
        raise error


class Hanging:
    """Gives one item and then hangs; `closed` is set when it is left."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def items(self) -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            self.closed.set()


async def test_all_items_come_in_order_and_there_is_no_error() -> None:
    async with AbortableReader(items(1, 2, 3), AbortSignal()) as reader:
        assert [item async for item in reader] == [1, 2, 3]
        assert reader.error is None


async def test_items_before_an_error_come_and_the_error_is_told() -> None:
    error = ValueError("x")
    async with AbortableReader(items(1, error=error), AbortSignal()) as reader:
        assert [item async for item in reader] == [1]
        assert reader.error is error


async def test_a_source_that_cancels_itself_does_not_cancel_the_reader() -> None:
    async with AbortableReader(items(error=asyncio.CancelledError()), AbortSignal()) as reader:
        assert [item async for item in reader] == []
        assert isinstance(reader.error, asyncio.CancelledError)


async def test_an_abort_ends_a_wait_and_closes_the_source() -> None:
    source, signal = Hanging(), AbortSignal()
    async with AbortableReader(source.items(), signal) as reader:
        assert await anext(reader) == 1
        asyncio.get_running_loop().call_soon(signal.abort)
        assert [item async for item in reader] == []
    await source.closed.wait()


async def test_an_abort_from_a_thread_ends_a_wait() -> None:
    source, signal = Hanging(), AbortSignal()
    async with AbortableReader(source.items(), signal) as reader:
        assert await anext(reader) == 1
        aborting = asyncio.to_thread(signal.abort)
        _, rest = await asyncio.gather(aborting, anext(reader, None))
        assert rest is None


async def test_items_that_were_read_before_an_abort_are_not_given_after_it() -> None:
    signal = AbortSignal()
    async with AbortableReader(items(1, 2), signal) as reader:
        assert await anext(reader) == 1
        signal.abort()
        assert [item async for item in reader] == []


async def test_a_source_that_ignores_its_cancellation_is_not_waited_for() -> None:
    release, signal = asyncio.Event(), AbortSignal()

    async def stubborn() -> AsyncIterator[int]:
        yield 1
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError("a late outcome that nobody hears of")

    async with AbortableReader(stubborn(), signal) as reader:
        assert await anext(reader) == 1
        signal.abort()
        assert await anext(reader, None) is None
    release.set()


async def test_leaving_early_closes_the_source() -> None:
    source = Hanging()
    async with AbortableReader(source.items(), AbortSignal()) as reader:
        assert await anext(reader) == 1
    await source.closed.wait()


async def test_a_cancellation_that_gets_lost_on_its_way_still_ends_the_source() -> None:
    """As `asyncio.wait_for` of Python 3.11 does when an item comes at the same moment."""
    source = Hanging()

    async def losing() -> AsyncIterator[int]:
        try:
            yield 0
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield 1
            async for item in source.items():
                yield item
        finally:
            source.closed.set()

    async with AbortableReader(losing(), AbortSignal()) as reader:
        assert await anext(reader) == 0
    await source.closed.wait()


async def test_the_source_runs_in_a_copy_of_the_caller_s_context() -> None:
    where: ContextVar[str] = ContextVar("where", default="nowhere")

    async def told() -> AsyncIterator[str]:
        yield where.get()

    where.set("in a node")
    async with AbortableReader(told(), AbortSignal()) as reader:
        assert [item async for item in reader] == ["in a node"]


async def test_all_of_the_source_runs_in_one_task() -> None:
    async def tasks() -> AsyncIterator[object]:
        for _ in range(3):
            yield asyncio.current_task()
            await asyncio.sleep(0)

    async with AbortableReader(tasks(), AbortSignal()) as reader:
        assert len({task async for task in reader}) == 1


async def test_a_source_that_is_not_read_ahead_is_asked_for_one_item_at_a_time() -> None:
    asked: list[int] = []

    async def counting() -> AsyncIterator[int]:
        for number in range(3):
            asked.append(number)
            yield number

    async with AbortableReader(counting(), AbortSignal(), ahead=False) as reader:
        await asyncio.sleep(0)
        assert not asked
        async for number in reader:
            await asyncio.sleep(0)
            assert asked == list(range(number + 1))


async def test_a_source_is_not_opened_for_a_run_that_was_cancelled_before() -> None:
    signal = AbortSignal()
    signal.abort()
    source = Hanging()
    async with AbortableReader(source.items(), signal, ahead=False) as reader:
        assert await anext(reader, None) is None
    await asyncio.sleep(0)
    assert not source.closed.is_set()
