"""The life of one tool call: prepared, executed, finalised; every failure of it is a result."""

import asyncio
from typing import Any

import pytest

from loopwright.calls import Batch, Outcome, Prepared, end, prepare, refused, start
from loopwright.events import ToolExecutionEnd, ToolExecutionStart
from loopwright.hooks import AfterToolCall, Ask, BeforeToolCall, Hooks, ToolCallContext
from loopwright.performing import perform
from loopwright.settings import Settings
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


def fail(*given: Any) -> Any:
    raise ZeroDivisionError


def batch(made: Scene) -> Batch:
    return Batch(said("", ("c1", "count", {"n": "3"})), [user("u")], "be brief", made.run)


async def outcome(made: Scene, call: Call = CALL) -> Outcome:
    """The call from preparation to end."""
    ready = await prepare(batch(made), call)
    assert isinstance(ready, Prepared | Outcome)
    return await perform(batch(made), ready) if isinstance(ready, Prepared) else ready


# ---- preparation


@pytest.mark.anyio
async def test_arguments_are_prepared_then_checked_and_coerced() -> None:
    raw = {"count": "3"}
    tool = counting(prepare_arguments=lambda given: {"n": given.pop("count")})
    ready = await prepare(batch(scene(tools=[tool])), Call("c1", "count", raw))
    assert isinstance(ready, Prepared)
    assert ready.arguments == {"n": 3}
    assert raw == {"count": "3"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (Call("c", "count", '{"n": ', "it is cut off"), "Not executed: it is cut off"),
        (Call("c", "cuont", {"n": 1}), "Tool cuont not found. Available tools: count"),
        (Call("c", "count", {}), 'Validation failed for tool "count"'),
        (Call("c", "count", {"n": "many"}), 'Validation failed for tool "count"'),
    ],
)
async def test_what_cannot_run_is_an_error_result_and_reaches_no_hook(
    call: Call, says: str
) -> None:
    hooks = Hooks(before_tool_call=fail, after_tool_call=fail)
    ready = await prepare(batch(scene(tools=[counting()], hooks=hooks)), call)
    assert isinstance(ready, Outcome)
    assert str(ready.result.content).startswith(says)
    assert ready.result.is_error and ready.result.terminate is None


@pytest.mark.anyio
async def test_only_tools_on_offer_are_found() -> None:
    made = scene(tools=[counting()])
    made.run.settings = Settings(tools=())
    ready = await prepare(batch(made), CALL)
    assert isinstance(ready, Outcome)
    assert ready.result.content == "Tool count not found. Available tools: none"


@pytest.mark.anyio
async def test_a_hook_sees_the_call_as_it_was_and_may_edit_the_checked_arguments() -> None:
    seen: list[ToolCallContext] = []

    async def before(call: ToolCallContext) -> None:
        seen.append(call)
        call.arguments["n"] = "not checked again"
        call.messages.clear()

    made = scene(tools=[counting()], hooks=Hooks(before_tool_call=before))
    shared = batch(made)
    ready = await prepare(shared, CALL)
    assert isinstance(ready, Prepared)
    assert ready.arguments == {"n": "not checked again"}
    assert seen[0].call.arguments == {"n": "3"}
    assert (seen[0].system_prompt, seen[0].result) == ("be brief", None)
    assert shared.messages


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "content", "terminate"),
    [
        (BeforeToolCall(block=True), "Tool execution was blocked", None),
        (BeforeToolCall(block=True, reason="not today"), "not today", None),
        (BeforeToolCall(block=True, reason="enough", terminate=True), "enough", True),
    ],
)
async def test_a_hook_may_block_a_call(
    answer: BeforeToolCall, content: str, terminate: bool | None
) -> None:
    made = scene(tools=[counting()], hooks=Hooks(before_tool_call=lambda call: answer))
    ready = await prepare(batch(made), CALL)
    assert isinstance(ready, Outcome)
    result = ready.result
    assert (result.content, result.is_error, result.terminate) == (content, True, terminate)


@pytest.mark.anyio
async def test_a_hint_without_a_block_is_ignored() -> None:
    hooks = Hooks(before_tool_call=lambda call: BeforeToolCall(terminate=True))
    assert isinstance(await prepare(batch(scene(tools=[counting()], hooks=hooks)), CALL), Prepared)


