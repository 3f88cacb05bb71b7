"""Agents on thread `t` over each kind of storage, and what they have done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from loopwright import Agent
from loopwright.testing import Gate, Response, ScriptedModel
from tests.support.savers import ours

Made = Callable[..., Agent]

STORAGES = ("file", "memory", "borrowed", "InMemorySaver")
"""Our own, in a file and in memory, and checkpointers that are handed in."""


@contextmanager
def making(storage: str, folder: Path) -> Iterator[Made]:
    """Makes agents on thread `t` over one kind of storage, and closes them."""
    agents: list[Agent] = []
    with _saver(storage, folder) as checkpointer:

        def make(*script: Any, tools: Any = (), **options: Any) -> Agent:
            database = folder / "t.db" if storage == "file" else None
            where: Any = {"checkpointer": checkpointer} if checkpointer else {"database": database}
            agent = Agent(ScriptedModel(script), tools, thread="t", **where, **options)
            agents.append(agent)
            return agent

        yield make
        for agent in agents:
            agent.close()


@contextmanager
def _saver(storage: str, folder: Path) -> Iterator[BaseCheckpointSaver[Any] | None]:
    if storage == "borrowed":
        with ours(folder / "t.db") as found:
            yield found
    else:
        yield InMemorySaver() if storage == "InMemorySaver" else None


def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


def working(made: Made, *more: Any) -> Agent:
    """An agent that has answered twice, the first time behind a call."""
    call = Response(text="I look.", calls=[("c1", "look", {"at": "it"})])
    agent = made(call, "seen", "two", *more, tools=[look])
    agent.run("one?")
    agent.run("two?")
    return agent


FIRST = ["user: one?", "assistant: I look. [c1]", "c1: saw it", "assistant: seen"]
WHOLE = [*FIRST, "user: two?", "assistant: two"]


class Effects:
    """A tool whose effects are counted; the second one waits at a gate."""

    def __init__(self) -> None:
        self.gate, self.done = Gate(), list[str]()

    async def effect(self, name: str) -> str:
        """Have an effect."""
        self.done.append(name)
        if name == "two":
            await self.gate.wait()
        return f"did {name}"


BOTH = Response(calls=[("c1", "effect", {"name": "one"}), ("c2", "effect", {"name": "two"})])
