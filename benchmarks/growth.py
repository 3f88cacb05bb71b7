"""How our storage grows: long threads, runs that rewrite the tail, and loading a long thread cold.

Every measurement is a process of its own; what is asked of the figures is in `claims`.
"""

import asyncio
import json
import sqlite3
import statistics
import sys
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.messages import AIMessage

from benchmarks import peers
from benchmarks.contenders import our_agent
from benchmarks.measuring import in_fresh_process, stored_bytes
from benchmarks.work import Work, payload
from loopwright import SqliteCheckpointer
from loopwright.state.database import Database

LOADS = 7
"""How often a thread is loaded each way; the median counts."""

_ROWS = (
    "SELECT coalesce(type, 'msgpack'), body FROM loopwright_rows WHERE branch = ? ORDER BY position"
)
_LONGEST = "SELECT branch FROM loopwright_rows GROUP BY branch ORDER BY count(*) DESC LIMIT 1"


@dataclass(frozen=True)
class LongThread:
    """One thread of many turns: its bytes, and milliseconds to load it in two ways."""

    messages: int
    bytes: float
    load: float
    """The newest state through our graph, from a file that was just opened."""

    bare: float
    """SELECT and decode of the same rows, with the same serializer."""


async def long_thread(turns: int) -> LongThread:
    """Run one message to its end, close the file, and load it again."""
    work = Work(turns)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        async with our_agent(work, path) as agent:
            assert (await agent.prompt("go")).status == "completed"
        size, messages = stored_bytes(path), 2 * turns + 2
        loads, bares = [], []
        for _ in range(LOADS):
            async with our_agent(work, path) as agent:
                began = time.perf_counter()
                assert await peers.load(agent.graph) == messages
                loads.append(1000 * (time.perf_counter() - began))
            bares.append(_bare(path, messages))
    return LongThread(messages, size, statistics.median(loads), statistics.median(bares))


def _bare(path: Path, messages: int) -> float:
    """Milliseconds of reading the rows of the longest list, and nothing else."""
    serde = SqliteCheckpointer(Database()).serde
    with closing(sqlite3.connect(path)) as connection:
        (branch,) = connection.execute(_LONGEST).fetchone()
        began = time.perf_counter()
        found = [serde.loads_typed(row) for row in connection.execute(_ROWS, (branch,))]
        assert len(found) == messages
        return 1000 * (time.perf_counter() - began)


async def rewritten_tails(runs: int) -> float:
    """Bytes after so many runs on one thread, each after its owner rewrote the last answer."""
    texts = [payload(number) for number in range(100)]
    work = Work(1, texts)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        async with our_agent(work, path) as agent:
            for number in range(runs):
                if number:
                    agent.state.messages[-1] = AIMessage(texts[number % len(texts)])
                result = await agent.prompt("go")
                assert result.status == "completed", result
            assert len(agent.messages()) == 4 * runs
        return stored_bytes(path)


def long_thread_of(turns: int) -> LongThread:
    """`long_thread` in a fresh process."""
    return LongThread(**in_fresh_process("benchmarks.growth", "long_thread", turns))


def rewritten_tails_of(runs: int) -> float:
    """`rewritten_tails` in a fresh process."""
    return float(in_fresh_process("benchmarks.growth", "rewritten_tails", runs))


if __name__ == "__main__":
    _, _, what, count = sys.argv
    if what == "long_thread":
        print(json.dumps(asdict(asyncio.run(long_thread(int(count))))))
    else:
        print(json.dumps(asyncio.run(rewritten_tails(int(count)))))
