"""What `langgraph.json` may name, for `langgraph dev` and Studio: the graph, and our checkpointer.

The graph carries no checkpointer: that server brings its own, or the one that `checkpointer.path`
names.
"""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from loopwright.agent import Agent
from loopwright.graph.entrance import AgentGraph
from loopwright.prompts import FILES
from loopwright.settings import Environment
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.tools.files import FILE_TOOLS

_making = threading.Lock()


async def make_graph() -> AgentGraph:
    """The graph of an agent with the file tools over the current folder; the environment names the
    model. The server calls this for every request; it is one agent, so a thread has one owner.
    """
    # The server refuses calls in its event loop that touch the disk, such as asking for the folder.
    agent = await asyncio.to_thread(_agent)
    return agent.graph.copy(update={"checkpointer": None})


def _agent() -> Agent:
    with _making:
        return _only_agent()


@cache
def _only_agent() -> Agent:
    return Agent(tools=FILE_TOOLS, system_prompt=FILES, workspace=Path.cwd())


@asynccontextmanager
async def checkpointer() -> AsyncIterator[SqliteCheckpointer]:
    """Our checkpointer for any graph of that server, as `checkpointer.path` names it.

    The file is the one that `LOOPWRIGHT_DATABASE` names, or the command line's. Raises
    DatabaseError.
    """
    async with await asyncio.to_thread(_opened) as saver:
        yield saver


def _opened() -> SqliteCheckpointer:
    return SqliteCheckpointer(Environment().database_path())
