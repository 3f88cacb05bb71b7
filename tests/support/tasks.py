"""What an event loop still has to do when a test is over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

TURNS = 20
"""Turns of the loop in which tasks that were cancelled may end."""


@asynccontextmanager
async def no_task_left() -> AsyncIterator[None]:
    """The body must leave no task running that it started, and no exception unheard."""
    loop = asyncio.get_running_loop()
    before, reported = asyncio.all_tasks(), list[str]()
    loop.set_exception_handler(lambda _, context: reported.append(str(context)))
    try:
        yield
        for _ in range(TURNS):
            await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(None)
    assert not asyncio.all_tasks() - before
    assert not reported
