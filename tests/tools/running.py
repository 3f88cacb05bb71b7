"""Runs one call in a test: a context to run in, and the steps that a batch takes for each call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool

from loopwright.tools.arguments import validate
from loopwright.tools.contract import Tool, ToolContext, ToolResult
from loopwright.tools.execution import run_call
from loopwright.tools.registry import registry


def context(workspace: Path | None = None, **given: Any) -> ToolContext:
    """A context of a call named `call-1`."""
    known: dict[str, Any] = {"thread": "thread-1", "run_id": "run-1", "call_id": "call-1"}
    return ToolContext(**(known | given), workspace=workspace)


def as_tool(given: Tool | BaseTool | Callable[..., Any]) -> Tool:
    """What a registry makes of it."""
    return registry([given]).tools[0]


async def answer(
    given: Tool | BaseTool | Callable[..., Any],
    arguments: dict[str, Any] | None = None,
    within: ToolContext | None = None,
) -> ToolResult:
    """The result of one call with these arguments, checked first. Raises InvalidArguments."""
    tool = as_tool(given)
    return await run_call(tool, validate(tool, arguments or {}), within or context())


async def content(
    given: Tool | BaseTool | Callable[..., Any],
    arguments: dict[str, Any] | None = None,
    within: ToolContext | None = None,
) -> str:
    """The text of a result that is no error."""
    result = await answer(given, arguments, within)
    assert not result.is_error, result.content
    assert isinstance(result.content, str)
    return result.content


async def failure(
    given: Tool | BaseTool | Callable[..., Any],
    arguments: dict[str, Any] | None = None,
    within: ToolContext | None = None,
) -> str:
    """The text of a result that is an error."""
    result = await answer(given, arguments, within)
    assert result.is_error, result.content
    assert isinstance(result.content, str)
    return result.content
