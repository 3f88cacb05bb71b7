"""The cancel signal: set once, heard everywhere, and what waits for it ends at once."""

import asyncio
import threading

import pytest

from loopwright.signals import Aborted, AbortSignal
from tests.support.tasks import no_task_left


def test_the_first_reason_stands() -> None:
    signal = AbortSignal()
    assert (signal.aborted, signal.reason) == (False, None)
    signal.abort("first")
    signal.abort("second")
    assert (signal.aborted, signal.reason) == (True, "first")


def test_callbacks_are_called_once_and_late_ones_at_once() -> None:
    signal, heard = AbortSignal(), list[str]()
    signal.on_abort(lambda: heard.append("early"))
    signal.on_abort(lambda: heard.append("removed"))()
    signal.abort()
    signal.abort()
    signal.on_abort(lambda: heard.append("late"))()
    assert heard == ["early", "late"]


def test_a_callback_may_be_removed_twice_and_after_the_abort() -> None:
    signal = AbortSignal()
    remove = signal.on_abort(lambda: None)
    remove()
    remove()
    signal.abort()
    remove()


@pytest.mark.anyio
async def test_a_signal_set_in_another_thread_wakes_who_waits() -> None:
    signal = AbortSignal()
    waiting = [asyncio.ensure_future(signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    thread = threading.Thread(target=signal.abort)
    thread.start()
    await asyncio.gather(*waiting)
    thread.join()


@pytest.mark.anyio
async def test_waiting_for_a_set_signal_returns() -> None:
    signal = AbortSignal()
    signal.abort()
    await signal.wait()


@pytest.mark.anyio
async def test_a_race_gives_the_work_s_value_or_its_exception() -> None:
    async def fail() -> None:
        raise KeyError("x")

    signal = AbortSignal()
    async with no_task_left():
        assert await signal.race(asyncio.sleep(0, "done")) == "done"
        with pytest.raises(KeyError):
            await signal.race(fail())


@pytest.mark.anyio
async def test_an_abort_wins_at_once_and_the_work_is_not_waited_for() -> None:
    cleaning = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await cleaning.wait()
            raise KeyError("late")

    async with no_task_left():
        signal = AbortSignal()
        race = asyncio.ensure_future(signal.race(stubborn()))
        await asyncio.sleep(0)
        signal.abort("enough")
        with pytest.raises(Aborted, match="enough"):
            await race
        cleaning.set()


@pytest.mark.anyio
async def test_a_cancelled_race_cancels_its_work() -> None:
    async with no_task_left():
        race = asyncio.ensure_future(AbortSignal().race(asyncio.Event().wait()))
        await asyncio.sleep(0)
        race.cancel()
        with pytest.raises(asyncio.CancelledError):
            await race


@pytest.mark.anyio
async def test_a_signal_that_outlives_its_loop_is_harmless() -> None:
    signal = AbortSignal()

    async def give_up() -> None:
        waiting = asyncio.ensure_future(signal.wait())
        await asyncio.sleep(0)
        waiting.cancel()

    await asyncio.to_thread(asyncio.run, give_up())
    signal.abort()
