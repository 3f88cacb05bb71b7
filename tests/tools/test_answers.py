"""How LangChain's own kinds of answers become one result."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.types import Command, Send

from loopwright.tools.answers import read
from loopwright.tools.contract import ToolResult


def own(content: Any = "done", **given: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id="call-1", **given)


def test_a_tool_message_is_the_result() -> None:
    assert read(own(), call_id="call-1") == ToolResult(content="done")
    assert read(own(status="error"), call_id="call-1") == ToolResult(content="done", is_error=True)
    blocks: list[Any] = [{"type": "text", "text": "hi"}, "x"]
    assert read(own(blocks), call_id="call-1").content == blocks


def test_an_artifact_becomes_details_or_leaves_a_note() -> None:
    assert read(own(artifact={"rows": [1]}), call_id="call-1").details == {"rows": [1]}
    details = read(own(artifact=object()), call_id="call-1").details
    assert details == {"note": "left out: a value of type object, which has no JSON form"}


def test_of_a_command_the_message_of_this_call_is_the_result_and_others_follow() -> None:
    image = HumanMessage([{"type": "image", "url": "https://example.com/a.png"}])
    result = read(Command(update={"messages": [image, own()]}), call_id="call-1")
    assert result == ToolResult(content="done", messages=(image,))


def test_messages_of_a_command_may_be_in_their_dict_form() -> None:
    message = {"role": "tool", "content": "done", "tool_call_id": "call-1"}
    assert read(Command(update={"messages": [message]}), call_id="call-1").content == "done"


def test_a_list_of_commands_and_messages_is_read_as_one() -> None:
    note = HumanMessage("note")
    result = read([Command(update={"messages": [note]}), own()], call_id="call-1")
    assert result == ToolResult(content="done", messages=(note,))


def test_a_plain_value_is_read_like_any_returned_value() -> None:
    assert read({"b": 1}, call_id="call-1") == ToolResult(content='{"b":1}')
    assert read([], call_id="call-1") == ToolResult(content="[]")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Command(update={"messages": [own()], "plan": 1}), "writes the state's 'plan'"),
        (Command(update={"messages": [own()]}, goto="other"), "sets 'goto'"),
        (Command(goto=Send("other", {})), "sets 'goto'"),
        (Command(update={"messages": [own()]}, graph=Command.PARENT), "sets 'graph'"),
        (Command(resume="x"), "sets 'resume'"),
        (Command(update=[("messages", [own()])]), "update is a list"),
        (Command(update={"messages": []}), "0 ToolMessages"),
        (Command(), "0 ToolMessages"),
        (Command(update={"messages": [own(), own()]}), "2 ToolMessages"),
        (
            Command(update={"messages": [own(), ToolMessage("x", tool_call_id="other")]}),
            "answers another call ('other')",
        ),
        (Command(update={"messages": [own(), RemoveMessage(id="m")]}), "removes messages"),
        (
            Command(
                update={
                    "messages": [
                        own(),
                        AIMessage("", tool_calls=[{"id": "c", "name": "n", "args": {}}]),
                    ]
                }
            ),
            "with tool calls",
        ),
        (Command(update={"messages": [own(), object()]}), "is no message"),
    ],
)
def test_what_a_command_may_not_do_is_an_error_that_names_it(answer: Any, told: str) -> None:
    result = read(answer, call_id="call-1")
    assert result.is_error
    assert str(result.content).startswith("The tool ran, but ")
    assert told in str(result.content)
    assert result.messages == ()
