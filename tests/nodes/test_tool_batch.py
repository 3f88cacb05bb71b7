"""The node that runs the calls of one answer: order, modes, aborts, and what ends a run."""

import asyncio
from typing import Any

import pytest

from loopwright.hooks import BeforeToolCall, Hooks, ToolCallContext
from loopwright.settings import Settings
from loopwright.testing import Gate
from loopwright.tools.contract import ToolContext, ToolResult
from tests.ledgers import result, user
from tests.support.batches import batch, calling, tool
from tests.support.graphs import outline, rig, told
from tests.support.states import scene

SEQUENTIAL = Settings(tool_execution="sequential")


@pytest.mark.anyio
async def test_every_call_gets_its_result_in_source_order() -> None:
    made = scene(tools=[tool("a", "one"), tool("b", "two"), tool("c", ValueError("three"))])
    update = await batch(made, calling("c", "b", "a"))
    assert update["decision"]["kind"] == "again"
    assert outline(made.run.appended) == ["c1: three", "c2: two", "c3: one"]
    assert [m.status for m in made.run.appended] == ["error", "success", "success"]  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_ends_are_told_as_they_come_and_results_join_in_source_order() -> None:
    gate = Gate()

    async def slow(arguments: Any, context: Any) -> str:
        await gate.wait()
        return "slow"

    def fast(arguments: Any, context: Any) -> str:
        return "fast"

    made = scene(tools=[tool("slow", slow), tool("fast", fast)])

    def listen(event: Any) -> None:
        if event.type == "tool_execution_end" and event.tool_call_id == "c2":
            gate.open()

    made.run.dependencies.listeners.add(listen)
    await batch(made, calling("slow", "fast"))
    assert told(made.events) == [
        "tool_execution_start c1",
        "tool_execution_start c2",
        "tool_execution_end c2",
        "tool_execution_end c1",
        *["message_start tool", "message_end tool"] * 2,
    ]
    assert outline(made.run.appended) == ["c1: slow", "c2: fast"]


@pytest.mark.anyio
async def test_bodies_start_when_all_calls_are_prepared_and_a_failure_is_told_at_once() -> None:
    order: list[str] = []

    async def before(call: ToolCallContext) -> None:
        order.append(f"prepare {call.call.id}")
        await asyncio.sleep(0)

    def body(arguments: Any, context: ToolContext) -> str:
        order.append(f"run {context.call_id}")
        return "ok"

    made = scene(tools=[tool("a", body)], hooks=Hooks(before_tool_call=before))
    await batch(made, calling("a", "unknown", "a"))
    assert order == ["prepare c1", "prepare c3", "run c1", "run c3"]
    assert told(made.events)[:4] == [
        "tool_execution_start c1",
        "tool_execution_start c2",
        "tool_execution_end c2",
        "tool_execution_start c3",
    ]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("settings", "mode", "sequential"),
    [
        (Settings(), None, False),
        (Settings(), "sequential", True),
        (SEQUENTIAL, None, True),
        (SEQUENTIAL, "parallel", True),
    ],
)
async def test_the_policy_or_a_called_tool_makes_a_batch_sequential(
    settings: Settings, mode: Any, sequential: bool
) -> None:
    tools = [tool("a", execution_mode=mode), tool("b"), tool("u", execution_mode="sequential")]
    made = scene(tools=tools, settings=settings)
    await batch(made, calling("a", "b"))
    events = told(made.events)
    first_result = events.index("message_end tool")
    assert (events.index("tool_execution_start c2") > first_result) is sequential


@pytest.mark.anyio
@pytest.mark.parametrize("settings", [Settings(), SEQUENTIAL], ids=["parallel", "sequential"])
@pytest.mark.parametrize(
    ("hints", "kind"),
    [([True, True], "satisfied"), ([True, None], "again"), ([True, False], "again")],
)
async def test_a_run_ends_only_if_every_result_says_so(
    settings: Settings, hints: list[Any], kind: str
) -> None:
    tools = [tool(f"t{n}", ToolResult(terminate=hint)) for n, hint in enumerate(hints)]
    made = scene(tools=tools, settings=settings)
    update = await batch(made, calling("t0", "t1"))
    assert update["decision"]["kind"] == kind
    assert "terminate" not in str([m.model_dump() for m in made.run.appended])


@pytest.mark.anyio
async def test_a_terminated_batch_ends_the_run_also_behind_what_a_tool_sent_along() -> None:
    extra = ToolResult(content="sent", terminate=True, messages=(user("image"),))
    made = rig(calling("t"), "never asked for", tools=[tool("t", extra)])
    ended = await made.run({"messages": "hi"})
    assert (ended.status, ended.reason) == ("completed", "terminated")
    assert outline(await made.ledger())[-2:] == ["c1: sent", "user: hi"]


@pytest.mark.anyio
@pytest.mark.parametrize("settings", [Settings(), SEQUENTIAL], ids=["parallel", "sequential"])
async def test_what_tools_send_along_stands_behind_all_results(settings: Settings) -> None:
    extra = ToolResult(content="sent", messages=(user("image"),))
    made = scene(tools=[tool("a", extra), tool("b")], settings=settings)
    await batch(made, calling("a", "b", "a"))
    assert outline(made.run.appended) == [
        "c1: sent",
        "c2: ok",
        "c3: sent",
        "user: hi",
        "user: hi",
    ]
    assert len({m.id for m in made.run.appended}) == 5


@pytest.mark.anyio
async def test_calls_that_were_cut_off_are_refused_and_never_end_the_run() -> None:
    hooks = Hooks(before_tool_call=lambda call: BeforeToolCall(block=True, terminate=True))
    made = scene(tools=[tool("a", ToolResult(terminate=True))], hooks=hooks)
    update = await batch(made, calling("a", "unknown", stop="length"))
    assert update["decision"]["kind"] == "again"
    assert all("cut off by the output limit" in m.text for m in made.run.appended)
    call = ["tool_execution_start", "tool_execution_end"]
    pair = ["message_start tool", "message_end tool"]
    assert told(made.events) == [
        *[f"{w} c1" for w in call],
        *pair,
        *[f"{w} c2" for w in call],
        *pair,
    ]


@pytest.mark.anyio
async def test_calls_that_have_results_already_do_not_run_again() -> None:
    made = scene(tools=[tool("a", "new")])
    await batch(made, calling("a", "a"), result("r", "c1"))
    assert outline(made.run.appended) == ["c2: new"]


@pytest.mark.anyio
async def test_a_batch_that_was_held_goes_on_alone_and_joins_in_source_order() -> None:
    made = scene(tools=[tool("a", "new")])
    held = {"results": [result("r", "c2", "kept")], "extra": [user("image")], "terminate": False}
    update = await batch(made, calling("a", "a", "a"), held=held)
    assert update["decision"]["kind"] == "tools"
    assert made.run.appended == []
    update = await batch(made, calling("a", "a", "a"), held=update["held"])
    assert (update["decision"]["kind"], update["held"]) == ("again", None)
    assert outline(made.run.appended) == ["c1: new", "c2: kept", "c3: new", "user: hi"]
