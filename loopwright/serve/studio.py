"""The graph that `langgraph.json` names, for `langgraph dev` and Studio.

It carries no checkpointer: that server brings its own.
"""

import asyncio
import threading
from functools import cache
from pathlib import Path

from loopwright.agent import Agent
from loopwright.graph.entrance import AgentGraph
from loopwright.prompts import FILES
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
