"""The agents of others that are measured, over any saver, and LangGraph's own saver for them.

They need the extra `bench`; what is not asked for is not imported.
"""

import warnings
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks.work import Work

Saver = BaseCheckpointSaver[Any]
Peer = Callable[[Work, Saver], Any]
"""Makes the compiled graph of an agent that does this work and is stored by this saver."""


def create_agent(work: Work, saver: Saver) -> Any:
    """langchain's agent."""
    from langchain.agents import create_agent as make

    return make(work.model, [work.langchain_tool()], checkpointer=saver)


def deepagents(work: Work, saver: Saver) -> Any:
    """deepagents' agent; its messages are in a DeltaChannel."""
    from deepagents import create_deep_agent

    return create_deep_agent(work.model, [work.langchain_tool()], checkpointer=saver)


def create_react_agent(work: Work, saver: Saver) -> Any:
    """LangGraph's older agent."""
    from langgraph.prebuilt import create_react_agent as make

    with warnings.catch_warnings(action="ignore"):  # it is deprecated, and still in use
        return make(work.model, [work.langchain_tool()], checkpointer=saver)


PEERS: dict[str, Peer] = {
    "create_agent": create_agent,
    "deepagents": deepagents,
    "create_react_agent": create_react_agent,
}

_PACKAGES = {"create_agent": "langchain", "deepagents": "deepagents"}


def missing(names: Collection[str]) -> str | None:
    """What to do before these peers can be measured; None if nothing is missing."""
    absent = [name for name in names if name in _PACKAGES and not find_spec(_PACKAGES[name])]
    if not absent:
        return None
    return (
        f"{', '.join(absent)}: not installed; pip install 'loopwright[bench]' (make bench does), "
        "or name the contenders to measure without them"
    )


@asynccontextmanager
async def stock_saver(path: Path) -> AsyncIterator[Saver]:
    """LangGraph's own saver; it sets WAL itself, `synchronous=NORMAL` is set for it."""
    async with aiosqlite.connect(path) as connection:
        await connection.execute("PRAGMA synchronous=NORMAL")
        yield AsyncSqliteSaver(connection)


def config(thread: str) -> Any:
    """The config of a run that no limit of LangGraph ends."""
    return {"configurable": {"thread_id": thread}, "recursion_limit": 10**9}


async def run(graph: Any, thread: str = "t") -> None:
    """One message to its end, every step stored before the next begins."""
    given = {"messages": [("user", "go")]}
    output = await graph.ainvoke(given, config(thread), durability="sync")
    assert output["messages"][-1].text == "done"


async def load(graph: Any, thread: str = "t") -> int:
    """How many messages are read back."""
    state = await graph.aget_state(config(thread))
    return len(state.values["messages"])
