"""`python -m benchmarks.savers`: LangGraph's SQLite saver and ours under other people's agents.

Needs the extra `bench`. Every run is a fresh process; both savers are async, at durability `sync`
and `synchronous=NORMAL`, and keep every checkpoint.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiosqlite
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks.work import TurnModel, noop
from loopwright.state.checkpointer import SqliteCheckpointer
from loopwright.state.database import Database

EDGE = 20
"""Turns at either end whose mean is shown as `first` and `last`."""

Saver = BaseCheckpointSaver[Any]
CONFIG: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 1_000_000}

PEERS: dict[str, Callable[..., Any]] = {
    "create_agent": lambda model, tools, saver: create_agent(model, tools, checkpointer=saver),
    "deepagents": lambda model, tools, saver: create_deep_agent(
        model=model, tools=tools, checkpointer=saver
    ),
}


@asynccontextmanager
async def stock(path: Path) -> AsyncIterator[Saver]:
    """LangGraph's own saver."""
    async with aiosqlite.connect(path) as connection:
        await connection.execute("PRAGMA journal_mode=WAL")
        await connection.execute("PRAGMA synchronous=NORMAL")
        yield AsyncSqliteSaver(connection)


@asynccontextmanager
async def ours(path: Path) -> AsyncIterator[Saver]:
    """Our saver, as anyone would use it."""
    database = Database(path)
    yield SqliteCheckpointer(database)
    database.close()


SAVERS = {"stock": stock, "loopwright": ours}


async def measure(peer: str, saver: str, turns: int) -> dict[str, float]:
    """One run of a peer, and how long a reopened file takes to load."""
    tool = StructuredTool.from_function(coroutine=noop)
    model = TurnModel(turns=turns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        async with SAVERS[saver](path) as checkpointer:
            began = time.perf_counter()
            agent = PEERS[peer](model, [tool], checkpointer)
            await agent.ainvoke({"messages": "go"}, CONFIG, durability="sync")
            total = time.perf_counter() - began
        size = path.stat().st_size
        async with SAVERS[saver](path) as checkpointer:
            began = time.perf_counter()
            state = await PEERS[peer](model, [tool], checkpointer).aget_state(CONFIG)
            load = time.perf_counter() - began
        assert state.values["messages"][-1].text == "done"
    gaps = [1000 * (later - earlier) for earlier, later in pairwise(model.asked)]
    first, last = statistics.mean(gaps[:EDGE]), statistics.mean(gaps[-EDGE:])
    figures = {"mean": 1000 * total / turns, "first": first, "last": last}
    return {**figures, "KB": size / 1024, "load": 1000 * load}


def in_fresh_process(peer: str, saver: str, turns: int) -> dict[str, float]:
    """`measure` in a process of its own, without anyone's tracing."""
    command = [sys.executable, "-m", "benchmarks.savers", "--turns", str(turns)]
    quiet = {**os.environ, "LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}
    done = subprocess.run(
        [*command, "--measure", peer, saver], check=True, capture_output=True, text=True, env=quiet
    )
    row: dict[str, float] = json.loads(done.stdout)
    return row


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(asyncio.run(measure(*arguments.measure, arguments.turns[0]))))
        return
    for turns in arguments.turns:
        print(f"\n{turns} tool turns, median of {arguments.repeats} (ms per turn; ms to load)")
        print(f"{'':26}{'mean':>8}{'first':>8}{'last':>8}{'KB':>10}{'load':>8}")
        for peer in PEERS:
            for saver in SAVERS:
                runs = [in_fresh_process(peer, saver, turns) for _ in range(arguments.repeats)]
                row = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
                print(
                    f"{peer:14}{saver:12}{row['mean']:>8.2f}{row['first']:>8.2f}"
                    f"{row['last']:>8.2f}{row['KB']:>10.0f}{row['load']:>8.1f}"
                )


if __name__ == "__main__":
    main()