@pytest.mark.anyio
@pytest.mark.parametrize("answer", [None, BeforeToolCall(block=True), Ask()], ids=repr)
async def test_an_abort_wins_over_what_the_hook_answers(answer: Any) -> None:
    def before(call: ToolCallContext) -> Any:
        call.signal.abort()
        return answer

    made = scene(tools=[counting()], hooks=Hooks(before_tool_call=before))
    ready = await prepare(batch(made), CALL)
    assert isinstance(ready, Outcome) and ready.result.content == "Operation aborted"


@pytest.mark.anyio
async def test_a_hook_or_a_preparation_that_raises_is_that_call_s_result() -> None:
    def boom(given: Any) -> Any:
        raise LookupError("boom")

    for made in (
        scene(tools=[counting()], hooks=Hooks(before_tool_call=boom)),
        scene(tools=[counting(prepare_arguments=boom)]),
    ):
        ready = await prepare(batch(made), CALL)
        assert isinstance(ready, Outcome)
        assert (ready.result.content, ready.result.is_error) == ("boom", True)


# ---- execution


@pytest.mark.anyio
async def test_a_tool_is_told_where_it_runs(tmp_path: Any) -> None:
    contexts: list[ToolContext] = []
    tool = counting(lambda arguments, context: contexts.append(context))
    made = scene(tools=[tool], workspace=tmp_path)
    await outcome(made)
    (context,) = contexts
    assert (context.thread, context.run_id, context.call_id) == ("t", made.run.id, "c1")
    assert context.signal is made.run.signal
    assert context.workspace == tmp_path
    assert [m.id for m in context.state["messages"]] == ["u"]


@pytest.mark.anyio
async def test_a_call_whose_run_was_aborted_before_does_not_run() -> None:
    made = scene(tools=[counting(fail)], hooks=Hooks(after_tool_call=fail))
    ready = await prepare(batch(made), CALL)
    made.run.signal.abort()
    assert isinstance(ready, Prepared)
    assert (await perform(batch(made), ready)).result.content == "Operation aborted"
    assert told(made.events) == ["tool_execution_end c1"]


@pytest.mark.anyio
async def test_a_tool_that_takes_too_long_is_given_up() -> None:
    made = scene(tools=[counting(lambda a, c: asyncio.Event().wait())])
    made.run.settings = Settings(tool_timeout=0.01)
    async with no_task_left():
        result = (await outcome(made)).result
    assert result.is_error and "took longer than 0.01 seconds" in str(result.content)


# ---- the result


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, ("3", None, False, None)),
        (AfterToolCall(), ("3", None, False, None)),
        (AfterToolCall(content="", is_error=True), ("", None, True, None)),
        (AfterToolCall(content=[], details={"a": 1}), ([], {"a": 1}, False, None)),
        (AfterToolCall(terminate=True), ("3", None, False, True)),
    ],
)
async def test_a_hook_replaces_the_fields_that_it_names(answer: Any, expected: Any) -> None:
    made = scene(tools=[counting()], hooks=Hooks(after_tool_call=lambda call: answer))
    result = (await outcome(made)).result
    assert (result.content, result.details, result.is_error, result.terminate) == expected


@pytest.mark.anyio
async def test_a_hook_sees_a_body_that_raised_and_one_that_raises_replaces_the_result() -> None:
    seen: list[Any] = []

    def after(call: ToolCallContext) -> None:
        seen.append(call.result)
        raise LookupError("in the hook")

    def body(arguments: Any, context: ToolContext) -> None:
        raise ValueError("in the body")

    made = scene(tools=[counting(body)], hooks=Hooks(after_tool_call=after))
    result = (await outcome(made)).result
    assert (seen[0].content, seen[0].is_error) == ("in the body", True)
    assert (result.content, result.is_error, result.terminate) == ("in the hook", True, None)


@pytest.mark.anyio
async def test_a_call_is_told_as_the_model_made_it() -> None:
    made = scene()
    await start(batch(made), CALL)
    await end(batch(made), refused(CALL, "no", terminate=True))
    begun, ended = made.events
    assert isinstance(begun, ToolExecutionStart) and begun.arguments == {"n": "3"}
    assert isinstance(ended, ToolExecutionEnd)
    assert (ended.content, ended.is_error, ended.terminate) == ("no", True, True)


def test_a_stored_result_names_its_call_and_does_not_say_that_it_terminates() -> None:
    made = Outcome(CALL, ToolResult(content="3", details={"a": 1}, terminate=True)).message()
    assert (made.tool_call_id, made.name, made.status) == ("c1", "count", "success")
    assert (made.content, made.artifact, bool(made.id)) == ("3", {"a": 1}, True)
    assert "terminate" not in str(made.model_dump())
