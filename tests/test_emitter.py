"""How an event leaves a run: numbered, shown, written, then heard by one listener after another."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage

from loopwright.emitter import Emitter, Listeners
from loopwright.events import AnyEvent, MessageEnd, MessageStart, TurnStart

TURN = TurnStart(turn=1)


class Shown:
    """A view that calls back."""

    def __init__(self, follow: Callable[[AnyEvent], None]) -> None:
        self.apply = follow

    def begin(self, messages: Sequence[AnyMessage]) -> None:
        """It starts empty."""


def emitter(listeners: Listeners | None = None, **parts: Any) -> Emitter:
    return Emitter("run", listeners or Listeners(), **parts)


@pytest.mark.anyio
async def test_events_are_numbered_from_zero_without_gaps() -> None:
    seen: list[AnyEvent] = []
    source = emitter(views=[Shown(seen.append)])
    for _ in range(3):
        await source.emit(TURN)
    assert [(e.run_id, e.sequence) for e in seen] == [("run", 0), ("run", 1), ("run", 2)]
    assert source.sequence == 3


@pytest.mark.anyio
async def test_views_come_before_the_stream_and_listeners_last() -> None:
    order: list[str] = []
    listeners = Listeners()
    listeners.add(lambda event: order.append("first listener"))

    async def second(event: AnyEvent) -> None:
        await asyncio.sleep(0)
        order.append("second listener")

    async def dispatch(event: AnyEvent) -> None:
        order.append("callbacks")

    listeners.add(second)
    source = emitter(
        listeners,
        views=[Shown(lambda event: order.append("view"))],
        write=lambda event: order.append("stream"),
        dispatch=dispatch,
    )
    await source.emit(TURN)
    assert order == ["view", "stream", "callbacks", "first listener", "second listener"]


@pytest.mark.anyio
async def test_parallel_events_keep_their_numbers_in_order_whatever_listeners_wait_for() -> None:
    written: list[int] = []
    go_on = asyncio.Event()
    listeners = Listeners()

    async def slow(event: AnyEvent) -> None:
        if event.sequence == 0:
            await go_on.wait()

    listeners.add(slow)
    source = emitter(listeners, write=lambda event: written.append(event.sequence))
    tasks = [asyncio.ensure_future(source.emit(TURN)) for _ in range(3)]
    await asyncio.wait(tasks[1:])
    assert (written, tasks[0].done()) == ([0, 1, 2], False)
    go_on.set()
    await asyncio.gather(*tasks)


@pytest.mark.anyio
async def test_a_listener_that_raises_keeps_the_event_from_the_ones_behind_it() -> None:
    heard: list[str] = []
    listeners = Listeners()
    listeners.add(lambda event: heard.append("before"))
    listeners.add(lambda event: 1 // 0)  # type: ignore[arg-type, return-value]
    listeners.add(lambda event: heard.append("behind"))
    source = emitter(listeners)
    with pytest.raises(ZeroDivisionError):
        await source.emit(TURN)
    assert (heard, source.sequence) == (["before"], 1)


@pytest.mark.anyio
async def test_a_listener_added_during_a_delivery_hears_that_event_too() -> None:
    heard: list[str] = []
    listeners = Listeners()

    def adding(event: AnyEvent) -> None:
        if not heard:
            heard.append("adding")
            listeners.add(lambda event: heard.append("added"))

    listeners.add(adding)
    await emitter(listeners).emit(TURN)
    assert heard == ["adding", "added"]


@pytest.mark.anyio
async def test_a_listener_removed_before_its_turn_does_not_hear_the_event() -> None:
    heard: list[str] = []
    listeners = Listeners()
    removals: list[Any] = []
    listeners.add(lambda event: removals[0]())
    removals.append(listeners.add(lambda event: heard.append("removed")))
    listeners.add(lambda event: heard.append("kept"))
    source = emitter(listeners)
    await source.emit(TURN)
    await source.emit(TURN)
    assert heard == ["kept", "kept"]


@pytest.mark.anyio
async def test_the_stream_gets_what_is_complete_and_all_behind_it_when_that_is_stored() -> None:
    heard: list[int] = []
    written: list[int] = []
    listeners = Listeners()
    listeners.add(lambda event: heard.append(event.sequence))
    source = emitter(listeners, write=lambda event: written.append(event.sequence))
    message = HumanMessage("hi", id="m")
    await source.emit(MessageStart(message=message))
    await source.emit(MessageEnd(message=message), stored=True)
    await source.emit(MessageEnd(message=message))
    await source.emit(TURN)
    assert (heard, written) == ([0, 1, 2, 3], [0, 1])
    source.release()
    await source.emit(TURN)
    assert written == [0, 1, 2, 3, 4]
