"""A gate holds what comes to it until it is opened, across threads and event loops."""

import asyncio
import threading

import pytest

from loopwright.testing import Gate


@pytest.mark.anyio
async def test_what_waits_goes_on_when_the_gate_is_opened() -> None:
    gate = Gate()
    waiting = asyncio.create_task(gate.wait())
    await gate.reached()
    assert not gate.is_open
    assert not waiting.done()
    gate.open()
    await waiting
    await gate.wait()
    assert gate.is_open


@pytest.mark.anyio
async def test_a_thread_waits_for_a_gate_that_an_event_loop_opens() -> None:
    gate = Gate()
    waiting = asyncio.create_task(asyncio.to_thread(gate.wait_blocking))
    await gate.reached()
    gate.open()
    assert await waiting


def test_a_thread_sees_that_an_event_loop_has_come() -> None:
    gate = Gate()
    thread = threading.Thread(target=lambda: asyncio.run(gate.wait()))
    thread.start()
    assert gate.reached_blocking(30)
    gate.open()
    thread.join()


def test_a_wait_with_a_limit_says_whether_the_gate_was_opened() -> None:
    gate = Gate()
    assert not gate.reached_blocking(0)
    assert not gate.wait_blocking(0)
    gate.open()
    assert gate.wait_blocking(0)
