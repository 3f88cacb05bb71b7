"""The one loop behind blocking calls: from scripts, threads and loops, never from itself."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from loopwright import background
from loopwright.errors import NestedCallError
from loopwright.testing import Gate
from tests.support.processes import output


async def loop_id() -> int:
    return id(asyncio.get_running_loop())


def test_all_blocking_calls_share_one_loop() -> None:
    with ThreadPoolExecutor(4) as pool:
        ids = set(pool.map(lambda _: background.run(loop_id), range(20)))
    assert ids == {background.run(loop_id)}


@pytest.mark.anyio
async def test_a_blocking_call_works_inside_a_running_loop() -> None:
    assert background.run(loop_id) != await loop_id()


def test_what_the_work_raises_reaches_the_caller() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        background.run(fail)


def test_a_call_from_the_loop_itself_is_refused_with_the_way_out() -> None:
    async def nested() -> None:
        background.run(loop_id)

    async def nested_iteration() -> None:
        next(background.iterate(lambda: numbers(1)))

    for work in (nested, nested_iteration):
        with pytest.raises(NestedCallError, match="use the async method"):
            background.run(work)


def test_an_interrupted_call_cancels_its_work() -> None:
    script = """
        import asyncio, signal, threading
        from loopwright import background
        # A process that a shell has put into the background would ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        async def main():
            try:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set_result("cancelled")
                raise
        async def make():
            return asyncio.get_running_loop().create_future()
        cancelled = background.run(make)
        async def outcome():
            return await cancelled
        try:
            background.run(main)
        except KeyboardInterrupt:
            print(background.run(outcome))
    """
    assert output(script) == "cancelled"


async def numbers(count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number


def test_an_iteration_gives_every_chunk_in_order() -> None:
    assert list(background.iterate(lambda: numbers(100))) == list(range(100))


def test_what_an_iterator_raises_comes_behind_its_chunks() -> None:
    async def failing() -> AsyncIterator[int]:
        yield 1
        raise KeyError("x")

    got: list[int] = []
    with pytest.raises(KeyError):
        for number in background.iterate(failing):
            got.append(number)
    assert got == [1]


def test_leaving_early_closes_the_iterator_before_going_on() -> None:
    closed = threading.Event()

    async def endless() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            for _ in range(10):
                await asyncio.sleep(0)
            closed.set()

    for _ in background.iterate(endless):
        break
    assert closed.is_set()


def test_an_iterator_that_has_ended_may_be_left_early_too() -> None:
    gate = Gate()

    async def short() -> AsyncIterator[int]:
        yield 1
        yield 2
        gate.open()

    iterator = background.iterate(short)
    assert next(iterator) == 1
    gate.wait_blocking()
    iterator.close()  # type: ignore[attr-defined]


def test_an_iteration_that_never_began_runs_nothing() -> None:
    background.iterate(lambda: numbers(1)).close()  # type: ignore[attr-defined]


def test_a_forked_child_has_a_loop_of_its_own() -> None:
    script = """
        import asyncio, os
        from loopwright import background
        async def process():
            return os.getpid()
        mine = background.run(process)
        child = os.fork()
        if child == 0:
            os._exit(background.run(process) != os.getpid())
        print(os.waitpid(child, 0)[1], background.run(process) == mine == os.getpid())
    """
    assert output(script) == "0 True"


def test_a_forked_child_ends_without_a_warning() -> None:
    script = """
        import asyncio, os
        from loopwright import background
        background.run(lambda: asyncio.sleep(0))
        child = os.fork()
        if child:
            print(os.waitpid(child, 0)[1])
    """
    assert output(script) == "0"
