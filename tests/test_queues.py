"""The queues of a thread: stored when appended, taken by mode, delivered exactly once."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from loopwright.errors import InputError
from loopwright.events import QueueUpdate
from loopwright.queues import clear, deliver, enqueue, take, waiting
from loopwright.settings import Settings
from loopwright.state.log import MemoryLog
from loopwright.state.schema import Cursor, no_cursor
from tests.ledgers import answer, result, user
from tests.support.graphs import on, outline, rig, told
from tests.support.states import scene

ALL = Settings(steering_mode="all", follow_up_mode="all")


def test_each_message_of_a_prompt_is_an_entry() -> None:
    log = MemoryLog()
    blocks: Any = [{"type": "text", "text": "see"}, {"type": "image", "url": "https://h/x.png"}]
    given = ["one", HumanMessage(blocks, id="m"), AIMessage("three")]
    assert enqueue(log, "t", "steering", given) == [1, 2, 3]
    found = waiting(log, "t", "steering", no_cursor())
    assert outline(found) == ["user: one", "user: see", "assistant: three"]
    assert (found[1].id, found[1].content) == ("m", blocks)
    assert (
        waiting(log, "t", "follow_up", no_cursor())
        == waiting(log, "u", "steering", no_cursor())
        == []
    )


def test_what_is_no_message_is_refused_whole() -> None:
    log = MemoryLog()
    with pytest.raises(InputError):
        enqueue(log, "t", "steering", ["one", 3])
    assert waiting(log, "t", "steering", no_cursor()) == []


@pytest.mark.parametrize("message", [answer("a", "c1"), result("r", "c1")], ids=["calls", "result"])
def test_calls_and_results_are_refused_because_they_may_be_delivered_apart(message: Any) -> None:
    log = MemoryLog()
    with pytest.raises(InputError, match="send them as a prompt"):
        enqueue(log, "t", "steering", ["one", message])
    assert waiting(log, "t", "steering", no_cursor()) == []


def test_clearing_takes_back_what_waits_in_one_queue() -> None:
    log = MemoryLog()
    enqueue(log, "t", "steering", ["one", "two"])
    enqueue(log, "t", "follow_up", "later")
    clear(log, "t", "steering")
    enqueue(log, "t", "steering", "three")
    assert outline(waiting(log, "t", "steering", no_cursor())) == ["user: three"]
    assert outline(waiting(log, "t", "follow_up", no_cursor())) == ["user: later"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("settings", "texts", "left"),
    [(Settings(), ["user: two"], 1), (ALL, ["user: two", "user: three"], 0)],
    ids=["one at a time", "all"],
)
async def test_a_poll_takes_by_mode_what_lies_behind_the_cursor(
    settings: Settings, texts: list[str], left: int
) -> None:
    made = scene(settings=settings)
    enqueue(made.run.dependencies.log, "t", "steering", ["one", "two", "three"])
    taken = await take(made.run, Cursor(steering=1, follow_up=9), "steering")
    assert taken is not None
    assert (outline(taken.messages), taken.waiting) == (texts, left)
    assert taken.cursors[-1] == Cursor(steering=3 - left, follow_up=9)
    assert not made.events
    assert await take(made.run, Cursor(steering=3, follow_up=0), "steering") is None


@pytest.mark.anyio
async def test_a_delivery_is_told_appended_and_counted_message_by_message() -> None:
    made = scene(settings=ALL)
    enqueue(made.run.dependencies.log, "t", "steering", ["one", "two"])
    cursors: list[Any] = []
    made.run.dependencies.listeners.add(lambda event: cursors.append(made.run.cursor))
    await deliver(made.run, await take(made.run, no_cursor(), "steering"))
    assert told(made.events) == ["queue_update", *["message_start user", "message_end user"] * 2]
    assert isinstance(made.events[0], QueueUpdate)
    assert (made.events[0].delivered, made.events[0].waiting) == (2, 0)
    assert [c and c["steering"] for c in cursors] == [None, None, 1, 1, 2]


@pytest.mark.anyio
async def test_nothing_taken_is_nothing_delivered() -> None:
    made = scene()
    await deliver(made.run, None)
    assert not made.events


@pytest.mark.anyio
async def test_a_message_queued_twice_is_delivered_twice_under_ids_of_their_own() -> None:
    made = scene(settings=ALL)
    enqueue(made.run.dependencies.log, "t", "steering", [user("same"), user("same")])
    await deliver(made.run, await take(made.run, no_cursor(), "steering"))
    assert len({m.id for m in made.run.appended}) == 2


@pytest.mark.anyio
async def test_what_a_failed_run_did_not_take_waits_for_the_next() -> None:
    made = rig(RuntimeError("boom"), "one", "two")
    log = made.graph.dependencies.log
    enqueue(log, "t", "steering", ["first", "second"])
    enqueue(log, "t", "follow_up", "last")
    await made.run({"messages": "hi"})
    cursor = (await made.graph.aget_state(on("t"))).values["cursor"]
    assert outline(waiting(log, "t", "steering", cursor)) == ["user: second"]
    made.provider.script.append("three")
    await made.run({"messages": "again"})
    assert outline(await made.ledger())[3:] == [
        "user: again",
        "user: second",
        "assistant: one",
        "user: last",
        "assistant: two",
    ]
