"""How a body runs: async ones in the loop, sync ones in a thread, generators to their end.

What its value means is read in `results`; what it raises is caught in `execution`.
"""

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from anyio import CapacityLimiter, from_thread, to_thread
from anyio.lowlevel import RunVar

from loopwright.tools.contract import ToolContext

T = TypeVar("T")

MOST_THREADS = 256
"""Sync bodies that run at the same time in one event loop; further ones wait."""

MOST_PIECES = 100_000
"""Pieces that a generator may yield."""

_threads: RunVar[CapacityLimiter] = RunVar("loopwright_tool_threads")


async def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a worker thread, with the caller's context variables.

    The event loop stays free. When the caller is cancelled, the thread is left to itself: it runs
    to its end and its outcome is dropped.
    """
    try:
        limiter = _threads.get()
    except LookupError:
        limiter = CapacityLimiter(MOST_THREADS)
        _threads.set(limiter)
    return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)


async def call(function: Callable[[], Any], context: ToolContext) -> Any:
    """Call a function that needs no more arguments and return its value.

    A coroutine that a sync function returns is awaited. A generator, sync or async, runs to its
    end: each piece of text is reported as progress, the value is what it returns or else its
    pieces, joined if they are text. It is closed early when the run is cancelled. Raises
    RuntimeError for one that yields more than MOST_PIECES.
    """
    if is_async(function):
        return await _settled(function(), context)
    return await _settled(await in_thread(lambda: _drained(function(), context)), context)


def call_in_thread(function: Callable[[], Any]) -> Any:
    """The same for a caller that is itself in a thread of `in_thread`; no progress is reported."""
    value = _drained(function(), None)
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        return from_thread.run(_settled, value, None)
    return value


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine or an async generator; looks through partials."""
    while isinstance(function, functools.partial):
        function = function.func
    own = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004 - the method itself is wanted
    return inspect.iscoroutinefunction(own) or inspect.isasyncgenfunction(own)


class _Pieces:
    """What a generator has yielded so far."""

    def __init__(self, context: ToolContext | None) -> None:
        self._context = context
        self._all: list[Any] = []

    def take(self, piece: Any) -> bool:
        """Keep the piece; False when the generator should not go on."""
        self._all.append(piece)
        if len(self._all) > MOST_PIECES:
            raise RuntimeError(f"the tool yielded more than {MOST_PIECES:,} pieces")
        if self._context is None:
            return True
        if isinstance(piece, str):
            self._context.update(piece)
        return not self._context.signal.aborted

    def value(self) -> Any:
        if all(isinstance(piece, str) for piece in self._all):
            return "".join(self._all)
        return self._all


def _drained(value: Any, context: ToolContext | None) -> Any:
    if not isinstance(value, Generator):
        return value
    pieces = _Pieces(context)
    try:
        while pieces.take(next(value)):
            pass
    except StopIteration as end:
        return pieces.value() if end.value is None else end.value
    finally:
        value.close()
    return pieces.value()


async def _settled(value: Any, context: ToolContext | None) -> Any:
    if inspect.isawaitable(value):
        return await value
    if not inspect.isasyncgen(value):
        return value
    pieces = _Pieces(context)
    try:
        async for piece in value:
            if not pieces.take(piece):
                break
    finally:
        await value.aclose()
    return pieces.value()
