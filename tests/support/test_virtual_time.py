"""Virtual time passes only when nothing else is left to do, and in the order of the timers."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any

from tests.support.virtual_time import VirtualTimeLoop


def run(work: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)


def test_a_long_wait_takes_no_time_and_ends_at_its_exact_moment() -> None:
    async def work() -> float:
        await asyncio.sleep(3600)
        await asyncio.sleep(0.5)
        return asyncio.get_running_loop().time()

    before = time.monotonic()
    assert run(work()) == 3600.5
    assert time.monotonic() - before < 5


def test_concurrent_waits_end_in_the_order_of_their_moments() -> None:
    async def work() -> list[int]:
        order: list[int] = []

        async def wait(seconds: int) -> None:
            await asyncio.sleep(seconds)
            order.append(seconds)

        await asyncio.gather(wait(3), wait(1), wait(2))
        return order

    assert run(work()) == [1, 2, 3]


def test_time_stands_still_while_a_thread_works_for_the_loop() -> None:
    async def work() -> tuple[float, bool]:
        release = threading.Event()
        job = asyncio.get_running_loop().run_in_executor(None, release.wait, 5)
        timer = asyncio.ensure_future(asyncio.sleep(10))
        threading.Timer(0.05, release.set).start()
        await job
        at = asyncio.get_running_loop().time()
        late = timer.done()
        await timer
        return at, late

    assert run(work()) == (0.0, False)


def test_what_is_ready_comes_before_any_timer() -> None:
    async def work() -> list[str]:
        order: list[str] = []

        async def count() -> None:
            for _ in range(100):
                await asyncio.sleep(0)
            order.append("ready")

        async def timer() -> None:
            await asyncio.sleep(0.001)
            order.append("timer")

        await asyncio.gather(timer(), count())
        return order

    assert run(work()) == ["ready", "timer"]
