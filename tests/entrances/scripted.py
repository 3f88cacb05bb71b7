"""The agent behind every entrance: its model reads from the transcript what it has to do next.

Loaded by the tests, by a LangServe process and by the dev server; what it writes is named by
`DATABASE` and `MARKER`.
"""

import asyncio
import os
import re
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from itertools import repeat
from pathlib import Path

import uvicorn
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langgraph.types import interrupt

from loopwright import Agent, SqliteCheckpointer
from loopwright.graph.entrance import AgentGraph
from loopwright.serve import create_app
from loopwright.state.database import Database
from loopwright.testing import Response, ScriptedModel

DATABASE = "ENTRANCE_DATABASE"
MARKER = "ENTRANCE_MARKER"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def hang() -> str:
    """Say which process this is, and never come back."""
    marker = Path(os.environ[MARKER])
    marker.with_suffix(".new").write_text(str(os.getpid()))
    marker.with_suffix(".new").rename(marker)
    threading.Event().wait()
    return "unreachable"


async def block() -> str:
    """Block the event loop, as no tool should."""
    time.sleep(0.001)  # noqa: ASYNC251 - that is the fault to be seen
    return "blocked"


async def ask() -> str:
    """Ask whoever runs the agent."""
    return f"they said {interrupt('sure?')}"


TOOLS = (add, ask, block, hang)


def answer(messages: list[BaseMessage]) -> str | Response:
    """What the model says: a call until the prompt is done, then text."""
    said = [m for m in messages if isinstance(m, HumanMessage)]
    prompt = str(said[-1].text)
    results = [m for m in messages[messages.index(said[-1]) :] if isinstance(m, ToolMessage)]
    id = f"call-{len(messages)}"
    if match := re.fullmatch(r"count to (\d+)", prompt):
        if len(results) < int(match.group(1)):
            return Response(calls=[(id, "add", {"a": len(results), "b": 1})])
        return f"counted to {results[-1].text}"
    if prompt in ("ask", "block", "hang") and not results:
        return Response(calls=[(id, prompt, {})])
    if prompt == "which number?":
        return next(str(m.text) for m in said if "my number is" in str(m.text))
    return results[-1].text if results else f"heard: {prompt}"


def model() -> ScriptedModel:
    """The model of every entrance; its script has no end."""
    return ScriptedModel(repeat(answer))


def agent(database: str | Path) -> Agent:
    """The agent as a user of the library has it."""
    return Agent(model(), TOOLS, database=database)


def hang_in(thread: str) -> None:
    """Run the agent into the tool that never ends."""
    agent(os.environ[DATABASE]).run("hang", thread=thread)


def serve(port: int) -> None:
    """The agent behind LangServe, in this process until it is ended."""
    uvicorn.run(create_app(agent(os.environ[DATABASE])), port=port, log_level="warning")


@cache
def _agent_without_database() -> Agent:
    return Agent(model(), TOOLS)


async def make_graph() -> AgentGraph:
    """The graph for the dev server: without a checkpointer, as that server wants it."""
    made = await asyncio.to_thread(_agent_without_database)
    return made.graph.copy(update={"checkpointer": None})


@asynccontextmanager
async def checkpointer() -> AsyncIterator[SqliteCheckpointer]:
    """Our checkpointer for the dev server, as `checkpointer.path` in its configuration names it."""
    database = Database(os.environ[DATABASE])
    try:
        yield SqliteCheckpointer(database)
    finally:
        database.close()
