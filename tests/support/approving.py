"""An agent that asks a person before it deletes: its tools write down what they have done.

What the person answers is the tests' own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langgraph.types import interrupt

from loopwright import Agent, Hooks
from loopwright.hooks import Ask, BeforeToolCall, ToolCallContext
from loopwright.ongoing import Ongoing
from loopwright.outcome import RunResult
from loopwright.testing import Response, ScriptedModel

BATCH: list[tuple[str, str, Any]] = [
    ("c1", "delete", {"path": "a"}),
    ("c2", "look", {}),
    ("c3", "delete", {"path": "b"}),
]
"""Two calls that ask and one that is free."""


@dataclass
class Desk:
    """Makes agents over one file; `ran` is what their tools did, whichever agent they belong to."""

    database: Path
    ran: list[str] = field(default_factory=list)
    looked_at: list[str] = field(default_factory=list)
    """The calls that the hook was shown."""

    def agent(self, *script: Any, **options: Any) -> Agent:
        """An agent on thread `t` whose model answers with this script."""
        return Agent(
            ScriptedModel(script),
            self.tools(),
            database=self.database,
            thread="t",
            hooks=Hooks(before_tool_call=self.careful),
            **options,
        )

    def tools(self) -> list[Callable[..., Any]]:
        """`delete` and `forbidden`, which the hook knows; `look`; `confirm`, which asks itself."""

        async def delete(path: str) -> str:
            """Delete a file."""
            self.ran.append(f"delete {path}")
            return f"deleted {path}"

        async def forbidden() -> str:
            """Do what is never allowed."""
            self.ran.append("forbidden")
            return "done"

        async def look() -> str:
            """Look around."""
            self.ran.append("look")
            return "seen"

        async def confirm(what: str) -> str:
            """Ask a person from within."""
            said = interrupt({"ask": what})
            self.ran.append(f"confirm {what}")
            return f"{what}: {said}"

        return [delete, forbidden, look, confirm]

    def careful(self, context: ToolCallContext) -> Ask | BeforeToolCall | None:
        """Ask before `delete` and before a `confirm` of something secret; block `forbidden`."""
        self.looked_at.append(context.call.id)
        if context.call.name == "forbidden":
            return BeforeToolCall(block=True, reason="never")
        if context.call.name == "delete" or context.arguments.get("what") == "secret":
            return Ask(reason="for good", details=dict(context.arguments))
        return None


def calling(*calls: tuple[str, str, Any]) -> Response:
    """An answer with these calls."""
    return Response(text="I work.", calls=calls)


def asked(result: RunResult) -> list[str]:
    """The calls that an interrupted run asks about; there is one interrupt."""
    (waiting,) = result.interrupts
    return [ask["call_id"] for ask in waiting["value"]["asks"]]


async def told_by(run: Ongoing) -> tuple[RunResult, list[Any]]:
    """What a run came to, and its events."""
    events = [event async for event in run]
    return await run, events
