"""The graphs of the dev server of these tests: langchain's agent and ours, with one behaviour.

A run whose prompt begins with `wait` stays in its tool until someone opens the pipe that follows.
"""

import asyncio
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool

from loopwright import Agent
from loopwright.testing import Response, ScriptedModel


async def wait(path: str) -> str:
    """Wait until a pipe is opened; say beside it that this has begun."""
    await asyncio.to_thread(Path(f"{path}.begun").touch)
    await asyncio.to_thread(lambda: open(path).close())
    return "waited"


def answer(messages: list[BaseMessage]) -> Response | str:
    """A call of the tool if the last prompt asks for it, else text."""
    at = max(at for at, message in enumerate(messages) if isinstance(message, HumanMessage))
    word, *path = str(messages[at].text).split()
    if word == "wait" and not isinstance(messages[-1], ToolMessage):
        return Response(calls=[(f"c{len(messages)}", "wait", {"path": path[0]})])
    return f"heard {word}"


def theirs() -> Any:
    """langchain's agent."""
    tool = StructuredTool.from_function(coroutine=wait, name="wait")
    return create_agent(ScriptedModel(repeat(answer)), [tool])


@cache
def _agent() -> Agent:
    return Agent(ScriptedModel(repeat(answer)), [wait])


async def ours() -> Any:
    """Our agent's graph, without a checkpointer of its own."""
    agent = await asyncio.to_thread(_agent)
    return agent.graph.copy(update={"checkpointer": None})
