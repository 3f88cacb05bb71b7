"""The one event loop per process behind every blocking call: it lives in a thread of its own.

Async resources that a tool made in one blocking call still work in the next (S3-12, K19). Nothing
here knows agents or graphs.
"""

import asyncio
import os
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from loopwright.errors import ConfigurationError, NestedCallError

T = TypeVar("T")


class BackgroundLoop:
    """An event loop in a daemon thread, started at first use."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(
            target=self.loop.run_forever, name="loopwright-loop", daemon=True
        )
        self.thread.start()

    def refuse_nested(self) -> None:
        """Raise NestedCallError if the caller runs on this loop: it would wait for itself."""
        if threading.current_thread() is self.thread:
            raise NestedCallError(
                "a blocking call was made from Loopwright's own event loop, which it would block: "
                "use the async method (await agent.prompt(...), graph.ainvoke(...)) instead"
            )


_lock = threading.Lock()
_loops: dict[int, BackgroundLoop] = {}


def background() -> BackgroundLoop:
    """The loop of this process; a forked child gets its own."""
    process = os.getpid()
    found = _loops.get(process)
    if found is None:
        with _lock:
            found = (
                _loops.setdefault(process, BackgroundLoop())
                if process not in _loops
                else _loops[process]
            )
    return found


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that the caller runs in, None outside of any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def require_loop() -> None:
    """Raise ConfigurationError outside a running event loop."""
    if running_loop() is None:
        raise ConfigurationError(
            "prompt, stream, continue_ and resume need a running event loop: use run() instead"
        )


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine on the background loop and wait for it; an interruption here cancels it.

    Works in a script, inside a running loop, and from several threads at once. Raises
    NestedCallError on the background loop itself.
    """
    owner = background()
    owner.refuse_nested()
    future = asyncio.run_coroutine_threadsafe(work(), owner.loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


_END = object()


def iterate(source: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
    """Iterate an async iterator that runs on the background loop; leaving early closes it."""
    owner = background()
    owner.refuse_nested()
    chunks: queue.SimpleQueue[Any] = queue.SimpleQueue()

    async def pump() -> None:
        try:
            async for chunk in source():
                chunks.put(chunk)
        finally:
            chunks.put(_END)

    future = asyncio.run_coroutine_threadsafe(pump(), owner.loop)
    chunk: Any = _END
    try:
        while (chunk := chunks.get()) is not _END:
            yield chunk
        future.result()
    finally:
        future.cancel()
        while chunk is not _END:  # it has begun, so it says when it has ended and let go
            chunk = chunks.get()
