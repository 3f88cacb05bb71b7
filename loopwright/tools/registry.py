"""Makes the registry of a run from whatever a user has: tools, functions, langchain tools.

How each kind becomes a Tool lives in `functions` and `langchain`.
"""

import inspect
import json
from collections.abc import Callable, Iterable
from typing import Any

from langchain_core.tools import BaseTool

from loopwright.errors import ConfigurationError
from loopwright.tools.arguments import check_schema
from loopwright.tools.contract import Tool, ToolRegistry
from loopwright.tools.functions import function_tool
from loopwright.tools.langchain import langchain_tool


def registry(tools: Iterable[Tool | BaseTool | Callable[..., Any]]) -> ToolRegistry:
    """A registry of these tools, in their order.

    Takes any mix of Tools, langchain tools and typed functions (methods, partials and callable
    objects too). Raises ConfigurationError, naming the tool, for a name that is taken or
    blank, for parameters without a JSON schema, and for what is no tool.
    """
    if isinstance(tools, str | bytes | dict) or not isinstance(tools, Iterable):
        raise ConfigurationError(
            f"tools is {_shown(tools)}: use a list of tools and functions", field="tools"
        )
    made: dict[str, Tool] = {}
    for given in tools:
        tool = _as_tool(given)
        _check(tool)
        if tool.name in made:
            raise ConfigurationError(
                f"tool {tool.name!r} is given twice: every name may be used once", field="tools"
            )
        made[tool.name] = tool
    return ToolRegistry(tuple(made.values()))


def _as_tool(given: Any) -> Tool:
    if isinstance(given, Tool):
        return given
    if isinstance(given, BaseTool):
        return langchain_tool(given)
    if callable(given) and not inspect.isclass(given):
        return function_tool(given)
    hint = "give an instance of it" if inspect.isclass(given) else "use a function or a Tool"
    raise ConfigurationError(f"{_shown(given)} is no tool: {hint}", field="tools")


def _check(tool: Tool) -> None:
    if not isinstance(tool.name, str) or not tool.name.strip():
        raise ConfigurationError(f"a tool has no name: {_shown(tool)}", field="tools")
    try:
        json.dumps(tool.parameters, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"tool {tool.name!r}: its parameters are not JSON ({error})", field="tools"
        ) from error
    check_schema(tool)


def _shown(value: object) -> str:
    return f"{value!r:.80}"
