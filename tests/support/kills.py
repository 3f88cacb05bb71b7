"""A process that is killed at a named place while its tools run, and what they did until then.

The agent's tools write each effect into a file that is synced before they return. What must be true
afterwards is the tests' own.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from langgraph.types import interrupt

from loopwright import Agent, Hooks, Settings, failpoints
from loopwright.hooks import Ask, ToolCallContext
from loopwright.testing import Response, ScriptedModel
from loopwright.tools import ToolContext, tool
from tests.support.processes import start

Plan = Sequence[tuple[str, str]]
"""The calls of the one batch in order: tool and argument. Their ids are c1, c2 and so on."""


@dataclass(frozen=True)
class Workshop:
    """A database and the file with the effects of the tools of every agent over it."""

    folder: Path

    @property
    def database(self) -> Path:
        """Where the thread `t` is kept."""
        return self.folder / "threads.db"

    def effects(self) -> list[str]:
        """What tools have done, in order, as `tool argument`."""
        return [line.rsplit(" ", 1)[0] for line in self._lines()]

    def keys(self) -> dict[str, set[str]]:
        """The idempotency keys under which each of it was done."""
        found: dict[str, set[str]] = {}
        for line in self._lines():
            effect, key = line.rsplit(" ", 1)
            found.setdefault(effect, set()).add(key)
        return found

    def counts(self) -> Counter[str]:
        """How often each of it was done."""
        return Counter(self.effects())

    def _lines(self) -> list[str]:
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []

    def agent(self, *script: Any, **options: Any) -> Agent:
        """An agent over the thread; each of its tools takes one argument `name`."""
        model = ScriptedModel(script)
        return Agent(model, self.tools(), database=self.database, thread="t", **options)

    def tools(self) -> list[Callable[..., Any]]:
        """One tool for each of the three effects, and one that asks a person before its effect."""

        def done(tool: str, name: str, context: ToolContext) -> str:
            with open(self.folder / "effects", "a") as file:
                file.write(f"{tool} {name} {context.idempotency_key}\n")
                file.flush()
                os.fsync(file.fileno())
            return f"{tool} {name}: done"

        @tool(effects="unsafe")
        async def book(name: str, context: ToolContext) -> str:
            """Book a seat."""
            return done("book", name, context)

        @tool(effects="idempotent")
        async def put(name: str, context: ToolContext) -> str:
            """Put a value in its place."""
            return done("put", name, context)

        @tool(effects="none")
        async def look(name: str, context: ToolContext) -> str:
            """Look at something."""
            return done("look", name, context)

        async def confirm(name: str, context: ToolContext) -> str:
            """Book a seat if a person says so."""
            return done("book", f"{name} for {interrupt(name)}", context)

        return [book, put, look, confirm]

    def kill(
        self, place: str, nth: int, plan: Plan, *, mode: str = "parallel", answer: str = ""
    ) -> None:
        """Have a process run this batch until it kills itself at the nth visit of a place.

        With an `answer` the tool `book` asks before it runs, and that is what it is told.
        """
        given = repr((str(self.folder), place, nth, list(plan), mode, answer))
        script = f"from tests.support.kills import run; run({given})"
        with start(script) as process:
            out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (-signal.SIGKILL, "", ""), err


def batch(plan: Plan) -> Response:
    """The answer that makes these calls."""
    return Response(
        calls=[(f"c{n}", tool, {"name": name}) for n, (tool, name) in enumerate(plan, 1)]
    )


def asking(context: ToolCallContext) -> Ask | None:
    """A hook that asks a person before `book` runs."""
    return Ask() if context.call.name == "book" else None


def run(given: tuple[str, str, int, Plan, str, str]) -> None:
    """Run the batch in this process, which does not survive it."""
    folder, place, nth, plan, mode, answer = given
    visits = iter(range(1, sys.maxsize))

    def visit() -> None:
        if next(visits) == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    failpoints.arm(cast(failpoints.Place, place), visit)
    asyncio.run(_run(Workshop(Path(folder)), plan, mode, answer))


async def _run(workshop: Workshop, plan: Plan, mode: str, answer: str) -> None:
    settings = Settings(tool_execution=cast(Any, mode))
    hooks = Hooks(before_tool_call=asking) if answer else None
    async with workshop.agent(batch(plan), "Done.", settings=settings, hooks=hooks) as agent:
        result = await agent.prompt("go")
        while answer and result.status == "interrupted":
            asked = [f"c{n}" for n, (tool, _) in enumerate(plan, 1) if tool == "book"]
            result = await agent.resume(dict.fromkeys(asked, answer))
