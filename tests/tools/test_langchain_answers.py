"""What langchain tools answer: values, artifacts, Commands, errors of every kind."""

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import (
    InjectedToolCallId,
    StructuredTool,
    ToolException,
    tool,
)
from langgraph.types import Command
from pydantic import BaseModel, Field

from loopwright.tools.contract import ToolResult
from loopwright.tools.langchain import langchain_tool
from tests.tools.running import answer, content, context, failure

pytestmark = pytest.mark.anyio


def search(query: str, limit: int = 3) -> str:
    """Search for it."""
    return f"{query} {limit}"


async def search_async(query: str, limit: int = 3) -> str:
    """Search for it."""
    return f"{query} {limit}"


async def test_an_artifact_becomes_details() -> None:
    @tool(response_format="content_and_artifact")
    def rows(count: int) -> tuple[Any, Any]:
        """Give rows."""
        return {"rows": count}, {"rows": [1] * count}

    @tool(response_format="content_and_artifact")
    def odd() -> tuple[Any, Any]:
        """Give an odd thing."""
        return "shown", object()

    @tool(response_format="content_and_artifact")
    def none() -> Any:
        """Give no artifact."""
        return "only content"

    assert await answer(rows, {"count": 2}) == ToolResult(
        content='{"rows":2}', details={"rows": [1, 1]}
    )
    assert "left out" in (await answer(odd)).details["note"]
    assert "two-tuple" in await failure(none)


@pytest.mark.parametrize(
    ("value", "shown"),
    [("hi", "hi"), (None, ""), ({"b": 1, "a": 2}, '{"a":2,"b":1}'), (["x"], '["x"]'), (3, "3")],
)
async def test_values_are_written_as_those_of_our_own_functions(value: Any, shown: str) -> None:
    @tool
    def give() -> Any:
        """Give it."""
        return value

    @tool
    async def give_async() -> Any:
        """Give it."""
        return value

    assert await content(give) == shown
    assert await content(give_async) == shown


@pytest.mark.parametrize(
    ("value", "name"), [(b"\xff", "bytes"), ({1}, "set"), (object(), "object")]
)
async def test_a_value_without_a_json_form_is_an_error_and_never_a_repr(
    value: Any, name: str
) -> None:
    @tool
    def give() -> Any:
        """Give it."""
        return value

    assert f"a value of type {name}" in await failure(give)


async def test_generators_and_coroutines_are_run_to_their_end() -> None:
    @tool
    def pieces() -> Iterator[str]:
        """Give pieces."""
        yield from ("a", "b")

    @tool
    def later() -> Any:
        """Give a coroutine."""
        return search_async("tea")

    assert await content(pieces) == "ab"
    assert await content(later) == "tea 3"


async def test_content_blocks_stay_content() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image", "base64": "aGk="}]

    @tool
    def show() -> Any:
        """Show."""
        return blocks

    assert (await answer(show)).content == blocks


async def test_a_command_and_a_tool_message_are_results() -> None:
    @tool
    def remember(call: Annotated[str, InjectedToolCallId], more: bool = False) -> Any:
        """Remember."""
        messages = [ToolMessage("kept", tool_call_id=call), HumanMessage("see above")]
        extra = {"memory": 1} if more else {}
        return Command(update={"messages": messages} | extra)

    @tool
    def fail(call: Annotated[str, InjectedToolCallId]) -> ToolMessage:
        """Fail."""
        return ToolMessage("no", tool_call_id=call, status="error")

    result = await answer(remember)
    assert (result.content, [m.content for m in result.messages]) == ("kept", ["see above"])
    assert "the state's 'memory'" in await failure(remember, {"more": True})
    assert await answer(fail) == ToolResult(content="no", is_error=True)


def broken() -> str:
    """Break."""
    raise ToolException("it broke")


@pytest.mark.parametrize(
    ("handling", "told"),
    [
        (False, "it broke"),
        (True, "it broke"),
        ("try again", "try again"),
        (lambda error: f"handled: {error}", "handled: it broke"),
    ],
)
async def test_a_tool_exception_is_an_error_whatever_handles_it(handling: Any, told: str) -> None:
    made = StructuredTool.from_function(broken, handle_tool_error=handling, return_direct=True)
    assert await answer(made) == ToolResult(content=told, is_error=True)


async def test_bad_arguments_that_only_the_tool_itself_refuses_are_told_like_others() -> None:
    class Day(BaseModel):
        when: Annotated[str, Field(json_schema_extra={"type": "string"}, max_length=3)]

    made = StructuredTool.from_function(
        lambda when: when, name="at", description="", args_schema=Day
    )
    ours = langchain_tool(made)
    with pytest.raises(ValueError, match='Validation failed for tool "at":\n- when: '):
        await ours.execute({"when": "long"}, context())


async def test_a_tool_that_returns_directly_asks_for_the_end() -> None:
    made = StructuredTool.from_function(search, return_direct=True)
    assert await answer(made, {"query": "tea"}) == ToolResult(content="tea 3", terminate=True)
