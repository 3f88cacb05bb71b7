"""The course's document (S0) to the letter: its two quoted tests, then each acceptance criterion.

Each exercise of its text has a test here too; whole runs beyond it are in the vector suites.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loopwright.errors import ConfigurationError
from loopwright.presets.course import (
    MAX_AGENT_STEPS,
    AssistantMessage,
    TextBlock,
    Tool,
    ToolRegistry,
    ToolResultMessage,
    run_agent_loop,
)
from loopwright.signals import AbortSignal
from tests.support.course import (
    ScriptedModel,
    add_tool,
    call,
    calling,
    echo_tool,
    run,
    settle_run,
    texts,
    types,
    user,
)

ECHOES = [call("echo", f"call-echo-00{n}", {"value": n}) for n in (1, 2, 3)]


@pytest.mark.anyio
async def test_appends_one_tool_call_and_its_matching_result_before_the_second_model_request() -> (
    None
):
    """The first quoted test."""
    add_call = call("add", "call-add-001", {"left": 20, "right": 22})
    model = ScriptedModel(
        [calling("response-tool-001", add_call), texts("response-tool-002", "The sum is 42.")]
    )

    events, result = await settle_run(
        run_agent_loop(
            messages=[user()],
            model=model,
            tools=ToolRegistry([add_tool()]),
            max_steps=2,
            signal=AbortSignal(),
        )
    )

    assert model.call_count == 2
    assert [request.id for request in model.requests] == ["request-001", "request-002"]
    assert list(model.requests[1].messages) == [
        user(),
        AssistantMessage("message-response-tool-001", [add_call]),
        ToolResultMessage(
            id="tool-result-call-add-001",
            tool_call_id="call-add-001",
            tool_name="add",
            content='{"sum":42}',
            is_error=False,
        ),
    ]
    assert types(events) == [
        "message.accepted",
        "model.chunk",
        "tool.started",
        "tool.finished",
        "model.chunk",
        "run.finished",
    ]
    assert [event.sequence for event in events] == [0, 1, 2, 3, 4, 5]
    assert (result.status, result.final_text) == ("completed", "The sum is 42.")


def budget_model() -> ScriptedModel:
    return ScriptedModel(
        [calling("response-budget-001", *ECHOES), texts("response-budget-002", "must not run")]
    )


@pytest.mark.anyio
async def test_a_budget_of_one_step_finishes_its_batch_and_asks_no_more() -> None:
    """The second quoted test, with the budget of the document."""
    model, executed = budget_model(), list[str]()

    events, result = await settle_run(
        run_agent_loop(
            messages=[user("Echo three values.")],
            model=model,
            tools=ToolRegistry([echo_tool(executed)]),
            max_steps=1,
            signal=AbortSignal(),
        )
    )

    assert executed == ["call-echo-001", "call-echo-002", "call-echo-003"]
    assert model.call_count == 1
    assert (result.status, result.max_steps) == ("maxSteps", 1)
    assert events[-1].type == "run.finished"
    assert events[-1].sequence == len(events) - 1
    assert events[-1].payload["result"] is result


@pytest.mark.anyio
async def test_with_two_steps_the_waiting_answer_runs_and_completes() -> None:
    """The experiment behind the second quoted test: only the budget is changed."""
    model, executed = budget_model(), list[str]()
    events, result = await run(model, echo_tool(executed), max_steps=2)
    assert executed == ["call-echo-001", "call-echo-002", "call-echo-003"]
    assert model.call_count == 2
    assert (result.status, result.final_text) == ("completed", "must not run")
    assert types(events)[-2:] == ["model.chunk", "run.finished"]


NO_NETWORK = """
import socket, sys
def refuse(*args): raise OSError("no network in this test")
socket.socket.connect = socket.getaddrinfo = refuse
import pytest
sys.exit(pytest.main([sys.argv[1], "-q", "-p", "no:cacheprovider", "-k", "not criterion_1"]))
"""


def test_criterion_1_the_focused_test_passes_without_a_network() -> None:
    command = [sys.executable, "-c", NO_NETWORK, __file__]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "passed" in ended.stdout


@pytest.mark.parametrize(
    "options",
    [
        {"max_steps": MAX_AGENT_STEPS + 1},
        {"max_steps": 0},
        {"max_steps": True},
        {"max_steps": 1.0},
        {"max_steps": 1, "request_sequence_start": 64},
        {"max_steps": 2, "request_sequence_start": 63},
        {"max_steps": 1, "request_sequence_start": -1},
        {"tools": [add_tool()]},
        {"signal": None},
    ],
    ids=str,
)
def test_criterion_2_a_wrong_option_is_refused_before_the_model_is_active(
    options: dict[str, Any],
) -> None:
    model = ScriptedModel([])
    given = {"max_steps": 1, "tools": ToolRegistry(), "signal": AbortSignal(), **options}
    with pytest.raises(ConfigurationError, match=r" is ") as refused:
        run_agent_loop(messages=[user()], model=model, **given)
    assert refused.value.field
    assert model.call_count == 0


@pytest.mark.anyio
async def test_criterion_3_the_run_owns_its_messages_and_its_list_of_tools() -> None:
    executed = list[str]()
    late = calling("r1", call("echo", "c1", {}), call("late", "c2", {}))
    model = ScriptedModel([late, texts("r2", "done")])
    content: list[Any] = [{"type": "text", "text": "before"}]
    messages: list[Any] = [
        {"id": "u", "role": "user", "content": "before"},
        {"id": "a", "role": "assistant", "content": content},
    ]
    registry = ToolRegistry([echo_tool(executed)])
    stream = run_agent_loop(
        messages=messages, model=model, tools=registry, max_steps=2, signal=AbortSignal()
    )
    messages[0]["content"] = content[0]["text"] = "after"
    messages.clear()
    registry.register(Tool("late", "Came too late.", lambda value, execution: executed.append("!")))
    _, result = await settle_run(stream)
    asked = model.requests[0].messages
    assert [getattr(m, "content", None) for m in asked] == ["before", (TextBlock("before"),)]
    assert executed == ["c1"]
    assert "TOOL_NOT_FOUND" in getattr(result.messages[4], "content", "")


class Deceiving(ToolRegistry):
    """A registry that would give away something else than it holds."""

    def snapshot(self) -> tuple[Tool, ...]:
        raise AssertionError("asked")


@pytest.mark.anyio
async def test_criterion_3_a_registry_cannot_put_itself_between() -> None:
    model = ScriptedModel([calling("r1", call("add", "c1", {"left": 1, "right": 1}))])
    _, result = await run(model, max_steps=1, tools=Deceiving([add_tool()]))
    assert getattr(result.messages[-1], "content", None) == '{"sum":2}'


@pytest.mark.anyio
async def test_criterion_4_each_step_gets_the_whole_frozen_transcript_and_a_stable_id() -> None:
    model = ScriptedModel(
        [
            calling("r1", call("echo", "c1", {"value": [1, {"a": 2}]})),
            calling("r2", call("echo", "c2", {})),
            texts("r3", "done"),
        ]
    )
    _, result = await run(model, echo_tool([]), max_steps=3, request_sequence_start=61)
    assert [request.id for request in model.requests] == [
        "request-062",
        "request-063",
        "request-064",
    ]
    assert [len(request.messages) for request in model.requests] == [1, 3, 5]
    for request in model.requests:
        assert request.messages == result.messages[: len(request.messages)]
    arguments: Any = getattr(model.requests[1].messages[1], "content")[0].arguments  # noqa: B009
    with pytest.raises(TypeError):
        arguments["value"] = 3
    with pytest.raises(TypeError):
        arguments["value"][1]["a"] = 3


@pytest.mark.anyio
async def test_criterion_5_the_answer_stands_before_its_results_in_its_own_order() -> None:
    model, executed = ScriptedModel([calling("r1", *reversed(ECHOES))]), list[str]()
    events, result = await run(model, echo_tool(executed), max_steps=1)
    order = ["call-echo-003", "call-echo-002", "call-echo-001"]
    assert executed == order
    assert [m.role for m in result.messages] == ["user", "assistant", *["toolResult"] * 3]
    assert [getattr(m, "tool_call_id", None) for m in result.messages[2:]] == order
    assert types(events)[4:-1] == ["tool.started", "tool.finished"] * 3


@pytest.mark.anyio
async def test_criterion_6_a_recoverable_failure_is_a_linked_message_that_the_model_reads() -> None:
    def broken(value: Any, execution: Any) -> Any:
        raise RuntimeError("out of order")

    model = ScriptedModel([calling("r1", call("broken", "c1", {})), texts("r2", "I see.")])
    _, result = await run(model, Tool("broken", "Fails.", broken))
    failed = ToolResultMessage(
        "tool-result-c1",
        "c1",
        "broken",
        '{"error":{"code":"TOOL_EXECUTION_FAILED","message":"out of order"}}',
        True,
    )
    assert model.requests[1].messages[-1] == failed
    assert (result.status, result.final_text) == ("completed", "I see.")


@pytest.mark.anyio
async def test_criterion_7_one_sequence_counts_all_events_and_run_finished_is_the_last() -> None:
    model = ScriptedModel([calling("r1", *ECHOES), texts("r2", "done")])
    events, _ = await run(model, echo_tool([]), messages=[user(), user(), user()])
    assert [event.sequence for event in events] == list(range(len(events)))
    assert set(types(events)) == {
        "message.accepted",
        "model.chunk",
        "tool.started",
        "tool.finished",
        "run.finished",
    }
    assert types(events).index("run.finished") == len(events) - 1


@pytest.mark.anyio
async def test_criterion_8_a_cancel_keeps_complete_messages_and_makes_up_no_result() -> None:
    signal, executed = AbortSignal(), list[str]()

    def stop(point: str) -> None:
        if len(executed) == 2:
            signal.abort("enough")

    model = ScriptedModel([calling("r1", *ECHOES)])
    events, result = await run(model, echo_tool(executed, stop), signal=signal)
    assert (result.status, result.reason) == ("cancelled", "enough")
    assert [m.role for m in result.messages] == ["user", "assistant", "toolResult"]
    assert types(events)[-2:] == ["tool.started", "run.finished"]


@pytest.mark.anyio
async def test_criterion_9_with_one_step_the_batch_ends_and_no_further_request_is_opened() -> None:
    model, executed = budget_model(), list[str]()
    events, result = await run(model, echo_tool(executed), max_steps=1)
    assert len(executed) == 3
    assert model.call_count == 1
    assert (result.status, events[-1].payload["result"].max_steps) == ("maxSteps", 1)
