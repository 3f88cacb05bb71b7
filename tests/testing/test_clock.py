"""A test owns the time: nothing waits until the clock is moved."""

import asyncio
import time

import pytest

from loopwright.testing import SystemClock, VirtualClock

pytestmark = pytest.mark.anyio


async def test_sleepers_wake_in_the_order_of_their_time() -> None:
    clock, woken = VirtualClock(start=100.0), []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((seconds, clock.now()))

    async with asyncio.TaskGroup() as tasks:
        for seconds in (3, 1, 2):
            tasks.create_task(sleeper(seconds))
        await clock.sleepers(3)
        assert woken == []
        clock.advance(2)
        await asyncio.sleep(0)
        await clock.sleepers(1)
        clock.advance(1)
    assert woken == [(1, 102.0), (2, 102.0), (3, 103.0)]
    assert clock.sleeps == [3, 1, 2]


async def test_a_sleep_of_nothing_does_not_wait() -> None:
    clock = VirtualClock()
    await clock.sleep(0)
    await clock.sleep(-1)
    assert clock.now() == 0


async def test_an_automatic_clock_jumps_from_one_wake_up_to_the_next() -> None:
    clock, woken = VirtualClock(auto=True), []

    async def sleeper(name: str, *waits: float) -> None:
        for wait in waits:
            await clock.sleep(wait)
            woken.append((name, clock.now()))

    await asyncio.gather(sleeper("a", 1, 2, 3), sleeper("b", 2.5))
    assert woken == [("a", 1), ("b", 2.5), ("a", 3), ("a", 6)]


async def test_a_cancelled_sleeper_does_not_move_an_automatic_clock() -> None:
    clock = VirtualClock(auto=True)
    task = asyncio.create_task(clock.sleep(100))
    await asyncio.sleep(0)  # one turn: it sleeps now, and the jump comes behind this task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await clock.sleep(1)
    assert clock.now() == 1


async def test_a_clock_can_be_moved_from_another_thread() -> None:
    clock = VirtualClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.sleepers(1)
    await asyncio.to_thread(clock.advance, 5)
    await task


def test_an_automatic_clock_outlives_an_event_loop() -> None:
    clock = VirtualClock(auto=True)
    for _ in range(2):
        asyncio.run(clock.sleep(1))
    assert clock.now() == 2


async def test_the_system_s_clock_tells_unix_time_and_does_not_wait_for_nothing() -> None:
    clock = SystemClock()
    before = time.time()
    await clock.sleep(-1)
    assert before <= clock.now() <= time.time()
