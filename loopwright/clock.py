"""What time it is and how a run waits: one small interface, so that a test can own the time.

The clock of a process is here; the one that tests move by hand is `testing.VirtualClock`.
"""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits. Whatever waits on purpose takes one of these."""

    def now(self) -> float:
        """Unix time in seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when this many seconds have passed; at once for zero or less."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Unix time in seconds."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait in real time without blocking the event loop."""
        await asyncio.sleep(max(seconds, 0))
