"""Reading an async stream so that a run can be cancelled while the next item is being waited for.

What the items are, and what an abort means for the answer, is decided by the caller.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Generic, Self, TypeVar, cast

from loopwright.clock import Clock, SystemClock
from loopwright.signals import AbortSignal

T = TypeVar("T")


@asynccontextmanager
async def closing(source: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """The source, and its end when it is left: what reads on behind it would be left to the garbage
    collector. An iterator that is no generator may have nothing to close.
    """
    try:
        yield source
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


class AbortableReader(Generic[T]):
    """Items of `source` until it ends, fails, or `signal` is set; used as a context manager.

    The source is read in one task of its own, which has a copy of the caller's context. (One task
    for all items: clients keep cancel scopes and timeouts open across items.) The iteration never
    raises what the source raised: look at `error` behind it. Leaving the context cancels the
    source without waiting for it; its late outcome is dropped (S0-24). With `ahead` the source is
    read as fast as it comes; without, each item is asked for when the one before it is done with.
    With `patience` the iteration ends when no item came for so many seconds by `clock`.
    """

    def __init__(
        self,
        source: AsyncIterator[T],
        signal: AbortSignal,
        *,
        ahead: bool = True,
        patience: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._source = source
        self._ahead = ahead
        self._wanted = asyncio.Semaphore(0)
        self._signal = signal
        self._patience, self._clock = patience, clock or SystemClock()
        self._left = False
        self._watchdog: asyncio.Task[None] | None = None
        self.is_stale = False
        """Whether the source was given up because nothing came."""
        self._items: asyncio.Queue[tuple[T] | None] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._read())
        self._task.add_done_callback(lambda task: self._items.put_nowait(None))

        def wake() -> None:
            loop.call_soon_threadsafe(self._items.put_nowait, None)

        self._remove = self._signal.on_abort(wake)
        self._heard = self._clock.now()
        if self._patience is not None:
            self._watchdog = asyncio.create_task(self._watch(self._patience))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._left = True
        self._remove()
        if self._watchdog is not None:
            self._watchdog.cancel()
        self._task.cancel()
        self._task.add_done_callback(_drop)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        # The signal first: items that came in before it was set are not shown after it.
        if not self._signal.aborted:
            self._wanted.release()
            item = await self._items.get()
            if item is not None and not self._signal.aborted:
                return item[0]
        raise StopAsyncIteration

    @property
    def error(self) -> BaseException | None:
        """Why the source ended early; None after a normal end, and while it is still read."""
        if not self._task.done():
            return None
        if self._task.cancelled():
            return asyncio.CancelledError("the stream was cancelled from inside")
        return self._task.exception()

    async def _read(self) -> None:
        # langchain promises an iterator only; every model gives a generator, which must be closed.
        async with aclosing(cast(AsyncGenerator[T], self._source)) as source:
            await self._turn()
            async for item in source:
                if self._left:
                    # `asyncio.wait_for` of Python 3.11 loses a cancellation that comes together
                    # with the item that it waited for; without this the stream would be read on.
                    return
                self._items.put_nowait((item,))
                self._heard = self._clock.now()
                if self._items.qsize() == 1:
                    # A source that never has to wait would keep its first item from being shown.
                    await asyncio.sleep(0)
                await self._turn()

    async def _watch(self, patience: float) -> None:
        """One task for all items: it sleeps until the last one is too long ago."""
        while (rest := self._heard + patience - self._clock.now()) > 0:
            await self._clock.sleep(rest)
        self.is_stale = not self._task.done()
        if self.is_stale:
            self._items.put_nowait(None)

    async def _turn(self) -> None:
        """Wait until the next item is asked for, unless the source is read ahead."""
        if not self._ahead:
            await self._wanted.acquire()


def _drop(task: "asyncio.Task[None]") -> None:
    """Fetch the outcome of an abandoned task so that asyncio does not report it."""
    if not task.cancelled():
        task.exception()
