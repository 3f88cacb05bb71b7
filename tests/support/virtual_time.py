"""An event loop whose clock jumps to the next timer as soon as nothing else is left to do.

Delays are exact and cost no real time; what other threads do for the loop is waited for really.
"""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for input and output only while a thread owes the loop something."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.owed = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready; if nothing is and no thread owes anything, time has passed instead."""
        if timeout is None or (self.owed and timeout > 0):
            return super().select(None)
        found = super().select(0)
        if not found and timeout > 0:
            self.now += timeout
        return found


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time()` starts at 0 and moves only when nothing is ready and no executor job is going on.

    For `asyncio.Runner(loop_factory=VirtualTimeLoop)`. Threads that call in without a job of this
    loop are not waited for. With neither timers nor jobs it waits like any other loop.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """The virtual time in seconds."""
        return self._jumping.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """As asyncio's; time stands still until the job has come back to the loop."""
        job = super().run_in_executor(executor, func, *args)
        self._jumping.owed += 1
        job.add_done_callback(self._came_back)
        return job

    def _came_back(self, job: asyncio.Future[Any]) -> None:
        self._jumping.owed -= 1
