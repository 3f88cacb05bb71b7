"""Turns on a database file, made by an agent in a process of its own.

As a script it plays a `Plan`; what it left in the file is found out in `finding`.
"""

import asyncio
import json
import logging
import os
import random
import re
import string
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from loopwright import Agent, Limits, Settings
from loopwright.outcome import RunResult
from loopwright.testing import Response, ScriptedModel

ROOT = Path(__file__).parents[3]
PER_RUN = 25
"""Turns of one run; more of them begin another run on the same thread."""

RETENTION = {"keep_last_checkpoints": "keep_checkpoints"}
"""What cases say of old checkpoints, and the setting that it is."""


@dataclass(frozen=True)
class Plan:
    """What one process does: `turns` on each of its threads, all threads at once."""

    threads: Sequence[str] = ("t1",)
    turns: int = 1
    chars_each: int = 20
    """Length of what a turn adds."""

    static_kb: float = 0
    """Length of the system prompt, in thousands of characters."""

    retention: dict[str, Any] = field(default_factory=dict)
    stock: bool = False
    """Whether LangGraph's own saver keeps the threads, in memory and with its own serializer."""


@dataclass(frozen=True)
class Told:
    """What a process said of itself: the errors of its runs, and the warnings that it gave."""

    errors: list[str]
    warnings: list[str]


async def work(path: Path, *plans: Plan, **environment: str) -> list[Told]:
    """Play the plans, each in a process of its own, all at once."""
    return list(await asyncio.gather(*(_played(path, plan, environment) for plan in plans)))


async def _played(path: Path, plan: Plan, environment: dict[str, str]) -> Told:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", __name__, str(path), json.dumps(asdict(plan))),
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError(f"the work could not be done: {err.decode().strip().splitlines()[-1]}")
    return Told(**json.loads(out))


def agent_of(path: Path, plan: Plan) -> Agent:
    """The agent that a plan speaks of."""

    def step(number: int) -> str:
        """One step of the work."""
        return _text(plan.chars_each, number)

    def answer(messages: list[BaseMessage]) -> str | Response:
        at = max(at for at, m in enumerate(messages) if isinstance(m, HumanMessage))
        wanted = int(re.findall(r"\d+", str(messages[at].text))[0])
        made = sum(isinstance(message, ToolMessage) for message in messages[at:])
        if made + 1 >= wanted:
            return _text(plan.chars_each, len(messages))
        id = f"c{len(messages)}"
        return Response(calls=[(id, "step", {"number": len(messages)})])

    kept = {RETENTION[key]: number for key, number in plan.retention.items()}
    return Agent(
        ScriptedModel(repeat(answer)),
        [step],
        _text(round(1000 * plan.static_kb), 0) or None,
        settings=Settings(limits=Limits(turns=PER_RUN), **kept),
        **({"checkpointer": InMemorySaver()} if plan.stock else {"database": path}),
    )


def _text(length: int, seed: int) -> str:
    """Letters that do not compress to nothing."""
    return "".join(random.Random(seed).choices(string.ascii_letters, k=length))


async def turns(agent: Agent, thread: str, count: int) -> list[str]:
    """Make so many turns on a thread; what went wrong."""
    for begun in range(0, count, PER_RUN):
        wanted = min(PER_RUN, count - begun)
        run = agent.prompt(f"Do {wanted} turns.", thread=thread)
        ended: RunResult | BaseException
        (ended,) = await asyncio.gather(run, return_exceptions=True)
        if isinstance(ended, BaseException):
            return [repr(ended)]
        if (ended.status, ended.turns) != ("completed", wanted):
            return [f"{ended.status} after {ended.turns} of {wanted} turns: {ended.error}"]
    return []


async def _play(path: Path, plan: Plan) -> Told:
    """Do the work, then read all that is stored of it."""
    with noted_warnings() as given:
        async with agent_of(path, plan) as agent:
            runs = [turns(agent, thread, plan.turns) for thread in plan.threads]
            errors = [error for found in await asyncio.gather(*runs) for error in found]
            for thread in plan.threads:
                config: Any = {"configurable": {"thread_id": thread}}
                async for snapshot in agent.graph.aget_state_history(config, limit=PER_RUN):
                    assert snapshot.config
    return Told(errors, given)


@contextmanager
def noted_warnings() -> Iterator[list[str]]:
    """Every warning that Python or a library's log gives inside."""
    given: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: given.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    with warnings.catch_warnings(record=True, action="always") as raised:
        yield given
    logging.getLogger().removeHandler(handler)
    given += [str(warning.message) for warning in raised]


if __name__ == "__main__":
    told = asyncio.run(_play(Path(sys.argv[1]), Plan(**json.loads(sys.argv[2]))))
    print(json.dumps(asdict(told)))
