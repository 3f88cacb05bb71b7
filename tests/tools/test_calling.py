"""How bodies are called: in the loop, in threads, generators to their end."""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from loopwright.signals import AbortSignal
from loopwright.tools.calling import MOST_PIECES, MOST_THREADS, call, in_thread, is_async
from tests.tools.running import context

pytestmark = pytest.mark.anyio
colour: ContextVar[str] = ContextVar("colour")


async def test_a_sync_function_runs_in_another_thread_with_the_caller_s_context() -> None:
    colour.set("red")
    where, seen = await call(lambda: (threading.get_ident(), colour.get()), context())
    assert where != threading.get_ident()
    assert seen == "red"


async def test_an_async_function_runs_in_the_loop() -> None:
    async def body() -> int:
        return threading.get_ident()

    assert await call(body, context()) == threading.get_ident()


async def test_many_sync_bodies_run_at_the_same_time() -> None:
    everyone = threading.Barrier(100)
    await asyncio.gather(*(in_thread(everyone.wait) for _ in range(100)))
    assert everyone.n_waiting == 0
    assert MOST_THREADS >= 100


async def test_a_cancelled_caller_does_not_wait_for_the_thread() -> None:
    started, release, ended = threading.Event(), threading.Event(), threading.Event()

    def body() -> None:
        started.set()
        release.wait()
        ended.set()

    task = asyncio.create_task(in_thread(body))
    await asyncio.to_thread(started.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ended.is_set()
    release.set()
    assert await asyncio.to_thread(ended.wait, 10)


async def test_a_coroutine_that_a_sync_function_returns_is_awaited() -> None:
    async def later() -> str:
        return "later"

    def body() -> Awaitable[str]:
        return later()

    assert await call(body, context()) == "later"


async def test_a_generator_s_pieces_are_reported_and_joined() -> None:
    reported: list[Any] = []

    def body() -> Iterator[str]:
        yield from ("a", "b")

    assert await call(body, context(update=reported.append)) == "ab"
    assert reported == ["a", "b"]


async def test_a_generator_s_return_value_comes_before_its_pieces() -> None:
    def body() -> Any:
        yield "working"
        return {"n": 1}

    assert await call(body, context()) == {"n": 1}


async def test_a_generator_of_other_values_gives_their_list() -> None:
    async def body() -> AsyncIterator[int]:
        yield 1
        yield 2

    assert await call(body, context()) == [1, 2]
    assert await call(lambda: (n for n in (3, 4)), context()) == [3, 4]


@pytest.mark.parametrize("is_sync", [True, False])
async def test_a_generator_is_closed_when_the_run_is_cancelled(is_sync: bool) -> None:
    signal = AbortSignal()
    closed: list[str] = []

    def endless() -> Iterator[str]:
        try:
            while True:
                yield "x"
                signal.abort()
        finally:
            closed.append("closed")

    async def endless_async() -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
                signal.abort()
        finally:
            closed.append("closed")

    assert await call(endless if is_sync else endless_async, context(signal=signal)) == "xx"
    assert closed == ["closed"]


async def test_a_generator_without_end_is_stopped() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    with pytest.raises(RuntimeError, match=f"more than {MOST_PIECES:,} pieces"):
        await call(endless, context())


async def test_what_is_async_is_seen_through_partials_and_objects() -> None:
    class Asker:
        async def __call__(self) -> None: ...

        async def ask(self) -> None: ...

    async def ask(name: str) -> None: ...

    async def pieces() -> AsyncIterator[int]:
        yield 1

    twice = functools.partial(functools.partial(ask), "x")
    found: list[Callable[..., Any]] = [ask, twice, Asker(), Asker().ask, pieces]
    assert [is_async(one) for one in found] == [True] * 5
    assert not is_async(lambda: None)
