"""Others at the same database while turns are made: a lock, a reader, an iterator left half-read.

Lock and reader are in processes of their own. Each gives the facts of its case.
"""

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from loopwright import Agent
from loopwright.events import AnyEvent
from tests.conformance.storage.facts import Facts
from tests.conformance.storage.finding import turns_stored
from tests.conformance.storage.working import PER_RUN, ROOT, Plan, agent_of, turns

THREAD = "t1"
CONFIG: Any = {"configurable": {"thread_id": THREAD}}
NUMBERS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10}

LOCK = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
connection.execute("ROLLBACK")
"""
READER = """
import sys, time
from loopwright import Agent
config = {"configurable": {"thread_id": sys.argv[3]}}
with Agent("offline", database=sys.argv[1], thread=sys.argv[3]) as agent:
    print("reading", flush=True)
    while True:
        found = [snapshot.values for snapshot in agent.graph.get_state_history(config)]
        print(len(found), flush=True)
        time.sleep(float(sys.argv[2]) / 1000)
"""
"""Prints how many checkpoints each listing had, until it is ended."""


class UnknownWordError(Exception):
    """A case uses a word that nothing here knows."""


@asynccontextmanager
async def _neighbour(script: str, *arguments: object) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that has begun, and is killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", script, *map(str, arguments)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline(), await process.communicate()
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def beside_a_lock(path: Path, seconds: float) -> Facts:
    """A turn while another program holds the write lock."""
    async with agent_of(path, Plan()) as agent:
        assert not await turns(agent, THREAD, 1)
        async with _neighbour(LOCK, path, seconds) as process:
            began = time.monotonic()
            errors = await turns(agent, THREAD, 1)
            taken = time.monotonic() - began
            await process.wait()
        stored = len(agent.messages(THREAD))
    return {
        "turn_succeeds": not errors and stored == 4,
        "errors": len(errors),
        "turn_finishes_s": taken,
    }


async def beside_a_reader(path: Path, reader: str, count: int) -> Facts:
    """Turns while another process lists the thread's history again and again."""
    match = re.fullmatch(r"(?:list|list history|history) every (\d+(?:\.\d+)?) ?ms", reader)
    if match is None:
        raise UnknownWordError(f"unknown reader {reader!r}")
    began: list[float] = []

    async def note(event: AnyEvent) -> None:
        if event.type in ("agent_start", "turn_start", "turn_end", "agent_end"):
            began.append(time.monotonic())

    async with agent_of(path, Plan()) as agent:
        assert not await turns(agent, THREAD, 1)
        agent.subscribe(note)
        async with _neighbour(READER, path, match[1], THREAD) as process:
            errors = await turns(agent, THREAD, count)
            ended = process.returncode
            process.terminate()
            out, err = await process.communicate()
    listings = [int(line) for line in out.split()]
    if ended is not None:
        errors.append(err.decode().strip().splitlines()[-1])
    if not listings:
        errors.append("the reader has listed nothing")
    stored = turns_stored(path, [THREAD]) - 1  # the one before the reader came
    # A turn is longer than any write in it.
    longest = max(later - earlier for earlier, later in pairwise(began))
    return {"errors": len(errors), "write_ms": 1000 * longest, "turns_stored": stored}


class Steps:
    """A script of what is done with an agent and an iterator over its thread's history."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.iterator: Iterator[Any] = iter(())
        self.taken = 0
        self.seconds: list[float] = []
        self.errors: list[str] = []

    async def do(self, words: str) -> None:
        """Do what one phrase says. Raises UnknownWordError."""
        for pattern, act in _PHRASES.items():
            if match := re.fullmatch(pattern, words.strip()):
                await act(self, *(_number(word) for word in match.groups()))
                return
        raise UnknownWordError(f"unknown step {words!r}")

    async def open(self) -> None:
        """Begin to read the history."""
        self.iterator = self.agent.graph.get_state_history(CONFIG)

    async def take(self, count: int) -> None:
        """Read so many of its items."""
        for _ in range(count):
            await asyncio.to_thread(next, self.iterator)
            self.taken += 1

    async def rest(self) -> None:
        """Read it to its end."""
        self.taken += await asyncio.to_thread(lambda: sum(1 for _ in self.iterator))

    async def close(self) -> None:
        """Let go of it."""
        self.iterator = iter(())

    async def run(self, count: int) -> None:
        """Make turns and note how long it took."""
        began = time.monotonic()
        self.errors += await turns(self.agent, THREAD, count)
        self.seconds.append(time.monotonic() - began)


_PHRASES: dict[str, Any] = {
    r"open (?:a |the )?history iterator": Steps.open,
    r"take (\w+)(?: items?)?": Steps.take,
    r"(?:take|read) the rest": Steps.rest,
    r"(?:close|drop|leave) (?:it|the iterator)": Steps.close,
    r"run (\w+) turns?": Steps.run,
}


def _number(word: str) -> int:
    if word.isdigit():
        return int(word)
    if word not in NUMBERS:
        raise UnknownWordError(f"unknown number {word!r}")
    return NUMBERS[word]


async def half_read(path: Path, steps: list[str]) -> Facts:
    """The steps of a script, on a thread that has a past."""
    async with agent_of(path, Plan()) as agent:
        assert not await turns(agent, THREAD, PER_RUN)
        script = Steps(agent)
        for step in steps:
            for phrase in step.split(","):
                await script.do(phrase)
        stored = len(agent.messages(THREAD))
    longest = max(script.seconds, default=0.0)
    facts = {"turn_finishes_s": longest, "errors": len(script.errors), "taken": script.taken}
    return {**facts, "messages_stored": stored, "turn_succeeds": not script.errors}
