"""Tools by name, answers that call them, and batches run by the node alone."""

import asyncio
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from loopwright.nodes.tool_batch import tool_batch
from loopwright.tools.contract import Tool, ToolContext, ToolResult
from tests.ledgers import user
from tests.support.providers import said
from tests.support.states import Scene, state


def tool(name: str, answer: Any = "ok", **fields: Any) -> Tool:
    """A tool that answers with a result, with what a function gives, or by raising."""

    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        given = answer(arguments, context) if callable(answer) else answer
        value = await given if asyncio.iscoroutine(given) else given
        if isinstance(value, Exception):
            raise value
        return value if isinstance(value, ToolResult) else ToolResult(content=str(value))

    schema = {"type": "object"}
    return Tool(name=name, description=name, parameters=schema, execute=execute, **fields)


def calling(*names: str, stop: str | None = None) -> AIMessage:
    """An answer that calls these tools, as c1, c2 and so on."""
    calls: list[Any] = [(f"c{n}", name, {}) for n, name in enumerate(names, 1)]
    return said("", *calls, stop=stop).model_copy(update={"id": "a"})


async def batch(made: Scene, answer: AIMessage, *results: AnyMessage, **channels: Any) -> Any:
    return await tool_batch(state([user("u"), answer, *results], "tools", **channels), made.run)
