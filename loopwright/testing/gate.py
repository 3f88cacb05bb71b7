"""A gate in a script: the scripted side stops there until the test opens it.

It replaces sleeping in tests; which places in an answer can have a gate is said in `script`.
"""

import threading

from loopwright.signals import AbortSignal


class Gate:
    """Closed until `open` is called, then open for good. Safe from any thread and event loop.

    `await gate.reached()` returns when something has come to the gate, so a test knows when to act.
    """

    def __init__(self) -> None:
        self._opened = AbortSignal()
        self._reached = AbortSignal()

    @property
    def is_open(self) -> bool:
        """True once `open` was called."""
        return self._opened.aborted

    def open(self) -> None:
        """Let through whatever waits here, now and later."""
        self._opened.abort()

    async def wait(self) -> None:
        """Come to the gate and wait until it is open."""
        self._reached.abort()
        await self._opened.wait()

    def wait_blocking(self, timeout: float | None = None) -> bool:
        """The same from a thread; False if the gate is still closed after `timeout` seconds."""
        self._reached.abort()
        return _block(self._opened, timeout)

    async def reached(self) -> None:
        """Return when something waits, or has waited, at the gate."""
        await self._reached.wait()

    def reached_blocking(self, timeout: float | None = None) -> bool:
        """The same from a thread; False if nothing came within `timeout` seconds."""
        return _block(self._reached, timeout)


def _block(signal: AbortSignal, timeout: float | None) -> bool:
    event = threading.Event()
    remove = signal.on_abort(event.set)
    try:
        return event.wait(timeout)
    finally:
        remove()
