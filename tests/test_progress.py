"""What a running tool reports: told in order, before its end, and nothing after it."""

import asyncio
import threading
from typing import Any

import pytest
from langgraph.errors import GraphInterrupt

from loopwright.calls import Batch, Outcome, Prepared, prepare
from loopwright.events import ToolExecutionEnd, ToolExecutionUpdate
from loopwright.performing import perform
from loopwright.state.messages import Call
from loopwright.tools.contract import Tool, ToolContext, ToolResult
from tests.ledgers import user
from tests.support.graphs import told
from tests.support.providers import said
from tests.support.states import Scene, scene
from tests.support.tasks import no_task_left

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
CALL = Call("c1", "count", {"n": "3"})


def counting(body: Any = lambda arguments, context: f"{arguments['n']}", **fields: Any) -> Tool:
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        value = body(arguments, context)
        value = await value if asyncio.iscoroutine(value) else value
        return value if isinstance(value, ToolResult) else ToolResult(content=str(value))

    return Tool(name="count", description="Count.", parameters=SCHEMA, execute=execute, **fields)


def batch(made: Scene) -> Batch:
    return Batch(said("", ("c1", "count", {"n": "3"})), [user("u")], "be brief", made.run)


async def outcome(made: Scene, call: Call = CALL) -> Outcome:
    """The call from preparation to end."""
    ready = await prepare(batch(made), call)
    assert isinstance(ready, Prepared | Outcome)
    return await perform(batch(made), ready) if isinstance(ready, Prepared) else ready


@pytest.mark.anyio
async def test_progress_is_told_in_order_and_before_the_end() -> None:
    slow = asyncio.Event()

    async def listener(event: Any) -> None:
        if isinstance(event, ToolExecutionUpdate):
            await slow.wait()

    def body(arguments: Any, context: ToolContext) -> str:
        context.update("one")
        context.update(ToolResult(content="two", details={"at": 2}))
        slow.set()
        return "done"

    made = scene(tools=[counting(body)])
    made.run.dependencies.listeners.add(listener)
    await outcome(made)
    updates = [event.partial for event in made.events[:-1]]  # type: ignore[union-attr]
    assert updates == [
        {"content": "one", "details": None},
        {"content": "two", "details": {"at": 2}},
    ]
    assert isinstance(made.events[-1], ToolExecutionEnd)
    assert made.events[0].arguments == {"n": "3"}  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_progress_from_a_thread_is_told_and_late_progress_is_not() -> None:
    reports: list[Any] = []

    def work(context: ToolContext) -> str:
        context.update("from a thread")
        return threading.current_thread().name

    def body(arguments: Any, context: ToolContext) -> Any:
        reports.append(context.update)
        return asyncio.to_thread(work, context)

    made = scene(tools=[counting(body)])
    await outcome(made)
    reports[0]("late")
    await asyncio.to_thread(reports[0], "later still")
    await asyncio.sleep(0)
    assert told(made.events) == ["tool_execution_update c1", "tool_execution_end c1"]


@pytest.mark.anyio
async def test_a_listener_that_fails_at_progress_is_heard_once_and_nothing_is_left() -> None:
    def body(arguments: Any, context: ToolContext) -> str:
        for word in ("one", "two", "three"):
            context.update(word)
        return "done"

    async def listener(event: Any) -> None:
        raise KeyError(event.sequence)

    async with no_task_left():
        made = scene(tools=[counting(body)])
        made.run.dependencies.listeners.add(listener)
        with pytest.raises(KeyError, match="0"):
            await outcome(made)


@pytest.mark.anyio
async def test_an_interrupt_passes_through_and_leaves_no_progress_behind() -> None:
    def body(arguments: Any, context: ToolContext) -> None:
        context.update("asking")
        raise GraphInterrupt

    async with no_task_left():
        made = scene(tools=[counting(body)])
        with pytest.raises(GraphInterrupt):
            await outcome(made)
    assert told(made.events) == ["tool_execution_update c1"]
