"""The document's tool executor: hooks, permission, arguments, and the race of a handler with time.

In which order the calls of a planner run, and whether they may, is the core's.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from langgraph.errors import GraphBubbleUp

from loopwright.hooks import settled
from loopwright.presets.planner.state import call_form, failed, is_error, output_of
from loopwright.signals import AbortSignal
from loopwright.tools.arguments import DEFAULT_RULES, validate
from loopwright.tools.contract import (
    Execute,
    JsonObject,
    Tool,
    ToolContext,
    ToolRegistry,
    ToolResult,
)
from loopwright.tools.execution import error_text, run_call
from loopwright.tools.registry import registry

TOOL_TIMEOUT = 30.0
"""Seconds that a handler has (S4-06)."""

Context = Mapping[str, Any]
"""`sessionId`, and the `signal` that cancels the run."""


class Executor(Protocol):
    """Whatever runs a planner's calls; replaceable (S4-03)."""

    async def execute(self, call: dict[str, Any], ctx: Context) -> Any:
        """The output of one call in the document's form, a JSON value. A failure is an output."""
        ...


def _nothing(*args: Any) -> Any:
    return None


@dataclass(frozen=True, kw_only=True)
class Harness:
    """What stands around every call, sync or async. What one of the first two raises keeps the call
    from running, and is its output.
    """

    before_tool_call: Callable[[dict[str, Any], Context], Any] = _nothing
    assert_permission: Callable[[Tool, Context], Any] = _nothing
    after_tool_call: Callable[[dict[str, Any], Any, Context], Any] = _nothing


class ToolExecutor:
    """Runs functions, langchain tools and `Tool`s by name. `timeout` is in seconds."""

    def __init__(
        self,
        tools: Iterable[Any] = (),
        harness: Harness | None = None,
        *,
        timeout: float = TOOL_TIMEOUT,
    ) -> None:
        self.tools = registry(tools)
        self.timeout = timeout
        self._harness = harness or Harness()

    async def execute(self, call: dict[str, Any], ctx: Context) -> Any:
        """The handler's output; every failure is `{"error": true, "message"}` (S4-06). Only a
        cancellation and LangGraph's own signals pass through.
        """
        output = await self._output(call, ctx)
        try:
            await settled(self._harness.after_tool_call(call, output, ctx))
        except GraphBubbleUp:
            raise
        except Exception as error:  # a hook's failure is the call's output
            return failed(error_text(error))
        return output

    async def _output(self, call: dict[str, Any], ctx: Context) -> Any:
        name = call["function"]["name"]
        try:
            await settled(self._harness.before_tool_call(call, ctx))
            tool = self.tools.get(name)
            if tool is None:
                return failed(f"Tool {name} not found")
            await settled(self._harness.assert_permission(tool, ctx))
            arguments = validate(tool, json.loads(call["function"]["arguments"]), DEFAULT_RULES)
        except GraphBubbleUp:
            raise
        except Exception as error:  # what keeps a call from running is its output
            return failed(error_text(error))
        result = await run_call(tool, arguments, _context(call, ctx), timeout=self.timeout)
        return failed(_text(result)) if result.is_error else _value(result)


def _context(call: dict[str, Any], ctx: Context) -> ToolContext:
    return ToolContext(
        thread=str(ctx["sessionId"]),
        run_id="",
        call_id=str(call["id"]),
        signal=ctx.get("signal") or AbortSignal(),
    )


def _text(result: ToolResult) -> str:
    content = result.content
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _value(result: ToolResult) -> Any:
    """The JSON value that a handler has returned; a text that is one by accident stays a text."""
    content = result.content
    if isinstance(content, str):
        return output_of(content) if content[:1] in ("{", "[") else content
    return content


@dataclass(frozen=True)
class Executing(ToolRegistry):
    """A registry whose tools hand their calls to an executor: those that it offers, and any other
    name that a planner uses.
    """

    executor: Executor | None = None
    session: str = ""

    @classmethod
    def of(cls, executor: Executor, session: str, *others: Tool) -> "Executing":
        """The tools of an executor, and others that are not its."""
        offered = getattr(executor, "tools", ToolRegistry()).tools
        tools = [replace(tool, execute=_executed(executor, session, tool.name)) for tool in offered]
        return cls((*tools, *others), executor, session)

    def get(self, name: str) -> Tool | None:
        """The tool of this name; for an unknown one the executor says so."""
        found = super().get(name)
        if found is not None or self.executor is None:
            return found
        execute = _executed(self.executor, self.session, name)
        return Tool(name=name, description="", parameters={"type": "object"}, execute=execute)

    def select(self, names: Sequence[str] | None) -> ToolRegistry:
        """As a registry's; where none are named, every name is taken."""
        return self if names is None else super().select(names)


def _executed(executor: Executor, session: str, name: str) -> Execute:
    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        call = call_form(context.call_id, name, arguments)
        output = await executor.execute(call, {"sessionId": session, "signal": context.signal})
        content = json.dumps(output, ensure_ascii=False, separators=(",", ":"))
        return ToolResult(content=content, details={"output": output}, is_error=is_error(output))

    return execute
