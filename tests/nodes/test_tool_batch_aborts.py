"""What is kept of a batch that an abort, a cancellation or a failing listener cuts short."""

import asyncio
from typing import Any

import pytest

from loopwright.hooks import Hooks, ToolCallContext
from loopwright.settings import Settings
from loopwright.state.transcript import faults
from loopwright.testing import Gate
from loopwright.tools.contract import ToolContext, ToolResult
from tests.ledgers import user
from tests.support.batches import batch, calling, tool
from tests.support.graphs import outline, rig, told
from tests.support.states import scene
from tests.support.tasks import no_task_left

SEQUENTIAL = Settings(tool_execution="sequential")
LEAVE = Settings(cancel_policy="leave")


def aborting(arguments: Any, context: ToolContext) -> ToolResult:
    context.signal.abort()
    return ToolResult(content="finished", messages=(user("image"),))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("settings", "results"),
    [
        (
            SEQUENTIAL,
            ["c1: finished", "c2: Operation aborted", "c3: Operation aborted", "user: hi"],
        ),
        (
            Settings(tool_execution="sequential", cancel_policy="leave"),
            ["c1: finished", "user: hi"],
        ),
        (
            Settings(),
            ["c1: finished", "c2: Operation aborted", "c3: Operation aborted", "user: hi"],
        ),
    ],
    ids=["sequential", "leave", "parallel"],
)
async def test_an_abort_keeps_what_has_finished_and_nothing_else_starts(
    settings: Settings, results: list[str]
) -> None:
    made = scene(tools=[tool("stop", aborting), tool("b")], settings=settings)
    await batch(made, calling("stop", "b", "b"))
    assert outline(made.run.appended) == results


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("settings", "results"),
    [
        (Settings(), [f"c{n}: Operation aborted" for n in (1, 2, 3)]),
        (LEAVE, [f"c{n}: Operation aborted" for n in (1, 2)]),
    ],
    ids=["record", "leave"],
)
async def test_an_abort_while_a_call_is_prepared_ends_the_batch_behind_it(
    settings: Settings, results: list[str]
) -> None:
    def before(call: ToolCallContext) -> None:
        if call.call.id == "c2":
            call.signal.abort()

    made = scene(tools=[tool("a")], settings=settings, hooks=Hooks(before_tool_call=before))
    await batch(made, calling("a", "a", "a"))
    assert outline(made.run.appended) == results
    assert "tool_execution_start c3" not in told(made.events)


@pytest.mark.anyio
async def test_a_cancelled_batch_leaves_no_body_running() -> None:
    gates, ended = {"c1": Gate(), "c2": Gate()}, list[str]()

    async def endless(arguments: Any, context: ToolContext) -> None:
        try:
            await gates[context.call_id].wait()
        finally:
            ended.append(context.call_id)

    async with no_task_left():
        made = scene(tools=[tool("a", endless)])
        run = asyncio.ensure_future(batch(made, calling("a", "a")))
        for gate in gates.values():
            await gate.reached()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert sorted(ended) == ["c1", "c2"]


# ---- listeners that fail


@pytest.mark.anyio
async def test_what_has_finished_beside_a_failing_listener_is_kept_in_order() -> None:
    made = rig(calling("a", "a", "a"), "fine", tools=[tool("a", "done")])

    def fail(event: Any) -> None:
        if event.type == "tool_execution_end" and event.tool_call_id != "c1":
            raise KeyError(event.tool_call_id)

    async with no_task_left():
        remove = made.graph.dependencies.listeners.add(fail)
        assert (await made.run({"messages": "hi"})).reason == "fault"
        remove()
    ledger = await made.ledger()
    assert outline(ledger)[2:5] == ["c1: done", "c2: done", "c3: done"]
    assert not faults(ledger)


@pytest.mark.anyio
async def test_the_policy_may_leave_calls_beside_a_failing_listener_open() -> None:
    made = scene(tools=[tool("a", "done")], settings=LEAVE)

    def fail(event: Any) -> None:
        if event.type == "tool_execution_end":
            raise KeyError

    made.run.dependencies.listeners.add(fail)
    with pytest.raises(KeyError):
        await batch(made, calling("a", "a"))
    assert made.run.appended == []
