"""What an agent shows of a run: complete messages, what comes in, which calls wait, what failed."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage

from loopwright import Agent
from loopwright.events import (
    AnyEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
)
from loopwright.live import LiveState
from loopwright.state.messages import failure
from loopwright.testing import Response, ScriptedModel
from tests.ledgers import answer, result, user
from tests.support.graphs import outline

CUT = AIMessage("", id="a")


def live(*events: AnyEvent) -> LiveState:
    """The state behind these events of a run."""
    state = LiveState()
    for event in events:
        state.apply(event)
    return state


def update(kind: Any, index: int, delta: str = "", **call: Any) -> MessageUpdate:
    return MessageUpdate(message_id="a", update=kind, index=index, delta=delta, **call)


def called(id: str) -> ToolExecutionStart:
    return ToolExecutionStart(tool_call_id=id, tool_name="t", arguments={})


def answered(id: str) -> ToolExecutionEnd:
    return ToolExecutionEnd(
        tool_call_id=id, tool_name="t", content="", is_error=False, details=None, terminate=None
    )


@pytest.mark.parametrize("message", [user("u"), result("r", "c1")], ids=["user", "result"])
def test_every_message_streams_until_it_is_complete(message: Any) -> None:
    state = live(MessageStart(message=message))
    assert (state.streaming_message, state.messages) == (message, [])
    state.apply(MessageEnd(message=message))
    assert (state.streaming_message, state.messages) == (None, [message])


def test_an_answer_is_shown_as_far_as_it_is_known() -> None:
    state = live(MessageStart(message=CUT))
    assert state.streaming_message == CUT
    parts = [
        update("thinking_start", 0),
        update("thinking_delta", 0, "hm"),
        update("text_start", 1),
        update("text_delta", 1, "I "),
        update("text_delta", 1, "look"),
        update("tool_call_start", 2, tool_call_id="c1", tool_name="read"),
        update("tool_call_delta", 2, '{"path": "a.t'),
    ]
    for part in parts:
        state.apply(part)
    shown = state.streaming_message
    assert isinstance(shown, AIMessage) and shown.id == "a"
    assert shown.content == [
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "text", "text": "I look"},
    ]
    (call,) = shown.tool_calls
    assert (call["id"], call["name"], call["args"]) == ("c1", "read", {"path": "a.t"})
    assert state.messages == []


@pytest.mark.parametrize("text", ["", "[1]", "nonsense"])
def test_arguments_that_cannot_be_read_yet_are_empty(text: str) -> None:
    state = live(
        MessageStart(message=CUT),
        update("tool_call_start", 0, tool_call_id="c1", tool_name="read"),
        update("tool_call_delta", 0, text),
    )
    shown = state.streaming_message
    assert isinstance(shown, AIMessage) and shown.tool_calls[0]["args"] == {}


def test_calls_wait_until_they_have_a_result_and_the_set_is_a_new_one_each_time() -> None:
    state = live(called("c1"), called("c2"))
    before = state.pending_tool_calls
    state.apply(answered("c1"))
    assert before == frozenset({"c1", "c2"})
    assert state.pending_tool_calls == frozenset({"c2"})
    state.settle()
    assert state.pending_tool_calls == frozenset()


def test_the_last_failure_stays_shown() -> None:
    failed = failure("it broke", kind="server_error", reason="error", model="m")
    state = live(TurnEnd(message=failed, tool_results=[]))
    assert state.error_message == "it broke"
    state.apply(TurnEnd(message=answer("a"), tool_results=[]))
    assert state.error_message == "it broke"


def test_a_run_streams_from_its_claim_to_its_end_and_forgets_the_last_failure() -> None:
    state = LiveState(error_message="it broke")
    state.claim()
    assert (state.error_message, state.is_streaming) == (None, True)
    state.settle()
    assert not state.is_streaming


def test_editing_the_list_is_noticed_whatever_is_edited() -> None:
    state = LiveState()
    state.begin([user("u"), answer("a")])
    assert not state.edited
    state.apply(MessageEnd(message=user("v")))
    assert not state.edited
    first, second = user("u"), answer("a")
    edits: list[list[AnyMessage]] = [
        [first],
        [first, second, user("w")],
        [user("u"), second],
        [second, first],
    ]
    for edited in edits:
        state.begin([first, second])
        state.messages[:] = edited
        assert state.edited


def test_beginning_keeps_the_list_that_a_caller_may_hold() -> None:
    state = LiveState()
    held = state.messages
    state.begin([user("u")])
    assert held is state.messages and outline(held) == ["user: hi"]


def look() -> str:
    """Look."""
    return "seen"


CALLING = Response(text="I look.", calls=[("c1", "look", {})])


@pytest.mark.anyio
async def test_the_state_is_there_before_a_listener_hears_of_it() -> None:
    seen: list[tuple[str, Any]] = []

    def listen(event: AnyEvent) -> None:
        state = agent.state
        if event.type == "message_end":
            assert state.messages[-1] is event.message and state.streaming_message is None
        if event.type.startswith("tool_execution"):
            seen.append((event.type, set(state.pending_tool_calls)))
        if event.type == "message_update":
            assert state.streaming_message is not None
        assert state.is_streaming

    async with Agent(ScriptedModel([CALLING, "done"]), [look]) as agent:
        assert not agent.state.is_streaming
        agent.subscribe(listen)
        await agent.prompt("hi")
        assert not agent.state.is_streaming
        assert agent.state.messages == agent.messages()
    assert seen == [("tool_execution_start", {"c1"}), ("tool_execution_end", set())]


@pytest.mark.anyio
async def test_an_edit_between_two_runs_rewrites_the_thread_and_one_within_waits() -> None:
    def edit(event: AnyEvent) -> None:
        if event.type == "message_end" and len(agent.state.messages) == 4:
            agent.state.messages.append(user("x", "from a listener"))

    model = ScriptedModel(["one", "two", "three"])
    async with Agent(model) as agent:
        await agent.prompt("hi")
        agent.state.messages[:] = [user("u", "something else"), answer("a", text="oh")]
        agent.subscribe(edit)
        await agent.prompt("go on")
        assert outline(agent.messages()) == [
            "user: something else",
            "assistant: oh",
            "user: go on",
            "assistant: two",
        ]
        assert outline(agent.state.messages)[4:] == ["user: from a listener"]
        await agent.prompt("and now")
        assert outline(agent.messages())[4:] == [
            "user: from a listener",
            "user: and now",
            "assistant: three",
        ]
    assert [len(request.messages) for request in model.requests] == [1, 3, 6]


@pytest.mark.anyio
async def test_a_reset_leaves_nothing_and_a_stored_thread_is_shown_when_it_is_opened(
    tmp_path: Any,
) -> None:
    path = tmp_path / "t.db"
    async with Agent(ScriptedModel(["one"]), database=path, thread="t") as agent:
        await agent.prompt("hi")
        agent.steer("later")
    async with Agent(ScriptedModel(["two"]), database=path, thread="t") as agent:
        assert outline(agent.state.messages) == ["user: hi", "assistant: one"]
        agent.reset()
        assert agent.state.messages == agent.messages() == agent.queued("steering") == []
        await agent.prompt("anew")
        assert outline(agent.messages()) == ["user: anew", "assistant: two"]
