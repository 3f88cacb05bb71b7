"""The course's event stream: events to iterate and a result to await, each without the other.

What is pushed into one, and when, is decided by whoever makes it.
"""

import asyncio
import weakref
from collections import deque
from typing import Any, Generic, Self, TypeVar

from loopwright.errors import ConfigurationError

E = TypeVar("E")
R = TypeVar("R")


class EventStream(Generic[E, R]):
    """Events in order, and one result behind them. For one event loop.

    Events that nobody has taken yet are kept, also when the stream has ended. One consumer at a
    time: a second one is refused until the first has ended or was dropped (S0-25).
    """

    def __init__(self) -> None:
        self._events: deque[E] = deque()
        self._outcome: tuple[R] | BaseException | None = None
        self._more = asyncio.Event()
        self._consumer: Any = lambda: None

    def push(self, event: E) -> None:
        """Add an event; nothing is added to a stream that has ended."""
        if self._outcome is None:
            self._events.append(event)
            self._more.set()

    def finish(self, result: R) -> None:
        """End the stream with its result; only the first end counts."""
        self._end((result,))

    def fail(self, error: BaseException) -> None:
        """End the stream with an error, which the consumer and `result` raise."""
        self._end(error)

    def _end(self, outcome: tuple[R] | BaseException) -> None:
        if self._outcome is None:
            self._outcome = outcome
            self._more.set()

    async def result(self) -> R:
        """The result, once the stream has ended; the events need not be taken for it."""
        while self._outcome is None:
            self._more.clear()
            await self._more.wait()
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome[0]

    def __aiter__(self) -> "Consumer[E, R]":
        known = self._consumer()
        if known is not None and not known.ended:
            raise ConfigurationError("the stream has a consumer: one may iterate it at a time")
        consumer = Consumer(self)
        self._consumer = weakref.ref(consumer)
        return consumer

    async def take(self) -> E:
        """The next event; raises StopAsyncIteration behind the last one."""
        while not self._events and self._outcome is None:
            self._more.clear()
            await self._more.wait()
        if self._events:
            return self._events.popleft()
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        raise StopAsyncIteration


class Consumer(Generic[E, R]):
    """The one who iterates a stream."""

    def __init__(self, stream: EventStream[E, R]) -> None:
        self._stream = stream
        self.ended = False
        """Whether it has seen the end, or was closed."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> E:
        if self.ended:
            raise StopAsyncIteration
        try:
            return await self._stream.take()
        except StopAsyncIteration:
            self.ended = True
            raise

    async def aclose(self) -> None:
        """Leave the stream to another consumer."""
        self.ended = True
