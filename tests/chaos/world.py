"""What a worker works on: a seeded model, tools of every kind, and a file that counts effects.

Everything is in one folder, so that whoever comes after a kill finds it again.
"""

import asyncio
import json
import os
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from loopwright import Agent, Settings, ToolContext, tool
from loopwright.nodes.compact import INSTRUCTION
from loopwright.testing import Response, ScriptedModel

THREAD = "chaos"
REPEATABLE = frozenset({"look", "put"})
"""The tools that may run twice for one call: one reads only, one is idempotent."""

SETTINGS = Settings(context_window=900, compaction_tail=4)
"""A window so small that a run of a few turns needs a compaction."""

_ANSWERS = 0.35
"""How often a batch is the last one of its run."""


@dataclass(frozen=True)
class Effect:
    """One line of the file of effects."""

    tool: str
    message: str
    call: str
    text: str
    """The result that came of it; no two effects have the same."""

    key: str = ""
    """The idempotency key that the tool was given."""


@dataclass(frozen=True)
class World:
    """A folder with a database and the effects that the tools had, and the seed of the model."""

    folder: Path
    seed: int

    @property
    def database(self) -> Path:
        return self.folder / "threads.db"

    def agent(self) -> Agent:
        """A fresh agent on the thread, as any process may open one."""
        return Agent(
            ScriptedModel(repeat(self._answer)),
            Tools(self._effects).all(),
            database=self.database,
            thread=THREAD,
            settings=SETTINGS,
        )

    def effects(self) -> list[Effect]:
        """What has happened so far."""
        try:
            lines = self._effects.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [Effect(**json.loads(line)) for line in lines]

    @property
    def _effects(self) -> Path:
        return self.folder / "effects.jsonl"

    def _answer(self, messages: list[BaseMessage]) -> Response:
        """What the model says: it depends on the seed and on what it is shown, on nothing else."""
        last = messages[-1]
        if last.text == INSTRUCTION:
            return Response(text="Much was done.")
        chance = random.Random(f"{self.seed} {len(messages)} {last.text}")
        if not isinstance(last, HumanMessage) and chance.random() < _ANSWERS:
            return Response(text="That was it.")
        # The same ids in every answer, as some servers send them.
        batch = [
            (f"call_{n}", chance.choice(_CHOICES), {"steps": chance.randrange(4)})
            for n in range(chance.choice([1, 2, 2, 3, 4]))
        ]
        return Response(text="I go on with it.", calls=batch)


_CHOICES = ["look", "put", "pay", "pay", "send", "step"]


@dataclass(frozen=True)
class Tools:
    """Tools of every kind; each of their effects is a line in the file."""

    path: Path

    def all(self) -> list[Callable[..., Any]]:
        """What the agent is given."""
        return [self.look, self.put, self.pay, self.send, self.step]

    @tool(effects="none")
    async def look(self, steps: int, context: ToolContext) -> str:
        """Look at something."""
        return await self._amid("look", context, steps)

    @tool(effects="idempotent")
    async def put(self, steps: int, context: ToolContext) -> str:
        """Put something where it may be already."""
        return await self._amid("put", context, steps)

    @tool
    async def pay(self, steps: int, context: ToolContext) -> str:
        """Pay a bill."""
        return await self._amid("pay", context, steps)

    @tool
    def send(self, steps: int, context: ToolContext) -> str:
        """Send a letter, in a thread."""
        return self._happen("send", context)

    @tool(execution_mode="sequential")
    async def step(self, steps: int, context: ToolContext) -> str:
        """Take a step, one after the other."""
        return await self._amid("step", context, steps)

    def _happen(self, name: str, context: ToolContext) -> str:
        """Have the effect: one line in the file, and on the disk when this returns."""
        text = f"{name} {os.urandom(6).hex()}"
        message = str(context.state["messages"][-1].id)
        effect = Effect(name, message, context.call_id, text, context.idempotency_key)
        line = json.dumps(asdict(effect)) + "\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())
            os.fsync(file)
        finally:
            os.close(file)
        return text

    async def _amid(self, name: str, context: ToolContext, steps: int) -> str:
        """The same between waits, so that the calls of a batch overlap."""
        for _ in range(steps):
            await asyncio.sleep(0)
        text = self._happen(name, context)
        for _ in range(3 - steps):
            await asyncio.sleep(0)
        return text
