"""The course's tools: a registry, tools with validators, and how the core runs them (S0-03, S0-17).

In which order calls run, and what a cancel does to them, is the core's.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from loopwright.errors import ConfigurationError, FatalToolError
from loopwright.presets.course.protocol import frozen
from loopwright.signals import AbortSignal
from loopwright.tools.arguments import ArgumentRules, violations
from loopwright.tools.contract import JsonObject, ToolContext, ToolResult
from loopwright.tools.contract import Tool as CoreTool
from loopwright.tools.contract import ToolRegistry as CoreRegistry
from loopwright.tools.execution import error_text

OUTPUT = ArgumentRules(depth=33, values=129, entries=257)
"""What an output may hold: 32 containers deep, 128 values, 256 entries, and the object around it
that it is checked in."""


@dataclass(frozen=True)
class Valid:
    """A validator's yes: `value` is what the tool is given."""

    value: Any


@dataclass(frozen=True)
class Invalid:
    """A validator's no: the model reads `error`."""

    error: str


@dataclass(frozen=True)
class ToolExecution:
    """What a running tool may know."""

    tool_call_id: str
    signal: AbortSignal


@dataclass(frozen=True)
class Tool:
    """A tool: `validate` looks at the arguments (read-only) and must not be async; `execute` gets
    what it let through and returns a JSON value, or an awaitable of one.

    A tool that raises FatalToolError ends the run; what else goes wrong is told to the model.
    """

    name: str
    description: str
    execute: Callable[[Any, ToolExecution], Awaitable[Any] | Any]
    validate: Callable[[Any], Valid | Invalid] = Valid


class ToolRegistry:
    """Tools by name. A run takes what is registered when it begins."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> None:
        """Add a tool. Raises ConfigurationError for a name that is blank or taken."""
        if not isinstance(tool, Tool) or not tool.name.strip():
            raise ConfigurationError(f"{tool!r:.80} is no tool with a name", field="tools")
        if tool.name in self._tools:
            raise ConfigurationError(f"tool {tool.name!r} is registered already", field="tools")
        self._tools[tool.name] = tool

    def snapshot(self) -> tuple[Tool, ...]:
        """The tools as they are now."""
        return tuple(self._tools.values())


def core_registry(tools: Iterable[Tool]) -> CoreRegistry:
    """The tools as the core takes them. The course allows names that providers would refuse."""
    return CoreRegistry(tuple(map(_core_tool, tools)))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def error_content(code: str, message: str) -> str:
    """The content of an error result."""
    return _compact({"error": {"code": code, "message": message}})


NOT_FOUND = error_content("TOOL_NOT_FOUND", "No tool of this run has this name")


def _core_tool(tool: Tool) -> CoreTool:
    async def execute(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return await _executed(tool, arguments, context)

    return CoreTool(
        name=tool.name,
        description=tool.description,
        parameters={"type": "object"},
        execute=execute,
    )


async def _executed(tool: Tool, arguments: JsonObject, context: ToolContext) -> ToolResult:
    decision = _decided(tool, arguments)
    if isinstance(decision, ToolResult):
        return decision
    if context.signal.aborted:
        return ToolResult()  # the run is cut: nobody reads it
    try:
        output = tool.execute(decision.value, ToolExecution(context.call_id, context.signal))
        output = await output if inspect.isawaitable(output) else output
    except FatalToolError:
        raise
    except Exception as error:  # a tool's failure is the call's result
        return _failed("TOOL_EXECUTION_FAILED", error_text(error))
    if found := violations({"": output}, OUTPUT):
        return _failed("TOOL_OUTPUT_SERIALIZATION_FAILED", "; ".join(found.values()))
    return ToolResult(content=_compact(output))


def _decided(tool: Tool, arguments: JsonObject) -> Valid | ToolResult:
    """What the validator let through, or the result of a call that it did not."""
    try:
        decision: Any = tool.validate(frozen(arguments))
        if inspect.isawaitable(decision):
            _drop(decision)
            raise TypeError("a validator must not be async")
        if not isinstance(decision, Valid | Invalid):
            raise TypeError(f"a validator says Valid or Invalid, not {decision!r:.80}")
    except FatalToolError:
        raise
    except Exception as error:  # a validator's failure is the call's result
        return _failed("TOOL_VALIDATION_FAILED", error_text(error))
    if isinstance(decision, Invalid):
        return _failed("TOOL_ARGUMENTS_INVALID", str(decision.error))
    return decision


def _failed(code: str, message: str) -> ToolResult:
    return ToolResult(content=error_content(code, message), is_error=True)


def _drop(awaitable: Any) -> None:
    """Close a coroutine that nobody will await, so that Python does not complain of it."""
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()
