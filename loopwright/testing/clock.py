"""A clock that a test moves: nothing waits in real time, and every wait is on record.

The interface, and the clock that runs by itself, live in `loopwright.clock`.
"""

import asyncio
import heapq
import threading
from itertools import count


class VirtualClock:
    """Stands still until `advance` is called. Safe to use from several threads and event loops.

    With `auto` it jumps to the next wake-up by itself when something sleeps: one turn of the event
    loop later, so that tasks which start together also sleep together.
    """

    def __init__(self, start: float = 0.0, *, auto: bool = False) -> None:
        self.sleeps: list[float] = []
        """Every wait that was asked for, in seconds, in order."""
        self._now = start
        self._auto = auto
        self._lock = threading.Lock()
        self._order = count()
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._watchers: list[tuple[int, asyncio.Future[None]]] = []
        self._planned: asyncio.AbstractEventLoop | None = None

    def now(self) -> float:
        """The start that was given plus the seconds by which the clock was moved."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Return once the clock has been moved this far; at once for zero or less."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            self.sleeps.append(seconds)
            heapq.heappush(self._waiting, (self._now + seconds, next(self._order), woken))
            met = self._met()
        for watcher in met:
            _resolve(watcher)
        if seconds <= 0:
            self.advance(0)
        self._plan()
        try:
            await woken
        finally:
            self._plan()

    def advance(self, seconds: float) -> None:
        """Move the time forward and wake, in order, all whose time has come."""
        with self._lock:
            self._now += seconds
            due = []
            while self._waiting and self._waiting[0][0] <= self._now:
                due.append(heapq.heappop(self._waiting)[2])
        for woken in due:
            _resolve(woken)

    async def sleepers(self, number: int) -> None:
        """Return when at least this many tasks sleep: the moment to `advance`."""
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._watchers.append((number, reached))
            met = self._met()
        for watcher in met:
            _resolve(watcher)
        await reached

    def _met(self) -> list[asyncio.Future[None]]:
        """Take out the watchers that have what they wait for."""
        asleep = sum(not woken.done() for _, _, woken in self._waiting)
        met = [watcher for number, watcher in self._watchers if number <= asleep]
        self._watchers = [entry for entry in self._watchers if entry[0] > asleep]
        return met

    def _plan(self) -> None:
        """Have the clock jump in the next turn of the loop; one jump is planned at a time."""
        with self._lock:
            idle = self._planned is None or self._planned.is_closed()
            if not self._auto or not self._waiting or not idle:
                return
            self._planned = asyncio.get_running_loop()
            self._planned.call_later(0, self._jump)

    def _jump(self) -> None:
        """Go to the earliest wake-up; a sleeper that was cancelled moves nothing."""
        with self._lock:
            self._planned = None
            while self._waiting and self._waiting[0][2].done():
                heapq.heappop(self._waiting)
            step = self._waiting[0][0] - self._now if self._waiting else 0
        self.advance(max(step, 0))


def _resolve(future: "asyncio.Future[None]") -> None:
    """From any thread: the future belongs to the loop of the task that waits."""

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    if not future.done():
        future.get_loop().call_soon_threadsafe(wake)
