"""The cancel signal of a run: set once from any thread, awaited by models and tools.

It only tells; nothing here stops a task. What an abort means is decided by the loop (design.md §7).
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class Aborted(Exception):
    """The run was cancelled while something waited; caught where the wait was started."""


class AbortSignal:
    """Set at most once; never cleared. Safe to set and to read from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._reason: str | None = None

    @property
    def aborted(self) -> bool:
        """True once `abort` was called."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """The text given to `abort`, None while the signal is unset."""
        return self._reason

    def abort(self, reason: str = "cancelled") -> None:
        """Set the signal. A second call does nothing."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_abort(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once when the signal is set (at once if it is). Returns its removal."""
        with self._lock:
            if self._reason is None:
                self._callbacks.append(callback)
                return lambda: self._remove(callback)
        callback()
        return lambda: None

    def _remove(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    async def wait(self) -> None:
        """Return when the signal is set."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def finish() -> None:
            if not done.done():
                done.set_result(None)

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(finish)

        remove = self.on_abort(wake)
        try:
            await done
        finally:
            remove()

    async def race(self, work: Awaitable[T]) -> T:
        """Await `work`, but raise `Aborted` as soon as the signal is set; `work` is then cancelled.

        The cancelled work is not waited for and its late outcome is dropped (S0-24).
        """
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise Aborted(self._reason)
        finally:
            stop.cancel()
            if not task.done():
                task.cancel()
                task.add_done_callback(_swallow)


def _swallow(task: "asyncio.Future[T]") -> None:
    """Fetch the outcome of abandoned work so that asyncio does not report it as never retrieved."""
    if not task.cancelled():
        task.exception()
