"""Following a run to its end: its events as they come, Ctrl-C, and the exit code it leads to.

How an event looks is decided by the caller's `show`.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType

from loopwright.agent import Agent
from loopwright.events import AgentEnd, AnyEvent
from loopwright.queueing import WhenBusy

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

_FAILED = {"failed", "limit", "interrupted"}


async def follow(
    agent: Agent,
    prompt: str,
    thread: str,
    show: Callable[[AnyEvent], None],
    when_busy: WhenBusy = "error",
) -> AgentEnd | None:
    """Run a prompt and show every event; returns the last one, None if the prompt was queued.

    The first Ctrl-C aborts the run, which then ends in order; the second leaves the process at
    once, which a thread survives like any other kill.
    """
    end: AgentEnd | None = None
    with _interrupts(agent, thread):
        async for event in agent.stream(prompt, thread=thread, when_busy=when_busy):
            show(event)
            end = event if isinstance(event, AgentEnd) else end
    return end


def exit_code(end: AgentEnd | None) -> int:
    """0 for a run that did what it should and for a queued prompt, 130 for a cancelled run, else
    1."""
    if end is None:
        return 0
    if end.status == "cancelled":
        return INTERRUPTED
    return 1 if end.status in _FAILED else 0


@contextmanager
def _interrupts(agent: Agent, thread: str) -> Iterator[None]:
    """Handle Ctrl-C meanwhile. A plain handler, so that it also works while the loop is blocked."""
    loop = asyncio.get_running_loop()
    pressed: list[int] = []

    def handle(signum: int, frame: FrameType | None) -> None:
        pressed.append(signum)
        if len(pressed) > 1:
            os._exit(INTERRUPTED)
        os.write(2, b"\nloopwright: cancelling; press Ctrl-C again to leave at once\n")
        loop.call_soon_threadsafe(partial(agent.abort, thread=thread))

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        # Once pressed it stays: a tool's thread may still hold up the end of the process.
        if not pressed:
            signal.signal(signal.SIGINT, before)
